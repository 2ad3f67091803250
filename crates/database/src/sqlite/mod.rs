//! SQLite, embedded: its threads are its jobs, and one writer at a time is its nature.
//!
//! Redo is what goes to the WAL file. SQLite logs whole pages, so a private database is made with
//! pages of 1 KiB: with its usual 4 KiB the smallest transaction would log 4 KiB and could not be
//! an LGWR-LAT1 (1–2 KiB). `--setting page_size=4096` measures it as it is usually deployed.

mod checkpoint;
mod data_counters;
mod files;
mod loading;
mod log_counters;
mod session;

use std::ffi::CStr;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loadline_model::manifest::TargetInfo;
use loadline_model::snapshot::counter;
use loadline_model::{Capabilities, Capability, Column, Driver, Finding, Severity, Snapshot, column};
use loadline_workload::{Cache, Commit, Piece, RowCount, Template};
use rusqlite::{Connection, OpenFlags};

use crate::data_set::{self, FoundTable, LoadProgress, Loader, Ways};
use crate::error::TargetError;
use crate::file_facts::{FileFacts, OwnFiles};
use crate::kind::TargetKind;
use crate::loading::table_stem;
use crate::number::Number;
use crate::own_tables::{self, Own, Whole, own_tables};
use crate::render::Rendered;
use crate::request::OpenRequest;
use crate::room::LogRoom;
use crate::session::{ClientSession, DatabaseSession, JobLimit, Observer, RunLock, Target};
use crate::work::Work;
use files::SqliteFiles;
use loading::{SqliteLoader, create_table, table_name};
use log_counters::LogCounters;
use session::{SqliteSession, wait_for_writer};

const NO_PROCEDURES: &str =
    "SQLite has no stored procedures; its client driver runs inside the same process as the database";

/// `PRAGMA application_id` of databases that loadline made: "load" in ASCII.
const APPLICATION_ID: i64 = 0x6c6f_6164;

/// Smallest cache of each session where the storage is measured, KiB.
const SMALL_CACHE_KIB: u64 = 1024;
/// The same where the cache is measured: what the workloads read there is some 20 MiB.
const LARGE_CACHE_KIB: u64 = 65_536;

/// What a transaction of a load takes in the log, at the most.
const TRANSACTION_BYTES: u64 = 64 << 20;
/// The usual size of a page here, bytes.
const PAGE_SIZE: u64 = 1024;

/// Settings that can be given, with their defaults here.
const SETTINGS: &[(&str, &str)] =
    &[("page_size", "1024"), ("wal_autocheckpoint", "1000"), ("cache_size", "-16384"), ("mmap_size", "0")];

/// The kind.
pub(crate) static KIND: TargetKind = TargetKind {
    scheme: "sqlite",
    aliases: &[],
    product: "SQLite",
    source_key: "sqlite",
    summary: "embedded, needs nothing: a private database next to the results, or a file of your choice",
    url_forms: &[
        ("sqlite:", "a private database in a temporary folder next to the results, removed after the run"),
        (
            "sqlite:/dir/file.db",
            "a database file that loadline makes, and removes after the run (--keep-data: keeps, with the data set)",
        ),
    ],
    capabilities: || Capabilities {
        missing_drivers: vec![(Driver::Database, NO_PROCEDURES.to_owned())],
        missing: vec![
            (Driver::Client, Capability::ParallelQuery, "a query is run by the thread that asks".to_owned()),
            (Driver::Client, Capability::Procedures, "SQLite has no stored procedures".to_owned()),
        ],
    },
    check_url: |url| files::path_of(url).map(|_| ()),
    open: |request| Ok(Box::new(Sqlite::open(request)?)),
    render,
    clean_leftovers: |request| files::clean_leftovers(&request.scratch),
    is_temporary: |url| files::path_of(url).is_ok_and(|p| p.is_none()),
    native_report: None,
};

struct Sqlite {
    files: SqliteFiles,
    settings: Vec<(String, String)>,
    /// Virtual file system that counts what is done to the log.
    vfs: &'static CStr,
    counters: Arc<LogCounters>,
    page_size: u64,
    /// Whether the user said how large a session's cache is.
    cache_given: bool,
    /// The workload's own tables that need not be counted.
    whole: Whole,
    /// Whether the user said how long the log grows.
    log_given: bool,
    /// The database's file, for what has to open it besides SQLite: its locks on it go when this process closes
    /// any descriptor of it, so this one is closed after all connections (sqlite.org/howtocorrupt.html, 2.2).
    file: Option<Arc<File>>,
}

pub(super) fn failed(what: &str) -> impl FnOnce(rusqlite::Error) -> TargetError + '_ {
    move |e| TargetError::Statement(format!("{what} failed: {e}"))
}

impl Sqlite {
    fn open(request: &OpenRequest) -> Result<Sqlite, TargetError> {
        if !request.nodes.is_empty() {
            return Err(TargetError::Usage("SQLite has no nodes: leave out --node".into()));
        }
        let settings = settings(request)?;
        let files = SqliteFiles::make(&files::path_of(&request.url)?, &request.scratch)?;
        let (vfs, counters) = log_counters::register()?;
        let mut sqlite = Sqlite {
            files,
            settings,
            vfs,
            counters,
            page_size: 0,
            cache_given: request.settings.contains_key("cache_size"),
            whole: Whole::default(),
            log_given: request.settings.contains_key("wal_autocheckpoint"),
            file: None,
        };
        let db = sqlite.connect(Commit::Wait)?;
        sqlite.file = Some(Arc::new(sqlite.files.open()?));
        sqlite.page_size = pragma(&db, "page_size")?.parse().unwrap_or(0);
        Ok(sqlite)
    }

    /// Opens the database, making it if it is not there.
    fn connect(&self, commit: Commit) -> Result<Connection, TargetError> {
        let path = self.files.database();
        let unreachable = |e: rusqlite::Error| TargetError::Unreachable(format!("cannot open {}: {e}", path.display()));
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut db = Connection::open_with_flags_and_vfs(path, flags, self.vfs).map_err(unreachable)?;
        db.busy_handler(Some(wait_for_writer)).map_err(unreachable)?;
        let known: i64 = pragma(&db, "application_id")?.parse().unwrap_or(0);
        let objects: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0)).map_err(|e| match e
            .sqlite_error_code()
        {
            Some(rusqlite::ErrorCode::NotADatabase) => {
                TargetError::Refused(format!("{} is not a database: give the name of a new file", path.display()))
            }
            _ => unreachable(e),
        })?;
        if known != APPLICATION_ID && objects > 0 {
            return Err(TargetError::Refused(format!(
                "{} holds a database that loadline did not make: give the name of a new file",
                path.display()
            )));
        }
        for (name, value) in &self.settings {
            set_pragma(&db, name, value)?;
        }
        if known != APPLICATION_ID {
            set_pragma(&db, "application_id", &APPLICATION_ID.to_string())?;
        }
        set_pragma(&db, "journal_mode", "WAL")?;
        let mode = pragma(&db, "journal_mode")?;
        if mode != "wal" {
            return Err(TargetError::Refused(format!(
                "{}: SQLite cannot use a write-ahead log here (journal_mode stays «{mode}»)",
                path.display()
            )));
        }
        let (name, number) = synchronous(commit);
        set_pragma(&db, "synchronous", name)?;
        if pragma(&db, "synchronous")? != number {
            return Err(TargetError::Refused(format!("SQLite does not accept synchronous = {name}")));
        }
        Ok(db)
    }
}

/// A cache that holds what leads to the rows of so much data (a hundredth, with pages of 1 KiB), and little
/// else.
fn small_cache_kib(data_bytes: u64) -> u64 {
    (data_bytes / 32 / 1024).max(SMALL_CACHE_KIB)
}

impl Sqlite {
    /// A session's cache: small where the storage is measured; large, and filled, where the cache is.
    fn ready_cache(&self, db: &Connection, work: &Work) -> Result<(), TargetError> {
        if self.cache_given {
            return Ok(());
        }
        match work.workload.cache {
            Cache::Any => Ok(()),
            Cache::Device => set_pragma(db, "cache_size", &format!("-{}", small_cache_kib(work.params.size_bytes()))),
            Cache::Hit => {
                set_pragma(db, "cache_size", &format!("-{LARGE_CACHE_KIB}"))?;
                for table in work.workload.tables {
                    // An aggregate over the last column goes through every page.
                    let last = table.columns.last().map_or("id", |c| c.name);
                    let sql = format!("SELECT sum(length(\"{last}\")) FROM {}", table_name(work, table.name));
                    db.query_row(&sql, [], |_| Ok(())).map_err(failed("filling the cache"))?;
                }
                Ok(())
            }
        }
    }

    fn loader(&self) -> Result<SqliteLoader, TargetError> {
        Ok(SqliteLoader(self.connect(Commit::Nowait)?))
    }
}

/// `PRAGMA synchronous` for a commit mode: name and number.
fn synchronous(commit: Commit) -> (&'static str, &'static str) {
    match commit {
        Commit::Wait => ("FULL", "2"),
        Commit::Nowait => ("NORMAL", "1"),
    }
}

fn settings(request: &OpenRequest) -> Result<Vec<(String, String)>, TargetError> {
    let known = || SETTINGS.iter().map(|(n, _)| *n);
    for (name, value) in &request.settings {
        if !known().any(|n| n == name) {
            let near = loadline_model::format::nearest(name, known())
                .map_or(String::new(), |n| format!(": did you mean «{n}»?"));
            let all = known().collect::<Vec<_>>().join(", ");
            return Err(TargetError::Usage(format!("SQLite has no setting «{name}» here{near} (known: {all})")));
        }
        let number: Option<i64> = value.parse().ok();
        let page_size_ok = number.is_some_and(|n| (512..=65536).contains(&n) && n.count_ones() == 1);
        if number.is_none() || (name == "page_size" && !page_size_ok) {
            return Err(TargetError::Usage(format!(
                "setting {name} = «{value}» is not valid: {}",
                if name == "page_size" {
                    "it must be a power of two from 512 to 65536"
                } else {
                    "it must be a whole number"
                }
            )));
        }
    }
    Ok(SETTINGS
        .iter()
        .map(|(n, default)| {
            ((*n).to_owned(), request.settings.get(*n).cloned().unwrap_or_else(|| (*default).to_owned()))
        })
        .collect())
}

fn pragma(db: &Connection, name: &str) -> Result<String, TargetError> {
    db.pragma_query_value(None, name, |row| {
        row.get_ref(0).map(|v| match v {
            rusqlite::types::ValueRef::Integer(i) => i.to_string(),
            rusqlite::types::ValueRef::Text(t) => String::from_utf8_lossy(t).into_owned(),
            _ => String::new(),
        })
    })
    .map_err(failed(name))
}

fn set_pragma(db: &Connection, name: &str, value: &str) -> Result<(), TargetError> {
    // Some pragmas answer with a row, some do not.
    db.pragma_update_and_check(None, name, value, |_| Ok(())).or_else(|e| match e {
        rusqlite::Error::QueryReturnedNoRows => Ok(()),
        e => Err(failed(name)(e)),
    })
}

/// A statement with numbered parameters in the order of [`Template::vars`].
pub(super) fn sql(work: &Work, template: &Template) -> String {
    let mut n = 0;
    template.render(
        |t| table_name(work, t),
        |_| {
            n += 1;
            format!("?{n}")
        },
    )
}

fn render(work: &Work) -> Vec<Rendered> {
    let mut out: Vec<Rendered> = work
        .workload
        .tables
        .iter()
        .map(|t| Rendered::new(format!("table {}", t.name), create_table(work, t)))
        .collect();
    let (mode, _) = synchronous(work.program.commit);
    let log =
        checkpoint::log_pages(work, PAGE_SIZE).map_or(String::new(), |n| format!("; PRAGMA wal_autocheckpoint = {n}"));
    out.push(Rendered::new("session", format!("PRAGMA journal_mode = WAL; PRAGMA synchronous = {mode}{log}")));
    out.push(Rendered::new("begin", if work.program.writes() { "BEGIN IMMEDIATE" } else { "BEGIN" }));
    for (i, s) in work.program.statements.iter().enumerate() {
        let used = s.template.pieces.iter().any(|p| matches!(p, Piece::Var(_)));
        let vars =
            s.template.vars().enumerate().map(|(i, v)| format!("?{} = {v}", i + 1)).collect::<Vec<_>>().join(", ");
        let note = if used { format!(" -- {vars}") } else { String::new() };
        out.push(Rendered::new(format!("statement {i}"), format!("{}{note}", sql(work, &s.template))));
    }
    out.push(Rendered::new("commit", "COMMIT"));
    for (title, query) in work.queries() {
        if let Ok(sql) = work.query(query, |table| table_name(work, table)) {
            out.push(Rendered::new(title, sql));
        }
    }
    out
}

impl Target for Sqlite {
    fn info(&self) -> Result<TargetInfo, TargetError> {
        let db = self.connect(Commit::Wait)?;
        let mut settings = std::collections::BTreeMap::new();
        let stated = ["page_size", "journal_mode", "wal_autocheckpoint", "cache_size", "mmap_size", "locking_mode"];
        // Where sorts and groupings go that do not fit the cache, and how many threads help a sort.
        for name in stated.into_iter().chain(["temp_store", "threads"]) {
            settings.insert(name.to_owned(), pragma(&db, name)?);
        }
        settings.insert("synchronous".into(), "FULL for commits that wait, NORMAL for those that do not".into());
        settings.insert("busy_handler".into(), session::WAIT_DESCRIPTION.into());
        let directory = self.files.directory().display().to_string();
        let mut notes = vec![
            "SQLite has one writer at a time: jobs wait for each other, and the wait is part of their transaction time"
                .to_owned(),
        ];
        if !self.log_given {
            notes.push(checkpoint::NOTE.to_owned());
        }
        if self.page_size == PAGE_SIZE {
            notes.push("pages of 1 KiB instead of SQLite's usual 4 KiB, so that LGWR-LAT1 logs 1–2 KiB; --setting page_size=4096 changes it".into());
        }
        Ok(TargetInfo {
            kind: "sqlite".into(),
            product: KIND.product.into(),
            version: rusqlite::version().into(),
            url: self.files.url(),
            nodes: 1,
            local: true,
            settings,
            log_dir: Some(directory.clone()),
            data_dir: Some(directory),
            notes,
            ..TargetInfo::default()
        })
    }

    fn doctor(&self) -> Result<Vec<Finding>, TargetError> {
        let db = self.connect(Commit::Wait)?;
        let mut out = vec![
            Finding::new("version", Severity::Ok, "version", rusqlite::version(), ""),
            Finding::new("journal-mode", Severity::Ok, "journal_mode", pragma(&db, "journal_mode")?, ""),
            Finding::new("synchronous", Severity::Ok, "synchronous", "FULL for commits that wait", ""),
        ];
        let (severity, advice) = if self.page_size == 1024 {
            (Severity::Ok, "")
        } else {
            (
                Severity::Warning,
                "SQLite logs whole pages: LGWR-LAT1 needs pages of at most 1024 bytes and is invalid with larger ones",
            )
        };
        out.push(Finding::new("page-size", severity, "page_size", self.page_size.to_string(), advice));
        out.push(files::filesystem(self.files.directory()));
        Ok(out)
    }

    fn lock(&self) -> Result<RunLock, TargetError> {
        self.files.lock().map(RunLock::new)
    }

    fn job_limit(&self) -> Result<JobLimit, TargetError> {
        Ok(JobLimit { jobs: None, because: String::new() })
    }

    fn create(&self, work: &Work) -> Result<(), TargetError> {
        let db = self.connect(Commit::Nowait)?;
        self.whole.forget(work);
        for table in own_tables(work) {
            let drop = format!("DROP TABLE IF EXISTS {}; ", table_name(work, table.name));
            db.execute_batch(&format!("{drop}{}", create_table(work, table))).map_err(failed("making the tables"))?;
        }
        Ok(())
    }

    fn drop_own(&self, work: &Work) -> Result<(), TargetError> {
        self.whole.forget(work);
        let stems: Vec<String> = own_tables(work).map(|t| table_stem(work, t.name)).collect();
        loading::drop_tables(&mut self.loader()?, |name| stems.iter().any(|s| s == name)).map(drop)
    }

    fn load_watched(&self, work: &Work, jobs: u32, progress: &LoadProgress) -> Result<(), TargetError> {
        let jobs: Vec<u32> = (0..jobs).collect();
        let open = || Ok(Box::new(self.loader()?) as Box<dyn Loader>);
        let own = Own { work, jobs: &jobs, server: 0, whole: &self.whole };
        own_tables::load_all(&own, Ways { open: &open, one_writer: true, progress })
    }

    fn data_set(&self) -> Result<Vec<FoundTable>, TargetError> {
        data_set::found(&mut self.loader()?)
    }

    fn drop_data_set(&self) -> Result<(), TargetError> {
        loading::drop_tables(&mut self.loader()?, |name| name.starts_with("data_")).map(drop)
    }

    fn reset(&self, work: &Work) -> Result<(), TargetError> {
        let db = self.connect(Commit::Nowait)?;
        for table in work.workload.tables.iter().filter(|t| t.rows == RowCount::Empty) {
            db.execute_batch(&format!("DELETE FROM {}", table_name(work, table.name)))
                .map_err(failed("emptying a table"))?;
        }
        Ok(())
    }

    /// The log is used again after a checkpoint, and there is one after each transaction: one of rows, or one
    /// that makes all of a table's indexes.
    fn log_room(&self, data: u64, indexes: u64) -> Result<LogRoom, TargetError> {
        let never = self.settings.iter().any(|(name, value)| name == "wal_autocheckpoint" && value == "0");
        let rows = if never { data } else { data.min(TRANSACTION_BYTES) };
        Ok(LogRoom { bytes: rows.saturating_add(indexes), ..LogRoom::default() })
    }

    fn rows_lie_in_key(&self) -> bool {
        true
    }

    fn settle(&self) -> Result<Option<String>, TargetError> {
        let db = self.connect(Commit::Wait)?;
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(failed("the checkpoint"))?;
        Ok(None)
    }

    fn checkpoint(&self) -> Result<(), TargetError> {
        checkpoint::make(&self.connect(Commit::Wait)?, self.file.as_deref(), checkpoint::AT_MOST)
    }

    fn file_facts(&self) -> FileFacts {
        let own =
            self.file.as_ref().map(|file| OwnFiles { open: vec![Arc::clone(file)], named: vec![self.files.log()] });
        FileFacts { own, ..FileFacts::default() }
    }

    fn set_cache(&self, data_bytes: Option<u64>) -> Result<Option<u64>, TargetError> {
        Ok((!self.cache_given && data_bytes.is_some()).then_some(small_cache_kib(data_bytes.unwrap_or(0)) << 10))
    }

    fn block_bytes(&self) -> Option<u64> {
        Some(self.page_size)
    }

    fn client_session(&self, work: &Work, _job: u32) -> Result<Box<dyn ClientSession>, TargetError> {
        let db = self.connect(work.program.commit)?;
        self.ready_cache(&db, work)?;
        if let Some(pages) = checkpoint::log_pages(work, self.page_size).filter(|_| !self.log_given) {
            set_pragma(&db, "wal_autocheckpoint", &pages.to_string())?;
        }
        Ok(Box::new(SqliteSession::new(db, work, Arc::clone(&self.counters), self.file.clone())?))
    }

    fn database_session(&self, _: &Work, _: u32) -> Result<Box<dyn DatabaseSession>, TargetError> {
        Err(TargetError::Unsupported(NO_PROCEDURES.into()))
    }

    fn observer(&self) -> Result<Box<dyn Observer>, TargetError> {
        Ok(Box::new(LogObserver(Arc::clone(&self.counters))))
    }

    fn number(&self, work: &Work, query: &str) -> Result<Option<Number>, TargetError> {
        let sql = work.query(query, |table| table_name(work, table))?;
        let db = self.connect(Commit::Wait)?;
        Ok(Some(Number::new(db.query_row(&sql, [], |r| r.get(0)).map_err(failed("a query"))?)))
    }

    fn table_bytes(&self, work: &Work, table: &str) -> Result<Option<u64>, TargetError> {
        let name = format!("loadline_{}", table_stem(work, table));
        let db = self.connect(Commit::Wait)?;
        let bytes: Option<i64> = db
            .query_row("SELECT SUM(pgsize) FROM dbstat WHERE name = ?1", [name], |r| r.get(0))
            .map_err(failed("the query for a table's size"))?;
        Ok(bytes.map(|b| b as u64))
    }

    fn absent_columns(&self) -> Vec<(&'static Column, String)> {
        let why = |what: &str| format!("SQLite does not count {what}");
        vec![(column::COMMITS_DATABASE, why("its commits; the rows changed are counted instead"))]
    }

    fn in_process(&self) -> bool {
        true
    }

    fn clean(&self) -> Result<Vec<String>, TargetError> {
        let lock = self.files.lock()?;
        let removed = self.files.remove()?;
        drop(lock);
        Ok(removed)
    }

    fn clean_after_run(&self, keep_data: bool) -> Result<Vec<String>, TargetError> {
        let lock = self.files.lock()?;
        let mut loader = self.loader()?;
        if keep_data {
            data_set::keep(&mut loader)?;
        }
        let kept = data_set::kept(&mut loader)?;
        if kept.is_empty() {
            drop((loader, lock));
            return self.clean();
        }
        loading::drop_tables(&mut loader, |name| !kept.contains(name))
    }
}

/// Reads what has been done to the log.
struct LogObserver(Arc<LogCounters>);

impl Observer for LogObserver {
    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
        let counters = [
            (counter::REDO_WRITES, read(&self.0.writes)),
            (counter::REDO_BYTES, read(&self.0.bytes)),
            (counter::REDO_BLOCKS, read(&self.0.pages)),
            (counter::REDO_SYNCS, read(&self.0.syncs)),
            (counter::LOG_WAIT_NS, read(&self.0.sync_ns)),
            (counter::REDO_SYNC_NS, read(&self.0.sync_ns)),
            (counter::REDO_WRITE_NS, read(&self.0.write_ns)),
        ];
        let data = self.0.data.neutral();
        let counters = counters.into_iter().chain(data.into_iter().map(|(name, value)| (name, read(value))));
        let counters = counters.map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(Snapshot { at_ns: crate::clock::now_ns(), counters, proc_stat: None })
    }
}

#[cfg(test)]
mod tests;
