//! The URL of a private server.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use loadline_model::format::nearest;
use percent_encoding::percent_decode_str;

use crate::error::TargetError;

pub(super) const SCHEME: &str = "mariadb-temp";

/// `mariadb-temp:[/dir][?bin=/dir]`
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Address {
    /// Directory under which the server is to be made.
    pub(super) dir: Option<PathBuf>,
    /// Directory of the binaries.
    pub(super) bin: Option<PathBuf>,
}

/// Whether the URL is one of a private server.
pub(super) fn is_temp(url: &str) -> bool {
    url.split_once(':').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case(SCHEME))
}

impl Address {
    /// Parses a URL.
    pub(super) fn parse(url: &str) -> Result<Address, TargetError> {
        let usage = |what: String| TargetError::Usage(format!("«{}»: {what}", crate::redact(url)));
        let Some((_, rest)) = url.split_once(':').filter(|_| is_temp(url)) else {
            return Err(usage(format!("a private server is written {SCHEME}: or {SCHEME}:/dir")));
        };
        let (dir, query) = rest.split_once('?').map_or((rest, ""), |(dir, query)| (dir, query));
        let mut address = Address::default();
        if !dir.is_empty() {
            let path = absolute(dir).filter(|_| !dir.starts_with("//"));
            address.dir = Some(path.ok_or_else(|| {
                usage(format!("the directory «{dir}» must begin with one /, as in {SCHEME}:/data/scratch"))
            })?);
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if name != "bin" {
                let hint = nearest(name, ["bin"]).map_or(String::new(), |n| format!(", did you mean «{n}»?"));
                return Err(usage(format!(
                    "unknown parameter «{name}»{hint} (allowed: bin, the directory of the server's binaries; settings go \
                     with --setting)"
                )));
            }
            let path = absolute(value)
                .ok_or_else(|| usage(format!("bin=«{value}» must be a directory such as bin=/opt/mariadb/bin")))?;
            if address.bin.replace(path).is_some() {
                return Err(usage("bin is given twice".to_owned()));
            }
        }
        Ok(address)
    }
}

/// The path that a percent-encoded text stands for, if it is an absolute one.
fn absolute(text: &str) -> Option<PathBuf> {
    let bytes: Vec<u8> = percent_decode_str(text).collect();
    (bytes.starts_with(b"/") && !bytes.contains(&0)).then(|| PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        assert_eq!(Address::parse("mariadb-temp:").unwrap().dir, None);
        assert_eq!(Address::parse("mariadb-temp:/a%20b").unwrap().dir, Some("/a b".into()));
        let both = Address { dir: Some("/x".into()), bin: Some("/y z".into()) };
        assert_eq!(Address::parse("mariadb-temp:/x?bin=/y%20z").unwrap(), both);
        for (url, words) in [
            ("mariadb-temp:x", "must begin with one /"),
            ("mariadb-temp://host", "must begin with one /"),
            ("postgres-temp:", "is written mariadb-temp:"),
            ("mariadb-temp:?bni=/y", "did you mean «bin»?"),
            ("mariadb-temp:?bin=y", "bin=«y»"),
            ("mariadb-temp:?bin=/y&bin=/z", "twice"),
        ] {
            let said = Address::parse(url).map_or_else(|e| e.to_string(), |a| format!("{a:?}"));
            assert!(said.contains(words), "{url}: {said}");
        }
    }
}
