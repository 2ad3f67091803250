//! `key: value` and `key = value` lines of a printed report.

use std::collections::BTreeMap;

use crate::absence::Absence;
use crate::error::ImportError;
use crate::lines::{Lines, cut};

/// No counter or clock reaches this: it is a difference below 0 without a sign.
pub(crate) const MOST: f64 = 1e15;
/// Most fields that are kept: no report has more, whatever stands between its lines.
const MOST_FIELDS: usize = 1000;

/// The fields of a report. Of lines with one key the last counts.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    /// What has these fields: `sysbench's report`.
    pub(crate) place: &'static str,
    /// Value and line by key.
    all: BTreeMap<String, (String, u64)>,
    /// What the tool said of errors.
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

/// A time, ns, of `ms`. Printed as 0, it is none.
pub(crate) fn time_ns(ms: f64) -> Result<f64, Absence> {
    if ms > 0.0 { Ok(ms * 1e6) } else { Err(Absence::PrintedZero) }
}

/// Adds what a tool said of an error to what it `said` before: of many, the first ones and the last.
pub(crate) fn keep_error(said: &mut Vec<String>, line: &str) {
    said.truncate(4);
    said.push(cut(line));
}

impl Fields {
    /// No fields of `place` yet.
    pub(crate) fn new(place: &'static str) -> Fields {
        Fields { place, ..Fields::default() }
    }

    /// Keeps the value of the line read last. A number at which the file ends may be cut off: it is none.
    pub(crate) fn add(&mut self, key: &str, value: &str, lines: &Lines<'_>) {
        if lines.ended() || !value.ends_with(|c: char| c.is_ascii_digit() || c == '.') {
            self.put(key, value, lines);
        }
    }

    /// Keeps a value that is whole, wherever the file ends.
    pub(crate) fn put(&mut self, key: &str, value: &str, lines: &Lines<'_>) {
        if self.all.len() < MOST_FIELDS {
            self.all.insert(key.to_owned(), (value.trim().to_owned(), lines.number()));
        }
    }

    /// Forgets the fields: what stood before a report is none of it. `place` has those that follow.
    pub(crate) fn clear(&mut self, place: &'static str) {
        self.place = place;
        self.all.clear();
    }

    /// Keeps what the tool said of an error: the first ones, and the last, which may be about the whole run.
    pub(crate) fn add_error(&mut self, line: &str) {
        keep_error(&mut self.said, line);
    }

    /// The value of `key`.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.all.get(key).map(|(value, _)| value.as_str())
    }

    /// The number of `key`, if there is one.
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
        self.figure(key).and_then(time_ns)
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
        let (text, line) = self.all.get(key).ok_or_else(|| self.missing(key, lines))?;
        number(text).ok_or_else(|| lines.at(*line, format!("'{}' is no number that can be in '{key}'", cut(text))))
    }

    /// The number of jobs, `key`.
    pub(crate) fn jobs(&self, key: &str, lines: &Lines<'_>) -> Result<u32, ImportError> {
        let n = self.required(key, lines)?;
        let line = self.all.get(key).map_or(1, |(_, line)| *line);
        jobs(n).ok_or_else(|| lines.at(line, format!("{n} is no number of jobs in '{key}'")))
    }
}

/// `n` as a number of jobs.
pub(crate) fn jobs(n: f64) -> Option<u32> {
    (n.fract() == 0.0 && (1.0..=1e6).contains(&n)).then_some(n as u32)
}

/// Units of sizes, as with `kb_base=1024`, and of times.
pub(crate) const BYTES: &[(&str, f64)] = &[("", 1.0), ("k", 1024.0), ("m", 1_048_576.0)];
pub(crate) const SECONDS: &[(&str, f64)] =
    &[("", 1.0), ("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("m", 60.0), ("h", 3600.0)];

/// A number with its unit: `4k`, `128KiB`, `30s`; `None` of a range or a list.
pub(crate) fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim().to_lowercase();
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let unit = unit.trim_end_matches(['i', 'b']);
    let (_, factor) = units.iter().find(|(known, _)| *known == unit)?;
    Some(number.parse::<f64>().ok()? * factor)
}
