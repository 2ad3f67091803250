//! Findings of `loadline doctor` about a target.

use serde::{Deserialize, Serialize};

crate::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Severity {
        /// Correct, or plain information.
        Ok: "ok";
        /// A figure will be missing or less reliable.
        Warning: "warning";
        /// The figures would be wrong: a run refuses it unless forced.
        Refused: "REFUSED";
        /// Nothing can be measured: a run refuses it, forced or not.
        Impossible: "IMPOSSIBLE";
    }
    pub fn word;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable identifier, e.g. `fsync`.
    pub id: String,
    pub severity: Severity,
    pub subject: String,
    pub value: String,
    /// Effect on the figures and what to do next; empty if `severity` is `Ok`.
    pub advice: String,
}

impl Finding {
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
