//! The in-database driver: a transaction program as one PL/pgSQL procedure with COMMIT in its loop, and sessions that CALL it once per
//! slice.
//!
//! PL/pgSQL initialises every expression again in each transaction, at about 0.5 µs each. So the loop only stores two
//! timestamps per transaction, in arrays that are changed in place; loadline evaluates them. (With sums and histograms
//! in the loop, 20 expressions took 10 µs of each transaction.) A transaction starts when the one before it ends.

use std::sync::Arc;

use loadline_workload::{Arg, Commit, JobStart, Kernel, Pool};

use super::knowledge::{KNOWLEDGE, Version};
use super::protocol::{self, BYTEA, INT8, TIMESTAMPTZ};
use super::wire::Connection;
use crate::error::TargetError;
use crate::names::own;
use crate::procedure::{self, Body, arguments};
use crate::role::{Canceller, DatabaseSession, Slice};
use crate::server_clock::{Moments, ServerClock};
use crate::work::Work;

/// The server's clock: in binary form µs since 2000.
const CLOCK: &str = "clock_timestamp()";

/// Types of the parameters `$1` … `$6` of [`call`].
const CALL_TYPES: [u32; 6] = [INT8, INT8, INT8, BYTEA, TIMESTAMPTZ, INT8];

/// Results of a call after the next sequence number: the start of the first transaction, and arrays with the commit start and
/// the end of each.
const RESULTS: [&str; 3] = ["r_start timestamptz", "r_commit timestamptz[]", "r_end timestamptz[]"];

pub(super) fn name(work: &Work) -> String {
    KNOWLEDGE.dialect.full_name(&own(&work.workload, "run"))
}

/// The statement that runs a slice. Parameters: the job's start values (first key, first new key, first draw), pool, end
/// time, next sequence number.
fn call(work: &Work) -> String {
    let nulls = vec!["NULL"; RESULTS.len()].join(", ");
    format!("CALL {}($1, $2, $3, $4, $5, $6, {nulls})", name(work))
}

/// The statements that create the procedure.
pub(super) fn create(work: &Work, version: Version) -> String {
    let name = name(work);
    let results = RESULTS.map(|r| format!("  INOUT {r}")).join(",\n");
    let Body { declarations: declare, text: body, counted, .. } = procedure::body(work, &KNOWLEDGE.dialect, 2);
    let next = if counted { "cardinality(r_end) + 1" } else { "1" };
    let commit = match work.program.commit {
        Commit::Wait => "COMMIT;",
        Commit::Nowait => "COMMIT; -- the session has synchronous_commit = off",
    };
    let flush = KNOWLEDGE.texts.flush_in_procedure.at(version).map_or(String::new(), |sql| format!("  {sql}\n"));
    let create = [("name", name.as_str()), ("results", &results), ("declare", &declare)];
    let create = KNOWLEDGE.routines.text(
        "run",
        // The user's statements last: nothing is put into them.
        &[&create[..], &[("clock", CLOCK), ("commit", commit), ("next", next), ("flush", &flush), ("body", &body)]]
            .concat(),
    );
    let fibonacci = work.program.computes(Kernel::Fibonacci);
    let object = KNOWLEDGE.dialect.full_name("fibonacci");
    let routine = fibonacci.then(|| KNOWLEDGE.routines.text("fibonacci", &[("fibonacci-name", &object)]));
    routine.unwrap_or_default() + &create
}

/// Setting in which [`overhead`] returns its result.
pub(super) const OVERHEAD: &str = "loadline.overhead_ns";

/// A block that runs the procedure's loop without statements `iterations` times and stores the time of an iteration
/// without its (empty) commit, in ns, in the setting [`OVERHEAD`]. The commit is needed because PL/pgSQL initialises the
/// loop's expressions again after each.
pub(super) fn overhead(iterations: u32) -> String {
    KNOWLEDGE
        .routines
        .text("overhead", &[("clock", CLOCK), ("setting", OVERHEAD), ("iterations", &iterations.to_string())])
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
