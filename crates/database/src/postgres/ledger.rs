//! loadline's own transactions, which the server counts like any other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Commits of loadline's own sessions (administration, probes, the tail of a procedure's call) that
/// the server's counters show by now. They are taken off `xact_commit`.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger(Arc<AtomicU64>);

impl Ledger {
    /// Enters `commits`.
    pub(super) fn add(&self, commits: u64) {
        self.0.fetch_add(commits, Ordering::Relaxed);
    }

    /// All commits entered.
    pub(super) fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
