//! The lock of a run, the tables of a workload and their rows, and cleaning.

use loadline_model::Driver;

use crate::data_set::LoadProgress;
use crate::error::TargetError;
use crate::work::Work;

/// Makes, loads, empties and removes what a run needs on the target.
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

    /// Loads the rows of the jobs `0 … jobs − 1`, and of the data set, that are not there yet. Notes in
    /// `progress` how far it is.
    ///
    /// # Errors
    /// When a statement fails, or other data are in place.
    fn load_watched(&self, work: &Work, jobs: u32, progress: &LoadProgress) -> Result<(), TargetError>;

    /// The same, unwatched.
    ///
    /// # Errors
    /// As [`Self::load_watched`].
    fn load(&self, work: &Work, jobs: u32) -> Result<(), TargetError> {
        self.load_watched(work, jobs, &LoadProgress::default())
    }

    /// Disk space that the log takes while `data` bytes of rows and `indexes` bytes of indexes are loaded.
    ///
    /// # Errors
    /// When the target does not answer.
    fn log_space(&self, data: u64, indexes: u64) -> Result<LogSpace, TargetError>;

    /// Makes the target ready for a test of the workload with `driver`: empties the tables that the workload
    /// fills itself, and sets what holds for the whole server. Called before every test.
    ///
    /// # Errors
    /// When a statement fails.
    fn reset(&self, work: &Work, driver: Driver) -> Result<(), TargetError>;

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

/// Disk space that the log takes while data are loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogSpace {
    /// Bytes beside what it takes already.
    pub bytes: u64,
    /// The folder that takes them, where it is not that of the log (`TargetInfo::log_dir`).
    pub dir: Option<String>,
    /// What of it is not known, in words.
    pub unknown: Option<String>,
}

impl LogSpace {
    /// All that is written: nothing says that the log's space is used again.
    pub(crate) fn all(data: u64, indexes: u64) -> LogSpace {
        LogSpace { bytes: data.saturating_add(indexes), ..LogSpace::default() }
    }
}
