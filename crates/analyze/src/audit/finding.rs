//! What an audit finds.

use std::collections::HashMap;

use super::reason::{Reason, reason};

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

/// Findings of one law about rows of one table that are listed one by one.
const LISTED: usize = 1000;

/// The findings about one table.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    table: String,
    all: Vec<Finding>,
    counts: HashMap<(&'static str, Severity), usize>,
}

impl Findings {
    pub(crate) fn new(table: &str) -> Findings {
        Findings { table: table.to_owned(), ..Findings::default() }
    }

    /// Adds a finding about a row, unless a thousand rows have the same one.
    pub(crate) fn push(
        &mut self,
        make: impl FnOnce(Finding) -> Finding,
        law: &'static str,
        severity: Severity,
        why: Reason,
    ) {
        let count = self.counts.entry((law, severity)).or_insert(0);
        *count += 1;
        if *count <= LISTED {
            self.about_table(law, severity, Vec::new(), why);
            self.all.pop().map(make).into_iter().for_each(|finding| self.all.push(finding));
        }
    }

    /// Adds a finding about the table.
    pub(crate) fn about_table(
        &mut self,
        law: &'static str,
        severity: Severity,
        columns: Vec<&'static str>,
        why: Reason,
    ) {
        let (table, [test, printed, recomputed]) = (self.table.clone(), [const { String::new() }; 3]);
        let (row, deviation_pct) = (None, None);
        self.all.push(Finding {
            severity,
            table,
            row,
            test,
            columns,
            law,
            printed,
            recomputed,
            deviation_pct,
            reason: why,
        });
    }

    /// All findings, the worst first.
    pub(crate) fn finish(mut self) -> Vec<Finding> {
        for ((law, severity), count) in std::mem::take(&mut self.counts) {
            if let Some(count) = count.checked_sub(LISTED).filter(|n| *n > 0) {
                self.about_table(law, severity, Vec::new(), reason!(More, count));
            }
        }
        self.all.sort_by(|a, b| (a.severity, a.law, a.row).cmp(&(b.severity, b.law, b.row)));
        self.all
    }
}
