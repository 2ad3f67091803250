//! Lines of a file of any length, one at a time: a file of gigabytes takes as much memory as its longest line, which is bounded.

use std::io::{BufRead, Read as _};

use serde::de::DeserializeOwned;

use crate::source::{ImportError, Tool};

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
    ///
    /// # Errors
    /// It cannot be read, is too long, no text, or of another tool.
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
    ///
    /// # Errors
    /// The file ends before, the object is too long, or no result.
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
