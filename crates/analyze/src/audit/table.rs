//! Reads tables of results from text: separated values, Markdown, and what is boxed by bars. Cells stay text, because their
//! digits say how precise they are ([`super::number`]); [`super::Sheet`] knows what the columns mean.

mod bars;
mod delimited;
mod turned;

use super::number::{self, Cell, Style};
use super::reason::{Reason, Shape, reason};
use super::unit::Unit;

/// Why a text holds no table that is read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Nothing but white space.
    #[error("it is empty: a table has a line of column names and a line per test")]
    Empty,
    /// No line with column names and rows below.
    #[error(
        "no table was found: expected CSV (commas, semicolons or tabs), a Markdown table or one in a box of bars, with a line of \
         column names and at least one row"
    )]
    NoTable,
    /// The first line holds numbers.
    #[error("its first line '{0}' holds numbers: write a line of column names above it")]
    NoHeader(String),
    /// More than 4 GiB of cells.
    #[error("it is larger than 4 GiB: split it")]
    TooLarge,
    /// A table of another shape.
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

/// Remarks kept of one table; a file of a million broken rows has one cause.
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
    text: String,
    ends: Vec<u32>,
    rows: usize,
}

impl Table {
    fn new(headers: impl Iterator<Item = String>) -> Table {
        let named = |(i, h): (usize, String)| if h.is_empty() { format!("column {}", i + 1) } else { h };
        Table { headers: headers.enumerate().map(named).collect(), ..Table::default() }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A cell, trimmed; empty if there is none.
    #[must_use]
    pub fn cell(&self, row: usize, column: usize) -> &str {
        if column >= self.headers.len() {
            return "";
        }
        let index = row * self.headers.len() + column;
        let end = |i: usize| self.ends.get(i).map_or(0, |end| *end as usize);
        let start = if index == 0 { 0 } else { end(index - 1) };
        self.text.get(start..end(index)).unwrap_or("")
    }

    /// All cells of a column, or those of its first rows.
    pub(crate) fn cells(&self, column: usize, rows: usize) -> impl Iterator<Item = &str> {
        (0..self.rows.min(rows)).map(move |row| self.cell(row, column))
    }

    fn remark(&mut self, row: usize, reason: Reason) {
        if self.remarks.len() < REMARKS {
            self.remarks.push(Remark { row: Some(row), odd: true, reason });
        }
    }

    /// Adds a row. One with too many cells is kept empty: nobody knows which cell is too many.
    fn push<'a>(&mut self, cells: impl Iterator<Item = &'a str> + Clone) -> Result<(), ReadError> {
        let (columns, row) = (self.headers.len(), self.rows);
        let count = cells.clone().count();
        // A line may end with a separator.
        let extra = count > columns && cells.clone().skip(columns).any(|cell| !cell.trim().is_empty());
        let repeated = count >= columns && cells.clone().zip(&self.headers).all(|(a, b)| a.trim() == b);
        if extra {
            self.remark(row, reason!(TooManyCells, count, columns));
        } else if count < columns {
            self.remark(row, reason!(TooFewCells, count, columns));
        } else if repeated {
            self.remark(row, reason!(HeaderAgain));
        }
        let cells = cells.take(if extra || repeated { 0 } else { columns });
        for cell in cells.chain(std::iter::repeat("")).take(columns) {
            self.text.push_str(cell.trim());
            self.ends.push(u32::try_from(self.text.len()).map_err(|_| ReadError::TooLarge)?);
        }
        self.rows += 1;
        Ok(())
    }

    /// Takes a first row that continues the column names into them: units, or names below a merged one.
    fn continue_header(&mut self, cells: &[&str]) -> bool {
        let bare = |cell: &str| cell.trim_matches(['[', ']', '(', ')', '*', ' ']).to_owned();
        let filled: Vec<String> =
            cells.iter().map(|c| bare(c)).filter(|c| !matches!(c.as_str(), "" | "#" | "-")).collect();
        let named = filled.iter().any(|c| c.contains(|c: char| c.is_alphabetic() || c == '%'));
        if !named || cells.len() != self.headers.len() {
            return false;
        }
        let units = filled.iter().all(|c| Unit::parse(c).is_some());
        let unnamed = |(i, h): (usize, &String)| h.starts_with("column ") || self.headers[..i].contains(h);
        let merged = self.headers.iter().enumerate().any(unnamed) && filled.iter().all(|c| !is_figure(c));
        if !units && !merged {
            return false;
        }
        let mut above = String::new();
        for (header, cell) in self.headers.iter_mut().zip(cells) {
            if !header.starts_with("column ") {
                above.clone_from(header);
            }
            let cell = bare(cell);
            match cell.as_str() {
                "" | "#" | "-" => {}
                unit if units => *header = format!("{header} [{unit}]"),
                below => *header = format!("{above} {below}"),
            }
        }
        true
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
    let head: String = text.chars().take(4096).collect::<String>().to_lowercase();
    if ["<table", "<html", "<!doctype"].iter().any(|tag| head.contains(tag)) {
        return Err(Shape::Html.into());
    }
    let mut tables = match bars::read(text)? {
        Some(tables) => tables,
        None => delimited::read(text)?,
    };
    tables.retain(|table| table.rows > 0);
    let count = tables.len();
    for (i, table) in tables.iter_mut().enumerate() {
        let heading = std::mem::take(&mut table.name);
        let base = if heading.is_empty() { name } else { heading.as_str() };
        table.name = if count == 1 { base.to_owned() } else { format!("{base} (table {})", i + 1) };
    }
    let tables = tables.into_iter().map(turned::row_per_test).collect::<Result<Vec<_>, _>>()?;
    if tables.is_empty() { Err(ReadError::NoTable) } else { Ok(tables) }
}
