//! Target URLs: removes passwords, and parses.

mod parts;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::TargetError;

pub(crate) use parts::{Url, choice, path, port, unknown};

/// `url` without any password: neither the one after the user nor a `password=` parameter.
pub fn redact(url: &str) -> String {
    let url = without_userinfo_secret(url);
    let (before_query, query) = url.split_once('?').map_or((url.as_str(), None), |(b, q)| (b, Some(q)));
    let mut out = before_query.to_owned();
    if let Some(query) = query {
        let kept: Vec<&str> =
            query.split('&').filter(|pair| !names_secret(pair.split('=').next().unwrap_or_default())).collect();
        if !kept.is_empty() {
            out.push('?');
            out.push_str(&kept.join("&"));
        }
    }
    out
}

/// Whether `text`, which stands before a value, says that the value is secret.
pub fn names_secret(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["password", "passwd", "secret"].iter().any(|word| text.contains(word))
}

/// Refuses settings of a server with a secret: they are stored with a run.
///
/// # Errors
/// [`TargetError::Usage`], without the value.
pub fn refuse_secrets(settings: &BTreeMap<String, String>) -> Result<(), TargetError> {
    // Also parts of a value, such as that of primary_conninfo.
    let is_secret = |(name, value): &(&String, &String)| names_secret(name) || names_secret(value);
    let Some((name, _)) = settings.iter().find(is_secret) else { return Ok(()) };
    Err(TargetError::Usage(format!(
        "--setting {name}: loadline stores the settings of a run, so it takes none whose name or value has the word password, passwd or \
         secret: leave it out"
    )))
}

/// Where the secret before the host is. A password that is not percent-encoded may contain any character, also '@', '/'
/// and '?'. So it is everything from the first colon to the last '@', unless the colon begins a port. Before the host of a
/// hub (`nats:`, `tls:`) a token may stand alone: there everything up to that '@' is secret, and the '@' with it.
fn userinfo_secret(url: &str) -> Option<Range<usize>> {
    let (scheme, rest) = url.split_once("//")?;
    let begin = scheme.len() + 2;
    let at = rest.rfind('@')?;
    if scheme.ends_with("nats:") || scheme.ends_with("tls:") {
        return Some(begin..begin + at + 1);
    }
    let colon = rest[..at].find(':')?;
    let port: String = rest[colon + 1..at].chars().take_while(|c| !"/?".contains(*c)).collect();
    let after_host = rest[..colon].contains('@') && port.len() < rest[colon + 1..at].len();
    if after_host && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(begin + colon..begin + at)
}

fn without_userinfo_secret(url: &str) -> String {
    userinfo_secret(url).map_or_else(|| url.to_owned(), |at| [&url[..at.start], &url[at.end..]].concat())
}

/// `text` without the passwords of `url`. The text may quote the URL or a part of it, also with merged slashes as in
/// a path.
pub fn hide(text: &str, url: &str) -> String {
    let clean = redact(url);
    if clean == url {
        return text.to_owned();
    }
    let mut out = text.replace(url, &clean);
    if let Some(secret) = userinfo_secret(url).map(|at| &url[at]).filter(|secret| *secret != "@") {
        // With its '@', because a short one may be part of other words.
        match secret.strip_suffix('@') {
            Some(_) => out = out.replace(secret, ""),
            None => out = out.replace(&format!("{secret}@"), "@"),
        }
    }
    let without = without_userinfo_secret(url);
    for pair in without.split_once('?').map_or("", |(_, query)| query).split('&') {
        if let Some((name, value)) = pair.split_once('=')
            && names_secret(name)
            && !value.is_empty()
        {
            out = out.replace(pair, &format!("{name}=…"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{hide, redact};
    use crate::cases::cases;

    #[test]
    fn a_quoted_url_is_shown_without_its_password() {
        for (url, text, clean) in cases::<(String, String, String)>("passwords-hidden-in-texts") {
            assert_eq!(hide(&text, &url), clean);
        }
    }

    #[test]
    fn no_password_is_left() {
        for (url, clean) in cases::<(String, String)>("passwords-redacted") {
            assert_eq!(redact(&url), clean);
            assert_eq!(redact(&clean), clean, "what is left is no secret");
        }
    }
}
