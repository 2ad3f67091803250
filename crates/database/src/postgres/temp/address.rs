//! The URL of a private server.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use loadline_model::format::nearest;
use percent_encoding::percent_decode_str;

use crate::error::TargetError;

pub(super) const SCHEME: &str = "postgres-temp";
const PARAMETERS: [&str; 1] = ["bin"];

/// `postgres-temp:[/dir][?bin=/dir]`
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
        let (dir, query) = rest.split_once('?').map_or((rest, None), |(dir, query)| (dir, Some(query)));
        let mut address = Address::default();
        if !dir.is_empty() {
            if dir.starts_with("//") {
                return Err(usage(format!("there is no host here: write {SCHEME}: or {SCHEME}:/dir")));
            }
            let path = absolute(dir).ok_or_else(|| {
                usage(format!("the directory «{dir}» must begin with /, as in {SCHEME}:/data/scratch"))
            })?;
            address.dir = Some(path);
        }
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if name != "bin" {
                let hint = nearest(name, PARAMETERS).map_or(String::new(), |n| format!(", did you mean «{n}»?"));
                return Err(usage(format!(
                    "unknown parameter «{name}»{hint} (allowed: bin, the directory of the server's binaries)"
                )));
            }
            let path = absolute(value).ok_or_else(|| {
                usage(format!("bin=«{value}» must be a directory such as bin=/usr/lib/postgresql/16/bin"))
            })?;
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
    fn urls() {
        let of = |dir: Option<&str>, bin: Option<&str>| Address { dir: dir.map(Into::into), bin: bin.map(Into::into) };
        for (url, expected) in [
            ("postgres-temp:", of(None, None)),
            ("POSTGRES-TEMP:?", of(None, None)),
            ("postgres-temp:/a/b%20c", of(Some("/a/b c"), None)),
            ("postgres-temp:?bin=/usr/lib/postgresql/16/bin", of(None, Some("/usr/lib/postgresql/16/bin"))),
            ("postgres-temp:/a?bin=/b", of(Some("/a"), Some("/b"))),
        ] {
            assert_eq!(Address::parse(url).unwrap(), expected, "{url}");
        }
    }

    #[test]
    fn wrong_urls_are_named() {
        for (url, part) in [
            ("postgres:", "written postgres-temp:"),
            ("postgres-temp", "written postgres-temp:"),
            ("postgres-temp:dir", "«dir» must begin with /"),
            ("postgres-temp://host/db", "no host"),
            ("postgres-temp:?bon=/x", "unknown parameter «bon», did you mean «bin»?"),
            ("postgres-temp:?shared_buffers=1GB", "allowed: bin"),
            ("postgres-temp:?bin=", "bin=«»"),
            ("postgres-temp:?bin=/a&bin=/b", "twice"),
            ("postgres-temp:/a%00b", "must begin"),
        ] {
            match Address::parse(url) {
                Err(TargetError::Usage(text)) => assert!(text.contains(part), "{url}: {text}"),
                other => panic!("{url}: {other:?}"),
            }
        }
    }
}
