//! A job's connection to DuckDB.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use loadline_workload::{Arg, Effect};

use super::KNOWLEDGE;
use super::connection::{Connection, Prepared};
use super::workers::{Threads, thread_id};
use crate::embedded::counters::{JOB, LogCounters};
use crate::error::TargetError;
use crate::loading::Batch;
use crate::role::{Canceller, ClientSession};
use crate::work::Work;

enum Statement {
    Prepared(Prepared),
    /// One that creates or drops an object, which changes what prepared statements refer to.
    Text(String),
}

pub(super) struct DuckSession {
    // Before the connection, so that they are dropped first.
    begin: Prepared,
    commit: Prepared,
    statements: Vec<(Statement, bool)>,
    connection: Arc<Connection>,
    work: Work,
    writes: bool,
    open: bool,
    counters: Arc<LogCounters>,
    threads: Arc<Threads>,
    thread: Option<u32>,
}

impl DuckSession {
    pub(super) fn new(
        connection: Connection,
        work: &Work,
        counters: Arc<LogCounters>,
        threads: Arc<Threads>,
    ) -> Result<DuckSession, TargetError> {
        let prepare = |s: &loadline_workload::Statement| {
            let sql = KNOWLEDGE.dialect.statement(work, &s.template);
            if s.effect == Effect::Command {
                return Ok((Statement::Text(sql), false));
            }
            let prepared = connection.prepare(&sql).map_err(|e| e.at(&s.place))?;
            Ok((Statement::Prepared(prepared), s.effect.reads()))
        };
        let statements = work.program.statements.iter().map(prepare).collect::<Result<_, TargetError>>()?;
        Ok(DuckSession {
            begin: connection.prepare("BEGIN TRANSACTION")?,
            commit: connection.prepare("COMMIT")?,
            statements,
            connection: Arc::new(connection),
            work: work.clone(),
            writes: work.program.writes(),
            open: false,
            counters,
            threads,
            thread: None,
        })
    }
}

impl Drop for DuckSession {
    fn drop(&mut self) {
        self.threads.remove_job(self.thread);
    }
}

impl ClientSession for DuckSession {
    fn begin(&mut self) -> Result<(), TargetError> {
        self.begin.execute(&[])?;
        self.open = true;
        Ok(())
    }

    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        let missing = || TargetError::Statement(format!("no statement {statement}"));
        let (statement, reads) = self.statements.get_mut(statement).ok_or_else(missing)?;
        let prepared = match statement {
            Statement::Text(sql) => return self.connection.run_sql(sql).map(|_| 0),
            Statement::Prepared(prepared) => prepared,
        };
        let mut answer = prepared.execute(args)?;
        let data = &self.counters.data;
        if *reads {
            data.gets.fetch_add(1, Ordering::Relaxed);
            return Ok(answer.fetch());
        }
        let changed = answer.changed();
        data.changed.fetch_add(changed, Ordering::Relaxed);
        Ok(changed)
    }

    fn bulk(&mut self, table: usize, first: i64, rows: u32) -> Result<u64, TargetError> {
        let added = self.connection.append(&self.work, self.work.table(table)?, &[Batch::of_bulk(first, rows)])?;
        self.counters.data.changed.fetch_add(added, Ordering::Relaxed);
        Ok(added)
    }

    fn only_reads(&self) -> bool {
        !self.writes
    }

    fn commit(&mut self) -> Result<(), TargetError> {
        // DuckDB ends the transaction whether the commit succeeds or not.
        self.open = false;
        self.commit.execute(&[]).map(drop)
    }

    fn rollback(&mut self) -> Result<(), TargetError> {
        if !std::mem::take(&mut self.open) {
            return Ok(());
        }
        self.connection.run_sql("ROLLBACK").map(drop)
    }

    fn wait_without_limit(&mut self) -> Result<(), TargetError> {
        JOB.set(Some(Arc::clone(&self.counters)));
        self.thread = Some(thread_id());
        self.threads.add_job(thread_id());
        Ok(())
    }

    fn canceller(&self) -> Canceller {
        let connection = Arc::clone(&self.connection);
        Canceller::new(move || connection.interrupt())
    }
}
