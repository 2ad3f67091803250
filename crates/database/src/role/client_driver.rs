//! The client driver: jobs send statements from outside.

use std::sync::Arc;

use loadline_workload::{Arg, Execute};

use crate::error::TargetError;
use crate::work::Work;

/// Opens the sessions of jobs that send each statement themselves.
pub trait ClientDriver {
    /// Opens the session of `job`, its statements prepared.
    ///
    /// # Errors
    /// When the session cannot be opened.
    fn client_session(&self, work: &Work, job: u32) -> Result<Box<dyn ClientSession>, TargetError>;
}

/// A session of the client driver. Times of moments are on [`crate::clock`].
pub trait ClientSession: Send {
    /// Begins a transaction; may be sent along with its first statement.
    ///
    /// # Errors
    /// When the session is lost.
    fn begin(&mut self) -> Result<(), TargetError>;

    /// Executes statement number `statement` of the program and returns the rows it touched.
    ///
    /// # Errors
    /// What the database says.
    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError>;

    /// Adds the rows with `rows` keys from `first` on to table number `table` of the workload, by the
    /// fastest way there is, and returns how many were added.
    ///
    /// # Errors
    /// What the database says; [`TargetError::Unsupported`] where there is no such way.
    fn bulk(&mut self, table: usize, first: i64, rows: u32) -> Result<u64, TargetError>;

    /// Executes a query in between, by itself: it sees what others have committed just now, and is not counted
    /// as a commit. Returns the number of its rows.
    ///
    /// # Errors
    /// What the database says.
    fn look(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        self.execute(statement, args)
    }

    /// Commits in the program's mode.
    ///
    /// # Errors
    /// What the database says; whether the transaction is committed is then unknown.
    fn commit(&mut self) -> Result<(), TargetError>;

    /// A transaction of one statement: statement and commit in one go (autocommit, one round
    /// trip). Returns the rows touched and, where the session sees it, the moment (ns) at which the
    /// statement was done and its commit began. Where seeing it costs throughput (a second wake-up
    /// per transaction), it is seen for a regular sample of the transactions only.
    ///
    /// # Errors
    /// As `execute` and `commit`.
    fn execute_and_commit(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<(u64, Option<u64>), TargetError> {
        self.begin()?;
        let rows = self.execute(statement, args)?;
        let done = crate::clock::now_ns();
        self.commit()?;
        Ok((rows, Some(done)))
    }

    /// Gives up the transaction, if one is open.
    ///
    /// # Errors
    /// When the session is lost.
    fn rollback(&mut self) -> Result<(), TargetError>;

    /// Makes what this session has done visible in the database's counters, where they lag.
    ///
    /// # Errors
    /// When the session is lost.
    fn publish_counters(&mut self) -> Result<(), TargetError> {
        Ok(())
    }

    /// A handle with which another thread ends a call that hangs.
    fn canceller(&self) -> Canceller;
}

/// Hands a stream's statements to the session.
impl Execute for dyn ClientSession + '_ {
    type Error = TargetError;

    #[inline]
    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        ClientSession::execute(self, statement, args)
    }

    fn bulk(&mut self, table: usize, first: i64, rows: u32) -> Result<u64, TargetError> {
        ClientSession::bulk(self, table, first, rows)
    }
}

/// Ends a call of a session from another thread.
#[derive(Clone)]
pub struct Canceller(Arc<dyn Fn() + Send + Sync>);

impl Canceller {
    /// A handle that calls `cancel`.
    pub fn new(cancel: impl Fn() + Send + Sync + 'static) -> Canceller {
        Canceller(Arc::new(cancel))
    }

    /// Ends the call; the session is lost.
    pub fn cancel(&self) {
        (self.0)();
    }
}
