//! The sessions of a job, one type per driver.

use std::sync::Arc;

use loadline_workload::{Arg, JobStart, Pool};

use super::block::{self, MAX_TEXT, read_clock};
use super::cluster::Oracle;
use super::knowledge::KNOWLEDGE;
use super::schema;
use super::session::{self, OraSession, number};
use crate::error::TargetError;
use crate::loading::Batch;
use crate::role::{Canceller, ClientDriver, ClientSession, DatabaseDriver, DatabaseSession, Slice, median_of_three};
use crate::server_clock::ServerClock;
use crate::work::Work;

/// A job of the client driver. A commit sent along with a statement waits as the session's parameters say. So
/// that each commit states whether it waits, it is a statement of its own, and a transaction of one statement
/// takes two round trips.
struct OraClientSession {
    session: Box<dyn OraSession>,
    canceller: Canceller,
    /// Each with whether it returns rows.
    statements: Vec<(String, bool)>,
    work: Work,
    commit: &'static str,
}

impl ClientDriver for Oracle {
    fn client_session(&self, work: &Work, job: u32) -> Result<Box<dyn ClientSession>, TargetError> {
        let (session, canceller) = self.service.job_session(work, job)?;
        let all = work.program.statements.iter();
        let statements = all.map(|s| (KNOWLEDGE.dialect.statement(work, &s.template), s.effect.reads())).collect();
        let commit = session::commit(work.program.commit);
        Ok(Box::new(OraClientSession { session, canceller, statements, work: work.clone(), commit }))
    }
}

impl ClientSession for OraClientSession {
    #[inline]
    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        match self.statements.get(statement) {
            Some((sql, true)) => Ok(self.session.query(sql, args)?.len() as u64),
            Some((sql, false)) => Ok(self.session.execute(sql, args)?),
            None => Err(TargetError::Usage(format!("the program has no statement number {statement}"))),
        }
    }

    fn bulk(&mut self, table: usize, first: i64, rows: u32) -> Result<u64, TargetError> {
        let table = self.work.table(table)?;
        Ok(schema::insert(self.session.as_mut(), &self.work, table, &Batch::of_bulk(first, rows))?)
    }

    #[inline]
    fn commit(&mut self) -> Result<(), TargetError> {
        self.session.execute(self.commit, &[])?;
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), TargetError> {
        Ok(self.session.rollback()?)
    }

    fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }
}

struct OraDatabaseSession {
    session: Box<dyn OraSession>,
    canceller: Canceller,
    block: String,
    pool: Arc<Pool>,
    start: JobStart,
    next: i64,
    clock: ServerClock,
}

impl DatabaseDriver for Oracle {
    /// A block is sent with each call and leaves nothing behind.
    fn install(&self, _: &Work) -> Result<(), TargetError> {
        Ok(())
    }

    fn database_session(&self, work: &Work, job: u32) -> Result<Box<dyn DatabaseSession>, TargetError> {
        let (mut session, canceller) = self.service.job_session(work, job)?;
        let clock = ServerClock::measure(&mut || read_clock(session.as_mut()), 8)?;
        let (pool, start) = (work.pool_of_job(job), work.start(job));
        Ok(Box::new(OraDatabaseSession { session, canceller, block: block::run(work), pool, start, next: 0, clock }))
    }

    fn overhead_ns(&self) -> Result<Option<f64>, TargetError> {
        let mut session = self.admin()?;
        let block = block::overhead(20_000);
        median_of_three(|| Ok(number(&session.call(&block, &[], &[40])?, 0)))
    }
}

impl DatabaseSession for OraDatabaseSession {
    fn run_slice(&mut self, until_ns: u64) -> Result<Slice, TargetError> {
        let session = &mut self.session;
        self.clock.refresh(&mut || read_clock(session.as_mut()))?;
        let until_us = self.clock.server_us(until_ns);
        let mut slice: Option<Slice> = None;
        loop {
            let JobStart { first_key, new_key, draw } = self.start;
            let numbers = [first_key, new_key, draw as i64, until_us, self.next].map(Arg::Int);
            let pieces = block::pieces(&self.pool).into_iter().map(Arg::Bytes);
            let args: Vec<Arg<'_>> = numbers.into_iter().chain(pieces).collect();
            let row = self.session.call(&self.block, &args, &[200, MAX_TEXT, MAX_TEXT])?;
            let (next, part) = block::parse(&row, &self.clock)?;
            if next <= self.next {
                return Err(TargetError::Statement(
                    "the in-database block ran no transaction and reported no error".into(),
                ));
            }
            self.next = next;
            slice = Some(match slice {
                None => part,
                Some(mut slice) => {
                    slice.transaction.merge(&part.transaction);
                    slice.commit.merge(&part.commit);
                    Slice { end: part.end, ..slice }
                }
            });
            if let Some(slice) = slice.take_if(|slice| slice.end.is_some()) {
                return Ok(slice);
            }
        }
    }

    fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }
}
