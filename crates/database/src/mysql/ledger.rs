//! Commits of loadline's own sessions in the server's counters, and how the jobs commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use loadline_model::Driver;

use super::wire::Connection;
use crate::error::TargetError;
use crate::work::Work;

/// Shared by all sessions of a target.
#[derive(Debug, Clone)]
pub(super) struct Ledger(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// `Handler_commit` of sessions that are not jobs'.
    handler: AtomicU64,
    /// `Com_commit` of the same sessions.
    explicit: AtomicU64,
    /// Whether the jobs send COMMIT, or leave it to autocommit.
    jobs_send_commit: AtomicBool,
    /// Whether the jobs' transactions change rows.
    jobs_write: AtomicBool,
    /// The current `innodb_flush_log_at_trx_commit`, a global setting: whether commits wait for the log.
    flush: AtomicU8,
    /// Whether the server writes a binary log, which commits like an engine of its own.
    binlog: bool,
    /// Whether the server is a node of a Galera cluster.
    galera: bool,
}

impl Ledger {
    /// Of a server with these properties ([`State`]).
    pub(super) fn new(flush: u8, binlog: bool, galera: bool) -> Ledger {
        Ledger(Arc::new(State { flush: flush.into(), binlog, galera, ..State::default() }))
    }

    /// Adds the commits of `c`. Call it once, at the end of each session that is not a job's. Exact: the
    /// server keeps the same counters per session.
    pub(super) fn book(&self, c: &mut Connection) -> Result<(), TargetError> {
        for (name, value) in c.shown("SESSION STATUS", ["Handler_commit", "Com_commit"])? {
            let counter = if name == "Handler_commit" { &self.0.handler } else { &self.0.explicit };
            counter.fetch_add(value.parse().unwrap_or(0), Relaxed);
        }
        Ok(())
    }

    /// How the transactions of `work` by `driver` end from now on. Each is one statement, which reads or writes, or sends
    /// COMMIT, as a procedure always does.
    pub(super) fn jobs_run(&self, work: &Work, driver: Driver) {
        let sends = driver == Driver::Database || !work.program.is_single_statement();
        self.0.jobs_send_commit.store(sends, Relaxed);
        self.0.jobs_write.store(work.program.writes(), Relaxed);
    }

    pub(super) fn flush(&self) -> u8 {
        self.0.flush.load(Relaxed)
    }

    pub(super) fn set_flush(&self, value: u8) {
        self.0.flush.store(value, Relaxed);
    }

    /// The server's counter of the jobs' commits, loadline's own share of it, and by how much it grows with each commit.
    /// `Handler_commit` also counts each statement inside a transaction, and counts a change twice with a binary log, to
    /// which a read writes nothing; `Com_commit` counts no autocommit. (Measured on MariaDB 10.11 and MySQL 8.0.33.)
    ///
    /// In a Galera cluster `Handler_commit` also counts what the node applies of others, twice, `Com_commit` does not, and
    /// `wsrep_local_commits` counts the changes that began at the node (10.11: 5 single updates at one node added 5, 0 and 5
    /// there, and 10, 0 and 0 at another). It has no counter per session; loadline itself changes nothing while jobs run.
    pub(super) fn commits(&self) -> (&'static str, u64, u64) {
        let State { handler, explicit, jobs_send_commit, jobs_write, binlog, galera, .. } = &*self.0;
        let writes = jobs_write.load(Relaxed);
        if jobs_send_commit.load(Relaxed) {
            ("Com_commit", explicit.load(Relaxed), 1)
        } else if *galera && writes {
            ("wsrep_local_commits", 0, 1)
        } else {
            ("Handler_commit", handler.load(Relaxed), 1 + u64::from(*binlog && writes))
        }
    }
}
