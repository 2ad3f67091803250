//! Reads tables of results from text: separated values, Markdown, and what is boxed by bars. Cells stay text, because their digits
//! say how precise they are; [`super::Sheet`] knows what the columns mean.

mod bars;
mod delimited;
mod turned;

use std::mem::Discriminant;

use super::number::{self, Cell, Style};
use super::reason::{Reason, Shape};
use super::unit::Unit;

/// Why a text holds no table that is read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum ReadError {
    #[error("it is empty: a table has a line of column names and a line per test")]
    Empty,
    #[error(
        "no table was found: expected CSV (commas, semicolons or tabs), a Markdown table or one in a box of bars, with a line of \
         column names and at least one row"
    )]
    NoTable,
    #[error("its first line '{0}' holds numbers: write a line of column names above it")]
    NoHeader(String),
    #[error("the column names '{0}' are {1}, and the rows have {2} cells: name each column")]
    Header(String, usize, usize),
    #[error("it is larger than 4 GiB: split it")]
    TooLarge,
    #[error("{0}; write it as CSV with a row per test")]
    Shape(#[from] Shape),
}

/// Something odd about how a table is written, or what was assumed of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Remark {
    /// Row, counted from 0.
    pub row: Option<usize>,
    /// Whether something of the table was not used as it is written.
    pub odd: bool,
    /// What it is.
    pub reason: Reason,
}

/// Remarks of a kind kept of one table.
const REMARKS: usize = 100;

/// One table of text cells. Every row has as many cells as there are headers; missing ones are empty.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// The heading above it with its number, or the name of the file.
    pub name: String,
    /// Names of the columns as printed; `column 3` if nothing is printed.
    pub headers: Vec<String>,
    /// What is odd about how it is written.
    pub remarks: Vec<Remark>,
    /// Number of remarks that were left out, because a file of a million broken rows has one cause.
    pub more_remarks: usize,
    text: String,
    ends: Vec<u32>,
    rows: usize,
    /// Number of remarks of each kind.
    kinds: Vec<(Discriminant<Reason>, usize)>,
    /// Rows that continued the column names.
    continued: usize,
}

impl Table {
    fn new(headers: &[String]) -> Table {
        let named = |(i, h): (usize, &String)| {
            if h.trim().is_empty() { format!("column {}", i + 1) } else { h.trim().to_owned() }
        };
        Table { headers: headers.iter().enumerate().map(named).collect(), ..Table::default() }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A cell, trimmed; empty if there is none.
    #[must_use]
    pub fn cell(&self, row: usize, column: usize) -> &str {
        let index = row * self.headers.len() + column;
        let end = |i: usize| self.ends.get(i).map_or(0, |end| *end as usize);
        let start = index.checked_sub(1).map_or(0, end);
        self.text.get(start..end(index)).filter(|_| column < self.headers.len()).unwrap_or("")
    }

    /// Cells of the first rows of a column.
    pub(crate) fn cells(&self, column: usize, rows: usize) -> impl Iterator<Item = &str> {
        (0..self.rows.min(rows)).map(move |row| self.cell(row, column))
    }

    fn remark(&mut self, row: usize, reason: Reason) {
        // Kinds are few: each has as many of its own.
        let kind = std::mem::discriminant(&reason);
        let at = self.kinds.iter().position(|(known, _)| *known == kind).unwrap_or(self.kinds.len());
        if at == self.kinds.len() {
            self.kinds.push((kind, 0));
        }
        self.kinds[at].1 += 1;
        if self.kinds[at].1 <= REMARKS {
            self.remarks.push(Remark { row: Some(row), odd: true, reason });
        } else {
            self.more_remarks += 1;
        }
    }

    /// Adds a row, or a first one that continues the column names to them.
    fn add(&mut self, cells: &[String]) -> Result<(), ReadError> {
        if self.rows == 0 && self.continue_header(cells)? { Ok(()) } else { self.push(cells) }
    }

    /// Adds a row. One with too many cells is kept empty: nobody knows which cell is too many.
    fn push<S: AsRef<str>>(&mut self, cells: &[S]) -> Result<(), ReadError> {
        let (columns, count) = (self.headers.len(), cells.len());
        let cell = |at: usize| cells.get(at).map_or("", |cell| cell.as_ref().trim());
        // A line may end with a separator.
        let extra = (columns..count).any(|at| !cell(at).is_empty());
        let repeated = (0..columns).all(|at| cell(at) == self.headers[at]);
        if extra {
            self.remark(self.rows, Reason::TooManyCells(count, columns));
        } else if count < columns {
            self.remark(self.rows, Reason::TooFewCells(count, columns));
        } else if repeated {
            self.remark(self.rows, Reason::HeaderAgain);
        }
        for at in 0..columns {
            self.text.push_str(if extra || repeated { "" } else { cell(at) });
            self.ends.push(u32::try_from(self.text.len()).map_err(|_| ReadError::TooLarge)?);
        }
        self.rows += 1;
        Ok(())
    }

    /// Takes a first row that continues the column names into them: units, or names below a merged one.
    fn continue_header(&mut self, cells: &[String]) -> Result<bool, ReadError> {
        let bare = |cell: &String| cell.trim_matches(['[', ']', '(', ')', '*', ' ', '#', '-']).to_owned();
        let below: Vec<String> = cells.iter().map(bare).collect();
        let filled = || below.iter().filter(|c| !c.is_empty());
        // An unnamed first column holds the names of rows.
        let unnamed = |(i, h): (usize, &String)| i > 0 && h.starts_with("column ") || self.headers[..i].contains(h);
        let units = filled().all(|c| Unit::parse(c).is_some());
        let texts = filled().all(|c| !is_figure(c));
        let merged = self.headers.iter().enumerate().any(unnamed) && texts;
        let named = filled().any(|c| c.contains(|c: char| c.is_alphabetic() || c == '%'));
        if texts && filled().count() > 1 && cells.len() > self.headers.len() {
            return Err(Shape::TwoHeaderRows.into());
        }
        if !named || self.continued > 1 || cells.len() != self.headers.len() || !units && !merged {
            return Ok(false);
        }
        let mut above = String::new();
        for (header, cell) in self.headers.iter_mut().zip(&below) {
            if !header.starts_with("column ") {
                above.clone_from(header);
            }
            if !cell.is_empty() {
                *header = if units { format!("{header} [{cell}]") } else { format!("{above} {cell}") };
            }
        }
        self.continued += 1;
        Ok(true)
    }
}

/// Whether a cell holds a figure.
fn is_figure(cell: &str) -> bool {
    matches!(number::read(cell, Some(Style::Point)), Cell::Number(_) | Cell::Several)
}

/// The tables in `text`; `name` is that of the file. The format is recognised by the text itself.
///
/// # Errors
/// There is no table in it, or one of a shape that is not read.
pub fn read(text: &str, name: &str) -> Result<Vec<Table>, ReadError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(ReadError::Empty);
    }
    let mut tables = match bars::read(text)? {
        Some(tables) => tables,
        None if ["<table", "<html", "<TABLE", "<HTML"].iter().any(|tag| text.contains(tag)) => {
            return Err(Shape::Html.into());
        }
        None => delimited::read(text)?,
    };
    tables.retain(|table| table.rows > 0);
    let count = tables.len();
    for (i, table) in tables.iter_mut().enumerate() {
        let base = if table.name.is_empty() { name } else { table.name.as_str() };
        table.name = if count == 1 { base.to_owned() } else { format!("{base} (table {})", i + 1) };
        match turned::row_per_test(table) {
            Ok(Some(turned)) => *table = turned,
            // Of many tables, such as those of a report, some hold no tests.
            Err(e) if count == 1 => return Err(e),
            _ => {}
        }
    }
    if tables.is_empty() { Err(ReadError::NoTable) } else { Ok(tables) }
}
