//! The database's counters, and evidence of the jobs' work.

use loadline_model::snapshot::WaitSample;
use loadline_model::{Column, Snapshot};

use crate::error::TargetError;

/// Whose waits are sampled, and whose transactions and accesses are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The jobs' sessions, and the database that they work in.
    Jobs,
    /// All clients but loadline, and all databases of the server.
    All,
}

pub trait Observation {
    fn observer(&self) -> Result<Box<dyn Observer>, TargetError> {
        self.observer_of(Scope::Jobs)
    }

    /// Opens a session that reads the counters of this scope; [`TargetError::Unsupported`] if the database cannot see others.
    fn observer_of(&self, scope: Scope) -> Result<Box<dyn Observer>, TargetError>;

    /// Columns that this target does not provide (in this version, with its present settings), each with the reason.
    fn absent_columns(&self) -> Vec<(&'static Column, String)> {
        Vec::new()
    }

    /// Commits of loadline's own by sessions of this process so far that the server counts like any other, of each instance in the order
    /// of a snapshot's nodes: an observer in another process must subtract them. Empty if no session of a job makes any.
    fn own_commits(&self) -> Vec<u64> {
        Vec::new()
    }

    /// The server's ids of the jobs' sessions that this process opened so far, of each instance in the order of a snapshot's nodes.
    /// Empty where sessions of jobs have names, or are none of the server's.
    fn job_sessions(&self) -> Vec<Vec<u32>> {
        Vec::new()
    }

    /// Takes sessions for those of jobs which another process opened, and knows by [`Self::job_sessions`].
    fn adopt_jobs(&self, _sessions: &[Vec<u32>]) {}

    /// Ends the sessions of jobs of another process, which hangs or cannot be reached, by their numbers in the test and the server's ids,
    /// as far as known. Returns how many were there; `None` if this database cannot tell whose sessions they are.
    fn end_jobs(&self, _jobs: std::ops::Range<u32>, _sessions: &[Vec<u32>]) -> Result<Option<u32>, TargetError> {
        Ok(None)
    }
}

pub trait Observer: Send {
    fn snapshot(&mut self) -> Result<Snapshot, TargetError>;

    /// Waits of the job sessions now; `None` if unknown.
    fn sample_waits(&mut self) -> Result<Option<WaitSample>, TargetError> {
        Ok(None)
    }

    /// The processes or threads of the server that run the job sessions; of a database in this process those that help the jobs' own.
    fn session_tasks(&mut self) -> SessionTasks {
        SessionTasks::default()
    }
}

impl std::fmt::Debug for dyn Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Observer")
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionTasks {
    /// Their ids, as the server sees them: in a container they may differ from those of the machine. Empty if unknown.
    pub ids: Vec<u32>,
    /// Texts of which each one's command line holds one. The names of the server's processes begin so.
    pub commands: &'static [&'static str],
}
