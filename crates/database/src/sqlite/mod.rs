//! SQLite, embedded: jobs are threads, with one writer at a time.
//!
//! Redo is what SQLite writes to the WAL file. SQLite logs whole pages, so databases get pages of 1 KiB: with the
//! default of 4 KiB the smallest transaction would log 4 KiB, too much for LGWR-LAT1 (1–2 KiB). Use
//! `--setting page_size=4096` to measure the usual configuration.

mod checkpoint;
mod connect;
mod data_counters;
mod loading;
mod log_counters;
mod roles;
mod session;

use std::sync::Arc;

use loadline_workload::{Commit, Instrument, Statement};
use rusqlite::{Connection, ErrorCode};

use crate::descriptor::Embedded;
use crate::embedded::files::{EmbeddedFiles, FileNames};
use crate::embedded::knowledge::Knowledge;
use crate::embedded::{Base, Kind};
use crate::error::TargetError;
use crate::render::{Rendered, in_process};
use crate::request::OpenRequest;
use crate::work::Work;
use connect::{Connector, pragma, set_pragma, settings, synchronous};

pub(crate) static KNOWLEDGE: Embedded<Knowledge> = Embedded::new("src/sqlite.toml", include_str!("../sqlite.toml"));

/// Minimum cache of a session for workloads that measure the storage, KiB.
const SMALL_CACHE_KIB: u64 = 1024;
/// Cache of a session for workloads that measure the cache, KiB: they read about 20 MiB.
const LARGE_CACHE_KIB: u64 = 65_536;

/// Maximum size of a loading transaction in the log, bytes.
const TRANSACTION_BYTES: u64 = 64 << 20;
/// Default page size, bytes.
const PAGE_SIZE: u64 = 1024;

static NAMES: FileNames = FileNames { scheme: "sqlite", parameter: None, log: "-wal", others: &["-shm"] };

pub(crate) static KIND: Kind =
    Kind { names: &NAMES, knowledge: &KNOWLEDGE, open: |request| Ok(Box::new(Sqlite::open(request)?)), render };

/// The order of its fields is that in which they are dropped.
struct Sqlite {
    connector: Connector,
    base: Base,
}

/// The error of `what` in session `db`.
fn failed<'a>(db: &'a Connection, what: &'a str) -> impl FnOnce(rusqlite::Error) -> TargetError + 'a {
    move |e| match e.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy) => session::held_by_others(db),
        _ => session::refusal(&e).with(&format!(" ({what} failed)")),
    }
}

impl Sqlite {
    fn open(request: &OpenRequest) -> Result<Sqlite, TargetError> {
        let settings = settings(request)?;
        let path = NAMES.place(&request.url)?.database;
        let files = Arc::new(EmbeddedFiles::make(&NAMES, &path, &request.scratch)?);
        let (vfs, counters) = log_counters::register()?;
        let connector = Connector { files: Arc::clone(&files), settings: settings.all.clone(), vfs };
        let db = connector.connect(Commit::Wait)?;
        let page_size = pragma(&db, "page_size")?.parse().unwrap_or(0);
        let mut base = Base::new((&KIND, rusqlite::version()), (files, counters), settings, page_size)?;
        base.facts.rows_in_primary_key = true;
        Ok(Sqlite { connector, base })
    }
}

/// A cache for the inner index pages of `data_bytes` bytes of data (a hundredth, with pages of 1 KiB), and little else.
fn small_cache_kib(data_bytes: u64) -> u64 {
    (data_bytes / 32 / 1024).max(SMALL_CACHE_KIB)
}

impl Sqlite {
    /// Sets a session's cache: small to measure the storage, large and filled to measure the cache.
    fn ready_cache(&self, db: &Connection, work: &Work) -> Result<(), TargetError> {
        if self.base.settings.is_given("cache_size") {
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
