//! The drivers: jobs send statements from outside the database, or the loop of each job runs inside it.

use std::sync::Arc;

use loadline_model::Latencies;
use loadline_workload::{Arg, Execute};

use crate::error::TargetError;
use crate::work::Work;

pub trait ClientDriver {
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

    /// Adds rows with the keys `first … first + rows − 1` to table number `table` of the workload, by the database's bulk load, and
    /// returns how many were added; [`TargetError::Unsupported`] if it has none.
    fn bulk(&mut self, table: usize, first: i64, rows: u32) -> Result<u64, TargetError>;

    /// Executes a query outside a transaction of the program, on all that is committed now; it is not counted as a commit. Returns the
    /// number of its rows.
    fn look(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        self.execute(statement, args)
    }

    /// Commits in the program's mode. After an error it is unknown whether the transaction is committed.
    fn commit(&mut self) -> Result<(), TargetError>;

    /// Whether its transactions only read, and one of a single query needs neither begin nor commit.
    fn only_reads(&self) -> bool {
        false
    }

    /// Runs a transaction of one statement in one round trip (autocommit). Returns the number of rows touched and, if the session
    /// can see it, when its commit began, ns: for a regular sample of the transactions only, if that costs throughput.
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

    /// Sends a text of one or more statements as one message, as any client does, and reads all results. The last argument gets what it
    /// did, also if one of its statements failed; [`TargetError::Unsupported`] if the database has no such message.
    fn send_text(&mut self, _text: &str, _keep: Results, _done: &mut TextDone) -> Result<(), TargetError> {
        Err(TargetError::Unsupported("this target does not run texts of statements".into()))
    }

    fn rollback(&mut self) -> Result<(), TargetError>;

    /// Makes this session's work visible in the database's counters, if they are delayed.
    fn publish_counters(&mut self) -> Result<(), TargetError> {
        Ok(())
    }

    /// From now on calls wait without a limit, as those of timed jobs. Until then a session gives up a call that waits for something
    /// other than the server's work.
    fn wait_without_limit(&mut self) -> Result<(), TargetError> {
        Ok(())
    }

    /// A handle with which another thread can end a call that hangs; by default none can be ended.
    fn canceller(&self) -> Canceller {
        Canceller::new(|| ())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Results {
    None,
    Last,
    All,
}

#[derive(Debug, Clone, Default)]
pub struct TextDone {
    pub commits: u64,
    /// The statement that may have committed more often than the session can see, for example a call of a procedure.
    pub uncertain: Option<String>,
    /// Whether a transaction is still open, failed or not.
    pub open: bool,
    pub results: Vec<TextResult>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextResult {
    pub columns: Vec<String>,
    /// Rows; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
}

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
    pub fn new(cancel: impl Fn() + Send + Sync + 'static) -> Canceller {
        Canceller { cancel: Arc::new(cancel), ask: Arc::new(|| None) }
    }

    #[must_use]
    pub fn asking(self, ask: impl Fn() -> Option<TargetError> + Send + Sync + 'static) -> Canceller {
        Canceller { ask: Arc::new(ask), ..self }
    }

    /// Ends the call; the session is lost.
    pub fn cancel(&self) {
        (self.cancel)();
    }

    /// Why the call does not end, if not for the database's own work: a lock, a replica, a server that is stopped. May take seconds.
    pub fn hindrance(&self) -> Option<TargetError> {
        (self.ask)()
    }
}

pub trait DatabaseDriver {
    /// Creates the program's procedure in the database; called again when a parameter has changed.
    fn install(&self, work: &Work) -> Result<(), TargetError>;

    fn database_session(&self, work: &Work, job: u32) -> Result<Box<dyn DatabaseSession>, TargetError>;

    /// Time per transaction of this driver's own clock and histogram code, ns; `None` if it cannot be measured.
    fn overhead_ns(&self) -> Result<Option<f64>, TargetError>;
}

/// The median of three measurements, of those that give one.
pub(crate) fn median_of_three(
    mut measure: impl FnMut() -> Result<Option<f64>, TargetError>,
) -> Result<Option<f64>, TargetError> {
    let mut times = Vec::new();
    for _ in 0..3 {
        times.extend(measure()?);
    }
    times.sort_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied())
}

pub trait DatabaseSession: Send {
    /// Runs transactions inside the database until the first one that completes at or after `until_ns` (on
    /// [`loadline_storage::now_ns`]); after an error they are unknown. The next call continues the program's sequence.
    fn run_slice(&mut self, until_ns: u64) -> Result<Slice, TargetError>;

    /// A handle with which another thread can end a call that hangs.
    fn canceller(&self) -> Canceller;
}

#[derive(Debug, Clone, Default)]
pub struct Slice {
    pub first_start_ns: u64,
    /// Times of the transactions that completed before the end of the slice.
    pub transaction: Latencies,
    /// Start and end of each of them, ns, in order; `None` if the server returns a histogram.
    pub each: Option<Vec<[u64; 2]>>,
    pub commit: Latencies,
    /// The transaction that crossed the end, after which the slice ended.
    pub end: Option<SliceEnd>,
    pub lost: Attempts,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Attempts that lost against another transaction and were rolled back.
    pub conflicts: u64,
    /// COMMITs that failed: some databases count them as commits.
    pub failed_commits: u64,
}

/// The transaction that crossed the end of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceEnd {
    pub start_ns: u64,
    /// When its commit began, and when that returned.
    pub commit_ns: u64,
    pub end_ns: u64,
}
