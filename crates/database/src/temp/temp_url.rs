//! The URL of a private server.

use std::path::PathBuf;

use super::product::Product;
use crate::error::TargetError;
use crate::url::{path, unknown};

/// Most further servers of a private cluster.
const MOST: u32 = 8;

/// A parsed `SCHEME:[/dir][?bin=/dir&standbys=N]`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TempUrl {
    /// Directory under which the server is created.
    pub(crate) dir: Option<PathBuf>,
    /// Directory of the binaries.
    pub(crate) bin: Option<PathBuf>,
    /// Servers besides the first.
    pub(crate) further: u32,
}

impl TempUrl {
    /// Parses a URL of `product`.
    ///
    /// # Errors
    /// [`TargetError::Usage`] with the invalid part and what is allowed.
    pub(super) fn parse(url: &str, product: &Product) -> Result<TempUrl, TargetError> {
        let Product { scheme, bin: example, further, .. } = product;
        let usage = |what: String| TargetError::Usage(format!("'{}': {what}", crate::redact(url)));
        let rest = url.split_once(':').filter(|_| is_of(url, scheme)).map(|(_, rest)| rest);
        let rest = rest.ok_or_else(|| usage(format!("the URL of a private server is {scheme}: or {scheme}:/dir")))?;
        let (dir, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut address = TempUrl::default();
        if dir.starts_with("//") {
            return Err(usage(format!("a private server has no host: write {scheme}: or {scheme}:/dir")));
        }
        if !dir.is_empty() {
            address.dir = Some(absolute(dir).ok_or_else(|| {
                usage(format!("the directory '{dir}' must begin with /, as in {scheme}:/data/scratch"))
            })?);
        }
        let mut servers = None;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if Some(name) == *further {
                let number = value.parse().ok().filter(|n| (1..=MOST).contains(n));
                address.further =
                    number.ok_or_else(|| usage(format!("{name}='{value}' must be a number from 1 to {MOST}")))?;
                if servers.replace(address.further).is_some() {
                    return Err(usage(format!("{name} is given twice")));
                }
                continue;
            }
            if name != "bin" {
                let known: Vec<&str> = std::iter::once("bin").chain(*further).collect();
                return Err(usage(format!(
                    "{}: bin is the directory of the server's binaries; give settings with --setting",
                    unknown(name, &known)
                )));
            }
            let dir =
                path(value).filter(|dir| !dir.as_os_str().is_empty()).and_then(|dir| std::path::absolute(dir).ok());
            let path = dir.ok_or_else(|| usage(format!("bin='{value}' must be a directory such as bin={example}")))?;
            if address.bin.replace(path).is_some() {
                return Err(usage("bin is given twice".to_owned()));
            }
        }
        Ok(address)
    }
}

/// Whether the URL has this scheme.
pub(crate) fn is_of(url: &str, scheme: &str) -> bool {
    url.split_once(':').is_some_and(|(found, _)| found.eq_ignore_ascii_case(scheme))
}

fn absolute(text: &str) -> Option<PathBuf> {
    path(text).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<TempUrl, TargetError> {
        TempUrl::parse(url, &crate::postgres::TEMP_PRODUCT)
    }

    #[test]
    fn urls() {
        let of = |dir: Option<&str>, bin: Option<&str>| TempUrl {
            dir: dir.map(Into::into),
            bin: bin.map(Into::into),
            further: 0,
        };
        for (url, expected) in [
            ("postgres-temp:", of(None, None)),
            ("POSTGRES-TEMP:?", of(None, None)),
            ("postgres-temp:/a/b%20c", of(Some("/a/b c"), None)),
            ("postgres-temp:?bin=/usr/lib/postgresql/16/bin", of(None, Some("/usr/lib/postgresql/16/bin"))),
            ("postgres-temp:/a?bin=/b/./c", of(Some("/a"), Some("/b/c"))),
            ("postgres-temp:/a?bin=/b%20c", of(Some("/a"), Some("/b c"))),
            ("postgres-temp:?standbys=2", TempUrl { further: 2, ..TempUrl::default() }),
        ] {
            assert_eq!(parse(url).unwrap(), expected, "{url}");
        }
    }

    #[test]
    fn wrong_urls_are_named() {
        for (url, part) in [
            ("postgres:", "private server is postgres-temp:"),
            ("mariadb-temp:", "private server is postgres-temp:"),
            ("postgres-temp", "private server is postgres-temp:"),
            ("postgres-temp:dir", "'dir' must begin with /"),
            ("postgres-temp://host/db", "has no host"),
            ("postgres-temp:?bon=/x", "unknown parameter 'bon': did you mean 'bin'?"),
            ("postgres-temp:?shared_buffers=1GB", "known: bin, standbys"),
            ("postgres-temp:?standbys=0", "standbys='0' must be a number from 1 to 8"),
            ("postgres-temp:?standbys=x", "standbys='x' must be"),
            ("postgres-temp:?standbys=99", "from 1 to 8"),
            ("postgres-temp:?standbys", "from 1 to 8"),
            ("postgres-temp:?standbys=1&standbys=2", "twice"),
            ("postgres-temp:?bin=", "bin='' must be a directory such as bin=/usr/lib"),
            ("postgres-temp:?bin=/a&bin=/b", "twice"),
            ("postgres-temp:/a%00b", "must begin"),
        ] {
            match parse(url) {
                Err(TargetError::Usage(text)) => assert!(text.contains(part), "{url}: {text}"),
                other => panic!("{url}: {other:?}"),
            }
        }
    }
}
