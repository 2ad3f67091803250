//! Lines of a file of any length, one at a time: a file of gigabytes takes as much memory as its longest line, which is bounded. And
//! printed reports of `key: value` and `key = value` lines.

use std::collections::BTreeMap;
use std::io::{BufRead, Read as _};

use serde::de::DeserializeOwned;

use crate::draft::{Group, ImportedTest};
use crate::source::{Absence, ImportError, Tool};

const LONGEST: usize = 1 << 20;
const LONGEST_JSON: usize = 64 << 20;

pub(crate) struct Lines<'a> {
    tool: Tool,
    file: &'a str,
    input: &'a mut dyn BufRead,
    /// Of the line read last, from 1.
    pub(crate) number: u64,
    /// Whether the line read last has its end: only the last line of a file may lack it.
    pub(crate) ended: bool,
}

impl<'a> Lines<'a> {
    /// Lines of `file`, which is named in errors; lines that another tool than `tool` writes are an error.
    pub(crate) fn new(tool: Tool, file: &'a str, input: &'a mut dyn BufRead) -> Lines<'a> {
        Lines { tool, file, input, number: 0, ended: true }
    }

    /// The next line without its end; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<String>, ImportError> {
        let mut line = Vec::new();
        let read = (&mut *self.input).take(LONGEST as u64 + 1).read_until(b'\n', &mut line);
        if read.map_err(|error| ImportError::Read { file: self.file.to_owned(), error })? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if line.len() > LONGEST {
            return Err(self.wrong(format!("it is longer than {LONGEST} bytes: this is no result of a tool")));
        }
        self.ended = line.ends_with(b"\n");
        if self.number == 1 && (line.starts_with(b"\xff\xfe") || line.starts_with(b"\xfe\xff")) {
            return Err(self.wrong("it is UTF-16, which PowerShell writes: save it as UTF-8"));
        }
        let text = String::from_utf8(line).ok().filter(|text| !text.contains('\0'));
        let text = text.ok_or_else(|| self.wrong("it is no text in UTF-8"))?;
        let text = text.trim_start_matches('\u{feff}').trim_end_matches(['\n', '\r']);
        match Tool::of_line(text) {
            Some(other) if other != self.tool.name() => {
                Err(self.wrong(format!("it is of {other}, not of {}: '{}'", self.tool.name(), cut(text))))
            }
            _ => Ok(Some(text.to_owned())),
        }
    }

    /// The JSON object that begins with `text`, the line read last, and ends in the line that closes its brackets.
    pub(crate) fn json<T: DeserializeOwned>(&mut self, mut text: String) -> Result<T, ImportError> {
        let (begin, mut open) = (self.number, open_brackets(&text));
        while open > 0 {
            if text.len() > LONGEST_JSON {
                return Err(self.wrong(format!("the JSON from line {begin} on is longer than {LONGEST_JSON} bytes")));
            }
            let Some(line) = self.next()? else {
                return Err(self.wrong(format!("the file ends within the JSON from line {begin} on: it is cut off")));
            };
            open += open_brackets(&line);
            text = text + "\n" + &with_null(&line);
        }
        serde_json::from_str(&text).map_err(|e| {
            let what = format!("it is no result of {}: {}", self.tool.name(), cut(&e.to_string()));
            self.at(Some(begin + (e.line() as u64).saturating_sub(1)), what)
        })
    }

    pub(crate) fn wrong(&self, what: impl Into<String>) -> ImportError {
        self.at(Some(self.number.max(1)), what)
    }

    /// An error at a line, or of the file as a whole.
    pub(crate) fn at(&self, line: Option<u64>, what: impl Into<String>) -> ImportError {
        ImportError::Wrong { file: self.file.to_owned(), line, what: what.into() }
    }

    /// An error of a file that was read to its end without a result: it is empty, or `what`.
    pub(crate) fn nothing(&self, what: &str) -> ImportError {
        self.at(None, if self.number == 0 { "it is empty" } else { what })
    }
}

/// A line of JSON with `null` where fio printed a division by nothing, which JSON does not have.
fn with_null(line: &str) -> String {
    let (key, value) = line.split_once(": ").unwrap_or((line, ""));
    let number = value.trim_end().trim_end_matches(',');
    match number.trim_start_matches('-') {
        "nan" | "inf" => format!("{key}: null{}", value.get(number.len()..).unwrap_or_default()),
        _ => line.to_owned(),
    }
}

/// Brackets of objects that a line of JSON opens and does not close. A text of JSON ends in its line.
fn open_brackets(line: &str) -> i64 {
    let bare = line.replace("\\\\", "").replace("\\\"", "");
    let outside = bare.split('"').step_by(2).flat_map(str::bytes);
    outside.map(|b| i64::from(b == b'{') - i64::from(b == b'}')).sum()
}

/// `text` without what a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

pub(crate) fn cut(text: &str) -> String {
    const MOST: usize = 160;
    let text = plain(text.trim());
    if text.chars().count() <= MOST { text } else { text.chars().take(MOST).collect::<String>() + "…" }
}

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
