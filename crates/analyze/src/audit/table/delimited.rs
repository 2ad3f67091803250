//! Separated values: commas, semicolons or tabs. Quotes as in RFC 4180.

use super::{ReadError, Shape, Table, is_figure};
use crate::audit::reason::reason;

/// Lines by which the separator is recognised.
const SAMPLE: usize = 40;

/// The cells of one record.
#[derive(Default)]
struct Record {
    text: String,
    ends: Vec<usize>,
    /// A quote was opened and never closed.
    open: bool,
}

impl Record {
    fn cells(&self) -> impl Iterator<Item = &str> + Clone {
        let start = |i: usize| if i == 0 { 0 } else { self.ends[i - 1] };
        self.ends.iter().enumerate().map(move |(i, end)| &self.text[start(i)..*end])
    }

    /// Whether it holds nothing, or only rules off a header.
    fn is_blank(&self) -> bool {
        self.text.bytes().all(|b| matches!(b, b'-' | b'=' | b' ' | b'\t' | b'\r'))
    }

    /// Reads one record from the start of `text` and returns what follows it.
    fn read<'a>(&mut self, text: &'a str, separator: u8) -> &'a str {
        self.text.clear();
        self.ends.clear();
        self.open = false;
        let bytes = text.as_bytes();
        let mut at = 0;
        loop {
            let spaces = bytes[at..].iter().take_while(|b| **b == b' ').count();
            if bytes.get(at + spaces) == Some(&b'"') {
                at = self.quoted(text, at + spaces + 1);
            }
            let plain = bytes[at..].iter().position(|b| *b == separator || *b == b'\n').unwrap_or(bytes.len() - at);
            self.text.push_str(text[at..at + plain].trim_end_matches('\r'));
            self.ends.push(self.text.len());
            at += plain;
            match bytes.get(at) {
                Some(b'\n') => return &text[at + 1..],
                Some(_) => at += 1,
                None => return "",
            }
        }
    }

    /// Reads a quoted part from `at`, behind its first quote; returns where it ends.
    fn quoted(&mut self, text: &str, mut at: usize) -> usize {
        while let Some(quote) = text[at..].find('"') {
            self.text.push_str(&text[at..at + quote]);
            at += quote + 1;
            if !text[at..].starts_with('"') {
                return at;
            }
            self.text.push('"');
            at += 1;
        }
        self.open = true;
        self.text.push_str(&text[at..]);
        text.len()
    }
}

/// The separator, and the number of cells that most lines have with it.
fn recognise(text: &str) -> Option<(u8, usize)> {
    let score = |separator: u8| {
        let (mut rest, mut record, mut counts) = (text, Record::default(), Vec::new());
        while !rest.is_empty() && counts.len() < SAMPLE {
            rest = record.read(rest, separator);
            if !record.is_blank() {
                counts.push(record.ends.len());
            }
        }
        let with = |n: usize| counts.iter().filter(|c| **c == n).count();
        let most = counts.iter().copied().filter(|n| *n > 1).max_by_key(|n| (with(*n), *n))?;
        Some((with(most), most, separator))
    };
    let best = [b',', b';', b'\t'].into_iter().filter_map(score).max();
    best.map(|(_, cells, separator)| (separator, cells))
}

/// Whether columns are set apart by spaces: a third of the lines, at least, has several figures.
fn is_aligned(text: &str) -> bool {
    let figures = |line: &&str| line.split_whitespace().filter(|word| is_figure(word)).count() >= 2;
    let rows = text.lines().take(SAMPLE).filter(figures).count();
    rows > 0 && rows * 3 >= text.lines().take(SAMPLE).filter(|l| l.contains(' ')).count()
}

/// Reads all tables. A blank line and a line of names begin another one.
pub(super) fn read(text: &str) -> Result<Vec<Table>, ReadError> {
    let found = recognise(text);
    if found.is_none() && is_aligned(text) {
        return Err(Shape::Aligned.into());
    }
    // One column has no separator.
    let (separator, width) = found.unwrap_or((b',', 1));
    let mut tables: Vec<Table> = Vec::new();
    let (mut rest, mut record, mut blank) = (text, Record::default(), false);
    while !rest.is_empty() {
        rest = record.read(rest, separator);
        if record.is_blank() {
            blank = true;
            continue;
        }
        let is_header = || record.cells().all(|cell| !is_figure(cell));
        let begins = match tables.last() {
            None => record.ends.len() == width,
            Some(_) => blank && record.ends.len() > 1 && is_header(),
        };
        blank = false;
        if begins {
            let headers: Vec<String> = record.cells().map(|c| c.trim().to_owned()).collect();
            if headers.iter().all(|h| h.is_empty() || is_figure(h)) {
                return Err(ReadError::NoHeader(headers.join(" ").chars().take(80).collect()));
            }
            tables.push(Table::new(headers.into_iter()));
        } else if let Some(table) = tables.last_mut() {
            let row = table.rows();
            let cells: Vec<&str> = if row == 0 { record.cells().collect() } else { Vec::new() };
            if row == 0 && table.continue_header(&cells) {
                continue;
            }
            table.push(record.cells())?;
            if record.open {
                table.remark(row, reason!(OpenQuote));
            }
        }
    }
    Ok(tables)
}
