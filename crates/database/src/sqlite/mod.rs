//! SQLite, embedded: jobs are threads, with one writer at a time.
//!
//! Redo is what SQLite writes to the WAL file. SQLite logs whole pages, so databases get pages of 1 KiB: with the
//! default of 4 KiB the smallest transaction would log 4 KiB, too much for LGWR-LAT1 (1–2 KiB). Use
//! `--setting page_size=4096` to measure the usual configuration.

mod activity;
mod checkpoint;
mod connect;
mod data_counters;
mod files;
mod knowledge;
mod loading;
mod log_counters;
mod roles;
mod session;

use std::fs::File;
use std::sync::Arc;

use loadline_model::{Capabilities, Capability, Driver};
use loadline_workload::{Commit, Instrument, Statement};
use rusqlite::{Connection, ErrorCode};

use crate::embedded_files::EmbeddedFiles;
use crate::error::TargetError;
use crate::facts::{Facts, OwnFiles, Runs};
use crate::file_counters::LogCounters;
use crate::folder;
use crate::kind::TargetKind;
use crate::render::{NO_SCRIPTS, Rendered, in_process, lacking};
use crate::request::OpenRequest;
use crate::work::Work;
use crate::workload_tables::LoadedTables;
use connect::{Connector, pragma, set_pragma, settings, synchronous};
use files::held_by_others;
use knowledge::KNOWLEDGE;

const NO_PROCEDURES: &str =
    "SQLite has no stored procedures; its client driver runs inside the same process as the database";

/// Minimum cache of a session for workloads that measure the storage, KiB.
const SMALL_CACHE_KIB: u64 = 1024;
/// Cache of a session for workloads that measure the cache, KiB: they read about 20 MiB.
const LARGE_CACHE_KIB: u64 = 65_536;

/// Maximum size of a loading transaction in the log, bytes.
const TRANSACTION_BYTES: u64 = 64 << 20;
/// Default page size, bytes.
const PAGE_SIZE: u64 = 1024;

/// SQLite.
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
            "a database file that loadline creates, and removes after the run (--keep-data: keeps, with the data set)",
        ),
    ],
    capabilities: || Capabilities {
        missing_drivers: vec![(Driver::Database, NO_PROCEDURES.to_owned())],
        ..lacking([
            (Driver::Client, Capability::ParallelQuery, "the calling thread runs the query"),
            (Driver::Client, Capability::Procedures, "SQLite has no stored procedures"),
            (Driver::Client, Capability::Scripts, NO_SCRIPTS),
        ])
    },
    check_url: |url| files::path_of(url).map(|_| 1),
    open: |request| Ok(Box::new(Sqlite::open(request)?)),
    render,
    clean_leftovers: |request| folder::clean_leftovers(&request.scratch, &files::NAMES.temp_prefix()),
    is_temporary: |url| files::path_of(url).is_ok_and(|p| p.is_none()),
    no_limit: None,
    no_sessions: None,
    native_report: None,
    levels: Vec::new,
    no_levels: None,
    level_settings: &[],
};

struct Sqlite {
    connector: Connector,
    facts: Facts,
    counters: Arc<LogCounters>,
    page_size: u64,
    /// Whether the user set the size of a session's cache.
    cache_given: bool,
    /// Workload tables known to be complete.
    loaded: LoadedTables,
    /// Whether the user set `wal_autocheckpoint`.
    log_given: bool,
    /// The database file, opened outside SQLite. Closing any descriptor of it releases SQLite's locks, so this one is
    /// closed after all connections (sqlite.org/howtocorrupt.html, 2.2).
    file: Arc<File>,
}

/// The error of `what` in session `db`.
fn failed<'a>(db: &'a Connection, what: &'a str) -> impl FnOnce(rusqlite::Error) -> TargetError + 'a {
    move |e| match e.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy) => held_by_others(db),
        _ => session::refusal(&e).with(&format!(" ({what} failed)")),
    }
}

impl Sqlite {
    fn open(request: &OpenRequest) -> Result<Sqlite, TargetError> {
        if !request.nodes.is_empty() {
            return Err(TargetError::Usage("SQLite has no nodes: leave out --node".into()));
        }
        let settings = settings(request)?;
        let files = EmbeddedFiles::make(&files::NAMES, &files::path_of(&request.url)?, &request.scratch)?;
        let (vfs, counters) = log_counters::register()?;
        let connector = Connector { files, settings, vfs };
        let db = connector.connect(Commit::Wait)?;
        let file = Arc::new(connector.files.open()?);
        let page_size = pragma(&db, "page_size")?.parse().unwrap_or(0);
        let facts = Facts {
            block_bytes: Some(page_size),
            rows_in_primary_key: true,
            own_files: Some(OwnFiles { open: vec![Arc::clone(&file)], named: vec![connector.files.log()] }),
            empty_query: "SELECT 1",
            ..Facts::of(Runs::InProcess)
        };
        Ok(Sqlite {
            connector,
            facts,
            counters,
            page_size,
            cache_given: request.settings.contains_key("cache_size"),
            loaded: LoadedTables::default(),
            log_given: request.settings.contains_key("wal_autocheckpoint"),
            file,
        })
    }
}

/// A cache for the inner index pages of `data_bytes` bytes of data (a hundredth, with pages of 1 KiB), and little else.
fn small_cache_kib(data_bytes: u64) -> u64 {
    (data_bytes / 32 / 1024).max(SMALL_CACHE_KIB)
}

impl Sqlite {
    /// Sets a session's cache: small to measure the storage, large and filled to measure the cache.
    fn ready_cache(&self, db: &Connection, work: &Work) -> Result<(), TargetError> {
        if self.cache_given {
            return Ok(());
        }
        if work.workload.has(Instrument::Device) {
            set_pragma(db, "cache_size", &format!("-{}", small_cache_kib(work.params.size_bytes())))?;
        }
        if work.workload.has(Instrument::CacheHit) {
            set_pragma(db, "cache_size", &format!("-{LARGE_CACHE_KIB}"))?;
            for table in &work.workload.tables {
                // An aggregate over the last column reads every page.
                let last = table.columns.last().map_or("id", |c| &c.name);
                let sql =
                    format!("SELECT sum(length(\"{last}\")) FROM {}", KNOWLEDGE.dialect.table_name(work, &table.name));
                db.query_row(&sql, [], |_| Ok(())).map_err(failed(db, "filling the cache"))?;
            }
        }
        Ok(())
    }
}

/// A statement as SQLite gets it.
///
/// For an UPDATE of several rows that can fail, SQLite copies each changed page to a statement journal, a temporary file beyond
/// 64 KiB, to undo that statement alone (<https://www.sqlite.org/tempfiles.html>). `OR FAIL` needs none: loadline undoes the
/// whole transaction.
pub(super) fn sql(work: &Work, statement: &Statement) -> String {
    let sql = KNOWLEDGE.dialect.statement(work, &statement.template);
    match sql.strip_prefix("UPDATE ") {
        Some(rest) if statement.effect.rows() > Some(1) => format!("UPDATE OR FAIL {rest}"),
        _ => sql,
    }
}

fn render(work: &Work) -> Vec<Rendered> {
    let (mode, _) = synchronous(work.program.commit);
    let log =
        checkpoint::log_pages(work, PAGE_SIZE).map_or(String::new(), |n| format!("; PRAGMA wal_autocheckpoint = {n}"));
    let session = Rendered::new("session", format!("PRAGMA journal_mode = WAL; PRAGMA synchronous = {mode}{log}"));
    let begin = if work.program.writes() { "BEGIN IMMEDIATE" } else { "BEGIN" };
    in_process(work, &KNOWLEDGE.dialect, Some(session), begin, |s| sql(work, s))
}

#[cfg(test)]
mod tests;
