//! The client driver: prepared statements over the wire, as few writes and reads as there can be.

use std::sync::Arc;

use loadline_workload::Arg;

use super::connect::{self, Door};
use super::protocol;
use super::render;
use super::wire::{Connection, Prepared};
use crate::error::TargetError;
use crate::session::{Canceller, ClientSession};
use crate::work::Work;

/// A job's session.
pub(super) struct Client {
    connection: Connection,
    door: Arc<Door>,
    statements: Vec<Prepared>,
    /// A transaction has begun that the server does not know of yet.
    pending: bool,
    /// A transaction is open at the server.
    open: bool,
}

impl Client {
    /// Opens a job's session and prepares the program's statements.
    pub(super) fn open(door: &Arc<Door>, work: &Work) -> Result<Client, TargetError> {
        let mut connection = door.connect()?;
        let texts = work.program.statements.iter().map(|s| render::statement(work, &s.template));
        let statements = texts.map(|sql| connection.prepare(&sql)).collect::<Result<_, _>>()?;
        Ok(Client { connection, door: Arc::clone(door), statements, pending: false, open: false })
    }

    #[inline]
    fn put(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<(), TargetError> {
        match self.statements.get_mut(statement) {
            Some(prepared) => {
                self.connection.put_execute(prepared, args);
                Ok(())
            }
            None => {
                self.connection.out.clear();
                Err(TargetError::Usage(format!("the program has no statement number {statement}")))
            }
        }
    }
}

impl ClientSession for Client {
    #[inline]
    fn begin(&mut self) -> Result<(), TargetError> {
        self.pending = true;
        Ok(())
    }

    /// BEGIN goes along with the first statement, in one write.
    #[inline]
    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        let begins = std::mem::take(&mut self.pending);
        if begins {
            protocol::query(&mut self.connection.out, "BEGIN");
            self.open = true;
        }
        self.put(statement, args)?;
        self.connection.send()?;
        let begun = if begins { self.connection.read_ok() } else { Ok(0) };
        // Both answers are read, whatever the first says.
        let rows = match begun {
            Err(e @ TargetError::Lost(_)) => return Err(e),
            _ => self.connection.read_ok(),
        };
        begun.and(rows)
    }

    #[inline]
    fn commit(&mut self) -> Result<(), TargetError> {
        self.pending = false;
        protocol::query(&mut self.connection.out, "COMMIT");
        self.connection.send()?;
        self.connection.read_ok()?;
        self.open = false;
        Ok(())
    }

    /// One write, one read. The server answers once, after the commit: when the statement was done
    /// is not seen.
    #[inline]
    fn execute_and_commit(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<(u64, Option<u64>), TargetError> {
        if self.pending || self.open {
            let rows = self.execute(statement, args)?;
            let done = crate::clock::now_ns();
            self.commit()?;
            return Ok((rows, Some(done)));
        }
        self.put(statement, args)?;
        self.connection.send()?;
        Ok((self.connection.read_ok()?, None))
    }

    fn rollback(&mut self) -> Result<(), TargetError> {
        self.pending = false;
        if std::mem::take(&mut self.open) {
            protocol::query(&mut self.connection.out, "ROLLBACK");
            self.connection.send()?;
            self.connection.read_ok()?;
        }
        Ok(())
    }

    fn canceller(&self) -> Canceller {
        connect::canceller(&self.door, &self.connection)
    }
}
