//! URLs without their secrets.

/// `url` without any password: neither the one after the user nor a `password=` parameter.
#[must_use]
pub fn redact(url: &str) -> String {
    let url = without_userinfo_password(url);
    let (before_query, query) = url.split_once('?').map_or((url.as_str(), None), |(b, q)| (b, Some(q)));
    let mut out = before_query.to_owned();
    if let Some(query) = query {
        let kept: Vec<&str> = query
            .split('&')
            .filter(|pair| !pair.split('=').next().unwrap_or_default().to_ascii_lowercase().contains("password"))
            .collect();
        if !kept.is_empty() {
            out.push('?');
            out.push_str(&kept.join("&"));
        }
    }
    out
}

/// A password may hold any character, '@', '/' and '?' included when it is written carelessly:
/// everything from the first colon to the last '@' goes, unless the colon begins a port.
fn without_userinfo_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("//") else { return url.to_owned() };
    let Some(at) = rest.rfind('@') else { return url.to_owned() };
    let Some(colon) = rest[..at].find(':') else { return url.to_owned() };
    let port: String = rest[colon + 1..at].chars().take_while(|c| !"/?".contains(*c)).collect();
    let after_host = rest[..colon].contains('@') && port.len() < rest[colon + 1..at].len();
    if after_host && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) {
        return url.to_owned();
    }
    format!("{scheme}//{}{}", &rest[..colon], &rest[at..])
}

#[cfg(test)]
mod tests {
    use super::redact;

    #[test]
    fn no_password_is_left() {
        for (url, clean) in [
            ("postgres://ann:secret@host:5432/db", "postgres://ann@host:5432/db"),
            ("postgres://ann:se@cr/et@host/db?sslmode=require", "postgres://ann@host/db?sslmode=require"),
            ("postgres://ann@/db?host=/run&password=secret&port=5", "postgres://ann@/db?host=/run&port=5"),
            ("postgres://ann@/db?sslpassword=secret", "postgres://ann@/db"),
            ("postgres://ann:se?cr@t@host/db?sslmode=require", "postgres://ann@host/db?sslmode=require"),
            ("postgres://ann@host:5432/db?options=a@b", "postgres://ann@host:5432/db?options=a@b"),
            ("postgres://[::1]:5432/db", "postgres://[::1]:5432/db"),
            ("postgres://host/db", "postgres://host/db"),
            ("sqlite:/tmp/x.db?page_size=4096", "sqlite:/tmp/x.db?page_size=4096"),
        ] {
            assert_eq!(redact(url), clean);
        }
    }
}
