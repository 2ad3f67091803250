//! The roles of [`crate::role`] for DuckDB.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use loadline_model::format::bytes;
use loadline_model::snapshot::{WaitSample, counter};
use loadline_model::{Driver, Snapshot};
use loadline_workload::{ColumnDef, Instrument, Piece};
use serde_json::Value;

use super::connection::TRANSACTION;
use super::session::DuckSession;
use super::workers::Threads;
use super::{DuckDb, KNOWLEDGE};
use crate::data_set::{LoadSession, Loader};
use crate::dialect::Dialect;
use crate::embedded::counters::FileObserver;
use crate::embedded::{Base, Engine};
use crate::error::{Refusal, TargetError};
use crate::loading::table_stem;
use crate::parallel;
use crate::role::{
    BlockCache, ClientDriver, ClientSession, LogSpace, Observer, ParallelQueries, ParallelWorkers, RunLock,
    SessionTasks, WorkerLimit,
};
use crate::work::Work;
use crate::workload_tables::{Kept, LoadedTables, LoadsTables};

/// Time limit of a checkpoint on demand, and the pause between two attempts while transactions block it.
const CHECKPOINT_LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(1);
/// Largest part of the data in the log while they are loaded: a checkpoint follows from 16 MiB on, once no transaction is open, and
/// rows of a whole row group go to the database's file at once.
const LOADING_LOG_BYTES: u64 = 256 << 20;
/// Rows that a scan of commit times may change: those of minutes.
const MAX_SCANNED: f64 = 20_000.0;
/// Least size of data whose single blocks are read: of 512 blocks, eight sessions read an eighth from the operating system's cache.
const LEAST_READ: u64 = 256 << 20;
/// Rows of a row group, the least that a thread of a query reads.
const ROW_GROUP: u64 = 122_880;

impl Engine for DuckDb {
    fn base(&self) -> &Base {
        &self.base
    }

    fn examine(&self) -> Result<BTreeMap<&'static str, String>, TargetError> {
        let syncs = || self.base.counters.syncs.load(Ordering::Relaxed);
        let (before, db) = (syncs(), self.connect()?);
        let table = KNOWLEDGE.dialect.full_name("doctor");
        db.run_sql(&format!("CREATE OR REPLACE TABLE {table} (n BIGINT)"))?;
        db.run_sql(&format!("DROP TABLE {table}"))?;
        Ok([("log-sync", (syncs() - before).to_string())].into())
    }

    fn refusal_of(&self, work: &Work) -> Option<String> {
        let code = &work.workload.code;
        if work.workload.has(Instrument::Device) && !names_wide_columns(work) {
            return Some(
                "DuckDB stores each column apart and reads those that a query names: of a table whose wide columns no query names it \
                 reads next to nothing from the storage"
                    .to_owned(),
            );
        }
        let is_read = work.workload.has(Instrument::Device) && work.program.rows_changed_per_tx() == 0;
        if is_read && work.params.size_bytes() < LEAST_READ {
            return Some(format!(
                "DuckDB reads blocks of 256 KiB, and of a small table several sessions soon want the same one: one of them has it from \
                 the operating system's cache; give --size {} or more",
                bytes(LEAST_READ as f64)
            ));
        }
        let changed = scanned_changes(work);
        if changed > MAX_SCANNED {
            return Some(format!(
                "to change one row DuckDB reads and decompresses 2,048, some 10 ms, and {code} changes {changed:.0} rows one by \
                 one: make it smaller, e.g. by --parameter {code}.most-kib=1024 and --parameter {code}.samples=4"
            ));
        }
        let rows = work.workload.tables.iter().map(|table| table.total_rows(&work.params, 0)).max().unwrap_or(0);
        let workers = work.parallel_workers().filter(|n| rows.div_ceil(ROW_GROUP) < u64::from(*n))?;
        Some(format!(
            "a thread of DuckDB's reads row groups of {ROW_GROUP} rows: {rows} rows are too few for {workers} workers, give a larger \
             --size"
        ))
    }

    fn shown_settings(&self) -> Result<BTreeMap<String, String>, TargetError> {
        let rows = self.connect()?.texts(&KNOWLEDGE.queries.text("settings", &[]))?.into_iter();
        let pairs = rows.filter_map(|row| Some(<[_; 2]>::try_from(row).ok()?.map(Option::unwrap_or_default)));
        let library = ["library".to_owned(), self.database.library.path.display().to_string()];
        Ok(pairs.chain([library]).map(<(String, String)>::from).collect())
    }

    fn parallel_queries(&self) -> Option<&dyn ParallelQueries> {
        Some(self)
    }

    fn observe(&self) -> Box<dyn Observer> {
        // Its log has no blocks, and the waits of those that commit for each other are not timed.
        let files = self.base.observe_files(&[counter::REDO_BLOCKS, counter::WRITER_WAIT_NS]);
        Box::new(DuckObserver { files, threads: Arc::clone(&self.threads) })
    }
}

impl LoadsTables for DuckDb {
    fn dialect(&self) -> &'static Dialect {
        &KNOWLEDGE.dialect
    }

    fn load_session(&self) -> Result<Box<dyn LoadSession + '_>, TargetError> {
        Ok(Box::new(self.connect()?))
    }

    fn loaded(&self) -> &LoadedTables {
        &self.base.loaded
    }

    /// Held as long as the database is open: DuckDB lets one process open it.
    fn lock_tables(&self) -> Result<RunLock, TargetError> {
        Ok(RunLock::new(()))
    }

    fn space_for_log(&self, data: u64, indexes: u64) -> Result<LogSpace, TargetError> {
        Ok(LogSpace { bytes: data.min(LOADING_LOG_BYTES).saturating_add(indexes), ..LogSpace::default() })
    }

    fn settled(&self) -> Result<Option<String>, TargetError> {
        match self.connect()?.run_sql("CHECKPOINT") {
            // Because of open transactions.
            Err(TargetError::Server(Refusal { code, text, .. })) if code.parse() == Ok(TRANSACTION) => Ok(Some(text)),
            done => done.map(|_| None),
        }
    }

    fn expect_jobs(&self, work: &Work, _: Driver) -> Result<(), TargetError> {
        match self.refusal_of(work) {
            Some(why) => Err(TargetError::Unsupported(why)),
            None => self.set_threads(work.parallel_workers()),
        }
    }

    /// The tables are loaded: the test begins with as little memory as it is to have.
    fn freshen(&self, _: &mut Loader<'_>, _: &Work) -> Result<(), TargetError> {
        self.set_memory(Some(self.small_memory.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0))
    }

    /// Of the columns that the plan of the workload's queries reads.
    fn bytes_read_of(&self, work: &Work, table: &str) -> Result<Option<u64>, TargetError> {
        let (db, plain) = (self.connect()?, KNOWLEDGE.dialect.plain_name(&table_stem(work, table)));
        let mut read = Vec::new();
        for sql in parallel::queries(work, &KNOWLEDGE.dialect)? {
            let plan = db.run_sql(&format!("EXPLAIN (FORMAT json) {sql}"))?.texts().concat().pop().flatten();
            let plan: Option<Value> = plan.and_then(|plan| serde_json::from_str(&plan).ok());
            scans(plan.as_ref().unwrap_or(&Value::Null), &plain, &mut read);
        }
        if read.is_empty() {
            let why = format!("DuckDB does not say which columns of '{table}' it reads");
            return Err(TargetError::Unsupported(why));
        }
        let named = |name: &str| {
            read.iter().any(|text| text.split(|c: char| c != '_' && !c.is_alphanumeric()).any(|w| w == name))
        };
        let columns = work.workload.tables.iter().filter(|t| t.name == table).flat_map(|t| &t.columns);
        let columns =
            columns.filter(|c| named(&c.name)).map(|c| format!("'{}'", c.name)).collect::<Vec<_>>().join(", ");
        let parts = [("plain", plain.as_str()), ("columns", if columns.is_empty() { "''" } else { columns.as_str() })];
        let bytes = db.texts(&KNOWLEDGE.queries.text("column-bytes", &parts))?.concat().pop().flatten();
        Ok(bytes.and_then(|bytes| bytes.parse().ok()))
    }

    fn remove(&self, kept: &dyn Fn() -> Result<Kept, TargetError>) -> Result<Vec<String>, TargetError> {
        // What is in the log is written now: when the database is closed, its files are gone.
        self.settled()?;
        self.remove_but(kept)
    }
}

impl ClientDriver for DuckDb {
    fn client_session(&self, work: &Work, _job: u32) -> Result<Box<dyn ClientSession>, TargetError> {
        let (counters, threads) = (Arc::clone(&self.base.counters), Arc::clone(&self.threads));
        Ok(Box::new(DuckSession::new(self.connect()?, work, counters, threads)?))
    }
}

/// Counts of the files, and what threads do while workers help them.
struct DuckObserver {
    files: FileObserver,
    threads: Arc<Threads>,
}

impl Observer for DuckObserver {
    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        self.files.snapshot()
    }

    fn sample_waits(&mut self) -> Result<Option<WaitSample>, TargetError> {
        Ok(self.threads.sample())
    }

    fn session_tasks(&mut self) -> SessionTasks {
        SessionTasks { ids: self.threads.workers(), commands: &[] }
    }
}

/// Rows that a scan of commit times over redo changes one by one; 0 of other workloads.
fn scanned_changes(work: &Work) -> f64 {
    let Some(scan) = &work.workload.scan else { return 0.0 };
    let of = |name: &str| work.params.get(name).max(1) as f64;
    let sizes = of(&scan.most_kib) / of(&scan.step_kib) + 1.0;
    // So many rows write 64 KiB.
    of(&scan.samples) * sizes * of(&scan.most_kib) / 2.0 / 64.0 * of(&scan.rows)
}

/// Adds what the scans of `table` in a plan name: columns, and filters on columns.
fn scans(plan: &Value, table: &str, found: &mut Vec<String>) {
    let info = &plan["extra_info"];
    if info["Table"].as_str().is_some_and(|name| name.rsplit('.').next() == Some(table)) {
        found.push(format!("{} {}", info["Projections"], info["Filters"]));
    }
    let inner = plan["children"].as_array().or(plan.as_array());
    inner.into_iter().flatten().for_each(|plan| scans(plan, table, found));
}

/// Whether a statement names the widest column of one of the workload's tables.
fn names_wide_columns(work: &Work) -> bool {
    let named = |column: &ColumnDef| {
        let mut pieces = work.program.statements.iter().flat_map(|s| &s.template.pieces);
        pieces.any(|piece| match piece {
            Piece::Sql(sql) => sql.contains(&column.name),
            Piece::Renew(columns) => columns.contains(&column.name),
            _ => false,
        })
    };
    let bulk = !work.program.bulk_tables().is_empty();
    let mut tables = work.workload.tables.iter();
    bulk || tables.any(|table| table.columns.iter().max_by_key(|of| of.value_bytes(&work.params)).is_some_and(named))
}

/// Rows are loaded with the usual memory, which indexes need; a test gets less of it ([`LoadsTables::freshen`]).
impl BlockCache for DuckDb {
    /// DuckDB evicts blocks of indexes as well, and a job that writes holds many.
    fn set_cache(&self, data_bytes: Option<u64>) -> Result<Option<u64>, TargetError> {
        self.give_next_test(data_bytes.map(|data| data / 64 + (48 << 20)))
    }

    /// With a tenth of 96 to 256 MiB a query of one job reads 1.0 to 1.1 blocks, with a sixth 0.8, with a twelfth 1.2 to 1.4.
    fn set_cache_for_one_read(&self, data_bytes: u64) -> Result<Option<u64>, TargetError> {
        self.give_next_test(Some((data_bytes / 100 * 9 + (3 << 19)).max(8 << 20)))
    }

    fn checkpoint(&self) -> Result<(), TargetError> {
        let deadline = Instant::now() + CHECKPOINT_LIMIT;
        while let Some(blocked) = self.settled()? {
            if Instant::now() > deadline {
                return Err(TargetError::Statement(blocked));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

impl ParallelQueries for DuckDb {
    fn max_parallel_workers(&self) -> Result<Option<WorkerLimit>, TargetError> {
        let workers = std::thread::available_parallelism().map_or(1, usize::from) as u32;
        Ok(Some(WorkerLimit { workers, because: format!("{workers} CPUs; DuckDB has no limit of its own") }))
    }

    fn try_parallel(&self, work: &Work) -> Result<Option<ParallelWorkers>, TargetError> {
        let Some(sql) = parallel::queries(work, &KNOWLEDGE.dialect)?.into_iter().next() else { return Ok(None) };
        let db = self.connect()?;
        let mut most = 0;
        for _ in 0..3 {
            most = most.max(self.threads.working(|| db.run_sql(&sql).map(drop))?);
        }
        let how = "threads of DuckDB that used a CPU while the query ran, and its caller".to_owned();
        let planned = self.threads_now.load(Ordering::Relaxed);
        Ok(Some(ParallelWorkers { planned, launched: most + 1, how }))
    }
}
