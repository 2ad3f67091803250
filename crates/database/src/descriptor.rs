//! The language of `postgres.toml`, `mysql.toml`, `oracle.toml`, `sqlite.toml` and `duckdb.toml`, which hold what loadline knows about
//! these databases.
//!
//! A mistake in a file is an error with its line and what is allowed there. The files are part of the program, and
//! tests read them, so a user never sees such an error.

use std::collections::BTreeMap;
use std::ops::{Bound, Deref};
use std::sync::OnceLock;

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A TOML file that is part of the program, read when it is first used.
pub(crate) struct Embedded<T> {
    path: &'static str,
    text: &'static str,
    read: OnceLock<T>,
}

impl<T: DeserializeOwned + Default> Embedded<T> {
    pub(crate) const fn new(path: &'static str, text: &'static str) -> Embedded<T> {
        Embedded { path, text, read: OnceLock::new() }
    }

    /// The file's content, by way of values without places: to read a type from text takes four times as much machine code.
    fn parsed(&self) -> Result<T, String> {
        let values: serde_json::Value = toml::from_str(self.text).map_err(|e| format!("{}: {e}", self.path))?;
        serde_json::from_value(values).map_err(|e| format!("{}: {e}", self.path))
    }

    /// The content, or what is wrong with it, with its line.
    #[cfg(test)]
    fn with_places(&self) -> Result<T, String> {
        toml::from_str(self.text).map_err(|e| format!("{}: {e}", self.path))
    }

    /// The content; fails the test if the file cannot be read, or one of its counters is wrong.
    #[cfg(test)]
    pub(crate) fn checked(&self, counters: impl Fn(&T) -> &[Counter]) -> T {
        let content = self.with_places().and_then(|_| self.parsed()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(Counter::mistake(counters(&content), self.text), None, "{}", self.path);
        content
    }
}

impl<T: DeserializeOwned + Default> Deref for Embedded<T> {
    type Target = T;

    /// The content; empty if the file has a mistake, which a test finds.
    fn deref(&self) -> &T {
        self.read.get_or_init(|| self.parsed().unwrap_or_default())
    }
}

/// `text` with what `part` returns in place of names in braces. A name that it does not know stays, and what is put in is not looked at.
pub(crate) fn fill_with<'a>(text: &str, part: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut pieces = text.split('{');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once('}').and_then(|(name, rest)| Some((part(name)?, rest))) {
            Some((part, rest)) => out.extend([part, rest]),
            None => out.extend(["{", piece]),
        }
    }
    out
}

pub(crate) fn fill(text: &str, parts: &[(&str, &str)]) -> String {
    fill_with(text, |name| parts.iter().find(|(known, _)| *known == name).map(|(_, part)| *part))
}

/// The message of this name with `parts` for their names in braces.
pub(crate) fn message(messages: &BTreeMap<String, String>, name: &str, parts: &[(&str, &str)]) -> String {
    fill_with(messages.get(name).map_or("", String::as_str), |wanted| {
        let part = parts.iter().find(|(known, _)| *known == wanted).map(|(_, part)| *part);
        debug_assert!(part.is_some(), "the message '{name}' has no part for {{{wanted}}}");
        part
    })
}

/// Texts of routines by name. Each may name others and what differs by workload in braces.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Routines(BTreeMap<String, String>);

impl Routines {
    /// The text of this name, with the others that it names, and then `parts` in their order.
    pub(crate) fn text(&self, name: &str, parts: &[(&str, &str)]) -> String {
        let others = self.0.iter().map(|(name, part)| (name.as_str(), part.as_str()));
        let text = self.0.get(name).cloned().unwrap_or_default();
        let all = others.chain(parts.iter().copied());
        all.fold(text, |text, (name, part)| text.replace(&format!("{{{name}}}"), part))
    }
}

/// Identity of a server: its product, and its version as up to three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) product: Product,
    pub(crate) number: [u32; 3],
}

impl Release {
    /// Of a version that begins `17.10` or `10.11.6-MariaDB`; a part that it lacks is 0.
    pub(crate) fn new(product: Product, version: &str) -> Release {
        let mut parts = version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
        Release { product, number: [(); 3].map(|()| parts.next().unwrap_or(0)) }
    }

    pub(crate) fn is_from(&self, version: &[u32]) -> bool {
        self.number[..] >= *version
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Product {
    Postgres,
    Mariadb,
    Mysql,
    Oracle,
}

/// A range of versions with both ends in it (`16-17`), from one on (`18-`), up to one (`-10.7`), or one (`17`); before it
/// the product, if the others have no such thing (`mariadb 10.8-`, `mysql`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
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
    pub(crate) fn all(&self, release: Release) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |one| one.versions.has(release)).map(|one| one.text.as_str())
    }

    pub(crate) fn at(&self, release: Release) -> Option<&str> {
        self.all(release).next()
    }
}

/// Meaning of a counter of the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Unit {
    #[default]
    Count,
    Bytes,
    Blocks,
    Ns,
    Us,
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
            Unit::Us if name.ends_with("_ns") => Some(1e3),
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
    names: Vec<String>,
    /// `*` stands for any text.
    from: Vec<String>,
    #[serde(default)]
    unit: Unit,
    #[serde(default)]
    need: Need,
    #[serde(default)]
    versions: Versions,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Need {
    #[default]
    All,
    /// All, and a sum above 0: the server shows 0 for what this session does not see.
    AboveZero,
    /// Any counter of their views: the server has no row for what never happened.
    View,
}

/// Sum of the counters that `source` names, if there is one.
fn sum_of(source: &str, counters: &BTreeMap<String, f64>) -> Option<f64> {
    let Some((begin, end)) = source.split_once('*') else { return counters.get(source).copied() };
    let from_begin = counters.range::<str, _>((Bound::Included(begin), Bound::Unbounded));
    let fit = from_begin.take_while(|(name, _)| name.starts_with(begin)).filter(|(name, _)| name.ends_with(end));
    fit.map(|(_, value)| *value).reduce(|sum, value| sum + value)
}

impl Counter {
    /// Adds each neutral counter of this release that has the sources it needs in `counters`. The first entry of a name that
    /// has them counts.
    pub(crate) fn fill(all: &[Counter], release: Release, block: BlockBytes, counters: &mut BTreeMap<String, f64>) {
        for counter in all.iter().filter(|counter| counter.versions.has(release)) {
            let Some(sum) = counter.sum(counters) else { continue };
            for name in &counter.names {
                if let Some(factor) = counter.unit.factor(name, block)
                    && !counters.contains_key(name)
                {
                    counters.insert(name.clone(), sum * factor);
                }
            }
        }
    }

    fn sum(&self, counters: &BTreeMap<String, f64>) -> Option<f64> {
        let is_seen = |source: &String| {
            let view = source.split_inclusive('.').next().unwrap_or(source);
            sum_of(source, counters).or_else(|| sum_of(&format!("{view}*"), counters).map(|_| 0.0))
        };
        let sources = self.from.iter();
        match self.need {
            Need::All => sources.map(|source| sum_of(source, counters)).sum(),
            Need::AboveZero => {
                sources.map(|source| sum_of(source, counters)).sum::<Option<f64>>().filter(|sum| *sum > 0.0)
            }
            Need::View => sources.map(is_seen).sum(),
        }
    }

    /// Error of the first of which a name is unknown or does not fit the unit; `text` is that of the file.
    #[cfg(test)]
    pub(crate) fn mistake(all: &[Counter], text: &str) -> Option<String> {
        const NEUTRAL: &str = include_str!("../../model/counters.toml");
        let block = BlockBytes { data: 1.0, log: 1.0 };
        let document = toml::de::DeTable::parse(text).unwrap().into_inner();
        all.iter().enumerate().find_map(|(i, counter)| {
            let names = document["counters"].get_ref()[i].get_ref()["names"].span();
            let line = 1 + text[..names.start].matches('\n').count();
            let unit = counter.unit;
            counter.names.iter().find_map(|name| {
                let neutral = name.strip_prefix("loadline.").map(|name| format!("\n{name} = "));
                if neutral.is_none_or(|row| !NEUTRAL.contains(&row)) {
                    return Some(format!("line {line}: {name} is none of the counters in model/counters.toml"));
                }
                let allowed =
                    "a name that ends in _ns takes ns, us or ms, one in _bytes bytes or blocks, others count or blocks";
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
                let names = counter.names.iter();
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
    use crate::cases::cases;

    #[derive(Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        counters: Vec<Counter>,
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_what_is_allowed() {
        for (entry, said) in cases::<(String, String)>("mistakes-in-counters") {
            let text: &str = format!("counters = [\n{{ {entry} }},\n]").leak();
            let file = Embedded::<File>::new("src/x.toml", text);
            let e = match file.with_places() {
                Ok(content) => format!("src/x.toml: {}", Counter::mistake(&content.counters, text).unwrap()),
                Err(e) => e,
            };
            assert!(e.contains("src/x.toml: ") && e.contains("line 2") && e.contains(&said), "{e}");
        }
    }

    #[test]
    fn a_counter_is_absent_without_the_sources_it_needs() {
        let value = |entry: &str, counters: &[(String, f64)]| {
            let file: File = toml::from_str(&format!("counters = [{{ names = [\"a\"], {entry} }}]")).unwrap();
            let mut counters = counters.iter().cloned().collect();
            let release = Release { product: Product::Oracle, number: [19, 0, 0] };
            Counter::fill(&file.counters, release, BlockBytes { data: 1.0, log: 1.0 }, &mut counters);
            counters.get("a").copied().into_iter().collect::<Vec<_>>()
        };
        for (entry, counters, want) in cases::<(String, Vec<(String, f64)>, Vec<f64>)>("counters") {
            assert_eq!(value(&entry, &counters), want, "{entry} of {counters:?}");
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
