//! Checks tables of performance results by operational laws. Pure functions: text in, findings out.
//!
//! [`table::read`] makes tables of text, [`Sheet`] finds out what their columns are, and [`audit`] checks the [`LAWS`].

pub mod claim;
mod context;
mod finding;
mod header;
pub mod interval;
mod judge;
mod laws;
mod names;
mod shape;
pub mod sheet;
pub mod table;
pub mod unit;

pub use claim::Claim;
pub use context::Expected;
pub use finding::{Finding, Severity};
pub use laws::{LAWS, Law};
pub use names::find as find_column;
pub use sheet::{Figure, Mapping, MappingError, Series, Sheet};
pub use table::{ReadError, Table};

use context::Context;
use finding::Findings;

/// What an audit is told besides the tables.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What the user says that columns are.
    pub mapping: Mapping,
    /// What workloads are defined by.
    pub expected: Vec<Expected>,
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
    /// Claims that could not be held against the tables, with what is missing.
    pub unchecked: Vec<String>,
}

impl Audit {
    /// Number of findings of a severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|f| f.severity == severity).count()
    }
}

/// Ids of all columns that an audit of our own results looks at: what laws need, and what tells tests apart.
#[must_use]
pub fn columns_of_laws() -> Vec<&'static str> {
    const ALSO: [&str; 5] = ["run", "test", "valid", "outside_tx_pct", "job_load"];
    let needed = LAWS.iter().flat_map(|law| law.sets()).flatten();
    let all = sheet::TEXT_KEYS.into_iter().chain(names::SETTINGS).chain(ALSO).chain(needed);
    let mut ids: Vec<&'static str> = Vec::new();
    for id in all.filter(|id| loadline_model::column::column(id).is_some()) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// Law of findings about how a table is written, and what was assumed of it.
const TABLE: &str = "table";
/// Beginning of the finding that a table cannot be checked.
const UNCOVERED: &str = "no law covers its columns";

/// Checks all laws in all tables.
#[must_use]
pub fn audit(tables: &[Table], options: &Options) -> Audit {
    let mut audit = Audit { tables: tables.len(), ..Audit::default() };
    let mut claimed = Vec::new();
    for table in tables {
        let whole = table;
        let shaped = shape::per_test(table, &options.mapping);
        let table = shaped.as_ref().unwrap_or(table);
        audit.rows += table.rows();
        let mut context = Context::new(laws::counts::settle(Sheet::new(table, &options.mapping)), &options.expected);
        let mut findings = Findings { table: table.name.clone(), ..Findings::default() };
        remarks(&context, &mut findings);
        if let Some(found) = laws::units::settle(&mut context) {
            findings.push(found);
        }
        if let Some(found) = laws::sessions::settle(&mut context) {
            findings.push(found);
        }
        let applying: Vec<&&Law> = LAWS.iter().filter(|law| law.applies(&context)).collect();
        let style = context.sheet.style;
        for law in &applying {
            law.check(&context, &mut findings);
        }
        laws::cells::check(&context, &mut findings);
        let related = laws::relations::search(whole, style, &mut findings).then_some("relations");
        if applying.is_empty() && related.is_none() {
            findings.push(context.about_table(TABLE, Severity::Warning, &[], what_would_help(&context)));
        }
        for id in applying.iter().map(|law| law.id).chain(related) {
            if !audit.checked.contains(&id) {
                audit.checked.push(id);
            }
        }
        claimed.push(options.claims.iter().map(|claim| claim::figures(claim, &context)).collect());
        audit.findings.extend(findings.finish());
    }
    // Of many tables, such as those of a report, some hold no figures.
    if !audit.checked.is_empty() {
        for finding in audit.findings.iter_mut().filter(|f| f.law == TABLE && f.message.starts_with(UNCOVERED)) {
            finding.severity = Severity::Info;
            UNCOVERED.clone_into(&mut finding.message);
        }
    }
    let (found, unchecked) = claim::judge(&options.claims, &claimed);
    audit.findings.extend(found);
    audit.unchecked = unchecked;
    audit
}

/// How the table is written, and what was assumed of its columns.
fn remarks(context: &Context<'_>, findings: &mut Findings) {
    let sheet = &context.sheet;
    for remark in sheet.table.remarks.iter().chain(&sheet.remarks) {
        let severity = if remark.odd { Severity::Warning } else { Severity::Info };
        let mut finding = context.about_table(TABLE, severity, &[], remark.message.clone());
        finding.row = remark.row.map(|row| row + 1);
        findings.push(finding);
    }
}

/// Which columns would make a law applicable.
fn what_would_help(context: &Context<'_>) -> String {
    let mut wanted: Vec<(usize, String)> = Vec::new();
    for law in LAWS {
        let missing = |set: Vec<&'static str>| set.into_iter().filter(|id| !context.has(id)).collect::<Vec<_>>();
        if let Some(columns) = law.sets().map(missing).min_by_key(Vec::len) {
            wanted.push((columns.len(), format!("{} ({})", columns.join(", "), law.name)));
        }
    }
    // Without any known column, the most telling laws come first, in their order.
    if !context.sheet.columns.is_empty() {
        wanted.sort_by_key(|(count, _)| *count);
    }
    let few: Vec<String> = wanted.into_iter().take(4).map(|(_, text)| text).collect();
    let known = context.sheet.columns.iter().map(|c| c.id).collect::<Vec<_>>().join(", ");
    let known = if known.is_empty() { "no column is known".to_owned() } else { format!("known are {known}") };
    format!(
        "{UNCOVERED}: {known}. With these, a law could be checked: {}. --columns says what columns are",
        few.join("; ")
    )
}
