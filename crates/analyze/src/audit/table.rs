//! Reads tables of results from text: separated values, Markdown, and what is boxed by bars. Cells stay text, because their digits
//! say how precise they are; [`super::Sheet`] knows what the columns mean.

mod bars;
mod delimited;
mod turned;

use super::finding::{Reason, Shape};
use super::header::Unit;
use super::number::{self, Cell, Style};

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

/// Remarks kept of one table: a file of a million broken rows has one cause.
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
    /// Number of remarks that were left out.
    pub more_remarks: usize,
    text: String,
    /// Where the cells end in the text.
    ends: Vec<usize>,
    rows: usize,
    continued: usize,
}

impl Table {
    fn new<S: AsRef<str>>(headers: &[S]) -> Table {
        let named = |(i, h): (usize, &S)| match h.as_ref().trim() {
            "" => format!("column {}", i + 1),
            name => name.to_owned(),
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
        let end = |i: usize| self.ends.get(i).copied().unwrap_or(0);
        let start = index.checked_sub(1).map_or(0, end);
        self.text.get(start..end(index)).filter(|_| column < self.headers.len()).unwrap_or("")
    }

    /// The text of a row of nothing but a name, which is a heading of those below it.
    pub(crate) fn heading(&self, row: usize) -> Option<&str> {
        let mut cells = (0..self.headers.len()).map(|column| self.cell(row, column)).filter(|cell| !cell.is_empty());
        let name = cells.next().filter(|cell| !is_figure(cell))?;
        cells.next().is_none().then_some(name)
    }

    pub(crate) fn cells(&self, column: usize, rows: usize) -> impl Iterator<Item = &str> {
        (0..self.rows.min(rows)).map(move |row| self.cell(row, column))
    }

    fn remark(&mut self, row: Option<usize>, odd: bool, reason: Reason) {
        if self.remarks.len() < REMARKS {
            self.remarks.push(Remark { row, odd, reason });
        } else {
            self.more_remarks += 1;
        }
    }

    /// Adds a row, or a first one that continues the column names to them.
    fn add(&mut self, cells: &[String]) -> Result<(), Shape> {
        if self.rows > 0 || !self.continue_header(cells)? {
            self.push(cells);
        }
        Ok(())
    }

    /// Adds a row. One with too many cells is kept empty: nobody knows which cell is too many.
    fn push<S: AsRef<str>>(&mut self, cells: &[S]) {
        let (columns, count) = (self.headers.len(), cells.len());
        let cell = |at: usize| cells.get(at).map_or("", |cell| cell.as_ref().trim());
        // A line may end with a separator.
        let extra = (columns..count).any(|at| !cell(at).is_empty());
        let repeated = (0..columns).all(|at| cell(at) == self.headers[at]);
        match (extra, count < columns) {
            (true, _) => self.remark(Some(self.rows), true, Reason::TooManyCells(count, columns)),
            (_, true) => self.remark(Some(self.rows), true, Reason::TooFewCells(count, columns)),
            _ if repeated => self.remark(Some(self.rows), true, Reason::HeaderAgain),
            _ => {}
        }
        for at in 0..columns {
            self.text.push_str(if extra || repeated { "" } else { cell(at) });
            self.ends.push(self.text.len());
        }
        self.rows += 1;
    }

    /// Takes a first row that continues the column names into them: units, or names below a merged one.
    fn continue_header(&mut self, cells: &[String]) -> Result<bool, Shape> {
        let below: Vec<&str> = cells.iter().map(|c| c.trim_matches(['[', ']', '(', ')', '*', ' ', '#', '-'])).collect();
        let filled = || below.iter().filter(|c| !c.is_empty());
        let (units, texts) = (filled().all(|c| Unit::parse(c).is_some()), filled().all(|c| !is_figure(c)));
        if texts && filled().count() > 1 && cells.len() > self.headers.len() {
            return Err(Shape::TwoHeaderRows);
        }
        // An unnamed first column holds the names of rows.
        let unnamed = |(i, h): (usize, &String)| i > 0 && h.starts_with("column ") || self.headers[..i].contains(h);
        let merged = texts && self.headers.iter().enumerate().any(unnamed);
        let named = filled().any(|c| c.contains(|c: char| c.is_alphabetic() || c == '%'));
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

fn is_figure(cell: &str) -> bool {
    matches!(number::read(cell, Some(Style::Point)), Cell::Number(_) | Cell::Unclear)
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
    let mut tables = bars::read(text)?;
    if tables.is_empty() {
        if ["<table", "<html", "<TABLE", "<HTML"].iter().any(|tag| text.contains(tag)) {
            return Err(Shape::Html.into());
        }
        tables = delimited::read(text)?;
    }
    tables.retain(|table| table.rows > 0);
    let count = tables.len();
    for (i, table) in tables.iter_mut().enumerate() {
        let base = if table.name.is_empty() { name } else { table.name.as_str() };
        table.name = if count == 1 { base.to_owned() } else { format!("{base} (table {})", i + 1) };
        match turned::row_per_test(table) {
            Ok(Some(turned)) => *table = turned,
            // Of many tables, such as those of a report, some hold no tests.
            Err(e) if count == 1 => return Err(e.into()),
            _ => {}
        }
    }
    if tables.is_empty() { Err(ReadError::NoTable) } else { Ok(tables) }
}
