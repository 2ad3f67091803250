//! The roles of [`crate::role`] for DuckDB.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use loadline_model::manifest::TargetInfo;
use loadline_model::snapshot::{WaitSample, counter};
use loadline_model::{Column, Driver, Finding, Severity, Snapshot, column};
use loadline_workload::{ColumnDef, Instrument, Piece};
use serde_json::Value;

use super::connection::dialect;
use super::session::DuckSession;
use super::workers::Threads;
use super::{DuckDb, KIND, KNOWLEDGE, calls, kib};
use crate::data_set::LoadSession;
use crate::descriptor::fill;
use crate::dialect::Dialect;
use crate::error::{Refusal, TargetError};
use crate::facts::Facts;
use crate::file_counters::FileObserver;
use crate::loading::table_stem;
use crate::parallel;
use crate::role::{
    BlockCache, Checkpoints, ClientDriver, ClientSession, Doctor, LogSpace, Observation, Observer, ParallelQueries,
    ParallelWorkers, Queries, RunLock, SessionTasks, WorkerLimit,
};
use crate::target::{Abilities, Target};
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
/// Rows of a row group, the least that a thread of a query reads.
const ROW_GROUP: u64 = 122_880;
/// Kind of the error with which DuckDB refuses a checkpoint because of open transactions (`DUCKDB_ERROR_TRANSACTION`).
const TRANSACTION: &str = "10";

impl Target for DuckDb {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn info(&self) -> Result<TargetInfo, TargetError> {
        let rows = self.connect()?.texts(&KNOWLEDGE.settings)?.into_iter();
        let pair = |row: Vec<Option<String>>| {
            let mut values = row.into_iter().map(Option::unwrap_or_default);
            Some((values.next()?, values.next()?))
        };
        let mut settings: std::collections::BTreeMap<String, String> = rows.filter_map(pair).collect();
        settings.insert("library".into(), self.database.library.path.display().to_string());
        let mut notes = vec![
            "DuckDB commits one transaction after the other: the log is written and synced by the job that commits, while others wait"
                .to_owned(),
            "DuckDB stores columns apart and compressed: data per second of a query are the stored bytes of the columns that it reads, \
             and its limit is that of reading as many from memory"
                .to_owned(),
        ];
        if self.given("threads") == "1" {
            notes.push("threads = 1: each job's thread does all of its work itself, except where a workload asks for parallel workers; --setting threads=N changes it".into());
        }
        if !self.cache_given {
            notes.push("memory_limit is an eighth of the memory, as the shared caches of private servers are (DuckDB's own: 80 %), and \
                        less where the storage is measured, but 48 MiB at least, which loads need: STO-READ takes a --size of 1GiB or \
                        more; --setting memory_limit=SIZE replaces both".into());
        }
        Ok(TargetInfo { settings, notes, ..self.database.files.info(KIND.product, &self.database.library.version) })
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities {
            queries: Some(self),
            data_set: Some(self),
            block_cache: Some(self),
            checkpoints: Some(self),
            parallel_queries: Some(self),
            statistics_views: Some(self),
            ..Abilities::default()
        }
    }
}

impl LoadsTables for DuckDb {
    fn dialect(&self) -> &'static Dialect {
        dialect()
    }

    fn load_session(&self) -> Result<Box<dyn LoadSession + '_>, TargetError> {
        Ok(Box::new(self.connect()?))
    }

    fn loaded(&self) -> &LoadedTables {
        &self.loaded
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
            Err(TargetError::Server(Refusal { code, text, .. })) if code == TRANSACTION => Ok(Some(text)),
            done => done.map(|_| None),
        }
    }

    fn expect_jobs(&self, work: &Work, _: Driver) -> Result<(), TargetError> {
        if work.workload.has(Instrument::Device) && !names_wide_columns(work) {
            return Err(TargetError::Unsupported(
                "DuckDB stores each column apart and reads those that a query names: of a table whose wide columns no query names it \
                 reads next to nothing from the storage"
                    .into(),
            ));
        }
        let changed = scanned_changes(work);
        if changed > MAX_SCANNED {
            return Err(TargetError::Unsupported(format!(
                "to change one row DuckDB reads and decompresses 2,048, some 10 ms, and {code} changes {changed:.0} rows one by \
                 one: make it smaller, e.g. by --parameter {code}.most-kib=1024 and --parameter {code}.samples=4",
                code = work.workload.code
            )));
        }
        let workers = work.parallel_workers();
        let rows = work.workload.tables.iter().map(|table| table.total_rows(&work.params, 0)).max().unwrap_or(0);
        if let Some(workers) = workers.filter(|n| rows.div_ceil(ROW_GROUP) < u64::from(*n)) {
            return Err(TargetError::Unsupported(format!(
                "a thread of DuckDB's reads row groups of {ROW_GROUP} rows: {rows} rows are too few for {workers} workers, give a larger \
                 --size"
            )));
        }
        self.set_threads(workers)
    }

    /// Of the columns that the plan of the workload's queries reads.
    fn bytes_read_of(&self, work: &Work, table: &str) -> Result<Option<u64>, TargetError> {
        let (db, plain) = (self.connect()?, dialect().plain_name(&table_stem(work, table)));
        let mut read = Vec::new();
        for sql in parallel::queries(work, dialect())? {
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
        let bytes = db.texts(&fill(&KNOWLEDGE.columns, &parts))?.concat().pop().flatten();
        Ok(bytes.and_then(|bytes| bytes.parse().ok()))
    }

    fn remove(&self, kept: &dyn Fn() -> Result<Kept, TargetError>) -> Result<Vec<String>, TargetError> {
        let kept: Vec<String> = kept()?.iter().map(|stem| dialect().plain_name(stem)).collect();
        if !kept.is_empty() {
            let removed = self.with_loader(|loader| loader.drop_tables(|name| !kept.iter().any(|k| k == name)))?;
            return Ok(removed.into_iter().map(|name| format!("table {name}")).collect());
        }
        // What is in the log is written now: when the database is closed, its files are gone.
        self.settled()?;
        self.database.files.remove()
    }
}

impl Doctor for DuckDb {
    fn doctor(&self) -> Result<Vec<Finding>, TargetError> {
        let library = self.database.library;
        let version = format!("{} ({})", library.version, library.path.display());
        let mut out = vec![Finding::new("version", Severity::Ok, "version", version, "")];
        let syncs = || self.counters.syncs.load(Ordering::Relaxed);
        let (before, db) = (syncs(), self.connect()?);
        let table = dialect().full_name("doctor");
        db.run_sql(&format!("CREATE OR REPLACE TABLE {table} (n BIGINT)"))?;
        db.run_sql(&format!("DROP TABLE {table}"))?;
        let synced = syncs() - before;
        let (severity, advice) = match synced {
            0 | 1 => {
                (Severity::Refused, "commits return before the log is synced: this version's commits are not durable")
            }
            _ => (Severity::Ok, ""),
        };
        out.push(Finding::new("log-sync", severity, "syncs of the log by two commits", synced.to_string(), advice));
        out.push(self.database.files.filesystem());
        Ok(out)
    }
}

impl ClientDriver for DuckDb {
    fn client_session(&self, work: &Work, _job: u32) -> Result<Box<dyn ClientSession>, TargetError> {
        let (counters, threads) = (Arc::clone(&self.counters), Arc::clone(&self.threads));
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
        let mut snapshot = self.files.snapshot()?;
        // Its log has no blocks, and the waits of those that commit for each other are not timed.
        for name in [counter::REDO_BLOCKS, counter::WRITER_WAIT_NS] {
            snapshot.counters.remove(name);
        }
        Ok(snapshot)
    }

    fn sample_waits(&mut self) -> Result<Option<WaitSample>, TargetError> {
        Ok(self.threads.sample())
    }

    fn session_tasks(&mut self) -> SessionTasks {
        SessionTasks { ids: self.threads.workers(), commands: &[] }
    }
}

impl Observation for DuckDb {
    fn observer(&self) -> Result<Box<dyn Observer>, TargetError> {
        let files = FileObserver { counters: Arc::clone(&self.counters), page_size: calls::BLOCK_BYTES };
        Ok(Box::new(DuckObserver { files, threads: Arc::clone(&self.threads) }))
    }

    fn evidence(&self, work: &Work) -> Result<Option<i64>, TargetError> {
        self.evidence_query(work)
    }

    fn absent_columns(&self) -> Vec<(&'static Column, String)> {
        const NO_UNDO: &str = "DuckDB keeps old versions in memory only, and does not count them";
        let why = |what: &str| format!("DuckDB does not count {what}");
        vec![
            (column::COMMITS_DATABASE, why("its commits; the rows changed are counted instead")),
            (column::REDO_BLOCKS_PER_S, "DuckDB's log has no blocks".to_owned()),
            (column::WRITER_WAIT_PCT, "DuckDB does not time how long commits wait for each other".to_owned()),
            (column::UNDO_KIB_PER_TX, NO_UNDO.to_owned()),
            (column::OLD_ROWS_PER_TX, NO_UNDO.to_owned()),
        ]
    }
}

/// Memory with which `data_bytes` bytes of data are loaded and read by a few jobs, and little else: DuckDB's blocks are 256 KiB, and it
/// evicts those of indexes as well. With 32 MiB it cannot make the index of STO-READ-ASYNC at 256 MiB, nor
/// with this at 1 GiB.
fn small_memory(data_bytes: u64) -> u64 {
    data_bytes / 64 + (48 << 20)
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

impl BlockCache for DuckDb {
    fn set_cache(&self, data_bytes: Option<u64>) -> Result<Option<u64>, TargetError> {
        let wanted = data_bytes.filter(|_| !self.cache_given).map(small_memory);
        let limit = wanted.map_or_else(|| self.given("memory_limit").to_owned(), kib);
        let db = self.connect()?;
        db.run_sql(&format!("SET GLOBAL memory_limit = '{}'", limit.replace('\'', "''")))?;
        Ok(wanted)
    }
}

impl Checkpoints for DuckDb {
    fn checkpoint(&self) -> Result<(), TargetError> {
        let (db, deadline) = (self.connect()?, Instant::now() + CHECKPOINT_LIMIT);
        loop {
            match db.run_sql("CHECKPOINT") {
                Err(TargetError::Server(Refusal { code, .. })) if code == TRANSACTION && Instant::now() < deadline => {
                    std::thread::sleep(PAUSE);
                }
                done => return done.map(drop),
            }
        }
    }
}

impl ParallelQueries for DuckDb {
    fn max_parallel_workers(&self) -> Result<Option<WorkerLimit>, TargetError> {
        let workers = std::thread::available_parallelism().map_or(1, usize::from) as u32;
        Ok(Some(WorkerLimit { workers, because: format!("{workers} CPUs; DuckDB has no limit of its own") }))
    }

    fn try_parallel(&self, work: &Work) -> Result<Option<ParallelWorkers>, TargetError> {
        let Some(sql) = parallel::queries(work, dialect())?.into_iter().next() else { return Ok(None) };
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
