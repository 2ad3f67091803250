//! The URL of a private server.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use crate::error::TargetError;

pub(super) const SCHEME: &str = "mariadb-temp";

/// `mariadb-temp:[/dir]`
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Address {
    /// Directory under which the server is to be made.
    pub(super) dir: Option<PathBuf>,
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
        if let Some((_, query)) = rest.split_once('?') {
            let name = query.split('=').next().unwrap_or_default();
            return Err(usage(format!("unknown parameter «{name}»: there are none (settings go with --setting)")));
        }
        if rest.is_empty() {
            return Ok(Address::default());
        }
        let bytes: Vec<u8> = percent_decode_str(rest).collect();
        if rest.starts_with("//") || !bytes.starts_with(b"/") || bytes.contains(&0) {
            return Err(usage(format!("the directory «{rest}» must begin with one /, as in {SCHEME}:/data/scratch")));
        }
        Ok(Address { dir: Some(PathBuf::from(OsString::from_vec(bytes))) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        assert_eq!(Address::parse("mariadb-temp:").unwrap().dir, None);
        assert_eq!(Address::parse("mariadb-temp:/a%20b").unwrap().dir, Some("/a b".into()));
        for url in ["mariadb-temp:x", "mariadb-temp://host", "mariadb-temp:/x?bin=/y", "postgres-temp:"] {
            assert!(Address::parse(url).is_err(), "{url}");
        }
    }
}
