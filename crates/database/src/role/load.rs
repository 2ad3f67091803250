//! Loading the rows of a workload.

use crate::data_set::LoadProgress;
use crate::error::TargetError;
use crate::work::Work;

/// Loads what a workload reads.
pub trait Load {
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
