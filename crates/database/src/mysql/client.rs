//! The client driver: prepared statements over the wire, with as few writes and reads as possible.

use loadline_workload::{Arg, Statement};

use super::knowledge::KNOWLEDGE;
use super::loading;
use super::protocol;
use super::server::Mysql;
use super::wire::{Connection, Prepared};
use crate::error::TargetError;
use crate::loading::Batch;
use crate::role::{Canceller, ClientDriver, ClientSession};
use crate::work::Work;

/// Isolation level of jobs that read and change rows, as on other databases. Under the default here,
/// REPEATABLE READ, a transaction fails in MariaDB 11.6 and newer (`innodb_snapshot_isolation`) if it changes
/// a row that another one changed since its first read.
pub(super) fn isolation(work: &Work) -> Option<&'static str> {
    work.program.reads_and_writes().then_some("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
}

struct MysqlClientSession {
    connection: Connection,
    statements: Vec<Prepared>,
    /// BEGIN is due: it is sent with the next statement.
    pending: bool,
    /// A transaction is open at the server.
    open: bool,
    work: Work,
}

impl ClientDriver for Mysql {
    fn client_session(&self, work: &Work, job: u32) -> Result<Box<dyn ClientSession>, TargetError> {
        let mut connection = self.job_session(work, job)?;
        if let Some(isolation) = isolation(work) {
            connection.run(isolation)?;
        }
        let all = work.program.statements.iter();
        let sql = |s: &Statement| KNOWLEDGE.dialect.statement(work, &s.template);
        let mut prepare = |s: &Statement| connection.prepare(&sql(s)).map_err(|e| e.at(&s.place));
        let statements = all.map(&mut prepare).collect::<Result<_, _>>()?;
        let work = work.clone();
        Ok(Box::new(MysqlClientSession { connection, statements, pending: false, open: false, work }))
    }
}

impl MysqlClientSession {
    #[inline]
    fn put(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u16, TargetError> {
        let Some(prepared) = self.statements.get_mut(statement) else {
            self.connection.out.clear();
            return Err(TargetError::Usage(format!("the program has no statement number {statement}")));
        };
        self.connection.put_execute(prepared, args);
        Ok(prepared.columns)
    }
}

impl ClientSession for MysqlClientSession {
    fn begin(&mut self) -> Result<(), TargetError> {
        self.pending = true;
        Ok(())
    }

    /// Sends a pending BEGIN and the statement in one write.
    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        let begins = std::mem::take(&mut self.pending);
        if begins {
            protocol::query(&mut self.connection.out, "BEGIN");
            self.open = true;
        }
        let columns = self.put(statement, args)?;
        self.connection.send()?;
        let begun = if begins { self.connection.read_ok() } else { Ok(0) };
        // Read both answers, even if the first is an error.
        let rows = match begun {
            Err(e) if e.is_lost() => return Err(e),
            _ => self.connection.read_answer(columns),
        };
        begun.and(rows)
    }

    fn bulk(&mut self, table: usize, first: i64, rows: u32) -> Result<u64, TargetError> {
        if std::mem::take(&mut self.pending) {
            self.connection.run("BEGIN")?;
            self.open = true;
        }
        let table = self.work.table(table)?;
        loading::add(&mut self.connection, &self.work, table, &[Batch::of_bulk(first, rows)])
    }

    fn commit(&mut self) -> Result<(), TargetError> {
        self.pending = false;
        protocol::query(&mut self.connection.out, "COMMIT");
        self.connection.send()?;
        self.connection.read_ok()?;
        self.open = false;
        Ok(())
    }

    /// One write, one read. The server answers once, after the commit, so the end of the statement is
    /// unknown.
    fn execute_and_commit(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<(u64, Option<u64>), TargetError> {
        if self.pending || self.open {
            let rows = self.execute(statement, args)?;
            let done = loadline_storage::now_ns();
            self.commit()?;
            return Ok((rows, Some(done)));
        }
        let columns = self.put(statement, args)?;
        self.connection.send()?;
        Ok((self.connection.read_answer(columns)?, None))
    }

    fn rollback(&mut self) -> Result<(), TargetError> {
        self.pending = false;
        if std::mem::take(&mut self.open) {
            self.connection.run("ROLLBACK")?;
        }
        Ok(())
    }

    fn wait_without_limit(&mut self) -> Result<(), TargetError> {
        self.connection.wait_with(None)
    }

    fn canceller(&self) -> Canceller {
        self.connection.canceller.clone()
    }
}
