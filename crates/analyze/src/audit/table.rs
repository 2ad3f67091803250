//! Reads tables of results from text: separated values, Markdown, the boxes of SQL shells, HTML. Cells stay text, because
//! their digits say how precise they are ([`number`]); [`crate::audit::Sheet`] knows what the columns mean.

mod delimited;
mod html;
mod markdown;
pub mod number;

use crate::audit::unit::Unit;

/// Why a text holds no table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Nothing but white space.
    #[error("it is empty: a table has a line of column names and a line per test")]
    Empty,
    /// No line with column names and rows below.
    #[error(
        "no table was found: expected CSV (commas, semicolons or tabs), a Markdown table or an HTML table, with a line of column names \
         and at least one row"
    )]
    NoTable,
    /// The first line holds numbers.
    #[error("its first line '{0}' holds numbers: write a line of column names above it")]
    NoHeader(String),
    /// More than 4 GiB of cells.
    #[error("it is larger than 4 GiB: split it")]
    TooLarge,
}

/// Something odd about how a table is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Row, counted from 0.
    pub row: Option<usize>,
    /// Column, counted from 0.
    pub column: Option<usize>,
    /// Whether something of the table was not used as it is written.
    pub odd: bool,
    /// What is odd, and what was done about it.
    pub message: String,
}

/// Remarks kept of one table; a file of a million broken rows has one cause.
const REMARKS: usize = 100;

/// One table of text cells. Every row has as many cells as there are headers; missing ones are empty.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// The heading above it with its number, or the name of the file.
    pub name: String,
    /// Names of the columns as printed.
    pub headers: Vec<String>,
    /// What is odd about how it is written.
    pub remarks: Vec<Remark>,
    /// All cells, row by row.
    text: String,
    /// End of each cell in `text`.
    ends: Vec<u32>,
    rows: usize,
}

impl Table {
    pub(crate) fn new(headers: Vec<String>) -> Table {
        Table { headers, ..Table::default() }
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

    pub(crate) fn remark(&mut self, row: Option<usize>, message: String) {
        if self.remarks.len() < REMARKS {
            self.remarks.push(Remark { row, column: None, odd: row.is_some(), message });
        }
    }

    /// Adds a row. One with too many cells is kept empty: nobody knows which cell is too many.
    pub(crate) fn push<'a>(&mut self, cells: impl Iterator<Item = &'a str> + Clone) -> Result<(), ReadError> {
        let (width, row) = (self.headers.len(), self.rows);
        let count = cells.clone().count();
        // A line may end with a separator.
        let extra = count > width && cells.clone().skip(width).any(|cell| !cell.trim().is_empty());
        let repeated = count >= width && cells.clone().zip(&self.headers).all(|(a, b)| a.trim() == b);
        if extra {
            self.remark(Some(row), format!("it has {count} cells for {width} columns: it was not used"));
        } else if repeated {
            self.remark(Some(row), "it repeats the column names: it was not used".to_owned());
        } else if count < width {
            self.remark(
                Some(row),
                format!("it has {count} cells for {width} columns: those at its end are taken as empty"),
            );
        }
        let cells = cells.take(if extra || repeated { 0 } else { width });
        for cell in cells.chain(std::iter::repeat("")).take(width) {
            self.text.push_str(cell.trim());
            self.ends.push(u32::try_from(self.text.len()).map_err(|_| ReadError::TooLarge)?);
        }
        self.rows += 1;
        Ok(())
    }
}

/// The tables in `text`; `name` is that of the file. The format is recognised by the text itself.
///
/// # Errors
/// There is no table in it.
pub fn read(text: &str, name: &str) -> Result<Vec<Table>, ReadError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(ReadError::Empty);
    }
    let mut tables = if html::is(text) {
        html::read(text)?
    } else if markdown::is(text) {
        markdown::read(text)?
    } else {
        delimited::read(text)?
    };
    tables.retain(|table| table.rows > 0);
    if tables.is_empty() {
        return Err(ReadError::NoTable);
    }
    let count = tables.len();
    for (i, table) in tables.iter_mut().enumerate() {
        let heading = std::mem::take(&mut table.name);
        table.name = match (heading.is_empty(), count) {
            (true, 1) => name.to_owned(),
            (true, _) => format!("{name} (table {})", i + 1),
            (false, 1) => heading,
            (false, _) => format!("{heading} (table {})", i + 1),
        };
    }
    Ok(tables)
}

/// Whether cells hold units and nothing else, as a second line of column names does.
fn units_only(cells: &[&str]) -> bool {
    let bare = |cell: &str| cell.trim_matches(['[', ']', '(', ')']).trim().to_owned();
    let filled: Vec<String> = cells.iter().map(|c| bare(c)).filter(|c| !matches!(c.as_str(), "" | "#" | "-")).collect();
    // A row of ones is a test, although 1 is the unit of a count.
    let named = filled.iter().any(|c| c.contains(|c: char| c.is_alphabetic() || c == '%'));
    named && filled.iter().all(|c| Unit::parse(c).is_some())
}

/// Writes units behind the column names.
fn add_units(headers: &mut [String], units: &[&str]) {
    for (header, unit) in headers.iter_mut().zip(units) {
        let unit = unit.trim_matches(['[', ']', '(', ')']).trim();
        if !matches!(unit, "" | "#" | "-") {
            *header = format!("{header} [{unit}]");
        }
    }
}
