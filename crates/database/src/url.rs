//! Target URLs: removes passwords, and parses.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use loadline_model::format::did_you_mean;
use percent_encoding::percent_decode_str;

use crate::error::TargetError;

/// `url` without any password: neither the one after the user nor a `password=` parameter.
pub fn redact(url: &str) -> String {
    let url = without_userinfo_secret(url);
    let Some((place, query)) = url.split_once('?') else { return url };
    let is_plain = |pair: &&str| !names_secret(pair.split('=').next().unwrap_or_default());
    let kept: Vec<&str> = query.split('&').filter(is_plain).collect();
    if kept.is_empty() { place.to_owned() } else { format!("{place}?{}", kept.join("&")) }
}

/// Whether `text`, which stands before a value, says that the value is secret.
pub fn names_secret(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["password", "passwd", "secret"].iter().any(|word| text.contains(word))
}

/// Refuses settings of a server with a secret, which are stored with a run, without their values.
pub fn refuse_secrets(settings: &BTreeMap<String, String>) -> Result<(), TargetError> {
    // Also parts of a value, such as that of primary_conninfo.
    let is_secret = |(name, value): &(&String, &String)| names_secret(name) || names_secret(value);
    let Some((name, _)) = settings.iter().find(is_secret) else { return Ok(()) };
    Err(TargetError::Usage(format!(
        "--setting {name}: loadline stores the settings of a run, so it takes none whose name or value has the word password, passwd or \
         secret: leave it out"
    )))
}

/// Where the secret before the host is. A password that is not percent-encoded may contain any character, also '@', '/' and '?'. So it is
/// everything from the first colon to the last '@', unless the colon begins a port. Before the host of a hub (`nats:`, `tls:`) a token may
/// stand alone: there everything up to that '@' is secret, and the '@' with it.
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

/// `scheme://user:password@host:port/path?name=value&…`, each part still percent-encoded.
pub(crate) struct Url<'a> {
    /// The URL without its password.
    pub(crate) shown: String,
    pub(crate) user: &'a str,
    pub(crate) password: Option<&'a str>,
    pub(crate) host: &'a str,
    /// Empty if there is none.
    pub(crate) port: &'a str,
    pub(crate) path: &'a str,
    query: &'a str,
}

impl<'a> Url<'a> {
    /// Parses a URL; `form` is an example for the error message.
    pub(crate) fn parse(url: &'a str, form: &str) -> Result<Url<'a>, TargetError> {
        let shown = redact(url);
        let rest = url.split_once(':').and_then(|(_, rest)| rest.strip_prefix("//"));
        let rest =
            rest.ok_or_else(|| TargetError::Usage(format!("'{shown}': '//' must follow the scheme: write {form}")))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (credentials, place) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (user, password) = credentials.split_once(':').map_or((credentials, None), |(u, p)| (u, Some(p)));
        // A '?' of the password ends what is read of it: the rest stands in the query.
        let cut = query.contains('@') && (password.is_some() || !rest.contains('@') && rest.contains(':'));
        if cut || password.is_some_and(|password| !is_encoded(password)) {
            return Err(TargetError::Usage(NOT_ENCODED.into()));
        }
        let (host_port, path) = place.split_once('/').unwrap_or((place, ""));
        let (host, port) = split_port(host_port)
            .ok_or_else(|| TargetError::Usage(format!("'{shown}': '{host_port}' is not a host and port")))?;
        Ok(Url { shown, user, password, host, port, path, query })
    }

    /// The error for an invalid part.
    pub(crate) fn wrong(&self, what: impl std::fmt::Display) -> TargetError {
        TargetError::Usage(format!("'{}': {what}", self.shown))
    }

    /// Decodes a part; `None` if it is empty. `what` names it in errors.
    pub(crate) fn decode(&self, what: &str, part: &str) -> Result<Option<String>, TargetError> {
        let text = percent_decode_str(part).decode_utf8();
        let text = text.map_err(|_| self.wrong(format!("the {what} is not UTF-8")))?;
        if text.contains('\0') {
            return Err(self.wrong(format!("the {what} contains a zero byte")));
        }
        Ok(Some(text.into_owned()).filter(|text| !text.is_empty()))
    }

    /// Name and decoded value of each parameter.
    pub(crate) fn parameters(&self) -> Result<Vec<(&'a str, Option<String>)>, TargetError> {
        let pairs = self.query.split('&').filter(|pair| !pair.is_empty());
        pairs
            .map(|pair| {
                let pair = pair.split_once('=').ok_or_else(|| self.wrong(format!("the parameter '{pair}' has no '='")));
                pair.and_then(|(name, value)| Ok((name, self.decode(name, value)?)))
            })
            .collect()
    }

    /// The port; `None` if there is none.
    pub(crate) fn port(&self) -> Result<Option<u16>, TargetError> {
        Some(self.port).filter(|port| !port.is_empty()).map(|p| port(p).map_err(|e| self.wrong(e))).transpose()
    }
}

/// Never with a part of the URL: it may be the password's.
const NOT_ENCODED: &str = "what stands between the URL's user and its last '@' has characters that a URL cannot have there: in a password \
     write '@' as %40, '/' as %2F, '?' as %3F, '#' as %23 and '%' as %25. Or leave the password out and give it in PGPASSWORD or \
     ~/.pgpass (PostgreSQL), in MYSQL_PWD or ~/.my.cnf (MariaDB and MySQL), in ORACLE_PASSWORD (Oracle). Write '@' in a parameter as %40, too";

/// Whether a password can stand in a URL as it is.
fn is_encoded(password: &str) -> bool {
    let begins_with_code = |part: &str| part.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    !password.contains(['@', '/', '?', '#']) && password.split('%').skip(1).all(begins_with_code)
}

/// A port that is not 0.
pub(crate) fn port(text: &str) -> Result<u16, String> {
    text.parse().ok().filter(|port| *port != 0).ok_or_else(|| format!("'{text}' is not a port: 1 to 65535"))
}

/// Splits `host`, `host:port` or `[v6]:port`; either part may be empty.
fn split_port(text: &str) -> Option<(&str, &str)> {
    if let Some(v6) = text.strip_prefix('[') {
        let (host, port) = v6.split_once(']')?;
        return if port.is_empty() { Some((host, "")) } else { Some((host, port.strip_prefix(':')?)) };
    }
    match text.split_once(':') {
        Some((_, port)) if port.contains(':') => None,
        Some(parts) => Some(parts),
        None => Some((text, "")),
    }
}

/// Decodes a percent-encoded path; `None` if it is empty or contains a zero byte.
pub(crate) fn path(text: &str) -> Option<PathBuf> {
    let bytes: Vec<u8> = percent_decode_str(text).collect();
    (!bytes.is_empty() && !bytes.contains(&0)).then(|| PathBuf::from(OsString::from_vec(bytes)))
}

/// The message for an unknown parameter.
pub(crate) fn unknown(name: &str, known: &[&str]) -> String {
    let hint = did_you_mean(name, known.iter().copied());
    format!("unknown parameter '{name}'{hint} (known: {})", known.join(", "))
}

/// The choice named by a parameter's value.
pub(crate) fn choice<T: Copy>(name: &str, value: &str, all: &[(&str, T)]) -> Result<T, String> {
    all.iter().find(|(n, _)| *n == value).map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(n, _)| *n).collect();
        let hint = did_you_mean(value, names.iter().copied());
        format!("{name} '{value}' must be one of {}{hint}", names.join(", "))
    })
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
