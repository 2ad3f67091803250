//! Results of the checks of a test.

use serde::{Deserialize, Serialize};

/// The identifiers of all checks.
pub const CHECKS: [&str; 42] = [
    "agents",
    "batches-seen",
    "cache-hit",
    "checkpoint",
    "client-cpu",
    "client-throttled",
    "commits-database",
    "commits-node",
    "commits-per-sync",
    "commits-window",
    "consistency",
    "counters",
    "cpu-affinity",
    "cpu-steal",
    "data-source",
    "data-written",
    "database-throttled",
    "errors",
    "littles-law",
    "memory-pressure",
    "other-cpu",
    "other-io",
    "other-sessions",
    "other-sessions-cpu",
    "parallel-workers",
    "rate",
    "read-late",
    "record",
    "redo-size",
    "replicas",
    "round-trip",
    "rows-changed",
    "rows-read",
    "settings",
    "sizes",
    "steady",
    "thermal-throttling",
    "think-time",
    "unknown-cpu",
    "warm-up",
    "window",
    "work-evidence",
];

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The figures are valid.
    Passed,
    /// The figures are valid, but the reader should know `detail`.
    Noted,
    /// The figures are wrong: the test is invalid.
    Failed,
    /// The check was not possible; `detail` says why.
    NotMade,
}

/// One check of one test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Stable identifier: one of [`CHECKS`].
    pub id: String,
    /// How it ended.
    pub outcome: Outcome,
    /// One sentence: the value seen, the value allowed, and the counters used.
    pub detail: String,
}

impl Check {
    /// A check with the outcome `Passed` if `ok`, else `Failed`.
    #[must_use]
    pub fn require(id: &str, ok: bool, detail: String) -> Check {
        Check::new(id, if ok { Outcome::Passed } else { Outcome::Failed }, detail)
    }

    /// A check with the given outcome.
    #[must_use]
    pub fn new(id: &str, outcome: Outcome, detail: impl Into<String>) -> Check {
        debug_assert!(CHECKS.contains(&id), "{id} is missing in CHECKS");
        Check { id: id.to_owned(), outcome, detail: detail.into() }
    }
}
