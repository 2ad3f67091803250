//! What the doctor says about a target.

use serde::{Deserialize, Serialize};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// As it should be, or plain information.
    Ok,
    /// A figure will be missing or must be read with care.
    Warning,
    /// It spoils the figures: a run refuses it unless forced.
    Refused,
    /// Nothing can be measured: a run refuses it, forced or not.
    Impossible,
}

/// One thing the doctor looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable identifier, e.g. `fsync`.
    pub id: String,
    /// How bad it is.
    pub severity: Severity,
    /// What was looked at, e.g. `fsync`.
    pub subject: String,
    /// What was found, e.g. `off`.
    pub value: String,
    /// What it means for the figures and what to do next; empty when all is well.
    pub advice: String,
}

impl Finding {
    /// A finding; `advice` may be empty when `severity` is `Ok`.
    #[must_use]
    pub fn new(
        id: &str,
        severity: Severity,
        subject: impl Into<String>,
        value: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding { id: id.to_owned(), severity, subject: subject.into(), value: value.into(), advice: advice.into() }
    }
}
