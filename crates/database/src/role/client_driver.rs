//! The client driver: jobs send statements from outside the database.

use std::sync::Arc;

use loadline_workload::{Arg, Execute};

use crate::error::TargetError;
use crate::work::Work;

/// Opens the sessions of jobs that send each statement.
pub trait ClientDriver {
    /// Opens the session of `job` and prepares its statements.
    fn client_session(&self, work: &Work, job: u32) -> Result<Box<dyn ClientSession>, TargetError>;

    /// Makes visible in the database's counters what jobs did in sessions that a pooler keeps open, if they are delayed.
    fn publish_shared(&self) -> Result<(), TargetError> {
        Ok(())
    }
}

/// A session of the client driver. Points in time are on [`loadline_storage::now_ns`].
pub trait ClientSession: Send {
    /// Begins a transaction; may be sent together with its first statement, which begins it by default.
    fn begin(&mut self) -> Result<(), TargetError> {
        Ok(())
    }

    /// Executes statement number `statement` of the program and returns the number of rows it touched.
    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError>;

    /// Adds rows with the keys `first … first + rows − 1` to table number `table` of the workload, by the database's
    /// bulk load, and returns how many were added.
    ///
    /// # Errors
    /// Those of the database; [`TargetError::Unsupported`] if it has no bulk load.
    fn bulk(&mut self, table: usize, first: i64, rows: u32) -> Result<u64, TargetError>;

    /// Executes a query outside a transaction of the program: it sees all that is committed now, and is not counted as
    /// a commit. Returns the number of its rows.
    fn look(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        self.execute(statement, args)
    }

    /// Commits in the program's mode.
    ///
    /// # Errors
    /// Those of the database; it is then unknown whether the transaction is committed.
    fn commit(&mut self) -> Result<(), TargetError>;

    /// Whether its transactions only read, and one of a single query needs neither begin nor commit.
    fn only_reads(&self) -> bool {
        false
    }

    /// Runs a transaction of one statement: statement and commit in one round trip (autocommit). Returns the number of
    /// rows touched and, if the session can see it, the time (ns) at which the statement was done and its commit
    /// began. If that costs throughput (a second wake-up per transaction), it is measured for a regular sample of the
    /// transactions only.
    fn execute_and_commit(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<(u64, Option<u64>), TargetError> {
        if self.only_reads() {
            return Ok((self.execute(statement, args)?, None));
        }
        self.begin()?;
        let rows = self.execute(statement, args)?;
        let done = loadline_storage::now_ns();
        self.commit()?;
        Ok((rows, Some(done)))
    }

    /// Sends a text of one or more statements as one message and reads all results. `done` says what it did, also if one of
    /// its statements failed. Statements commit as they do for any client that sends such a text.
    ///
    /// # Errors
    /// Those of the database; [`TargetError::Unsupported`] if it has no such message.
    fn send_text(&mut self, text: &str, keep: Results, done: &mut TextDone) -> Result<(), TargetError> {
        let _ = (text, keep, done);
        Err(TargetError::Unsupported("this target does not run texts of statements".into()))
    }

    /// Rolls back the open transaction, if any.
    fn rollback(&mut self) -> Result<(), TargetError>;

    /// Makes this session's work visible in the database's counters, if they are delayed.
    fn publish_counters(&mut self) -> Result<(), TargetError> {
        Ok(())
    }

    /// From now on calls wait without a limit, and spend no time on watching for one: for timed jobs. Until then a session gives
    /// up a call that waits for something other than the server's work.
    fn wait_without_limit(&mut self) -> Result<(), TargetError> {
        Ok(())
    }

    /// A handle with which another thread can end a call that hangs; by default none can be ended.
    fn canceller(&self) -> Canceller {
        Canceller::new(|| ())
    }
}

/// Which results of a text a session keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Results {
    None,
    Last,
    All,
}

/// Outcome of a text of statements.
#[derive(Debug, Clone, Default)]
pub struct TextDone {
    pub commits: u64,
    /// The statement that may have committed more often than the session can see, for example a call of a procedure.
    pub uncertain: Option<String>,
    /// Whether a transaction is still open, failed or not.
    pub open: bool,
    pub results: Vec<TextResult>,
}

/// Result of a statement, in text form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextResult {
    pub columns: Vec<String>,
    /// Rows; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

/// Passes a stream's statements to the session.
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

/// A call of a session, for other threads: ends it, and finds out what it waits for.
#[derive(Clone)]
pub struct Canceller {
    cancel: Arc<dyn Fn() + Send + Sync>,
    ask: Arc<dyn Fn() -> Option<TargetError> + Send + Sync>,
}

impl Canceller {
    /// A handle that calls `cancel`.
    pub fn new(cancel: impl Fn() + Send + Sync + 'static) -> Canceller {
        Canceller { cancel: Arc::new(cancel), ask: Arc::new(|| None) }
    }

    /// Finds out by `ask` why the call does not end.
    #[must_use]
    pub fn asking(self, ask: impl Fn() -> Option<TargetError> + Send + Sync + 'static) -> Canceller {
        Canceller { ask: Arc::new(ask), ..self }
    }

    /// Ends the call; the session is lost.
    pub fn cancel(&self) {
        (self.cancel)();
    }

    /// Hindrance of the call, if that is not the database's own work: a lock, a replica, a server that is
    /// stopped. Asks the server, which may take some seconds.
    pub fn hindrance(&self) -> Option<TargetError> {
        (self.ask)()
    }
}
