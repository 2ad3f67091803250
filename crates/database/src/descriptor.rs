//! The language of `postgres.toml` and `mysql.toml`, which hold what loadline knows about these databases.
//!
//! A mistake in a file is an error with its line and what is allowed there. The files are part of the program, and
//! tests read them, so a user never sees such an error.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

/// What a server is: its product, and its version as up to three numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Release {
    pub(crate) product: Product,
    pub(crate) number: [u32; 3],
}

/// The product of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Product {
    Postgres,
    Mariadb,
    Mysql,
}

/// A range of versions with both ends in it (`16-17`), from one on (`18-`), up to one (`-10.7`), or one (`17`); before it
/// the product, if the others have no such thing (`mariadb 10.8-`, `mysql`).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Versions {
    product: Option<Product>,
    from: Vec<u32>,
    to: Vec<u32>,
}

impl TryFrom<String> for Versions {
    type Error = String;

    fn try_from(text: String) -> Result<Versions, String> {
        let (first, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let (product, range) = match first {
            "mariadb" => (Some(Product::Mariadb), rest),
            "mysql" => (Some(Product::Mysql), rest),
            _ => (None, text.as_str()),
        };
        let number = |text: &str| text.split('.').map(|part| part.parse::<u32>().ok()).collect::<Option<Vec<u32>>>();
        let end = |text: &str| if text.is_empty() { Some(Vec::new()) } else { number(text) };
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        if let (Some(from), Some(to)) = (end(from), end(to))
            && (product.is_some() || !(from.is_empty() && to.is_empty()))
            && (to.is_empty() || from <= to)
            && from.len().max(to.len()) <= 3
        {
            return Ok(Versions { product, from, to });
        }
        Err(format!(
            "'{text}' is no range of versions: write 16-17, 18-, -10.7 or 17, and before it mariadb or mysql if only that has it"
        ))
    }
}

impl Versions {
    /// Whether the release is in the range. `10.7.9` is, if the range ends at `10.7`.
    pub(crate) fn has(&self, release: Release) -> bool {
        let part = |end: &[u32]| release.number.into_iter().take(end.len()).collect::<Vec<_>>();
        self.product.is_none_or(|product| product == release.product)
            && part(&self.from) >= self.from
            && part(&self.to) <= self.to
    }
}

/// Texts of which each is of some versions.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Versioned(Vec<VersionText>);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionText {
    #[serde(default)]
    versions: Versions,
    text: String,
}

impl Versioned {
    /// All texts of this release.
    pub(crate) fn all(&self, release: impl Into<Release>) -> impl Iterator<Item = &str> {
        let release = release.into();
        self.0.iter().filter(move |one| one.versions.has(release)).map(|one| one.text.as_str())
    }

    /// The text of this release, if there is one.
    pub(crate) fn at(&self, release: impl Into<Release>) -> Option<&str> {
        self.all(release).next()
    }
}

/// What a counter of the server counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Unit {
    #[default]
    Count,
    Bytes,
    Blocks,
    Ns,
    Ms,
}

/// Bytes in a block of data and in one of the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockBytes {
    pub(crate) data: f64,
    pub(crate) log: f64,
}

impl Unit {
    /// The factor from this unit to that of the neutral counter `name`; `None` if they do not fit.
    fn factor(self, name: &str, block: BlockBytes) -> Option<f64> {
        match self {
            Unit::Ns if name.ends_with("_ns") => Some(1.0),
            Unit::Ms if name.ends_with("_ns") => Some(1e6),
            Unit::Bytes if name.ends_with("_bytes") => Some(1.0),
            Unit::Bytes if name.starts_with("loadline.block_") => Some(1.0 / block.data),
            Unit::Bytes if name == "loadline.redo_blocks" => Some(1.0 / block.log),
            Unit::Blocks if name.ends_with("_bytes") => Some(block.data),
            Unit::Count | Unit::Blocks if !name.ends_with("_ns") && !name.ends_with("_bytes") => Some(1.0),
            _ => None,
        }
    }
}

/// Neutral counters that are the same sum of the server's counters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counter {
    names: Spanned<Vec<String>>,
    from: Vec<String>,
    #[serde(default)]
    unit: Unit,
    #[serde(default)]
    versions: Versions,
}

impl Counter {
    /// Adds each neutral counter of this release whose sources are all in `counters`. The first entry of a name that has
    /// its sources counts.
    pub(crate) fn fill(all: &[Counter], release: Release, block: BlockBytes, counters: &mut BTreeMap<String, f64>) {
        for counter in all.iter().filter(|counter| counter.versions.has(release)) {
            let sources = counter.from.iter().map(|name| counters.get(name).copied());
            let Some(sum) = sources.sum::<Option<f64>>() else { continue };
            for name in counter.names.get_ref() {
                if let Some(factor) = counter.unit.factor(name, block)
                    && !counters.contains_key(name)
                {
                    counters.insert(name.clone(), sum * factor);
                }
            }
        }
    }

    /// What is wrong with the first of which a name is unknown or does not fit the unit; `text` is that of the file.
    #[cfg(test)]
    pub(crate) fn mistake(all: &[Counter], text: &str) -> Option<String> {
        const NEUTRAL: &str = include_str!("../../model/src/snapshot.rs");
        let block = BlockBytes { data: 1.0, log: 1.0 };
        all.iter().find_map(|counter| {
            let line = 1 + text[..counter.names.span().start].matches('\n').count();
            let unit = counter.unit;
            counter.names.get_ref().iter().find_map(|name| {
                if !NEUTRAL.contains(&format!("\"{name}\"")) {
                    return Some(format!("line {line}: {name} is none of the counters in model/src/snapshot.rs"));
                }
                let allowed =
                    "a name that ends in _ns takes ns or ms, one in _bytes bytes or blocks, others count or blocks";
                unit.factor(name, block).is_none().then(|| format!("line {line}: {name} is not in {unit:?}: {allowed}"))
            })
        })
    }

    /// Neutral name, source and factor of each counter of this release.
    #[cfg(test)]
    pub(crate) fn sources(all: &[Counter], release: Release, block: BlockBytes) -> Vec<(&str, &str, f64)> {
        let mut out = Vec::new();
        for counter in all.iter().filter(|counter| counter.versions.has(release)) {
            for source in &counter.from {
                let names = counter.names.get_ref().iter();
                out.extend(
                    names.map(|name| (name.as_str(), source.as_str(), counter.unit.factor(name, block).unwrap())),
                );
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        counters: Vec<Counter>,
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_what_is_allowed() {
        for (entry, said) in [
            (r#"names = ["loadline.writes"], form = []"#, "expected one of `names`, `from`, `unit`, `versions`"),
            (
                r#"names = ["loadline.writes"], from = [], unit = "page""#,
                "expected one of `count`, `bytes`, `blocks`, `ns`, `ms`",
            ),
            (r#"names = ["loadline.read_ns"], from = [], unit = "bytes""#, "a name that ends in _ns takes ns or ms"),
            (r#"names = ["loadline.writes"], from = [], versions = "17-16""#, "write 16-17, 18-, -10.7 or 17"),
            (r#"names = ["loadline.writes"], from = [], versions = "new""#, "'new' is no range of versions"),
        ] {
            let text = format!("counters = [\n{{ {entry} }},\n]");
            let e = match toml::from_str::<File>(&text) {
                Ok(file) => Counter::mistake(&file.counters, &text).unwrap(),
                Err(e) => e.to_string(),
            };
            assert!(e.contains("line 2") && e.contains(said), "{e}");
        }
    }

    #[test]
    fn ranges_hold_their_ends() {
        let has = |range: &str, product, number| {
            Versions::try_from(range.to_owned()).unwrap().has(Release { product, number })
        };
        for (range, from, to) in [("16-17", 16, 17), ("17", 17, 17), ("18-", 18, 99), ("-15", 1, 15)] {
            for major in 1..=99 {
                assert_eq!(
                    has(range, Product::Postgres, [major, 0, 0]),
                    (from..=to).contains(&major),
                    "{range}: {major}"
                );
            }
        }
        for (range, product, number, want) in [
            ("mariadb", Product::Mariadb, [10, 6, 1], true),
            ("mariadb", Product::Mysql, [10, 6, 1], false),
            ("mysql 8.0.22-", Product::Mysql, [8, 0, 21], false),
            ("mysql 8.0.22-", Product::Mysql, [8, 4, 0], true),
            ("mariadb -10.7", Product::Mariadb, [10, 7, 9], true),
            ("mariadb -10.7", Product::Mariadb, [10, 8, 0], false),
        ] {
            assert_eq!(has(range, product, number), want, "{range}: {product:?} {number:?}");
        }
    }
}
