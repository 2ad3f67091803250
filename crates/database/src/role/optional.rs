//! The optional roles of few methods.

use std::collections::BTreeMap;

use loadline_model::activity::View;
use loadline_workload::Table;

use crate::data_set::FoundTable;
use crate::error::TargetError;
use crate::work::Work;

/// Looks into the tables of a database: queries, sizes, and the data set shared by many workloads.
pub trait Tables: BlockCache + StatisticsViews {
    /// Result of `query`, portable SQL that returns one whole number, summed over all nodes; `None` for NULL, or no row.
    fn number(&self, work: &Work, query: &str) -> Result<Option<i64>, TargetError>;

    /// Number that such a query returns. NULL is an error, because it proves nothing.
    fn integer(&self, work: &Work, query: &str) -> Result<i64, TargetError> {
        let null = "the query returned NULL or no row instead of a number: it found no rows to add up (if that is allowed, write COALESCE)";
        self.number(work, query)?.ok_or_else(|| TargetError::Statement(null.into()))
    }

    /// Stored size of a table of the workload, bytes, without its indexes (if the database stores them separately);
    /// `None` if unknown.
    fn table_bytes(&self, work: &Work, table: &str) -> Result<Option<u64>, TargetError>;

    /// The part of [`Tables::table_bytes`] that a query of the workload which reads all rows reads: all, but for a column store.
    fn bytes_read(&self, work: &Work, table: &str) -> Result<Option<u64>, TargetError>;

    /// Size of all of loadline's tables, and what is unused in them, by column id; or why that is unknown.
    fn wear(&self) -> Wear;

    fn data_set(&self) -> Result<Vec<FoundTable>, TargetError>;

    /// Compares a sample of the rows of `table`, which `work` reads and which is complete, with what they must be:
    /// [`TargetError::Refused`] if one differs.
    fn check_rows(&self, work: &Work, table: &Table) -> Result<(), TargetError>;

    fn drop_data_set(&self) -> Result<(), TargetError>;
}

/// See [`Tables::wear`].
pub type Wear = BTreeMap<String, Result<f64, String>>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FreeSpace {
    pub bytes: u64,
    /// Where: `the tablespace USERS`.
    pub place: String,
    /// Why more space may be available (for example autoextend); `None` if not.
    pub may_grow: Option<String>,
}

pub trait BlockCache {
    /// Gives the block cache of a private server its usual size or, with `data_bytes`, one that holds the indexes of that much data,
    /// but not its rows; this may restart the server. A user's is not changed. Returns the size now, bytes; `None` if unknown.
    fn set_cache(&self, data_bytes: Option<u64>) -> Result<Option<u64>, TargetError>;

    /// As [`BlockCache::set_cache`] with so much data, for transactions that are to read one block of the device each.
    fn set_cache_for_one_read(&self, data_bytes: u64) -> Result<Option<u64>, TargetError> {
        self.set_cache(Some(data_bytes))
    }

    /// Returns when all changed blocks are written.
    fn checkpoint(&self) -> Result<(), TargetError>;
}

/// Runs a query with parallel workers. The session's own process is one of the workers.
pub trait ParallelQueries {
    /// The maximum number of workers of a query; `None` if unknown.
    fn max_parallel_workers(&self) -> Result<Option<WorkerLimit>, TargetError>;

    /// Runs a query of the workload and counts its workers; `None` if unknown.
    fn try_parallel(&self, work: &Work) -> Result<Option<ParallelWorkers>, TargetError>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerLimit {
    pub workers: u32,
    /// The limiting settings with their values.
    pub because: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParallelWorkers {
    pub planned: u32,
    pub launched: u32,
    /// Further information of the database; may be empty.
    pub how: String,
}

/// Reads the statistics views of the database, of which the page of a test is made.
pub trait StatisticsViews {
    /// All views as they are now. One that cannot be read (privilege, setting, version) says why.
    fn views(&self) -> Result<Vec<View>, TargetError>;
}

/// Creates the database's own report on a test, described by [`crate::NativeReport`].
pub trait NativeReports {
    /// Takes a snapshot in the database's performance history and returns its number.
    fn native_mark(&self) -> Result<i64, TargetError>;

    /// The report from the snapshot `from` until now.
    fn native_report(&self, from: i64) -> Result<String, TargetError>;
}
