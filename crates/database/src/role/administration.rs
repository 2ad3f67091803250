//! The lock of a run, the tables of a workload, their rows and what jobs did to them, and cleaning.

use loadline_model::Driver;

use crate::data_set::LoadProgress;
use crate::error::TargetError;
use crate::work::Work;

/// The objects of a run on the target. By default it has no tables, and nobody else can use it.
pub trait Administration {
    /// Locks the target's loadline schema for this run until the lock is dropped or its owner dies; refused if another run has it.
    fn lock(&self) -> Result<RunLock, TargetError> {
        Ok(RunLock::new(()))
    }

    /// Drops existing workload tables and creates them empty.
    fn create(&self, _work: &Work) -> Result<(), TargetError> {
        Ok(())
    }

    /// Loads the missing rows of so many jobs and of the data set, and updates the progress.
    fn load_watched(&self, _work: &Work, _jobs: u32, _progress: &LoadProgress) -> Result<(), TargetError> {
        Ok(())
    }

    fn load(&self, work: &Work, jobs: u32) -> Result<(), TargetError> {
        self.load_watched(work, jobs, &LoadProgress::default())
    }

    /// Disk space that the log takes while so many bytes of rows and of indexes are loaded: all, as it may not be reused.
    fn log_space(&self, data: u64, indexes: u64) -> Result<LogSpace, TargetError> {
        Ok(LogSpace { bytes: data.saturating_add(indexes), ..LogSpace::default() })
    }

    /// Before every test: empties the tables that the workload fills, and changes server-wide settings for the driver.
    fn reset(&self, _work: &Work, _driver: Driver) -> Result<(), TargetError> {
        Ok(())
    }

    /// Brings the target to the same state before every test, for example by a checkpoint. Returns what it could not do.
    fn settle(&self) -> Result<Option<String>, TargetError> {
        Ok(None)
    }

    /// Result of the workload's evidence query (NULL counts as 0), or the target's own count of the jobs' work; `None` if there is none.
    fn evidence(&self, work: &Work) -> Result<Option<i64>, TargetError>;

    /// Drops the workload tables; those of the data set stay.
    fn drop_tables(&self, _work: &Work) -> Result<(), TargetError> {
        Ok(())
    }

    /// Removes all objects that loadline ever created on the target and returns what was removed.
    fn clean(&self) -> Result<Vec<String>, TargetError> {
        Ok(Vec::new())
    }

    /// As [`Self::clean`], but tables that an earlier run kept stay, and with `_keep_data` the data set from now on.
    fn clean_after_run(&self, _keep_data: bool) -> Result<Vec<String>, TargetError> {
        self.clean()
    }
}

/// The lock on a target's schema, released when dropped.
pub struct RunLock {
    _held: Box<dyn Send>,
}

impl RunLock {
    pub fn new(held: impl Send + 'static) -> RunLock {
        RunLock { _held: Box::new(held) }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogSpace {
    /// Bytes in addition to its present size.
    pub bytes: u64,
    /// The folder, if it is not that of the log (`TargetInfo::log_dir`).
    pub dir: Option<String>,
    /// Description of an unknown part.
    pub unknown: Option<String>,
}
