//! Checks of a target before a run.

use loadline_model::{Capabilities, Finding};

use crate::error::TargetError;

/// Checks a target before a run.
pub trait Doctor {
    /// Checks everything that would spoil the figures of a run.
    ///
    /// # Errors
    /// When the target does not answer.
    fn doctor(&self) -> Result<Vec<Finding>, TargetError>;

    /// What this server cannot do, in addition to the limits of its kind, because of a setting that loadline does not
    /// change. Workloads that need it are skipped with the reason.
    ///
    /// # Errors
    /// When the target does not answer.
    fn capabilities(&self) -> Result<Capabilities, TargetError>;

    /// The maximum number of jobs on the target, and the setting that limits it.
    ///
    /// # Errors
    /// When the target does not answer.
    fn job_limit(&self) -> Result<JobLimit, TargetError>;
}

/// The maximum number of jobs on a target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobLimit {
    /// The maximum; `None` if unlimited.
    pub jobs: Option<u32>,
    /// The limiting setting with its value: `max_connections = 100, of which 3 are reserved`.
    pub because: String,
}
