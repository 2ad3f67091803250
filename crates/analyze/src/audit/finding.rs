//! What an audit finds.

use std::collections::HashMap;
use std::fmt;

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
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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
    /// What the other cells give instead.
    pub recomputed: String,
    /// How much larger the printed figure is than the recomputed one, in percent.
    pub deviation_pct: Option<f64>,
    /// What it is and what it likely means.
    pub message: String,
}

/// Findings of one law about rows of one table that are listed one by one.
const LISTED: usize = 1000;

/// Collects the findings about one table.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) table: String,
    pub(crate) all: Vec<Finding>,
    pub(crate) counts: HashMap<(&'static str, Severity), usize>,
}

impl Findings {
    /// Adds a finding; of a thousand rows with the same one, the rest is counted only.
    pub(crate) fn push(&mut self, finding: Finding) {
        if finding.row.is_some() {
            let count = self.counts.entry((finding.law, finding.severity)).or_insert(0);
            *count += 1;
            if *count > LISTED {
                return;
            }
        }
        self.all.push(finding);
    }

    /// Whether a finding about one more row would be listed.
    pub(crate) fn wants(&mut self, law: &'static str, severity: Severity) -> bool {
        let count = self.counts.entry((law, severity)).or_insert(0);
        if *count < LISTED {
            return true;
        }
        *count += 1;
        false
    }

    /// All findings, those that were only counted as one each, the worst first.
    pub(crate) fn finish(mut self) -> Vec<Finding> {
        let more: Vec<_> = self.counts.iter().filter(|(_, n)| **n > LISTED).map(|(k, n)| (*k, n - LISTED)).collect();
        for ((law, severity), count) in more {
            self.all.push(Finding {
                severity,
                table: self.table.clone(),
                row: None,
                test: String::new(),
                columns: Vec::new(),
                law,
                printed: String::new(),
                recomputed: String::new(),
                deviation_pct: None,
                message: format!("{count} more rows have this finding"),
            });
        }
        self.all.sort_by(|a, b| (a.severity, a.law, a.row).cmp(&(b.severity, b.law, b.row)));
        self.all
    }
}

/// A number with `digits` significant digits, without zeros at the end of its fraction.
#[must_use]
pub(crate) fn shown(value: f64, digits: i32) -> String {
    if !value.is_finite() {
        return "∞".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    if magnitude > 15 {
        return format!("{value:.*e}", usize::try_from(digits - 1).unwrap_or(0));
    }
    let decimals = (digits - 1 - magnitude).clamp(0, 12);
    let text = format!("{value:.*}", usize::try_from(decimals).unwrap_or(0));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
