//! The lock of a run, the tables of a workload, and cleaning.

use crate::error::TargetError;
use crate::work::Work;

/// Makes, empties and removes what a run needs on the target.
pub trait Administration {
    /// Makes this run the only one on the target's loadline schema until the lock is dropped or
    /// its owner dies.
    ///
    /// # Errors
    /// [`TargetError::Refused`] when another run holds it.
    fn lock(&self) -> Result<RunLock, TargetError>;

    /// Drops what is left of the workload's tables and makes them anew, empty.
    ///
    /// # Errors
    /// When a statement fails.
    fn create(&self, work: &Work) -> Result<(), TargetError>;

    /// Empties the tables that the workload fills itself; called before every test.
    ///
    /// # Errors
    /// When a statement fails.
    fn reset(&self, work: &Work) -> Result<(), TargetError>;

    /// Brings the target to the same state before every test (a checkpoint, for example). Returns in words what
    /// it could not do.
    ///
    /// # Errors
    /// When the target does not answer.
    fn settle(&self) -> Result<Option<String>, TargetError>;

    /// Drops the workload tables; those of the data set stay.
    ///
    /// # Errors
    /// When a statement fails.
    fn drop_tables(&self, work: &Work) -> Result<(), TargetError>;

    /// Removes everything that loadline ever made on the target and says what that was.
    ///
    /// # Errors
    /// When something cannot be removed, or another run holds the lock.
    fn clean(&self) -> Result<Vec<String>, TargetError>;

    /// Removes what a run made. The data set stays if `keep_data`, from then on; otherwise only what an
    /// earlier run kept of it does.
    ///
    /// # Errors
    /// As [`Self::clean`].
    fn clean_after_run(&self, keep_data: bool) -> Result<Vec<String>, TargetError>;
}

/// Held by the only run on a target's schema; dropping it lets the next one in.
pub struct RunLock {
    _held: Box<dyn Send>,
}

impl RunLock {
    /// A lock that lasts as long as `held`.
    pub fn new(held: impl Send + 'static) -> RunLock {
        RunLock { _held: Box::new(held) }
    }
}
