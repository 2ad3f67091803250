//! URLs without their secrets.

/// `url` without any password: neither the one after the user nor a `password=` parameter.
#[must_use]
pub fn redact(url: &str) -> String {
    let (before_query, query) = url.split_once('?').map_or((url, None), |(b, q)| (b, Some(q)));
    let mut out = match before_query.split_once("//") {
        Some((scheme, rest)) => {
            // A password may hold any character, '@' and '/' included when it is written carelessly:
            // everything from the first colon to the last '@' goes.
            match rest.rfind('@') {
                Some(at) => {
                    let user = rest[..at].split(':').next().unwrap_or_default();
                    format!("{scheme}//{user}{}", &rest[at..])
                }
                None => before_query.to_owned(),
            }
        }
        None => before_query.to_owned(),
    };
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
            ("postgres://host/db", "postgres://host/db"),
            ("sqlite:/tmp/x.db?page_size=4096", "sqlite:/tmp/x.db?page_size=4096"),
        ] {
            assert_eq!(redact(url), clean);
        }
    }
}
