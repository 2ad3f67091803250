//! The flash log: each write goes to two devices at once, and a commit is durable when the first of
//! them has it. A device that is busy with itself for a while (erasing, collecting garbage) then
//! holds up nobody; it catches up, in order, by at most the backlog.
//!
//! Either may have the newest commits, so both must be there when the log is opened again, unless
//! one was lost while the log was written: the other has caught up then, and says so in its label.

use super::replicas::{Member, ReplicaOptions, Replicas, Rule, Scan};
use crate::device::DeviceError;

/// How a flash log works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashOptions {
    /// How far the slower device may be behind before writes wait for it, in bytes.
    pub backlog_bytes: usize,
    /// Opens although a device is missing that may hold acknowledged commits which the other has
    /// not. Those commits are lost then.
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
/// Members that do not belong together, or one missing that may hold acknowledged commits.
pub fn open_flash_log(members: [Member; 2], options: FlashOptions, scan: Scan<'_>) -> Result<Replicas, DeviceError> {
    let FlashOptions { backlog_bytes, accept_missing } = options;
    let options = ReplicaOptions { rule: Rule::Quorum(1), degrade: false, backlog_bytes, accept_missing };
    let told = "durable when the first has it".to_owned();
    Replicas::open("flash log", told, members.into(), options, scan)
}
