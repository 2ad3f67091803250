//! The in-database driver: the loop of each job runs inside the database.

use loadline_model::Latencies;

use super::Canceller;
use crate::error::TargetError;
use crate::work::Work;

/// Runs transaction programs inside the database.
pub trait DatabaseDriver {
    /// Creates the program's procedure in the database; called again when a parameter has changed.
    fn install(&self, work: &Work) -> Result<(), TargetError>;

    /// Opens the session of `job`.
    fn database_session(&self, work: &Work, job: u32) -> Result<Box<dyn DatabaseSession>, TargetError>;

    /// Measures the time per transaction (ns) of this driver's own clock and histogram code; `None` if it cannot be
    /// measured.
    fn overhead_ns(&self) -> Result<Option<f64>, TargetError>;
}

/// The median of three measurements, of those that give one.
pub(crate) fn median_of_three(
    mut measure: impl FnMut() -> Result<Option<f64>, TargetError>,
) -> Result<Option<f64>, TargetError> {
    let mut times = Vec::new();
    for _ in 0..3 {
        times.extend(measure()?);
    }
    times.sort_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied())
}

pub trait DatabaseSession: Send {
    /// Runs transactions inside the database until the first one that completes at or after `until_ns` (on
    /// [`loadline_storage::now_ns`]). The next call continues the program's sequence.
    ///
    /// # Errors
    /// Those of the database; the transactions of the slice up to then are unknown.
    fn run_slice(&mut self, until_ns: u64) -> Result<Slice, TargetError>;

    /// A handle with which another thread can end a call that hangs.
    fn canceller(&self) -> Canceller;
}

/// The result of one slice of the in-database driver.
#[derive(Debug, Clone, Default)]
pub struct Slice {
    /// Start of its first transaction, ns.
    pub first_start_ns: u64,
    /// Times of the transactions that completed before the end of the slice.
    pub transaction: Latencies,
    /// Start and end of each of them, ns, in order; `None` if the server returns a histogram.
    pub each: Option<Vec<[u64; 2]>>,
    pub commit: Latencies,
    /// The transaction that crossed the end, after which the slice ended.
    pub end: Option<SliceEnd>,
    /// Attempts of its transactions in vain.
    pub lost: Attempts,
}

/// Attempts of transactions in vain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Attempts that lost against another transaction and were rolled back.
    pub conflicts: u64,
    /// COMMITs that failed: some databases count them as commits.
    pub failed_commits: u64,
}

/// The transaction that crossed the end of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceEnd {
    /// Start, ns.
    pub start_ns: u64,
    /// When its commit began, ns.
    pub commit_ns: u64,
    /// When its commit returned, ns.
    pub end_ns: u64,
}
