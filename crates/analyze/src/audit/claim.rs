//! Claims about two rows of a table: `COLUMN: ROW / ROW = FACTOR`.

use super::context::Context;
use super::finding::{Figure, Reason, Severity};
use super::mapping::is_same;
use super::number;

/// Why a claim cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum ClaimError {
    #[error(
        "'{0}' is no claim: write COLUMN: ROW / ROW = FACTOR, such as 'tps: new / old = 2.5' or 'latency_ms: 4 / 1 = 6'"
    )]
    Form(String),
    #[error(
        "'{0}': no table has that column with a figure in both rows; a row is a cell of the first column, or its number"
    )]
    NoRows(String),
}

/// The ratio of one column in two rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    pub(crate) text: String,
    column: String,
    rows: [String; 2],
    factor: f64,
    /// What the digits of the factor leave open, 1 % of it at most.
    tolerance: f64,
}

impl Claim {
    /// Parses `COLUMN: ROW / ROW = FACTOR`.
    ///
    /// # Errors
    /// It has another form, or the factor is no number above 0.
    pub fn parse(text: &str) -> Result<Claim, ClaimError> {
        let parsed = || {
            let (left, factor) = text.rsplit_once('=')?;
            let (column, rows) = left.rsplit_once(": ")?;
            let (above, below) = rows.split_once(" / ")?;
            let n = number::with_point(factor.trim().trim_end_matches(['x', '×']))?;
            let [column, above, below] = [column, above, below].map(|part| part.trim().to_owned());
            let is_whole = n.value > 0.0 && n.unit.is_empty() && ![&column, &above, &below].contains(&&String::new());
            let tolerance = n.half.min(0.01 * n.value) * (1.0 + 1e-9);
            is_whole.then(|| Claim { text: text.to_owned(), column, rows: [above, below], factor: n.value, tolerance })
        };
        parsed().ok_or_else(|| ClaimError::Form(text.to_owned()))
    }

    /// Holds the claim against a table, if that has its column and rows.
    pub(crate) fn check(&self, context: &Context<'_>) -> Option<()> {
        let (table, columns) = (context.sheet.table, &context.sheet.columns);
        let is_it = |name: &str| is_same(name, &self.column);
        let place = columns.iter().position(|c| is_it(c.id) || is_it(&table.headers[c.index]))?;
        // A cell of the first column counts before the number of a row.
        let row = |name: &str| {
            let number = || name.parse::<usize>().ok()?.checked_sub(1).filter(|row| *row < table.rows());
            table.cells(0, usize::MAX).position(|cell| is_same(cell, name)).or_else(number)
        };
        let [above, below] = [row(&self.rows[0])?, row(&self.rows[1])?];
        let base = columns[place].value(below).filter(|b| *b != 0.0)?;
        let ratio = columns[place].value(above)? / base;
        let holds = (ratio - self.factor).abs() <= self.tolerance;
        let severity = if holds { Severity::Info } else { Severity::Error };
        let why = Reason::Claim(Figure(self.factor), Figure(ratio));
        context.find(("claim", severity), above, &[place], Some(base * self.factor), why);
        Some(())
    }
}
