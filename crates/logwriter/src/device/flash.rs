//! The flash log: each write goes to two devices, and a commit is durable when the first of them has it. So a
//! device that pauses (erasing, garbage collection) delays no commit; it catches up in order and is behind by at
//! most the backlog.
//!
//! Either device may have the newest commits, so both must be present when the log is opened again. Exception: if
//! one was lost while the log was written, the other has caught up and its label says so.

use super::DeviceError;
use super::replicas::{Member, ReplicaOptions, Replicas, Rule, Scan};

/// Settings of a flash log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashOptions {
    /// How far the slower device may be behind before writes wait for it, bytes.
    pub backlog_bytes: usize,
    /// Open even if a missing device may be the only one with some acknowledged commits. These commits are lost.
    pub accept_missing: bool,
}

impl Default for FlashOptions {
    fn default() -> Self {
        Self { backlog_bytes: 64 << 20, accept_missing: false }
    }
}

/// Opens a flash log on two members.
///
/// # Errors
/// The members do not belong to one set, or a missing one may hold acknowledged commits.
pub fn open_flash_log(members: [Member; 2], options: FlashOptions, scan: Scan<'_>) -> Result<Replicas, DeviceError> {
    let FlashOptions { backlog_bytes, accept_missing } = options;
    let options = ReplicaOptions { rule: Rule::Quorum(1), degrade: false, backlog_bytes, accept_missing };
    let rule_text = "durable when the first has it".to_owned();
    Replicas::open("flash log", rule_text, members.into(), options, scan)
}
