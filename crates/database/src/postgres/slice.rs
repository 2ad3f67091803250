//! A session of the in-database driver: one CALL per slice, and the two clocks.

use std::sync::Arc;

use loadline_workload::{Arg, JobStart, Pool};

use super::procedure::{CALL_TYPES, CLOCK, call};
use super::protocol;
use super::wire::Connection;
use crate::error::TargetError;
use crate::procedure::arguments;
use crate::role::{Canceller, DatabaseSession, Slice};
use crate::server_clock::{Moments, ServerClock};
use crate::work::Work;

/// A job's session.
pub(super) struct PgDatabaseSession {
    connection: Connection,
    pool: Arc<Pool>,
    start: JobStart,
    next: i64,
    clock: ServerClock,
}

impl PgDatabaseSession {
    /// Prepares the session of `job`.
    pub(super) fn open(mut connection: Connection, work: &Work, job: u32) -> Result<PgDatabaseSession, TargetError> {
        let (call, clock) = (call(work), format!("SELECT {CLOCK}"));
        connection.prepare(&[("call", &call, &CALL_TYPES), ("clock", &clock, &[])])?;
        let clock = ServerClock::measure(&mut || ask(&mut connection), 8)?;
        connection.publish()?;
        connection.wait_with(None)?;
        let (pool, start) = (work.pool_of_job(job), work.start(job));
        Ok(PgDatabaseSession { connection, pool, start, next: 0, clock })
    }
}

impl DatabaseSession for PgDatabaseSession {
    fn run_slice(&mut self, until_ns: u64) -> Result<Slice, TargetError> {
        let connection = &mut self.connection;
        self.clock.refresh(&mut || ask(connection))?;
        let until_us = self.clock.server_us(until_ns);
        let values = arguments(&self.start, &self.pool, until_us, self.next);
        // The transaction that ends the CALL, after the last COMMIT, counts as loadline's own.
        let row = call_own(connection, "call", values.into_iter(), SliceRow::parse)?;
        self.connection.book();
        let row = row.ok_or_else(|| {
            TargetError::Statement("the procedure returned a row that cannot be parsed: run `loadline clean`".into())
        })?;
        self.next = row.next;
        self.clock.slice(row.moments())
    }

    fn canceller(&self) -> Canceller {
        self.connection.canceller.clone()
    }
}

/// The result of the procedure: start of the first transaction, commit start and end of each, µs since 2000.
pub(super) struct SliceRow {
    next: i64,
    start: i64,
    commit: Vec<i64>,
    end: Vec<i64>,
}

impl SliceRow {
    pub(super) fn parse(body: &[u8]) -> Option<SliceRow> {
        let mut columns = protocol::columns(body);
        let mut number = || columns.next()??.try_into().ok().map(i64::from_be_bytes);
        let (next, start) = (number()?, number()?);
        let mut moments = || protocol::timestamps(columns.next()??);
        let row = SliceRow { next, start, commit: moments()?, end: moments()? };
        (!row.end.is_empty() && row.commit.len() == row.end.len()).then_some(row)
    }

    /// Start, commit start and end of each transaction, which starts when the one before it ends.
    fn moments(&self) -> impl ExactSizeIterator<Item = Moments> {
        let mut start = self.start;
        self.commit.iter().zip(&self.end).map(move |(c, e)| [std::mem::replace(&mut start, *e), *c, *e])
    }
}

/// Asks for the server's time with the prepared statement `clock`.
fn ask(connection: &mut Connection) -> Result<Option<i64>, TargetError> {
    call_own(connection, "clock", std::iter::empty(), |body| {
        protocol::columns(body).next()??.try_into().ok().map(i64::from_be_bytes)
    })
}

/// Runs a prepared statement as loadline's own work, and parses its row.
fn call_own<'a, T>(
    connection: &mut Connection,
    name: &str,
    values: impl ExactSizeIterator<Item = Arg<'a>>,
    parse: impl Fn(&[u8]) -> Option<T>,
) -> Result<Option<T>, TargetError> {
    connection.call(name, true, values);
    connection.send_and_sync()?;
    let mut row = None;
    connection.until_own_ready(|tag, body| {
        if tag == b'D' {
            row = parse(body);
        }
    })?;
    Ok(row)
}
