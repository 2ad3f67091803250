//! Commits of loadline's own sessions in the server's counters, and how the jobs commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use loadline_model::Driver;

use super::wire::Connection;
use crate::error::TargetError;
use crate::work::Work;

/// Shared by all sessions of a target.
#[derive(Debug, Clone, Default)]
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
    /// Whether the server writes a binary log.
    binlog: AtomicBool,
    /// Whether the server is a node of a Galera cluster.
    galera: AtomicBool,
}

impl Ledger {
    /// Adds the commits of `c`. Call it once, at the end of each session that is not a job's. Exact: the
    /// server keeps the same counters per session.
    pub(super) fn book(&self, c: &mut Connection) -> Result<(), TargetError> {
        let own = c.pairs("SHOW SESSION STATUS WHERE Variable_name IN ('Handler_commit', 'Com_commit')")?;
        for (name, value) in own {
            let counter = if name == "Handler_commit" { &self.0.handler } else { &self.0.explicit };
            counter.fetch_add(value.parse().unwrap_or(0), Ordering::Relaxed);
        }
        Ok(())
    }

    /// How the transactions of `work` by `driver` end from now on. Each is one statement, which reads or writes, or sends
    /// COMMIT, as a procedure always does.
    pub(super) fn jobs_run(&self, work: &Work, driver: Driver) {
        let sends = driver == Driver::Database || !work.program.is_single_statement();
        self.0.jobs_send_commit.store(sends, Ordering::Relaxed);
        self.0.jobs_write.store(work.program.writes(), Ordering::Relaxed);
    }

    /// Whether the server writes a binary log, which commits like an engine of its own.
    pub(super) fn binlog(&self, on: bool) {
        self.0.binlog.store(on, Ordering::Relaxed);
    }

    /// Whether the server is a node of a Galera cluster.
    pub(super) fn galera(&self, is_node: bool) {
        self.0.galera.store(is_node, Ordering::Relaxed);
    }

    /// The server's counter of the jobs' commits, loadline's own share of it, and by how much it grows with each commit.
    /// `Handler_commit` also counts each statement inside a transaction, and counts a change twice with a binary log, to
    /// which a read writes nothing; `Com_commit` counts no autocommit. (Measured on MariaDB 10.11 and MySQL 8.0.33.)
    ///
    /// In a Galera cluster `Handler_commit` also counts what the node applies of others, twice, `Com_commit` does not, and
    /// `wsrep_local_commits` counts the changes that began at the node (10.11: 5 single updates at one node added 5, 0 and 5
    /// there, and 10, 0 and 0 at another). It has no counter per session; loadline itself changes nothing while jobs run.
    pub(super) fn commits(&self) -> (&'static str, u64, u64) {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        if is(&self.0.jobs_send_commit) {
            ("Com_commit", self.0.explicit.load(Ordering::Relaxed), 1)
        } else if is(&self.0.galera) && is(&self.0.jobs_write) {
            ("wsrep_local_commits", 0, 1)
        } else {
            let twice = is(&self.0.binlog) && is(&self.0.jobs_write);
            ("Handler_commit", self.0.handler.load(Ordering::Relaxed), 1 + u64::from(twice))
        }
    }
}
