//! An Oracle URL, parsed and checked before anything is sent.

use crate::error::TargetError;
use crate::request::Secret;
use crate::url::{Url, choice, unknown};

const FORM: &str = "oracle://user@host:1521/service";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OraAddress {
    pub(super) user: String,
    pub(super) password: Option<Secret>,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) service: String,
    pub(super) tcps: bool,
    /// Folder with `ewallet.pem`.
    pub(super) wallet: Option<String>,
}

impl OraAddress {
    pub(super) fn parse(url: &str) -> Result<OraAddress, TargetError> {
        let url = Url::parse(url, FORM)?;
        let wrong = |what: &str| url.wrong(format!("{what} ({FORM})"));
        let user = url.decode("user", url.user)?.ok_or_else(|| wrong("give a user before the '@'"))?;
        let password = url.decode("password", url.password.unwrap_or_default())?.map(Secret::new);
        let host = url.host.to_owned();
        let port = url.port()?.unwrap_or(1521);
        let service = url.decode("service", url.path)?;
        let service = service.ok_or_else(|| wrong("give the name of the service after the host"))?;
        // Values in a connect descriptor must not close its brackets.
        let plain = |text: &str, also: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c) || also.contains(c))
        };
        if !plain(&host, ":") {
            return Err(wrong("the host must be a name or an address"));
        }
        if !plain(&service, "$#") {
            return Err(wrong("the service must be a name of letters, digits and . _ - $ #"));
        }
        let mut address = OraAddress { user, password, host, port, service, tcps: false, wallet: None };
        for (name, value) in url.parameters()? {
            let text = value.as_deref().unwrap_or_default();
            match name {
                "protocol" => {
                    let tcps = choice(name, text, &[("tcp", false), ("tcps", true)]);
                    address.tcps = tcps.map_err(|e| url.wrong(e))?;
                }
                "wallet" if !text.is_empty() => address.wallet = value,
                _ => return Err(url.wrong(unknown(name, &["protocol", "wallet"]))),
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

    /// The connect descriptor (Oracle Net Services Reference, "Protocol Address Configuration").
    #[cfg_attr(not(feature = "oracle"), allow(dead_code))]
    pub(super) fn descriptor(&self) -> String {
        let protocol = if self.tcps { "tcps" } else { "tcp" };
        format!(
            "(DESCRIPTION=(ADDRESS=(PROTOCOL={protocol})(HOST={})(PORT={}))(CONNECT_DATA=(SERVICE_NAME={})))",
            self.host, self.port, self.service
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed() {
        let address = OraAddress::parse("oracle://ann:a%40b@db.example.com/pdb1.example.com").unwrap();
        assert_eq!((address.user.as_str(), address.port), ("ann", 1521));
        assert_eq!(address.password.as_ref().map(Secret::expose), Some("a@b"));
        assert_eq!(address.shown(), "oracle://ann@db.example.com:1521/pdb1.example.com");
        assert_eq!(
            address.descriptor(),
            "(DESCRIPTION=(ADDRESS=(PROTOCOL=tcp)(HOST=db.example.com)(PORT=1521))(CONNECT_DATA=(SERVICE_NAME=pdb1.example.com)))"
        );
        let address = OraAddress::parse("oracle://ann:p%40s%3F%2Fw@[::1]:2484/x?protocol=tcps&wallet=/w").unwrap();
        assert_eq!(address.password.as_ref().map(Secret::expose), Some("p@s?/w"));
        assert_eq!((address.host.as_str(), address.port, address.tcps), ("::1", 2484, true));
        assert!(address.descriptor().contains("(PROTOCOL=tcps)"));
    }
}
