//! Whether the server's commits wait for its log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// `innodb_flush_log_at_trx_commit` as it is now: it exists for the whole server only.
#[derive(Debug, Clone)]
pub(super) struct Flush(pub(super) Arc<AtomicU8>);

impl Flush {
    pub(super) fn now(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}
