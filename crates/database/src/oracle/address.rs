//! Where an Oracle database is: its URL, taken apart and checked before anything is sent.

use percent_encoding::percent_decode_str;

use crate::error::TargetError;
use crate::secret::Secret;

const FORM: &str = "oracle://user@host:1521/service";

/// A service behind a listener, and the user to come as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OraAddress {
    pub(super) user: String,
    pub(super) password: Option<Secret>,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) service: String,
    /// Whether the listener speaks TLS.
    pub(super) tcps: bool,
    /// Folder with `ewallet.pem`.
    pub(super) wallet: Option<String>,
}

impl OraAddress {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`TargetError::Usage`], which says what is missing or wrong. It does not repeat a password.
    pub(super) fn parse(url: &str) -> Result<OraAddress, TargetError> {
        let wrong = |what: &str| TargetError::Usage(format!("«{}»: {what} ({FORM})", crate::redact(url)));
        let rest = url.split_once("://").map(|(_, rest)| rest).ok_or_else(|| wrong("give user, host and service"))?;
        let (rest, query) = split_last_query(rest);
        // A password may hold '@' and '/': the last '@' ends it.
        let (who, at) = rest.rsplit_once('@').ok_or_else(|| wrong("give a user before the «@»"))?;
        let (user, password) = match who.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (who, None),
        };
        let decoded = |text: &str, what: &str| {
            let text =
                percent_decode_str(text).decode_utf8().map_err(|_| wrong(&format!("the {what} is not UTF-8")))?;
            Ok::<_, TargetError>(text.into_owned())
        };
        let user = decoded(user, "user")?;
        if user.is_empty() {
            return Err(wrong("give a user before the «@»"));
        }
        let password = password.filter(|p| !p.is_empty()).map(|p| decoded(p, "password")).transpose()?.map(Secret::new);
        let (address, service) =
            at.split_once('/').ok_or_else(|| wrong("give the name of the service after the host"))?;
        let (host, port) = host_and_port(address).ok_or_else(|| wrong("the port must be a number from 1 to 65535"))?;
        let service = decoded(service, "service")?;
        // What goes into a connect descriptor must not be able to end one of its brackets.
        let plain = |text: &str, also: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c) || also.contains(c))
        };
        if !plain(&host, ":") {
            return Err(wrong("the host must be a name or an address"));
        }
        if !plain(&service, "$#") {
            return Err(wrong("the service must be a name of letters, digits, «.», «_», «-», «$», «#»"));
        }
        let mut address = OraAddress { user, password, host, port, service, tcps: false, wallet: None };
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match (key, value) {
                ("protocol", "tcp") => address.tcps = false,
                ("protocol", "tcps") => address.tcps = true,
                ("protocol", _) => return Err(wrong(&format!("protocol = «{value}» must be tcp or tcps"))),
                ("wallet", folder) if !folder.is_empty() => address.wallet = Some(decoded(folder, "wallet")?),
                _ => return Err(wrong(&format!("«{key}» is no parameter here: there are protocol and wallet"))),
            }
        }
        if address.wallet.is_some() && !address.tcps {
            return Err(wrong("a wallet needs protocol=tcps"));
        }
        Ok(address)
    }

    /// The URL without a password.
    pub(super) fn shown(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let tcps = if self.tcps { "?protocol=tcps" } else { "" };
        format!("oracle://{}@{host}:{}/{}{tcps}", self.user, self.port, self.service)
    }

    /// The connect descriptor (Oracle Net Services Reference, «Protocol Address Configuration»).
    #[cfg_attr(not(feature = "oracle"), allow(dead_code))]
    pub(super) fn descriptor(&self) -> String {
        let protocol = if self.tcps { "tcps" } else { "tcp" };
        format!(
            "(DESCRIPTION=(ADDRESS=(PROTOCOL={protocol})(HOST={})(PORT={}))(CONNECT_DATA=(SERVICE_NAME={})))",
            self.host, self.port, self.service
        )
    }
}

/// A '?' may stand in a password: only one behind the last '@' begins the parameters.
fn split_last_query(rest: &str) -> (&str, &str) {
    let after = rest.rfind('@').map_or(0, |at| at + 1);
    match rest[after..].find('?') {
        Some(mark) => (&rest[..after + mark], &rest[after + mark + 1..]),
        None => (rest, ""),
    }
}

fn host_and_port(address: &str) -> Option<(String, u16)> {
    const DEFAULT: u16 = 1521;
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            (host, after.strip_prefix(':'))
        }
        None => match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().ok().filter(|p| *p > 0)?,
        None => DEFAULT,
    };
    Some((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn urls_are_taken_apart() {
        let address = OraAddress::parse("oracle://ann:a%40b@db.example.com/pdb1.example.com").unwrap();
        assert_eq!((address.user.as_str(), address.port), ("ann", 1521));
        assert_eq!(address.password.as_ref().map(Secret::expose), Some("a@b"));
        assert_eq!(address.shown(), "oracle://ann@db.example.com:1521/pdb1.example.com");
        assert_eq!(
            address.descriptor(),
            "(DESCRIPTION=(ADDRESS=(PROTOCOL=tcp)(HOST=db.example.com)(PORT=1521))(CONNECT_DATA=(SERVICE_NAME=pdb1.example.com)))"
        );
        let address = OraAddress::parse("oracle://ann:p@s?/w@[::1]:2484/x?protocol=tcps&wallet=/w").unwrap();
        assert_eq!(address.password.as_ref().map(Secret::expose), Some("p@s?/w"));
        assert_eq!((address.host.as_str(), address.port, address.tcps), ("::1", 2484, true));
        assert!(address.descriptor().contains("(PROTOCOL=tcps)"));
    }

    #[test]
    fn what_is_wrong_is_named_and_no_password_is() {
        for (url, says) in [
            ("oracle:", "user, host"),
            ("oracle://host/x", "user"),
            ("oracle://a:secret@host", "service"),
            ("oracle://a:secret@host:0/x", "port"),
            ("oracle://a:secret@host:x/x", "port"),
            ("oracle://a:secret@ho)st/x", "host"),
            ("oracle://a:secret@host/x)(y", "service"),
            ("oracle://a:secret@host/x?protocol=udp", "tcp or tcps"),
            ("oracle://a:secret@host/x?walet=/x", "«walet»"),
            ("oracle://a:secret@host/x?wallet=/x", "tcps"),
        ] {
            let error = OraAddress::parse(url).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains("secret"), "{url}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_url_panics(rest in "\\PC{0,40}") {
            let _ = OraAddress::parse(&format!("oracle://{rest}"));
        }
    }
}
