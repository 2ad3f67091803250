//! What an audit finds.

use super::reason::Reason;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The printed figures cannot all be right.
    Error,
    /// They can be right only under an assumption, which the finding states.
    Warning,
    /// Something was inferred.
    Info,
}

impl Severity {
    /// `error`, `warning` or `info`.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["error", "warning", "info"][self as usize]
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Name of the table.
    pub table: String,
    /// Row below the column names, counted from 1; `None` if it is about the table.
    pub row: Option<usize>,
    /// Which test the row is, in words.
    pub test: String,
    /// Ids of the columns that it is about.
    pub columns: Vec<&'static str>,
    /// Id of the law.
    pub law: &'static str,
    /// What is printed.
    pub printed: String,
    /// What the other cells give instead, in the printed unit.
    pub recomputed: String,
    /// How much larger the printed figure is than the recomputed one, in percent.
    pub deviation_pct: Option<f64>,
    /// What it is and what it likely means.
    pub reason: Reason,
}
