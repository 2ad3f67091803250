//! The trait that a database implements, and those of its sessions.

use std::sync::Arc;

use loadline_model::manifest::TargetInfo;
use loadline_model::snapshot::WaitSample;
use loadline_model::{Capabilities, Column, Finding, Latencies, Snapshot};
use loadline_workload::{Arg, Execute};

use crate::data_set::{FoundTable, LoadProgress};
use crate::error::TargetError;
use crate::file_facts::FileFacts;
use crate::number::Number;
use crate::parallel::Together;
use crate::room::{FreeRoom, LogRoom};
use crate::work::Work;

/// A database under test. Calls may block; each opens the sessions it needs.
pub trait Target: Send + Sync {
    /// What was found: product, version, settings, places. No secrets.
    ///
    /// # Errors
    /// When the target does not answer.
    fn info(&self) -> Result<TargetInfo, TargetError>;

    /// Number of nodes over which jobs are spread: job `j` runs on node `j mod nodes`.
    fn nodes(&self) -> u32 {
        1
    }

    /// What this very server cannot do beside what its kind cannot, because of a setting that loadline
    /// does not change. Workloads that need it are skipped with the reason.
    ///
    /// # Errors
    /// When the target does not answer.
    fn capabilities(&self) -> Result<Capabilities, TargetError> {
        Ok(Capabilities::default())
    }

    /// Looks at everything that would spoil the figures of a run.
    ///
    /// # Errors
    /// When the target does not answer.
    fn doctor(&self) -> Result<Vec<Finding>, TargetError>;

    /// Makes this run the only one on the target's loadline schema until the lock is dropped or
    /// its owner dies.
    ///
    /// # Errors
    /// [`TargetError::Refused`] when another run holds it.
    fn lock(&self) -> Result<RunLock, TargetError>;

    /// The highest number of jobs that the target takes, and which setting says so.
    ///
    /// # Errors
    /// When the target does not answer.
    fn job_limit(&self) -> Result<JobLimit, TargetError>;

    /// Drops what is left of the workload's tables and makes them anew, empty.
    ///
    /// # Errors
    /// When a statement fails.
    fn create(&self, work: &Work) -> Result<(), TargetError>;

    /// Loads the rows of the jobs `0 … jobs − 1`, and of the data set, that are not there yet.
    ///
    /// # Errors
    /// When a statement fails.
    fn load(&self, work: &Work, jobs: u32) -> Result<(), TargetError> {
        self.load_watched(work, jobs, &LoadProgress::default())
    }

    /// The same, telling how far it is.
    ///
    /// # Errors
    /// When a statement fails, or other data are in place.
    fn load_watched(&self, work: &Work, jobs: u32, progress: &LoadProgress) -> Result<(), TargetError>;

    /// Tables of the data set that are in place.
    ///
    /// # Errors
    /// When the target does not answer.
    fn data_set(&self) -> Result<Vec<FoundTable>, TargetError> {
        Ok(Vec::new())
    }

    /// Drops all tables of the data set.
    ///
    /// # Errors
    /// When a statement fails.
    fn drop_data_set(&self) -> Result<(), TargetError> {
        Ok(())
    }

    /// What is free for data, as the database says; `None` where it does not.
    ///
    /// # Errors
    /// When the target does not answer.
    fn free_room(&self) -> Result<Option<FreeRoom>, TargetError> {
        Ok(None)
    }

    /// What the log takes while `data` bytes of rows and `indexes` bytes of indexes are loaded: all of it
    /// where nothing says that the log is used again.
    ///
    /// # Errors
    /// When the target does not answer.
    fn log_room(&self, data: u64, indexes: u64) -> Result<LogRoom, TargetError> {
        Ok(LogRoom { bytes: data.saturating_add(indexes), ..LogRoom::default() })
    }

    /// Whether the rows of a table lie in the tree of its primary key, which then takes nothing beside them.
    fn rows_lie_in_key(&self) -> bool {
        false
    }

    /// Share of its pages that a table of rows which are updated in place is loaded into, %.
    fn in_place_pct(&self) -> u64 {
        100
    }

    /// Drops the workload's own tables; those of the data set stay.
    ///
    /// # Errors
    /// When a statement fails.
    fn drop_own(&self, _work: &Work) -> Result<(), TargetError> {
        Ok(())
    }

    /// Told before a test of the client driver whose work differs from what [`Target::create`] was given in a
    /// parameter: where what is counted depends on it.
    fn at_work(&self, _work: &Work) {}

    /// Empties the tables that the workload fills itself; called before every test.
    ///
    /// # Errors
    /// When a statement fails.
    fn reset(&self, _work: &Work) -> Result<(), TargetError> {
        Ok(())
    }

    /// Puts the program into the database for [`Target::database_session`]; called again when a
    /// parameter has changed. Nothing to do for a target without that driver.
    ///
    /// # Errors
    /// When a statement fails.
    fn install(&self, _work: &Work) -> Result<(), TargetError> {
        Ok(())
    }

    /// Brings the target to the same state before every test (a checkpoint, for example). What it
    /// could not do, it says in words.
    ///
    /// # Errors
    /// When the target does not answer.
    fn settle(&self) -> Result<Option<String>, TargetError> {
        Ok(None)
    }

    /// Has the database write out all changed blocks now, and returns when that is done.
    ///
    /// # Errors
    /// [`TargetError::Unsupported`] where there is no way to ask for it, or this user may not.
    fn checkpoint(&self) -> Result<(), TargetError> {
        Err(TargetError::Unsupported("this target has no checkpoints".into()))
    }

    /// Brings the block cache of a server that loadline owns to what suits the next tests, whatever that
    /// takes (sessions may be lost): just large enough for what leads to the rows of `data_bytes` bytes of data,
    /// but not for the rows, or (`None`) as it was. A
    /// user's server stays as it is. Returns the size of the cache now, bytes; `None` if it is not known.
    ///
    /// # Errors
    /// When the server does not follow.
    fn set_cache(&self, _data_bytes: Option<u64>) -> Result<Option<u64>, TargetError> {
        Ok(None)
    }

    /// Size of a block of the data files, bytes.
    fn block_bytes(&self) -> Option<u64> {
        None
    }

    /// Opens the session of `job` for the client driver, its statements prepared.
    ///
    /// # Errors
    /// When the session cannot be had.
    fn client_session(&self, work: &Work, job: u32) -> Result<Box<dyn ClientSession>, TargetError>;

    /// Opens the session of `job` for the in-database driver.
    ///
    /// # Errors
    /// [`TargetError::Unsupported`] where the target has no such driver.
    fn database_session(&self, work: &Work, job: u32) -> Result<Box<dyn DatabaseSession>, TargetError>;

    /// Time in ns that the in-database driver's clock and histogram code takes per transaction,
    /// measured now; `None` where there is no such driver.
    ///
    /// # Errors
    /// When the measurement fails.
    fn in_database_overhead_ns(&self, _work: &Work) -> Result<Option<f64>, TargetError> {
        Ok(None)
    }

    /// Opens a session that reads the counters.
    ///
    /// # Errors
    /// When the session cannot be had.
    fn observer(&self) -> Result<Box<dyn Observer>, TargetError>;

    /// Result of `query`, portable SQL that returns one integer about the workload's tables, summed over
    /// all nodes; `None` where there is no SQL.
    ///
    /// # Errors
    /// When the query fails.
    fn number(&self, _work: &Work, _query: &str) -> Result<Option<Number>, TargetError> {
        Ok(None)
    }

    /// The same where a number must be there.
    ///
    /// # Errors
    /// When the query fails, or returns NULL.
    fn integer(&self, work: &Work, query: &str) -> Result<Option<i64>, TargetError> {
        self.number(work, query)?.map(Number::required).transpose()
    }

    /// Result of the workload's evidence query, if it has one; the sum over an empty table is 0.
    ///
    /// # Errors
    /// When the query fails.
    fn evidence(&self, work: &Work) -> Result<Option<i64>, TargetError> {
        match work.workload.evidence {
            Some(evidence) => Ok(self.number(work, evidence.query)?.map(Number::or_zero)),
            None => Ok(None),
        }
    }

    /// Bytes that a table of the workload takes as it is stored, without its indexes (where the database
    /// keeps them apart); `None` where that is not known.
    ///
    /// # Errors
    /// When the database does not answer.
    fn table_bytes(&self, _work: &Work, _table: &str) -> Result<Option<u64>, TargetError> {
        Ok(None)
    }

    /// The most processes that do a query together, its session's own among them, and which setting says so;
    /// `None` where that is not known.
    ///
    /// # Errors
    /// When the database does not answer.
    fn most_together(&self) -> Result<Option<(u32, String)>, TargetError> {
        Ok(None)
    }

    /// Tries a query of the workload and counts the processes that did it together; `None` where the
    /// database does not tell.
    ///
    /// # Errors
    /// When the query fails.
    fn together(&self, _work: &Work) -> Result<Option<Together>, TargetError> {
        Ok(None)
    }

    /// Why the count of commits is not that of the jobs' transactions while several processes do a query
    /// together; `None` where it is.
    fn commits_of_workers(&self) -> Option<&'static str> {
        None
    }

    /// Columns that this target (in this version) does not provide, with the reason.
    fn absent_columns(&self) -> Vec<(&'static Column, String)>;

    /// Why no session of the client driver sees the moment at which the commit of a transaction of one
    /// statement begins; `None` where it is seen, at least for a sample.
    fn commit_unseen(&self) -> Option<&'static str> {
        None
    }

    /// Why there is no limit to hold this target's commits against; `None` for every database.
    fn no_limit(&self) -> Option<&'static str> {
        None
    }

    /// Whether the database runs inside the loadline process: its CPU time cannot then be told from
    /// loadline's own.
    fn in_process(&self) -> bool {
        false
    }

    /// Whether sessions keep what they count to themselves until they publish it (at the edges of the
    /// window, see [`ClientSession::publish_counters`]). If not, counters move all the time.
    fn publishes_counters(&self) -> bool {
        false
    }

    /// How far the counters that an observer reads may lag behind what sessions have done and
    /// published, s.
    fn counter_lag_s(&self) -> f64 {
        0.0
    }

    /// Wait events during which a session waits for the log writer.
    fn log_sync_events(&self) -> &'static [&'static str] {
        &[]
    }

    /// Wait events during which a session waits for a place in the block cache, where the time of that is
    /// not counted.
    fn buffer_wait_events(&self) -> &'static [&'static str] {
        &[]
    }

    /// What is peculiar about its files and about the counters of them.
    fn file_facts(&self) -> FileFacts {
        FileFacts::default()
    }

    /// What a reader of the record should know of what the counters did between two snapshots, in
    /// whole sentences: for what the database counts and no column shows.
    fn remarks(&self, _open: &Snapshot, _close: &Snapshot) -> Vec<String> {
        Vec::new()
    }

    /// Marks this moment in the database's own history of performance data, where it has one and the
    /// user asked for reports of it (`OpenRequest::native_report`); `None` where not.
    ///
    /// # Errors
    /// When it may not be used.
    fn native_mark(&self) -> Result<Option<i64>, TargetError> {
        Ok(None)
    }

    /// The database's own report of what went on from the mark `from` until now, in the format that
    /// [`crate::NativeReport`] says.
    ///
    /// # Errors
    /// When there is no such report.
    fn native_report(&self, _from: i64) -> Result<String, TargetError> {
        Err(TargetError::Unsupported("this target makes no reports of its own".into()))
    }

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
    fn clean_after_run(&self, _keep_data: bool) -> Result<Vec<String>, TargetError> {
        self.clean()
    }
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
    fn bulk(&mut self, _table: usize, _first: i64, _rows: u32) -> Result<u64, TargetError> {
        Err(TargetError::Unsupported("this target has no way to add many rows at once".into()))
    }

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

/// A session of the in-database driver.
pub trait DatabaseSession: Send {
    /// Runs transactions inside the database until the first that completes at or after
    /// `until_ns` (on [`crate::clock`]). The next call goes on with the program's sequence.
    ///
    /// # Errors
    /// What the database says; what the slice did until then is not known.
    fn run_slice(&mut self, until_ns: u64) -> Result<Slice, TargetError>;

    /// A handle with which another thread ends a call that hangs.
    fn canceller(&self) -> Canceller;
}

/// What one slice of the in-database driver did.
#[derive(Debug, Clone, Default)]
pub struct Slice {
    /// Start of its first transaction, ns.
    pub first_start_ns: u64,
    /// Transaction times of those that completed before the slice's end.
    pub transaction: Latencies,
    /// Commit times of the same.
    pub commit: Latencies,
    /// The transaction that crossed the end, after which the slice ended.
    pub end: Option<SliceEnd>,
}

/// The transaction that crossed the end of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceEnd {
    /// Its start, ns.
    pub start_ns: u64,
    /// When its commit began, ns.
    pub commit_ns: u64,
    /// When its commit returned, ns.
    pub end_ns: u64,
}

/// A session that reads the database's own counters.
pub trait Observer: Send {
    /// Reads all counters, those of [`loadline_model::snapshot::counter`] included.
    ///
    /// # Errors
    /// When a counter cannot be read or the session is lost.
    fn snapshot(&mut self) -> Result<Snapshot, TargetError>;

    /// What the job sessions wait for now; `None` where the database does not say.
    ///
    /// # Errors
    /// When the session is lost.
    fn sample_waits(&mut self) -> Result<Option<WaitSample>, TargetError> {
        Ok(None)
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

/// How many jobs a target takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobLimit {
    /// The most, `None` if nothing limits it.
    pub jobs: Option<u32>,
    /// Which setting says so, with its value: `max_connections = 100, of which 3 are reserved`.
    pub because: String,
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
