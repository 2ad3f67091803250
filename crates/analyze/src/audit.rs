//! Checks tables of performance results by operational laws. Pure functions: text in, findings out.
//!
//! [`table::read`] makes tables of text, [`Sheet`] finds out what their columns are, and [`audit`] checks the [`LAWS`].

mod finding;
mod header;
mod judge;
mod law;
mod laws;
mod number;
mod series;
mod sheet;
pub mod table;

use std::collections::BTreeSet;

use loadline_model::Column;
use loadline_model::column::column;

pub use finding::{AuditError, Figure, Finding, Reason, Severity};
pub use law::{LAWS, Law};
pub use sheet::{Mapping, Sheet};
pub use table::Table;

use finding::TABLE;
use sheet::is_same;

#[derive(Debug, Clone, Default)]
pub struct Audit {
    pub findings: Vec<Finding>,
    pub tables: usize,
    pub rows: usize,
    /// Ids of the laws that could be checked in one table or another.
    pub checked: BTreeSet<&'static str>,
    /// Tables whose shape is not read.
    pub refused: Vec<AuditError>,
    /// Claims that could not be compared with the tables.
    pub unchecked: Vec<AuditError>,
}

impl Audit {
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|f| f.severity == severity).count()
    }
}

/// All columns of ours that an audit looks at: what laws need, and what tells tests apart.
pub fn columns_of_laws() -> impl Iterator<Item = &'static Column> {
    let also = ["run", "valid", "thinking_pct", "connecting_pct"];
    let all = header::words("key").chain(header::words("setting")).chain(also).chain(LAWS.iter().flat_map(Law::ids));
    let mut seen = BTreeSet::new();
    all.filter_map(column).filter(move |column| seen.insert(column.id))
}

/// Laws that any list obeys: they alone cover no table.
const OF_ROWS: [&str; 3] = ["cells", "duplicates", "test-numbers"];

/// Checks all laws and claims in all tables; `mapping` is what the user says that columns are.
pub fn audit(tables: &[Table], mapping: &Mapping, claims: &[Claim]) -> Audit {
    let mut audit = Audit { tables: tables.len(), ..Audit::default() };
    let mut claims: Vec<&Claim> = claims.iter().collect();
    for table in tables {
        audit.rows += table.rows();
        let mut sheet = Sheet::new(table, mapping);
        for (row, severity, reason) in &table.remarks {
            match row {
                Some(row) => sheet.find((TABLE, *severity), *row, &[], None, reason.clone()),
                None => sheet.about(None, (TABLE, *severity), &[], reason.clone()),
            }
        }
        if let Some(shape) = sheet.side_by_side() {
            sheet.about(None, (TABLE, Severity::Warning), &[], Reason::Refused(shape.clone()));
            audit.refused.push(shape);
        } else {
            laws::settle_kilobyte(&mut sheet);
            laws::settle_jobs(&mut sheet);
            let checked: Vec<&str> = LAWS.iter().filter(|l| laws::check(l, &sheet)).map(|law| &*law.id).collect();
            if checked.iter().any(|id| !OF_ROWS.contains(id)) {
                audit.checked.extend(checked);
            } else {
                let known: Vec<&str> = sheet.columns.iter().map(|c| c.id).collect();
                sheet.about(None, (TABLE, Severity::Info), &[], Reason::NoLaw(known.join(", ")));
            }
            claims.retain(|claim| claim.check(&sheet).is_none());
        }
        audit.findings.extend(sheet.findings());
    }
    audit.unchecked = claims.into_iter().map(|claim| AuditError::NoRows(claim.text.clone())).collect();
    audit
}

/// A claim about the ratio of one column in two rows: `COLUMN: ROW / ROW = FACTOR`.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    pub(crate) text: String,
    column: String,
    rows: [String; 2],
    factor: f64,
    /// Tolerance by the digits of the factor, 1 % of it at most.
    tolerance: f64,
}

impl Claim {
    pub fn parse(text: &str) -> Result<Claim, AuditError> {
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
        parsed().ok_or_else(|| AuditError::Claim(text.to_owned()))
    }

    /// Holds the claim against a table, if that has its column and rows.
    pub(crate) fn check(&self, sheet: &Sheet<'_>) -> Option<()> {
        let (table, columns) = (sheet.table, &sheet.columns);
        let is_it = |name: &str| is_same(name, &self.column);
        let place = columns.iter().position(|c| is_it(c.id) || is_it(&table.headers[c.index]))?;
        // A cell of the first column counts before the number of a row.
        let row = |name: &String| {
            let number = || name.parse::<usize>().ok()?.checked_sub(1).filter(|row| *row < table.rows());
            table.cells(0, usize::MAX).position(|cell| is_same(cell, name)).or_else(number)
        };
        let (above, below) = (row(&self.rows[0])?, row(&self.rows[1])?);
        let base = columns[place].value(below).filter(|b| *b != 0.0)?;
        let ratio = columns[place].value(above)? / base;
        let holds = (ratio - self.factor).abs() <= self.tolerance;
        let graded = ("claim", if holds { Severity::Info } else { Severity::Error });
        let why = Reason::Claim(Figure(self.factor), Figure(ratio));
        sheet.find(graded, above, &[place], Some(base * self.factor), why);
        Some(())
    }
}
