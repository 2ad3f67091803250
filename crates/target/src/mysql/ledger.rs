//! What loadline's own sessions add to the server's commit counters, and how the jobs commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::wire::Connection;
use crate::error::TargetError;

/// Shared by all sessions of a target.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// `Handler_commit` of sessions that are no job's.
    handler: AtomicU64,
    /// `Com_commit` of the same.
    explicit: AtomicU64,
    /// Whether the jobs send COMMIT, or leave it to autocommit.
    jobs_send_commit: AtomicBool,
}

impl Ledger {
    /// Books what `c` has committed; to be called once, at the end of a session that is no job's.
    /// Exact: the server keeps the same counters by session.
    ///
    /// # Errors
    /// When the session is lost.
    pub(super) fn book(&self, c: &mut Connection) -> Result<(), TargetError> {
        let own = c.pairs("SHOW SESSION STATUS WHERE Variable_name IN ('Handler_commit', 'Com_commit')")?;
        for (name, value) in own {
            let counter = if name == "Handler_commit" { &self.0.handler } else { &self.0.explicit };
            counter.fetch_add(value.parse().unwrap_or(0), Ordering::Relaxed);
        }
        Ok(())
    }

    /// How the jobs' transactions end from now on.
    pub(super) fn jobs_send_commit(&self, yes: bool) {
        self.0.jobs_send_commit.store(yes, Ordering::Relaxed);
    }

    /// The server's counter that grows by one with each of the jobs' commits, and loadline's own
    /// share of it. `Handler_commit` also counts each statement inside a transaction; `Com_commit`
    /// counts no autocommit.
    pub(super) fn commits(&self) -> (&'static str, u64) {
        if self.0.jobs_send_commit.load(Ordering::Relaxed) {
            ("Com_commit", self.0.explicit.load(Ordering::Relaxed))
        } else {
            ("Handler_commit", self.0.handler.load(Ordering::Relaxed))
        }
    }
}
