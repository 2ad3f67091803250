//! Whether the server's commits wait for its log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The current `innodb_flush_log_at_trx_commit`, a global setting.
#[derive(Debug, Clone)]
pub(super) struct Flush(pub(super) Arc<AtomicU8>);

impl Flush {
    pub(super) fn now(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}
