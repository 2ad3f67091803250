//! The client driver: prepared statements, with as few writes and reads as possible.

use std::iter;

use bytes::BytesMut;
use loadline_workload::Arg;
use postgres_protocol::message::frontend;

use super::knowledge::{KNOWLEDGE, message};
use super::protocol;
use super::wire::{Connection, FLUSH};
use super::{schema, sql, text};
use crate::error::TargetError;
use crate::loading::Batch;
use crate::role::{Canceller, ClientSession, Results, TextDone};
use crate::work::Work;

/// The commit start is measured in every 7th single-statement transaction: it costs a wake-up of the client, up to a tenth of the
/// throughput on two CPUs. The number is prime, so that it is not in step with a cycle of rows.
const SAMPLE: u32 = 7;

/// Names of the prepared statements that begin and end a transaction.
const ENDS: [(&str, &str); 3] = [("b", "BEGIN"), ("c", "COMMIT"), ("r", "ROLLBACK")];

/// A statement as it is sent each time it runs: by the name of the prepared one, or prepared anew.
struct Sent {
    name: String,
    parse: Vec<u8>,
}

impl Sent {
    /// The statement of this name, text and types of parameters; one without a name is prepared each time.
    fn new((name, sql, types): &(&str, &str, &[u32])) -> Result<Sent, TargetError> {
        let mut parse = BytesMut::new();
        if name.is_empty() {
            let put = frontend::parse("", sql, types.iter().copied(), &mut parse);
            put.map_err(|e| TargetError::Usage(format!("this cannot be sent to PostgreSQL: {e}")))?;
        }
        Ok(Sent { name: (*name).to_owned(), parse: parse.to_vec() })
    }

    #[inline]
    fn put<'a>(&self, connection: &mut Connection, values: impl ExactSizeIterator<Item = Arg<'a>>) {
        connection.out.extend_from_slice(&self.parse);
        connection.call(&self.name, true, values);
    }
}

pub(super) struct PgClientSession {
    connection: Connection,
    statements: Vec<Sent>,
    ends: Vec<Sent>,
    pending: bool,
    /// Transactions since the last sampled one.
    unsampled: u32,
    /// Whether the program writes: only then the commit start is measured.
    writes: bool,
    work: Work,
}

impl PgClientSession {
    /// Prepares the program's statements in the session of a job. `named`: whether the session keeps prepared statements.
    pub(super) fn open(mut connection: Connection, work: &Work, named: bool) -> Result<PgClientSession, TargetError> {
        let program = &work.program.statements;
        let name = |name: String| if named { name } else { String::new() };
        let of_program = program.iter().zip(0..).map(|(s, i)| {
            let sql = KNOWLEDGE.dialect.statement(work, &s.template);
            (name(format!("s{i}")), sql, sql::parameter_types(work, &s.template))
        });
        let of_ends = ENDS.map(|(short, sql)| (name(short.to_owned()), sql.to_owned(), Vec::new()));
        let all: Vec<_> = of_program.chain(of_ends).collect();
        let texts: Vec<_> =
            all.iter().map(|(name, sql, types)| (name.as_str(), sql.as_str(), types.as_slice())).collect();
        connection.prepare(&texts).map_err(|(at, e)| e.at(program.get(at).map_or("", |s| s.place.as_str())))?;
        let mut statements = texts.iter().map(Sent::new).collect::<Result<Vec<_>, _>>()?;
        connection.publish()?;
        let ends = statements.split_off(program.len());
        let (work, writes) = (work.clone(), work.program.writes());
        Ok(PgClientSession { connection, statements, ends, pending: false, unsampled: 0, writes, work })
    }

    #[inline]
    fn put(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<(), TargetError> {
        let Some(sent) = self.statements.get(statement) else {
            self.connection.out.clear();
            return Err(TargetError::Usage(format!("the program has no statement number {statement}")));
        };
        sent.put(&mut self.connection, args.iter().copied());
        Ok(())
    }

    /// Sends the buffer and a Sync; returns the number of rows and, if `timed`, when their tag was read (ns).
    #[inline]
    fn sync(&mut self, timed: bool) -> Result<(u64, Option<u64>), TargetError> {
        self.connection.send_and_sync()?;
        let (mut rows, mut done) = (0, None);
        // If BEGIN was sent too, its tag comes first: the last tag is the statement's.
        self.connection.until_ready(|tag, body| {
            if tag == b'C' {
                rows = protocol::rows_of_tag(body);
                done = timed.then(loadline_storage::now_ns);
            }
        })?;
        Ok((rows, done))
    }

    #[inline]
    fn put_pending_begin(&mut self) {
        if std::mem::take(&mut self.pending) {
            self.ends[0].put(&mut self.connection, iter::empty());
        }
    }
}

impl ClientSession for PgClientSession {
    #[inline]
    fn begin(&mut self) -> Result<(), TargetError> {
        self.pending = true;
        Ok(())
    }

    #[inline]
    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        self.put_pending_begin();
        self.put(statement, args)?;
        Ok(self.sync(false)?.0)
    }

    fn bulk(&mut self, table: usize, first: i64, rows: u32) -> Result<u64, TargetError> {
        if std::mem::take(&mut self.pending) {
            self.connection.query("BEGIN")?;
        }
        let table = self.work.table(table)?;
        let batch = Batch::of_bulk(first, rows);
        schema::copy(&mut self.connection, &self.work, table, std::slice::from_ref(&batch))?;
        Ok(batch.len())
    }

    /// In a transaction that never commits: under READ COMMITTED each query sees all that is committed at its start.
    fn look(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        if self.connection.is_idle() {
            self.connection.query("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")?;
        }
        self.execute(statement, args)
    }

    #[inline]
    fn commit(&mut self) -> Result<(), TargetError> {
        self.put_pending_begin();
        self.ends[1].put(&mut self.connection, iter::empty());
        self.connection.send_and_sync()?;
        let mut committed = false;
        self.connection.until_ready(|tag, body| {
            if tag == b'C' {
                // COMMIT of a failed transaction succeeds with the tag ROLLBACK.
                committed = body.starts_with(b"COMMIT");
            }
        })?;
        if committed { Ok(()) } else { Err(TargetError::Statement(message("rolled-back", &[]))) }
    }

    /// Needs one write. Of a sampled transaction a Flush before the Sync returns the statement's result before the commit begins.
    #[inline]
    fn execute_and_commit(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<(u64, Option<u64>), TargetError> {
        if self.pending {
            let rows = self.execute(statement, args)?;
            let done = loadline_storage::now_ns();
            self.commit()?;
            return Ok((rows, Some(done)));
        }
        self.put(statement, args)?;
        self.unsampled += 1;
        let sampled = self.writes && self.unsampled >= SAMPLE;
        if sampled {
            self.unsampled = 0;
            self.connection.out.extend_from_slice(FLUSH);
        }
        self.sync(sampled)
    }

    fn send_text(&mut self, text: &str, keep: Results, done: &mut TextDone) -> Result<(), TargetError> {
        let reads_only = self.work.workload.scripts.as_ref().is_some_and(|of| !of.allow_writes);
        text::send(&mut self.connection, text, keep, reads_only, done)
    }

    fn rollback(&mut self) -> Result<(), TargetError> {
        self.pending = false;
        if self.connection.is_idle() {
            return Ok(());
        }
        self.ends[2].put(&mut self.connection, iter::empty());
        self.connection.send_and_sync()?;
        self.connection.until_ready(|_, _| ())
    }

    fn publish_counters(&mut self) -> Result<(), TargetError> {
        self.connection.publish()
    }

    fn wait_without_limit(&mut self) -> Result<(), TargetError> {
        self.connection.wait_with(None)
    }

    fn canceller(&self) -> Canceller {
        self.connection.canceller.clone()
    }
}
