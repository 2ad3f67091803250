//! What stands in the way of a run.

use loadline_model::{Capabilities, Finding};

use crate::error::TargetError;

/// Examines a target before a run.
pub trait Doctor {
    /// Looks at everything that would spoil the figures of a run.
    ///
    /// # Errors
    /// When the target does not answer.
    fn doctor(&self) -> Result<Vec<Finding>, TargetError>;

    /// What this very server cannot do in addition to what its kind cannot, because of a setting that loadline
    /// does not change. Workloads that need it are skipped with the reason.
    ///
    /// # Errors
    /// When the target does not answer.
    fn capabilities(&self) -> Result<Capabilities, TargetError>;

    /// The highest number of jobs that the target takes, and which setting says so.
    ///
    /// # Errors
    /// When the target does not answer.
    fn job_limit(&self) -> Result<JobLimit, TargetError>;
}

/// How many jobs a target takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobLimit {
    /// The most, `None` if nothing limits it.
    pub jobs: Option<u32>,
    /// Which setting says so, with its value: `max_connections = 100, of which 3 are reserved`.
    pub because: String,
}
