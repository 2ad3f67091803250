//! Printed reports, one after another, and their `key: value` and `key = value` lines.

use std::collections::BTreeMap;

use crate::absence::Absence;
use crate::draft::{Group, ImportedTest};
use crate::lines::{Lines, cut, plain};
use crate::source::ImportError;

/// No counter or clock reaches this: it is a difference below 0 without a sign.
pub(crate) const MOST: f64 = 1e15;
/// Most fields that are kept: no report has more, whatever stands between its lines.
const MOST_FIELDS: usize = 1000;

pub(crate) trait Report: Default {
    /// Kind of a file without a report.
    const NONE: &'static str;

    /// Whether `line` is of the next report.
    fn is_ended_by(&self, line: &str) -> bool;

    /// Takes in one line, and returns the version that it states. Unknown lines are of no interest.
    fn add(&mut self, line: &str, lines: &Lines<'_>) -> Result<Option<String>, ImportError>;

    /// The report's test; `None` if nothing was read.
    fn test(self, lines: &Lines<'_>) -> Result<Option<ImportedTest>, ImportError>;
}

/// Reads reports from the line `first` on.
pub(crate) fn reports<R: Report>(first: Option<String>, lines: &mut Lines<'_>) -> Result<Group, ImportError> {
    let (mut group, mut report, mut next) = (Group::default(), R::default(), first);
    while let Some(line) = next {
        let line = line.trim();
        if report.is_ended_by(line) {
            group.tests.extend(std::mem::take(&mut report).test(lines)?);
        }
        if let Some(version) = report.add(line, lines)?.map(|version| plain(&version)) {
            if group.version.as_ref().is_some_and(|known| *known != version) {
                let what = format!("version {version} after a report of another version: import them apart");
                return Err(lines.wrong(what));
            }
            group.version = Some(version);
        }
        next = lines.next()?;
    }
    group.tests.extend(report.test(lines)?);
    if group.tests.is_empty() { Err(lines.nothing(R::NONE)) } else { Ok(group) }
}

/// The fields of a report. Of lines with one key the last counts.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    /// Source of these fields: `sysbench's report`.
    pub(crate) place: &'static str,
    /// Value and line by key.
    all: BTreeMap<String, (String, u64)>,
    pub(crate) said: Vec<String>,
}

/// The number that a text begins with, what follows being its unit; `None` if it is none that a tool counts or times.
pub(crate) fn number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let (digits, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len()));
    // With a decimal comma or an exponent the digits before it are another number.
    let other = rest.starts_with([',', 'e', 'E', '+', '-']);
    digits.parse().ok().filter(|n| !other && *n < MOST)
}

/// A figure of what was done or timed. Printed as 0, it is none.
pub(crate) fn positive(figure: f64) -> Result<f64, Absence> {
    if figure > 0.0 { Ok(figure) } else { Err(Absence::PrintedZero) }
}

/// Adds what a tool said of an error to what it `said` before: of many, the first ones and the last.
pub(crate) fn keep_error(said: &mut Vec<String>, line: &str) {
    said.truncate(4);
    said.push(cut(line));
}

impl Fields {
    /// No fields of `place` yet, where errors were `said` before.
    pub(crate) fn new(place: &'static str, said: Vec<String>) -> Fields {
        Fields { place, said, all: BTreeMap::new() }
    }

    /// Keeps the value of the line read last. A number at which the file ends may be cut off: it is none.
    pub(crate) fn add(&mut self, key: &str, value: &str, lines: &Lines<'_>) {
        let is_whole = lines.ended || !value.ends_with(|c: char| c.is_ascii_digit() || c == '.');
        if is_whole && self.all.len() < MOST_FIELDS {
            self.all.insert(key.to_owned(), (value.trim().to_owned(), lines.number));
        }
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.all.get(key).map(|(value, _)| value.as_str())
    }

    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        self.text(key).and_then(number)
    }

    /// The number of `key`, or why there is none.
    pub(crate) fn figure(&self, key: &'static str) -> Result<f64, Absence> {
        let text = self.text(key).ok_or(Absence::NotIn { place: self.place, what: key })?;
        number(text).ok_or_else(|| Absence::CannotBe(cut(text)))
    }

    /// The time of `key`, ns of ms.
    pub(crate) fn time_ns(&self, key: &'static str) -> Result<f64, Absence> {
        self.figure(key).and_then(|ms| positive(ms * 1e6))
    }

    /// The error of a report that ends without `key`.
    pub(crate) fn missing(&self, key: &str, lines: &Lines<'_>) -> ImportError {
        let said = self.said.first().map_or_else(String::new, |said| format!("; it says '{said}'"));
        lines.wrong(format!(
            "a report ends here without '{key}': it is cut off, the run failed, or nothing was completed{said}"
        ))
    }

    /// The number of `key`, without which the report is none.
    pub(crate) fn required(&self, key: &str, lines: &Lines<'_>) -> Result<f64, ImportError> {
        self.text(key).ok_or_else(|| self.missing(key, lines))?;
        self.number(key).ok_or_else(|| self.wrong(key, lines))
    }

    /// The error of a value that cannot be, at its line.
    pub(crate) fn wrong(&self, key: &str, lines: &Lines<'_>) -> ImportError {
        let (text, line) = self.all.get(key).map_or(("", 1), |(text, line)| (text.as_str(), *line));
        lines.at(Some(line), format!("'{}' is no number that can be in '{key}'", cut(text)))
    }

    pub(crate) fn jobs(&self, key: &str, lines: &Lines<'_>) -> Result<u32, ImportError> {
        let n = self.required(key, lines)?;
        let jobs = if n.fract() == 0.0 && (1.0..=1e6).contains(&n) { Some(n as u32) } else { None };
        jobs.ok_or_else(|| self.wrong(key, lines))
    }
}
