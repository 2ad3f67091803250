//! Lines of a file of any length, one at a time: a file of gigabytes takes as much memory as its longest line, which is bounded.

use std::io::BufRead;

use crate::error::ImportError;
use crate::tool::Tool;

/// Longest line, bytes.
const LONGEST: usize = 1 << 20;

/// Longest JSON value, bytes.
const LONGEST_JSON: usize = 64 << 20;

/// Depth of brackets in JSON.
#[derive(Default)]
struct Brackets {
    depth: u64,
    in_text: bool,
    escaped: bool,
}

impl Brackets {
    /// Whether the value is complete after `part`.
    fn closed_by(&mut self, part: &[u8]) -> bool {
        for byte in part {
            match (self.in_text, byte) {
                _ if self.escaped => self.escaped = false,
                (true, b'\\') => self.escaped = true,
                (_, b'"') => self.in_text = !self.in_text,
                (false, b'{' | b'[') => self.depth += 1,
                (false, b'}' | b']') => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.depth == 0
    }
}

/// The lines of one file.
pub(crate) struct Lines<'a> {
    file: &'a str,
    input: &'a mut dyn BufRead,
    /// Number of the line read last, from 1.
    number: u64,
    line: Vec<u8>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(file: &'a str, input: &'a mut dyn BufRead) -> Lines<'a> {
        Lines { file, input, number: 0, line: Vec::new() }
    }

    /// The next line without its end; `None` after the last.
    ///
    /// # Errors
    /// It cannot be read, is too long or no text.
    pub(crate) fn next(&mut self) -> Result<Option<&str>, ImportError> {
        self.line.clear();
        loop {
            let part = self.input.fill_buf();
            let part = part.map_err(|error| ImportError::Read { file: self.file.to_owned(), error })?;
            if part.is_empty() {
                break;
            }
            let end = part.iter().position(|b| *b == b'\n');
            let take = end.map_or(part.len(), |at| at + 1);
            self.line.extend(part.iter().take(take));
            self.input.consume(take);
            if self.line.len() > LONGEST {
                self.number += 1;
                return Err(self.wrong(format!("it is longer than {LONGEST} bytes: this is no result of a tool")));
            }
            if end.is_some() {
                break;
            }
        }
        if self.line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        // Windows marks text so.
        if self.number == 1 && self.line.starts_with(b"\xef\xbb\xbf") {
            self.line.drain(..3);
        }
        while matches!(self.line.last(), Some(b'\n' | b'\r')) {
            self.line.pop();
        }
        if self.number == 1 && (self.line.starts_with(b"\xff\xfe") || self.line.starts_with(b"\xfe\xff")) {
            return Err(self.wrong("it is UTF-16, which PowerShell writes: save it as UTF-8"));
        }
        if self.line.contains(&0) || std::str::from_utf8(&self.line).is_err() {
            return Err(self.wrong("it is no text in UTF-8"));
        }
        Ok(std::str::from_utf8(&self.line).ok())
    }

    /// The same; lines that another tool than `tool` writes are an error.
    pub(crate) fn next_of(&mut self, tool: Tool) -> Result<Option<String>, ImportError> {
        let Some(line) = self.next()?.map(str::to_owned) else { return Ok(None) };
        match Tool::of_line(&line) {
            Some(other) if other != tool => {
                Err(self.wrong(format!("it is of {other}, not of {tool}: '{}'", cut(&line))))
            }
            _ => Ok(Some(line)),
        }
    }

    /// The JSON value that begins with `first`, the line read last: all lines until its brackets are closed.
    ///
    /// # Errors
    /// The file ends before, or the value is too long.
    pub(crate) fn json(&mut self, first: String, tool: Tool) -> Result<String, ImportError> {
        let (begin, mut brackets) = (self.number, Brackets::default());
        let mut text = first;
        let mut seen = 0;
        loop {
            if brackets.closed_by(text.as_bytes().get(seen..).unwrap_or_default()) {
                return Ok(text);
            }
            if text.len() > LONGEST_JSON {
                return Err(self.wrong(format!("the JSON from line {begin} on is longer than {LONGEST_JSON} bytes")));
            }
            seen = text.len();
            match self.next_of(tool)? {
                Some(line) => {
                    text.push('\n');
                    text.push_str(&line);
                }
                None => {
                    return Err(
                        self.wrong(format!("the file ends within the JSON from line {begin} on: it is cut off"))
                    );
                }
            }
        }
    }

    /// The number of the line read last, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// An error at the line read last.
    pub(crate) fn wrong(&self, what: impl Into<String>) -> ImportError {
        self.at(self.number.max(1), what)
    }

    /// An error at line `line`.
    pub(crate) fn at(&self, line: u64, what: impl Into<String>) -> ImportError {
        ImportError::Wrong { place: format!("{}, line {line}", self.file), what: what.into() }
    }

    /// An error of the whole file.
    pub(crate) fn whole(&self, what: impl Into<String>) -> ImportError {
        ImportError::of_file(self.file, what)
    }

    /// An error of a file that was read to its end without a result: it is empty, or `what`.
    pub(crate) fn nothing(&self, what: &str) -> ImportError {
        self.whole(if self.number == 0 { "it is empty" } else { what })
    }
}

/// A text of a file without what a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// The first characters of a text, for messages.
pub(crate) fn cut(text: &str) -> String {
    const MOST: usize = 120;
    let text = plain(text.trim());
    if text.chars().count() <= MOST { text } else { text.chars().take(MOST).collect::<String>() + "…" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_bounded() {
        let mut text: &[u8] = b"a\r\n\nb";
        let mut lines = Lines::new("f", &mut text);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            seen.push(line.to_owned());
        }
        assert_eq!((seen, lines.number()), (vec!["a".to_owned(), String::new(), "b".to_owned()], 3));
        let long = vec![b'x'; LONGEST + 10];
        let mut input = long.as_slice();
        let said = Lines::new("f", &mut input).next().unwrap_err().to_string();
        assert!(said.starts_with("f, line 1: it is longer"), "{said}");
        let mut binary: &[u8] = b"ok\n\x00\xff\n";
        let mut lines = Lines::new("f", &mut binary);
        lines.next().unwrap();
        assert_eq!(lines.next().unwrap_err().to_string(), "f, line 2: it is no text in UTF-8");
        let mut wide: &[u8] = b"\xff\xfep\x00g\x00\n\x00";
        assert!(Lines::new("f", &mut wide).next().unwrap_err().to_string().contains("UTF-16"));
    }
}
