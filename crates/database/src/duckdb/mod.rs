//! DuckDB, embedded: jobs are threads, and the library is opened while loadline runs ([`library`]).
//!
//! Redo is what DuckDB writes to its write-ahead log, counted with its syncs by the library's own calls
//! ([`crate::embedded::calls`]). Transactions are optimistic: the second of two that change a row fails, and the job tries it again.

mod connection;
mod library;
mod roles;
mod session;
mod workers;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use loadline_workload::Statement;

use crate::descriptor::Embedded;
use crate::dialect::MARK;
use crate::embedded::calls::{self, Layout};
use crate::embedded::counters::LogCounters;
use crate::embedded::files::{EmbeddedFiles, FileNames};
use crate::embedded::knowledge::Knowledge;
use crate::embedded::{Base, Chosen, Kind};
use crate::error::TargetError;
use crate::machine::memory_bytes;
use crate::render::{Rendered, in_process};
use crate::request::OpenRequest;
use crate::work::Work;
use connection::{Connection, Database};
use library::Library;
use workers::Threads;

pub(crate) static KNOWLEDGE: Embedded<Knowledge> = Embedded::new("src/duckdb.toml", include_str!("../duckdb.toml"));
/// The file's own header comes before both headers of its content.
static LAYOUT: Layout = Layout { log: ".wal", block_bytes: 262_144, header_bytes: 4096, headers_at: &[4096, 8192] };
static NAMES: FileNames = FileNames {
    scheme: "duckdb",
    parameter: Some("lib"),
    log: ".wal",
    others: &[".wal.checkpoint", ".wal.recovery", ".tmp"],
};

pub(crate) static KIND: Kind =
    Kind { names: &NAMES, knowledge: &KNOWLEDGE, open: |request| Ok(Box::new(DuckDb::open(request)?)), render };

fn render(work: &Work) -> Vec<Rendered> {
    let sql = |s: &Statement| KNOWLEDGE.dialect.statement(work, &s.template);
    in_process(work, &KNOWLEDGE.dialect, None, "BEGIN TRANSACTION", sql)
}

const SIZES: [&str; 3] = ["memory_limit", "checkpoint_threshold", "max_temp_directory_size"];

/// The settings, as DuckDB has them without the user's: jobs work alone, and the buffers are an eighth of the memory as the shared caches
/// of private servers are.
fn settings(request: &OpenRequest) -> Result<Chosen, TargetError> {
    let own = |name: &str| match name {
        "threads" => Some("1".to_owned()),
        "memory_limit" => Some(kib(usual_memory())),
        _ => None,
    };
    let wanted = |name: &str, value: &str| match name {
        "threads" if value.parse::<u32>().is_ok_and(|n| (1..=1024).contains(&n)) => None,
        "threads" => Some("a number from 1 to 1024"),
        "preserve_insertion_order" if !["true", "false"].contains(&value) => Some("true or false"),
        name if SIZES.contains(&name) && !value.starts_with(|c: char| c.is_ascii_digit()) => {
            Some("a size such as 512MiB")
        }
        _ => None,
    };
    Chosen::new(request, &KIND, own, wanted)
}

fn usual_memory() -> u64 {
    (memory_bytes() / 8).max(1 << 30)
}

/// Bytes as DuckDB reads them.
fn kib(bytes: u64) -> String {
    format!("{}KiB", bytes / 1024)
}

/// The order of its fields is that in which they are dropped.
struct DuckDb {
    database: Arc<Database>,
    base: Base,
    threads: Arc<Threads>,
    /// Threads of a query at present.
    threads_now: AtomicU32,
    /// Memory for the next test, if it is less than usual, bytes; else 0.
    small_memory: AtomicU64,
}

impl DuckDb {
    fn open(request: &OpenRequest) -> Result<DuckDb, TargetError> {
        let (place, settings) = (NAMES.place(&request.url)?, settings(request)?);
        let path = place.database.as_deref().map(absolute).transpose()?;
        let library = Library::load(place.parameter.as_deref())?;
        let files = Arc::new(EmbeddedFiles::make(&NAMES, &path, &absolute(&request.scratch)?)?);
        DuckDb::open_locked(library, &files, settings, files.lock()?).inspect_err(|_| files.remove_lock())
    }

    fn open_locked(
        library: &'static Library,
        files: &Arc<EmbeddedFiles>,
        settings: Chosen,
        lock: File,
    ) -> Result<DuckDb, TargetError> {
        if files.database.exists() {
            refuse_foreign(library, files)?;
        }
        let counters = Arc::new(LogCounters::default());
        calls::watch(&files.database, &LAYOUT, &counters);
        // Its threads are started by [`Threads::set`], which knows them by their name, and nothing is fetched from the network.
        let at_open = settings.all.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let at_open = at_open.filter(|(name, _)| *name != "threads");
        let fixed = [("threads", "1"), ("autoinstall_known_extensions", "false")];
        let mut database = Database::open(library, files, at_open.chain(fixed))?;
        if !calls::sees(&files.database) {
            return Err(TargetError::Local(format!(
                "the operations of DuckDB {} on {} cannot be counted; please report it",
                library.version,
                files.database.display()
            )));
        }
        let files = (Arc::clone(files), counters);
        let mut base = Base::new((&KIND, &library.version), files, settings, LAYOUT.block_bytes)?;
        base.facts.columns_apart = true;
        database.held = Some((Arc::clone(&base.file), lock));
        let database = Arc::new(database);
        // A division of whole numbers is one, as in the SQL of other databases.
        Connection::open(&database)?.run_sql("SET GLOBAL integer_division = true")?;
        let target = DuckDb {
            database,
            base,
            threads: Arc::new(Threads::new()),
            threads_now: AtomicU32::new(0),
            small_memory: AtomicU64::new(0),
        };
        target.set_threads(None)?;
        Ok(target)
    }

    fn connect(&self) -> Result<Connection, TargetError> {
        Connection::open(&self.database)
    }

    /// Lets a query have `threads` threads; `None`: as many as were set.
    fn set_threads(&self, threads: Option<u32>) -> Result<(), TargetError> {
        let set = || self.base.settings.value("threads").and_then(|n| n.parse().ok()).unwrap_or(1);
        let threads = threads.unwrap_or_else(set);
        if self.threads_now.load(Ordering::Relaxed) != threads {
            self.threads.set(&self.connect()?, threads)?;
            self.threads_now.store(threads, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Gives the next test so much memory, bytes, unless the user chose how much; `None`: the usual, which loading gets in any case.
    fn give_next_test(&self, memory: Option<u64>) -> Result<Option<u64>, TargetError> {
        let is_given = self.base.settings.is_given("memory_limit");
        let wanted = if is_given { None } else { memory.map(|n| n.min(usual_memory())) };
        self.small_memory.store(wanted.unwrap_or(0), Ordering::Relaxed);
        self.set_memory(None)?;
        Ok(wanted)
    }

    /// Limits DuckDB's memory; `None`: as it was set.
    fn set_memory(&self, bytes: Option<u64>) -> Result<(), TargetError> {
        let set = || self.base.settings.value("memory_limit").unwrap_or_default().replace('\'', "''");
        let limit = bytes.map_or_else(set, kib);
        self.connect()?.run_sql(&format!("SET GLOBAL memory_limit = '{limit}'")).map(drop)
    }
}

/// The path with which DuckDB opens a file, so that its calls are known by it.
fn absolute(path: &Path) -> Result<PathBuf, TargetError> {
    std::path::absolute(path).map_err(|e| TargetError::Usage(format!("'{}' is no path: {e}", path.display())))
}

/// Refuses a database with anything that is not loadline's; it is opened for reading only.
fn refuse_foreign(library: &'static Library, files: &Arc<EmbeddedFiles>) -> Result<(), TargetError> {
    let database = Arc::new(Database::open(library, files, [("access_mode", "READ_ONLY"), ("threads", "1")])?);
    let objects = Connection::open(&database)?.texts(&KNOWLEDGE.queries.text("objects", &[]))?;
    let is_ours = |row: &Vec<Option<String>>| row.get(1).and_then(Option::as_ref).is_some_and(|c| c.starts_with(MARK));
    match objects.iter().find(|row| !is_ours(row)) {
        None => Ok(()),
        Some(row) => Err(files.foreign(&format!("'{}'", row.first().and_then(Option::as_deref).unwrap_or_default()))),
    }
}

#[cfg(test)]
mod tests;
