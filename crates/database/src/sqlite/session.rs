//! A job's connection to SQLite.

use std::cell::Cell;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use loadline_workload::{Arg, Effect};
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, ErrorCode};

use super::data_counters::SessionCounts;
use super::loading::insert;
use super::{failed, sql};
use crate::embedded::counters::{JOB, LogCounters};
use crate::error::{Cause, Refusal, TABLE_GONE, TargetError};
use crate::loading::Batch;
use crate::role::{Canceller, ClientSession};
use crate::work::Work;

pub(super) const WAIT_DESCRIPTION: &str =
    "a job that finds the writer busy retries after 50 µs, then at growing intervals of up to 1 ms, for at most 60 s";

const FIRST_WAIT_US: u64 = 50;
const MAX_WAIT_US: u64 = 1000;
/// Retries of a timed job, whose writer may be one of many other jobs: 60 s.
const JOB_RETRIES: i32 = 60_000;
/// Retries of all others, for whom only another process can be in the way: 5 s, in which nothing else is heard.
const RETRIES: i32 = 5_000;
/// Retries within a checkpoint that waits for others, about 100 ms: behind it all writers wait.
const CHECKPOINT_RETRIES: i32 = 100;

thread_local! {
    static MOST: Cell<i32> = const { Cell::new(RETRIES) };
}

/// SQLite calls this when another connection writes. SQLite's own `busy_timeout` sleeps up to 100 ms between retries,
/// while the writer is free most of that time.
pub(super) fn wait_for_writer(retries: i32) -> bool {
    let us = FIRST_WAIT_US << u32::try_from(retries).unwrap_or(0).min(10);
    let begin = loadline_storage::now_ns();
    std::thread::sleep(Duration::from_micros(us.min(MAX_WAIT_US)));
    let waited = loadline_storage::now_ns().saturating_sub(begin);
    JOB.with_borrow(|counters| {
        if let Some(counters) = counters {
            counters.writer_wait_ns.fetch_add(waited, Ordering::Relaxed);
        }
    });
    retries < MOST.get()
}

/// The error of a session that may not write, because another process writes to the database or keeps a transaction open.
pub(super) fn held_by_others(db: &Connection) -> TargetError {
    let path = db.path().unwrap_or_default();
    let who = holder(&[path.to_owned(), format!("{path}-shm")]).map_or(String::new(), |who| format!(" ({who})"));
    TargetError::Refused(format!(
        "another process{who} holds the lock of SQLite's writer in {path}: end its transaction, or that process"
    ))
}

/// The process that has locked a part of one of these files for writing, as the kernel lists it (proc_locks(5)).
fn holder(files: &[String]) -> Option<String> {
    let inodes: Vec<String> = files.iter().filter_map(|f| Some(fs::metadata(f).ok()?.ino().to_string())).collect();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let [_, _, _, kind, pid, file, ..] = line.split_whitespace().collect::<Vec<_>>()[..] else { return None };
        let held = kind == "WRITE" && inodes.iter().any(|inode| file.rsplit(':').next() == Some(inode));
        let name = if held { fs::read_to_string(format!("/proc/{pid}/comm")).ok()? } else { return None };
        (pid != std::process::id().to_string()).then(|| format!("{}, process {pid}", name.trim()))
    })
}

/// Runs `work`, in which this thread waits for others no longer than [`CHECKPOINT_RETRIES`].
pub(super) fn waiting_briefly<T>(work: impl FnOnce() -> T) -> T {
    let most = MOST.replace(CHECKPOINT_RETRIES);
    let done = work();
    MOST.set(most);
    done
}

pub(super) struct SqliteSession {
    // Prepared statements would borrow the connection, so SQL texts and rusqlite's statement cache are used.
    db: Connection,
    statements: Vec<String>,
    work: Work,
    writes: bool,
    counters: Arc<LogCounters>,
    counts: SessionCounts,
    timed: bool,
    /// Closed after the connection: see `Sqlite::file`.
    _file: Arc<File>,
}

impl SqliteSession {
    pub(super) fn new(
        db: Connection,
        work: &Work,
        counters: Arc<LogCounters>,
        file: Arc<File>,
    ) -> Result<Self, TargetError> {
        let statements: Vec<String> = work.program.statements.iter().map(|s| sql(work, s)).collect();
        db.set_prepared_statement_cache_capacity(statements.len() + 8);
        for (text, statement) in statements.iter().zip(&work.program.statements) {
            // A statement that creates or drops an object cannot be prepared in advance.
            if statement.effect != Effect::Command {
                let prepared = db.prepare_cached(text).map_err(failed(&db, "preparing a statement"));
                prepared.map_err(|e| e.at(&statement.place))?;
            }
        }
        let writes = work.program.writes();
        JOB.set(Some(Arc::clone(&counters)));
        Ok(SqliteSession {
            db,
            statements,
            work: work.clone(),
            writes,
            counters,
            counts: SessionCounts::default(),
            timed: false,
            _file: file,
        })
    }

    fn simple(&mut self, sql: &str) -> Result<(), TargetError> {
        let mut statement = self.db.prepare_cached(sql).map_err(|e| self.error(&e))?;
        statement.raw_execute().map(|_| ()).map_err(|e| self.error(&e))
    }

    fn error(&self, e: &rusqlite::Error) -> TargetError {
        match e.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => TargetError::Lost("the session was cancelled".into()),
            // Of many jobs one may wait that long for the others.
            Some(ErrorCode::DatabaseBusy) if self.timed => {
                TargetError::Statement("the writer stayed busy for 60 s".into())
            }
            Some(ErrorCode::DatabaseBusy) => held_by_others(&self.db),
            Some(ErrorCode::DiskFull) => {
                refusal(e).with(": the disk under the database is full: free some space or choose another place")
            }
            // SQLite has no code of its own for it.
            Some(ErrorCode::Unknown) if e.to_string().contains("no such table") => refusal(e).with(TABLE_GONE),
            _ => refusal(e),
        }
    }
}

pub(super) fn refusal(e: &rusqlite::Error) -> TargetError {
    let cause = match e.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Cause::FullDisk,
        Some(ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => Cause::Privilege,
        Some(ErrorCode::TooBig | ErrorCode::OutOfMemory) => Cause::Limit,
        _ => Cause::Other,
    };
    let code = e.sqlite_error().map(|e| e.extended_code.to_string()).unwrap_or_default();
    Refusal { cause, code, text: format!("SQLite: {e}") }.into()
}

impl Drop for SqliteSession {
    fn drop(&mut self) {
        self.counts.add(&self.db, &self.counters.data);
    }
}

/// Fetches all columns of all rows and counts the rows.
fn fetch(statement: &mut rusqlite::Statement<'_>) -> rusqlite::Result<u64> {
    let columns = statement.column_count();
    let (mut rows, mut n) = (statement.raw_query(), 0);
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            std::hint::black_box(row.get_ref(column)?);
        }
        n += 1;
    }
    Ok(n)
}

impl ClientSession for SqliteSession {
    fn begin(&mut self) -> Result<(), TargetError> {
        // Takes the write lock at once: upgrading a read lock fails if another job has written in between.
        self.simple(if self.writes { "BEGIN IMMEDIATE" } else { "BEGIN" })
    }

    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        let sql = self
            .statements
            .get(statement)
            .ok_or_else(|| TargetError::Statement(format!("no statement {statement}")))?;
        let mut prepared = self.db.prepare_cached(sql).map_err(|e| self.error(&e))?;
        for (i, arg) in args.iter().enumerate() {
            let value = match arg {
                Arg::Int(n) => ToSqlOutput::from(*n),
                Arg::Bytes(b) => ToSqlOutput::from(*b),
            };
            prepared.raw_bind_parameter(i + 1, value).map_err(|e| self.error(&e))?;
        }
        let done =
            if prepared.column_count() == 0 { prepared.raw_execute().map(|n| n as u64) } else { fetch(&mut prepared) };
        drop(prepared);
        self.counts.statement_done(&self.db, &self.counters.data);
        done.map_err(|e| self.error(&e))
    }

    fn bulk(&mut self, table: usize, first: i64, rows: u32) -> Result<u64, TargetError> {
        let table = self.work.table(table)?;
        let batch = Batch::of_bulk(first, rows);
        insert(&self.db, &self.work, table, &batch).map_err(|e| self.error(&e))?;
        self.counts.add(&self.db, &self.counters.data);
        Ok(batch.len())
    }

    fn only_reads(&self) -> bool {
        !self.writes
    }

    fn commit(&mut self) -> Result<(), TargetError> {
        self.simple("COMMIT")
    }

    fn rollback(&mut self) -> Result<(), TargetError> {
        if self.db.is_autocommit() { Ok(()) } else { self.simple("ROLLBACK") }
    }

    fn publish_counters(&mut self) -> Result<(), TargetError> {
        self.counts.add(&self.db, &self.counters.data);
        Ok(())
    }

    fn wait_without_limit(&mut self) -> Result<(), TargetError> {
        self.timed = true;
        MOST.set(JOB_RETRIES);
        Ok(())
    }

    fn canceller(&self) -> Canceller {
        let handle = self.db.get_interrupt_handle();
        Canceller::new(move || handle.interrupt())
    }
}
