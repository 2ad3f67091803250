//! Parallel queries.

use crate::error::TargetError;
use crate::work::Work;

/// Runs a query with parallel workers. The session's own process is one of the workers.
pub trait ParallelQueries {
    /// The maximum number of workers of a query; `None` if unknown.
    fn max_parallel_workers(&self) -> Result<Option<WorkerLimit>, TargetError>;

    /// Runs a query of the workload and counts its workers; `None` if unknown.
    fn try_parallel(&self, work: &Work) -> Result<Option<ParallelWorkers>, TargetError>;
}

/// The maximum number of workers of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerLimit {
    /// The maximum.
    pub workers: u32,
    /// The limiting settings with their values.
    pub because: String,
}

/// How many workers ran a tried query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParallelWorkers {
    /// Workers in the plan.
    pub planned: u32,
    /// Workers that ran.
    pub launched: u32,
    /// Further information of the database; may be empty.
    pub how: String,
}
