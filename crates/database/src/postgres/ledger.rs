//! Counts loadline's own transactions, because the server counts them like any other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Commits of loadline's own work (administration, probes, the end of a CALL) that the server's counters already
/// include. They are subtracted from `xact_commit`.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger(Arc<AtomicU64>);

impl Ledger {
    /// Adds `commits`.
    pub(super) fn add(&self, commits: u64) {
        self.0.fetch_add(commits, Ordering::Relaxed);
    }

    /// Sum of all commits.
    pub(super) fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
