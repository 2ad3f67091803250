//! Results of the checks of a test.

use serde::{Deserialize, Serialize};

/// All checks: the identifier of each, and what must hold for its test to be valid.
pub const CHECKS: [(&str, &str); 46] = [
    ("agents", "Agents: all answered, started within 2 ms of each other and shared one window."),
    ("agents-network", "Agents: no network link of theirs was used by more than 85 %; noted from 25 % on."),
    ("batches-seen", "DBL-STREAM: another session saw at least 99 % of the batches that were due."),
    ("cache-hit", "Server workloads: the database's cache served at least 99.9 % of the blocks."),
    ("checkpoint", "DBWR-CKPT: a checkpoint began in the window."),
    ("client-cpu", "loadline used less than 85 % of its machine's CPU; noted from 25 % on."),
    ("client-throttled", "No control group stopped loadline: noted from 1 %, invalid from 10 % of its periods."),
    ("cluster", "Each node was a member of its cluster throughout the test, and nobody left or joined it."),
    (
        "commits-database",
        "From the first job's start to the last one's end the database counted as many commits as the jobs.",
    ),
    ("commits-node", "Each node counted the commits of the jobs that were meant to be on it."),
    ("commits-per-sync", "No more commits per sync of the log than jobs: commits waited until they were durable."),
    ("commits-window", "In the window the database counted as many commits as the jobs."),
    ("consistency", "The workload's own conditions hold after the test, such as that no money was lost."),
    ("counters", "No counter of the database went backwards: it was not reset."),
    ("cpu-affinity", "loadline may use all CPUs; noted if not."),
    ("cpu-steal", "The hypervisor took no CPU time: noted from 1 %, invalid from 10 %."),
    ("data-source", "Storage workloads: blocks were read from the device, and no cache answered in its place."),
    ("data-written", "Workloads that write data: the database and the device wrote the blocks that were changed."),
    (
        "database-throttled",
        "No control group stopped the database; noted from 1 % of its periods, because its limit is part of the platform.",
    ),
    ("errors", "At most 1 % of the transactions failed; any is noted."),
    ("littles-law", "Closed loop: jobs = throughput × time per transaction, plus thinking and connecting, within 5 %."),
    ("memory-pressure", "Tasks did not wait for memory: noted from 5 %, invalid from 40 % of the time."),
    ("other-cpu", "Other processes used little CPU: noted from 5 %, invalid from 20 %."),
    ("other-io", "The device was not busy for others: noted from 5 %, invalid from 40 %."),
    ("other-sessions", "No other session worked on the server; noted from 5 % of one session's time."),
    ("other-sessions-cpu", "Other sessions used little CPU: noted from 5 %, invalid from 20 %."),
    ("parallel-workers", "As many processes worked on a query as were asked for."),
    ("rate", "Open loop: the target kept up with the rate; noted if not."),
    (
        "read-late",
        "Jobs that share threads: answers waited less than 10 % of the median transaction time to be read; noted from 2 %.",
    ),
    (
        "read-only",
        "pgbench scripts that may only read changed no row; noted if rows were changed in the database meanwhile.",
    ),
    ("record", "The test's line in the record is as it was written."),
    (
        "redo-on-device",
        "Durable commits: the log's device wrote at least half of the redo, and half as often as the log was synced.",
    ),
    ("redo-size", "Redo per transaction is what the workload is defined with."),
    ("replicas", "As many replicas as a commit waits for were connected and synchronous in the whole window."),
    ("round-trip", "A commit that waits for a replica took at least a round trip to it."),
    ("rows-changed", "The database counted the changed rows of the jobs, within 5 %."),
    ("rows-read", "The database counted at least the rows that the queries must have read."),
    ("settings", "No setting of the database changed during the test."),
    ("sizes", "LGWR-SIZE: samples of more than one size, and few outliers."),
    ("steady", "The window stayed on one level of throughput; noted if not, with when it left it."),
    ("thermal-throttling", "Heat did not slow the CPU down: noted from 1 %, invalid from 20 % of the time."),
    ("think-time", "Jobs thought as long as asked, on average; noted if longer."),
    ("unknown-cpu", "CPU time that no process explains is small: noted from 15 %, invalid from 40 %."),
    ("warm-up", "--warmup auto: throughput was steady before the window opened; noted if not."),
    ("window", "All jobs ran from before the window's start until after its end, and completed transactions in it."),
    ("work-evidence", "The rows in the database are those that the jobs' transactions must have left."),
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
    /// Stable identifier: one of those of [`CHECKS`].
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

    /// A check of pairs of counts, each of which may differ by so much. Counts as small as that prove nothing, nor do such that differ
    /// by more than half.
    #[must_use]
    pub fn compare(id: &str, counts: &[([f64; 2], f64)], detail: String) -> Check {
        let agree = counts.iter().all(|([a, b], allowed)| (a - b).abs() <= *allowed);
        let few = counts.iter().any(|([a, b], allowed)| a.max(*b) <= *allowed || (a - b).abs() > a.max(*b) / 2.0);
        if agree && few {
            return Check::new(
                id,
                Outcome::NotMade,
                format!("{detail}: too few to prove anything; use a longer window"),
            );
        }
        Check::require(id, agree, detail)
    }

    /// A check with the given outcome.
    #[must_use]
    pub fn new(id: &str, outcome: Outcome, detail: impl Into<String>) -> Check {
        debug_assert!(CHECKS.iter().any(|(known, _)| *known == id), "{id} is missing in CHECKS");
        Check { id: id.to_owned(), outcome, detail: detail.into() }
    }
}
