//! DuckDB, embedded: jobs are threads, and the library is opened while loadline runs ([`library`]).
//!
//! Redo is what DuckDB writes to its write-ahead log, counted with its syncs by the library's own calls ([`calls`]). Transactions are
//! optimistic: the second of two that change a row fails, and the job tries it again.

mod activity;
mod calls;
mod connection;
mod knowledge;
mod library;
mod roles;
mod session;
mod workers;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use loadline_model::{Capabilities, Capability, Driver};
use percent_encoding::percent_decode_str;

use crate::dialect::MARK;
use crate::embedded_files::{EmbeddedFiles, FileNames};
use crate::error::TargetError;
use crate::facts::{Facts, OwnFiles, Runs};
use crate::file_counters::LogCounters;
use crate::folder;
use crate::kind::TargetKind;
use crate::machine::memory_bytes;
use crate::render::{NO_SCRIPTS, in_process, lacking};
use crate::request::OpenRequest;
use crate::workload_tables::LoadedTables;
use connection::{Connection, Database, dialect};
use knowledge::KNOWLEDGE;
use library::Library;
use workers::Threads;

const NO_PROCEDURES: &str =
    "DuckDB has no stored procedures; its client driver runs inside the same process as the database";
const NO_NOWAIT: &str = "DuckDB has no commit that returns before its log is synced";

static NAMES: FileNames =
    FileNames { scheme: "duckdb", log: ".wal", others: &[".wal.checkpoint", ".wal.recovery", ".tmp"] };

/// DuckDB.
pub(crate) static KIND: TargetKind = TargetKind {
    scheme: "duckdb",
    aliases: &[],
    product: "DuckDB",
    source_key: "duckdb",
    summary: "embedded, by its own library (libduckdb.so, 1.4 to 2.x): a private database next to the results, or a file of your choice",
    url_forms: &[
        ("duckdb:", "a private database in a temporary folder next to the results, removed after the run"),
        (
            "duckdb:/dir/file.db",
            "a database file that loadline creates, and removes after the run (--keep-data: keeps, with the data set)",
        ),
        (
            "duckdb:?lib=/dir/libduckdb.so",
            "with this library; else that of LOADLINE_DUCKDB, or of the usual library folders",
        ),
    ],
    capabilities: || Capabilities {
        missing_drivers: vec![(Driver::Database, NO_PROCEDURES.to_owned())],
        ..lacking([
            (Driver::Client, Capability::CommitNowait, NO_NOWAIT),
            (Driver::Client, Capability::Procedures, "DuckDB has no stored procedures"),
            (Driver::Client, Capability::Scripts, NO_SCRIPTS),
        ])
    },
    check_url: |url| Place::of(url).map(|_| 1),
    open: |request| Ok(Box::new(DuckDb::open(request)?)),
    render: |work| in_process(work, dialect(), None, "BEGIN TRANSACTION", |s| dialect().statement(work, &s.template)),
    clean_leftovers: |request| folder::clean_leftovers(&request.scratch, &NAMES.temp_prefix()),
    is_temporary: |url| Place::of(url).is_ok_and(|place| place.path.is_none()),
    no_limit: None,
    no_sessions: None,
    native_report: None,
    levels: Vec::new,
    no_levels: None,
    level_settings: &[],
};

/// What a URL names.
struct Place {
    /// `None` for a private database.
    path: Option<PathBuf>,
    library: Option<PathBuf>,
}

impl Place {
    fn of(url: &str) -> Result<Place, TargetError> {
        let (path, query) = NAMES.split(url)?;
        let mut place = Place { path, library: None };
        for pair in query.unwrap_or("").split('&').filter(|pair| !pair.is_empty()) {
            let Some(("lib", path @ [_, ..])) = pair.split_once('=').map(|(name, path)| (name, path.as_bytes())) else {
                return Err(TargetError::Usage(format!(
                    "'?{pair}' in '{url}': a DuckDB URL takes one parameter, lib=PATH; give settings with --setting name=value"
                )));
            };
            let path = percent_decode_str(std::str::from_utf8(path).unwrap_or_default()).decode_utf8_lossy();
            place.library = Some(PathBuf::from(path.into_owned()));
        }
        Ok(place)
    }
}

/// Allowed settings.
const SETTINGS: [&str; 7] = [
    "threads", "memory_limit", "checkpoint_threshold", "preserve_insertion_order", "temp_directory",
    "max_temp_directory_size", "storage_compatibility_version",
];

/// loadline's own, as DuckDB has them without the user's: jobs work alone, the buffers are an eighth of `memory_bytes` as the shared
/// caches of private servers are, and a division of whole numbers is one, as in the SQL of other databases.
fn settings(request: &OpenRequest, memory_bytes: u64) -> Result<Vec<(String, String)>, TargetError> {
    let mut settings =
        vec![("threads".to_owned(), "1".to_owned()), ("memory_limit".to_owned(), kib((memory_bytes / 8).max(1 << 30)))];
    for (name, value) in &request.settings {
        if !SETTINGS.contains(&name.as_str()) {
            let near = loadline_model::format::did_you_mean(name, SETTINGS);
            let all = SETTINGS.join(", ");
            return Err(TargetError::Usage(format!("loadline sets no '{name}' of DuckDB{near} (known: {all})")));
        }
        if name == "threads" && !value.parse::<u32>().is_ok_and(|n| (1..=1024).contains(&n)) {
            return Err(TargetError::Usage(format!("threads = '{value}' is no number from 1 to 1024")));
        }
        settings.retain(|(known, _)| known != name);
        settings.push((name.clone(), value.clone()));
    }
    Ok(settings)
}

/// Bytes as DuckDB reads them.
fn kib(bytes: u64) -> String {
    format!("{}KiB", bytes / 1024)
}

struct DuckDb {
    database: Arc<Database>,
    facts: Facts,
    counters: Arc<LogCounters>,
    settings: Vec<(String, String)>,
    /// Whether the user set the size of the buffers.
    cache_given: bool,
    loaded: LoadedTables,
    threads: Arc<Threads>,
    /// Threads of a query at present.
    threads_now: AtomicU32,
}

impl DuckDb {
    fn open(request: &OpenRequest) -> Result<DuckDb, TargetError> {
        if !request.nodes.is_empty() {
            return Err(TargetError::Usage("DuckDB has no nodes: leave out --node".into()));
        }
        let (place, settings) = (Place::of(&request.url)?, settings(request, memory_bytes())?);
        let path = place.path.as_deref().map(absolute).transpose()?;
        let library = Library::load(place.library.as_deref())?;
        let files = Arc::new(EmbeddedFiles::make(&NAMES, &path, &absolute(&request.scratch)?)?);
        let lock = files.lock()?;
        DuckDb::open_locked(request, library, &files, settings, lock).inspect_err(|_| files.remove_lock())
    }

    fn open_locked(
        request: &OpenRequest,
        library: &'static Library,
        files: &Arc<EmbeddedFiles>,
        settings: Vec<(String, String)>,
        lock: File,
    ) -> Result<DuckDb, TargetError> {
        if files.database().exists() {
            refuse_foreign(library, files)?;
        }
        let counters = Arc::new(LogCounters::default());
        calls::watch(files.database(), &counters);
        // Its threads are started by [`Threads::set`], which knows them by their name, and nothing is fetched from the network.
        let at_open = settings.iter().filter(|(name, _)| name != "threads").cloned();
        let fixed = [("threads", "1"), ("autoinstall_known_extensions", "false")];
        let fixed = fixed.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let at_open: Vec<_> = at_open.chain(fixed).collect();
        let mut database = Database::open(library, files, &at_open)?;
        if !calls::sees(files.database()) {
            return Err(TargetError::Local(format!(
                "the operations of DuckDB {} on {} cannot be counted; please report it",
                library.version,
                files.database().display()
            )));
        }
        let file = Arc::new(files.open()?);
        database.held = Some((Arc::clone(&file), lock));
        let database = Arc::new(database);
        Connection::open(&database)?.run_sql("SET GLOBAL integer_division = true")?;
        let facts = Facts {
            block_bytes: Some(calls::BLOCK_BYTES),
            columns_apart: true,
            own_files: Some(OwnFiles { open: vec![file], named: vec![files.log()] }),
            waits: &KNOWLEDGE.events,
            empty_query: "SELECT 1",
            ..Facts::of(Runs::InProcess)
        };
        let target = DuckDb {
            database,
            facts,
            counters,
            cache_given: request.settings.contains_key("memory_limit"),
            settings,
            loaded: LoadedTables::default(),
            threads: Arc::new(Threads::new()),
            threads_now: AtomicU32::new(0),
        };
        target.set_threads(None)?;
        Ok(target)
    }

    fn connect(&self) -> Result<Connection, TargetError> {
        Connection::open(&self.database)
    }

    /// Value of a setting that loadline or the user gave.
    fn given(&self, name: &str) -> &str {
        self.settings.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Lets a query have `threads` threads; `None`: as many as were set.
    fn set_threads(&self, threads: Option<u32>) -> Result<(), TargetError> {
        let threads = threads.unwrap_or_else(|| self.given("threads").parse().unwrap_or(1));
        if self.threads_now.load(Ordering::Relaxed) != threads {
            self.threads.set(&self.connect()?, threads)?;
            self.threads_now.store(threads, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The path with which DuckDB opens a file, so that its calls are known by it.
fn absolute(path: &Path) -> Result<PathBuf, TargetError> {
    std::path::absolute(path).map_err(|e| TargetError::Usage(format!("'{}' is no path: {e}", path.display())))
}

/// Refuses a database with anything that is not loadline's; it is opened for reading only.
fn refuse_foreign(library: &'static Library, files: &Arc<EmbeddedFiles>) -> Result<(), TargetError> {
    let settings = [("access_mode".to_owned(), "READ_ONLY".to_owned()), ("threads".to_owned(), "1".to_owned())];
    let database = Arc::new(Database::open(library, files, &settings)?);
    let objects = Connection::open(&database)?.texts(&KNOWLEDGE.objects)?;
    let is_ours = |row: &Vec<Option<String>>| row.get(1).and_then(Option::as_ref).is_some_and(|c| c.starts_with(MARK));
    match objects.iter().find(|row| !is_ours(row)) {
        None => Ok(()),
        Some(row) => Err(TargetError::Refused(format!(
            "{} contains '{}' that loadline did not create: give the name of a new file",
            files.database().display(),
            row.first().and_then(Option::as_deref).unwrap_or_default()
        ))),
    }
}

#[cfg(test)]
mod tests;
