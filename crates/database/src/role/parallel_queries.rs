//! Queries that several processes of the database run together.

use crate::error::TargetError;
use crate::work::Work;

/// Runs a query with parallel workers. The session's own process is one of the workers.
pub trait ParallelQueries {
    /// The most workers of a query; `None` if unknown.
    ///
    /// # Errors
    /// When the database does not answer.
    fn max_parallel_workers(&self) -> Result<Option<WorkerLimit>, TargetError>;

    /// Tries a query of the workload and counts the workers that ran it; `None` if the database does not tell.
    ///
    /// # Errors
    /// When the query fails.
    fn try_parallel(&self, work: &Work) -> Result<Option<ParallelWorkers>, TargetError>;
}

/// How many workers a query has at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerLimit {
    /// The most.
    pub workers: u32,
    /// Which settings say so, with their values.
    pub because: String,
}

/// How many workers ran a query when it was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParallelWorkers {
    /// As many as the plan had.
    pub planned: u32,
    /// As many as there were.
    pub launched: u32,
    /// What else the database says of them; empty where that is all.
    pub how: String,
}
