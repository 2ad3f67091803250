//! A job's connection to SQLite.

use std::sync::Arc;
use std::time::Duration;

use loadline_workload::Arg;
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, ErrorCode};

use super::data_counters::Share;
use super::failed;
use super::log_counters::LogCounters;
use crate::error::TargetError;
use crate::session::{Canceller, ClientSession};

/// How a job waits for the writer, in words.
pub(super) const WAIT_DESCRIPTION: &str =
    "a job that finds the writer busy looks again after 50 µs, then ever later up to 1 ms, for at most 60 s";

const FIRST_WAIT_US: u64 = 50;
const LONGEST_WAIT_US: u64 = 1000;
const GIVE_UP_AFTER: i32 = 60_000;

/// SQLite asks this when another connection writes. SQLite's own `busy_timeout` sleeps up to
/// 100 ms between looks, during which the writer is free most of the time.
pub(super) fn wait_for_writer(looks: i32) -> bool {
    let us = FIRST_WAIT_US << u32::try_from(looks).unwrap_or(0).min(10);
    std::thread::sleep(Duration::from_micros(us.min(LONGEST_WAIT_US)));
    looks < GIVE_UP_AFTER
}

pub(super) struct SqliteSession {
    // Raw statements would borrow the connection: SQL texts and SQLite's statement cache serve.
    db: Connection,
    statements: Vec<String>,
    counters: Arc<LogCounters>,
    share: Share,
}

impl SqliteSession {
    pub(super) fn new(db: Connection, statements: &[String], counters: Arc<LogCounters>) -> Result<Self, TargetError> {
        db.set_prepared_statement_cache_capacity(statements.len() + 8);
        for sql in statements {
            db.prepare_cached(sql).map_err(failed("preparing a statement"))?;
        }
        Ok(SqliteSession { db, statements: statements.to_vec(), counters, share: Share::default() })
    }

    fn simple(&mut self, sql: &str) -> Result<(), TargetError> {
        let mut statement = self.db.prepare_cached(sql).map_err(|e| self.error(&e))?;
        statement.raw_execute().map(|_| ()).map_err(|e| self.error(&e))
    }

    fn error(&self, e: &rusqlite::Error) -> TargetError {
        match e.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => TargetError::Lost("the session was cancelled".into()),
            Some(ErrorCode::DiskFull) => TargetError::Statement(
                "the disk under the database is full: free some space or choose another place".into(),
            ),
            Some(ErrorCode::DatabaseBusy) => TargetError::Statement("the writer stayed busy for 60 s".into()),
            _ => TargetError::Statement(format!("SQLite: {e}")),
        }
    }
}

impl Drop for SqliteSession {
    fn drop(&mut self) {
        self.share.add(&self.db, &self.counters.data);
    }
}

impl ClientSession for SqliteSession {
    fn begin(&mut self) -> Result<(), TargetError> {
        // The write lock is taken at once: a read lock that must become a write lock would fail
        // whenever another job has written in between.
        self.simple("BEGIN IMMEDIATE")
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
        let rows = prepared.raw_execute().map(|n| n as u64).map_err(|e| self.error(&e))?;
        drop(prepared);
        self.share.statement_done(&self.db, &self.counters.data);
        Ok(rows)
    }

    fn commit(&mut self) -> Result<(), TargetError> {
        self.simple("COMMIT")
    }

    fn rollback(&mut self) -> Result<(), TargetError> {
        if self.db.is_autocommit() { Ok(()) } else { self.simple("ROLLBACK") }
    }

    fn publish_counters(&mut self) -> Result<(), TargetError> {
        self.share.add(&self.db, &self.counters.data);
        Ok(())
    }

    fn canceller(&self) -> Canceller {
        let handle = self.db.get_interrupt_handle();
        Canceller::new(move || handle.interrupt())
    }
}
