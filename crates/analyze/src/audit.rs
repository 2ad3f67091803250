//! Checks tables of performance results by operational laws. Pure functions: text in, findings out.
//!
//! [`table::read`] makes tables of text, [`Sheet`] finds out what their columns are, and [`audit`] checks the [`LAWS`].

mod claim;
mod context;
mod finding;
mod formula;
mod header;
mod interval;
mod judge;
mod law;
mod laws;
mod mapping;
mod number;
mod sheet;
pub mod table;

pub use claim::{Claim, ClaimError};
pub use finding::{Finding, Reason, Severity, Shape};
pub use law::{LAWS, Law};
pub use mapping::{Mapping, MappingError};
pub use sheet::Sheet;
pub use table::{ReadError, Table};

use loadline_model::Column;
use loadline_model::column::column;

use context::Context;

/// What an audit is told besides the tables.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What the user says that columns are.
    pub mapping: Mapping,
    /// Claims to hold against the tables.
    pub claims: Vec<Claim>,
}

/// What was found in a file.
#[derive(Debug, Clone, Default)]
pub struct Audit {
    /// Findings, table by table, the worst first.
    pub findings: Vec<Finding>,
    /// Tables that were read.
    pub tables: usize,
    /// Rows that were read.
    pub rows: usize,
    /// Ids of the laws that could be checked in one table or another.
    pub checked: Vec<&'static str>,
    /// Shapes of tables that are not read.
    pub refused: Vec<Shape>,
    /// Claims that could not be held against the tables.
    pub unchecked: Vec<ClaimError>,
}

impl Audit {
    /// Number of findings of a severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|f| f.severity == severity).count()
    }
}

/// All columns of ours that an audit looks at: what laws need, and what tells tests apart.
#[must_use]
pub fn columns_of_laws() -> Vec<&'static Column> {
    let also = ["run", "valid", "thinking_pct", "connecting_pct"];
    let all = context::TEXT_KEYS.into_iter().chain(context::SETTINGS).chain(also).chain(LAWS.iter().flat_map(Law::ids));
    let mut columns: Vec<&Column> = Vec::new();
    for column in all.filter_map(column) {
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    columns
}

/// Law of findings about how a table is written, and what was assumed of it.
const TABLE: &str = "table";
/// Laws that any list obeys: they alone cover no table.
const OF_ROWS: [&str; 3] = ["cells", "duplicates", "test-numbers"];

/// Checks all laws in all tables.
#[must_use]
pub fn audit(tables: &[Table], options: &Options) -> Audit {
    let mut audit = Audit { tables: tables.len(), ..Audit::default() };
    let mut claims: Vec<&Claim> = options.claims.iter().collect();
    for table in tables {
        audit.rows += table.rows();
        let mut context = Context::new(Sheet::new(table, &options.mapping));
        remarks(&context);
        if let Some(shape) = context.sheet.side_by_side() {
            context.about_table(TABLE, Severity::Warning, &[], Reason::Refused(shape.clone()));
            audit.refused.push(shape);
        } else {
            laws::settle_kilobyte(&mut context);
            laws::settle_jobs(&mut context);
            let checked = LAWS.iter().filter(|law| laws::check(law, &context)).map(|law| law.id);
            let checked: Vec<&str> = checked.collect();
            if checked.iter().any(|id| !OF_ROWS.contains(id)) {
                audit.checked.extend(checked);
            } else {
                let known: Vec<&str> = context.sheet.columns.iter().map(|c| c.id).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                context.about_table(TABLE, Severity::Info, &[], Reason::NoLaw(known));
            }
            claims.retain(|claim| claim.check(&context).is_none());
        }
        audit.findings.extend(context.findings());
    }
    audit.checked.sort_unstable();
    audit.checked.dedup();
    audit.unchecked = claims.into_iter().map(|claim| ClaimError::NoRows(claim.text.clone())).collect();
    audit
}

/// Adds what is odd about how the table is written, and what was assumed of it.
fn remarks(context: &Context<'_>) {
    let table = context.sheet.table;
    for remark in table.remarks.iter().chain(&context.sheet.remarks) {
        let severity = if remark.odd { Severity::Warning } else { Severity::Info };
        context.find((TABLE, severity), remark.row, &[], None, remark.reason.clone());
    }
    if table.more_remarks > 0 {
        context.about_table(TABLE, Severity::Warning, &[], Reason::More(table.more_remarks));
    }
}
