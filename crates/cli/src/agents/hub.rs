//! The URL of a hub: `nats://[token@ | user:password@]host[:port]`.

use std::str::FromStr;

/// NATS' own port.
const PORT: u16 = 4222;
/// What a URL may look like, for messages.
const FORMS: &str = "nats://host:4222 or tls://host:4222, with user:password@ or token@ before the host";

/// Where the hub is, and what it asks for.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Hub {
    scheme: String,
    /// `token` or `user:password`, as written.
    credentials: Option<String>,
    /// Name or address; of an IPv6 address without its brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Hub {
    /// Whether the URL holds what nobody else may see.
    pub(super) fn has_credentials(&self) -> bool {
        self.credentials.is_some()
    }

    /// Whether the hub's certificate is checked.
    pub(super) fn is_encrypted(&self) -> bool {
        self.scheme == "tls"
    }

    /// Host and port, an IPv6 address in brackets.
    pub(super) fn place(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// The same hub, reached at `port` of the loopback address.
    pub(super) fn through(&self, port: u16) -> Hub {
        Hub { host: "127.0.0.1".to_owned(), port, ..self.clone() }
    }

    /// The URL with its credentials.
    pub(super) fn url(&self) -> String {
        let credentials = self.credentials.as_ref().map_or(String::new(), |c| format!("{c}@"));
        format!("{}://{credentials}{}", self.scheme, self.place())
    }
}

/// Without credentials.
impl std::fmt::Display for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme, self.place())
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Hub {
    type Err = String;

    /// Errors do not quote the text: a mistyped URL may hold a token.
    fn from_str(text: &str) -> Result<Hub, String> {
        let wrong = |what: &str| format!("the hub's URL {what}: write {FORMS}");
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("has no scheme"))?;
        if !matches!(scheme, "nats" | "tls") {
            return Err(wrong("has another scheme than nats or tls"));
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (credentials, place) = match rest.rsplit_once('@') {
            Some(("", _)) => return Err(wrong("has nothing before its @")),
            Some((credentials, place)) => (Some(credentials.to_owned()), place),
            None => (None, rest),
        };
        if credentials.as_deref().is_some_and(|c| c.contains(|c: char| c.is_whitespace() || c.is_control())) {
            return Err(wrong("has blanks in its credentials"));
        }
        let (host, port) = match place.strip_prefix('[').map(|inside| inside.split_once(']')) {
            Some(Some((host, ""))) => (host, None),
            Some(Some((host, port))) => {
                (host, Some(port.strip_prefix(':').ok_or_else(|| wrong("has no ':' before its port"))?))
            }
            Some(None) => return Err(wrong("has no ']' after its address")),
            None => place.rsplit_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
        };
        let is_address = host.parse::<std::net::IpAddr>().is_ok();
        let is_name =
            !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.' || b == b'_');
        if !is_address && (!is_name || host.starts_with('-')) {
            return Err(wrong(&format!("names no host: '{host}'")));
        }
        let number = |text: &str| text.parse().ok().filter(|port| *port != 0);
        let port = match port {
            None => PORT,
            Some(text) => number(text).ok_or_else(|| wrong(&format!("has no port from 1 to 65535: '{text}'")))?,
        };
        Ok(Hub { scheme: scheme.to_owned(), credentials, host: host.to_owned(), port })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart_and_put_together() {
        for (text, place, url) in [
            ("nats://h", "h:4222", "nats://h:4222"),
            ("nats://h:1/", "h:1", "nats://h:1"),
            ("tls://t0k:en@10.0.0.1:4223", "10.0.0.1:4223", "tls://t0k:en@10.0.0.1:4223"),
            ("nats://a@b@[::1]:9", "[::1]:9", "nats://a@b@[::1]:9"),
            ("nats://[::1]", "[::1]:4222", "nats://[::1]:4222"),
        ] {
            let hub: Hub = text.parse().unwrap();
            assert_eq!((hub.place().as_str(), hub.url().as_str()), (place, url));
            assert!(!format!("{hub} {hub:?}").contains("t0k"), "{hub:?}");
        }
        let through = "nats://secret@far:1".parse::<Hub>().unwrap().through(7);
        assert_eq!(through.url(), "nats://secret@127.0.0.1:7");
    }

    #[test]
    fn what_is_no_hub_is_refused_without_its_secret() {
        for bad in [
            "h", "http://t0ken@h", "nats://", "nats://t0ken@", "nats://@h", "nats://t0ken@h:0", "nats://t0ken@h:70000",
            "nats://t0ken@-h", "nats://t0ken@h h", "nats://t0ken@[::1", "nats://t0ken@[::1]4222", "nats://t0 ken@h",
            "nats://t0ken@h:1\nx",
        ] {
            let message = bad.parse::<Hub>().unwrap_err();
            assert!(message.contains("nats://host:4222") && !message.contains("t0ken"), "{message}");
        }
    }
}
