//! The in-database driver: a transaction program as one PL/pgSQL procedure with COMMIT in its loop, and sessions that CALL it once per
//! slice.
//!
//! PL/pgSQL initialises every expression again in each transaction, at about 0.5 µs each. So the loop only stores two
//! timestamps per transaction, in arrays that are changed in place. A transaction starts when the one before it ends.

use std::sync::Arc;

use loadline_workload::{Arg, Commit, JobStart, Kernel, Pool};

use super::knowledge::{KNOWLEDGE, message};
use super::protocol::{self, BYTEA, INT8, TIMESTAMPTZ};
use super::wire::Connection;
use crate::descriptor::Release;
use crate::error::TargetError;
use crate::names::own;
use crate::procedure::{self, Body, arguments};
use crate::role::{Canceller, DatabaseSession, Slice};
use crate::server_clock::{Moments, ServerClock};
use crate::work::Work;

/// Types of the parameters `$1` … `$6` of [`call`].
const CALL_TYPES: [u32; 6] = [INT8, INT8, INT8, BYTEA, TIMESTAMPTZ, INT8];

pub(super) fn name(work: &Work) -> String {
    KNOWLEDGE.dialect.full_name(&own(&work.workload, "run"))
}

/// The statement that runs a slice. Parameters: first key, first new key, first draw, pool, end time, next sequence number. Results: the
/// next sequence number, the start of the first transaction, and arrays with the commit start and the end of each.
fn call(work: &Work) -> String {
    format!("CALL {}($1, $2, $3, $4, $5, $6, NULL, NULL, NULL)", name(work))
}

pub(super) fn create(work: &Work, version: Release) -> String {
    let name = name(work);
    let Body { declarations: declare, text: body, counted, .. } = procedure::body(work, &KNOWLEDGE.dialect, 2);
    let next = if counted { "cardinality(r_end) + 1" } else { "1" };
    let commit = match work.program.commit {
        Commit::Wait => "COMMIT;",
        Commit::Nowait => "COMMIT; -- the session has synchronous_commit = off",
    };
    let flush = KNOWLEDGE.texts.flush_in_procedure.at(version).map_or(String::new(), |sql| format!("  {sql}\n"));
    let parts = [("name", name.as_str()), ("declare", &declare), ("commit", commit), ("next", next), ("flush", &flush)];
    // The user's statements last: nothing is put into them.
    let create = KNOWLEDGE.routines.text("run", &[&parts[..], &[("body", &body)]].concat());
    let fibonacci = work.program.computes(Kernel::Fibonacci);
    let object = KNOWLEDGE.dialect.full_name("fibonacci");
    let routine = fibonacci.then(|| KNOWLEDGE.routines.text("fibonacci", &[("fibonacci-name", &object)]));
    routine.unwrap_or_default() + &create
}

/// Setting in which [`overhead`] returns its result.
pub(super) const OVERHEAD: &str = "loadline.overhead_ns";

/// A block that runs the procedure's loop without statements `iterations` times and stores the time of an iteration without its commit,
/// ns, in the setting [`OVERHEAD`]. PL/pgSQL initialises the loop's expressions again after each commit.
pub(super) fn overhead(iterations: u32) -> String {
    KNOWLEDGE.routines.text("overhead", &[("setting", OVERHEAD), ("iterations", &iterations.to_string())])
}

pub(super) struct PgDatabaseSession {
    connection: Connection,
    pool: Arc<Pool>,
    start: JobStart,
    next: i64,
    clock: ServerClock,
}

impl PgDatabaseSession {
    pub(super) fn open(mut connection: Connection, work: &Work, job: u32) -> Result<PgDatabaseSession, TargetError> {
        let (call, clock) = (call(work), KNOWLEDGE.routines.text("ask", &[]));
        connection.prepare(&[("call", &call, &CALL_TYPES), ("clock", &clock, &[])]).map_err(|(_, e)| e)?;
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
        let row = call_own(connection, "call", values.into_iter(), parse)?;
        self.connection.book();
        let (next, moments) = row.ok_or_else(|| TargetError::Statement(message("no-moments", &[])))?;
        self.next = next;
        self.clock.slice(&moments)
    }

    fn canceller(&self) -> Canceller {
        self.connection.canceller.clone()
    }
}

/// Parses the result of the procedure: the next sequence number, and the moments of each transaction, µs since 2000. A transaction
/// starts when the one before it ends.
pub(super) fn parse(body: &[u8]) -> Option<(i64, Vec<Moments>)> {
    let mut columns = protocol::columns(body);
    let mut number = || columns.next()??.try_into().ok().map(i64::from_be_bytes);
    let (next, mut start) = (number()?, number()?);
    let mut moments = || protocol::timestamps(columns.next()??);
    let (commits, ends) = (moments()?, moments()?);
    if ends.is_empty() || commits.len() != ends.len() {
        return None;
    }
    let all = commits.into_iter().zip(ends);
    Some((next, all.map(|(commit, end)| [std::mem::replace(&mut start, end), commit, end]).collect()))
}

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
