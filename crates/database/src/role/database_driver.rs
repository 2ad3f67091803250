//! The in-database driver: the loop of each job runs inside the database.

use loadline_model::Latencies;

use super::Canceller;
use crate::error::TargetError;
use crate::work::Work;

/// Runs transaction programs inside the database.
pub trait DatabaseDriver {
    /// Puts the program into the database; called again when a parameter has changed.
    ///
    /// # Errors
    /// When a statement fails.
    fn install(&self, work: &Work) -> Result<(), TargetError>;

    /// Opens the session of `job`.
    ///
    /// # Errors
    /// When the session cannot be opened.
    fn database_session(&self, work: &Work, job: u32) -> Result<Box<dyn DatabaseSession>, TargetError>;

    /// Time in ns that this driver's clock and histogram code takes per transaction, measured now; `None` if
    /// there was nothing to measure.
    ///
    /// # Errors
    /// When the measurement fails.
    fn overhead_ns(&self) -> Result<Option<f64>, TargetError>;
}

/// A session of the in-database driver.
pub trait DatabaseSession: Send {
    /// Runs transactions inside the database until the first that completes at or after
    /// `until_ns` (on [`crate::clock`]). The next call goes on with the program's sequence.
    ///
    /// # Errors
    /// What the database says; what the slice did until then is not known.
    fn run_slice(&mut self, until_ns: u64) -> Result<Slice, TargetError>;

    /// A handle with which another thread ends a call that hangs.
    fn canceller(&self) -> Canceller;
}

/// What one slice of the in-database driver did.
#[derive(Debug, Clone, Default)]
pub struct Slice {
    /// Start of its first transaction, ns.
    pub first_start_ns: u64,
    /// Transaction times of those that completed before the slice's end.
    pub transaction: Latencies,
    /// Commit times of the same.
    pub commit: Latencies,
    /// The transaction that crossed the end, after which the slice ended.
    pub end: Option<SliceEnd>,
}

/// The transaction that crossed the end of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceEnd {
    /// Its start, ns.
    pub start_ns: u64,
    /// When its commit began, ns.
    pub commit_ns: u64,
    /// When its commit returned, ns.
    pub end_ns: u64,
}
