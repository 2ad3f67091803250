//! The flash log: each write goes to two devices, and a commit is durable when the first of them has it. So a
//! device that pauses (erasing, garbage collection) delays no commit; it catches up in order and is behind by at
//! most the backlog.

use super::DeviceError;
use super::replicas::{Member, Replicas, Rule};

/// Opens a flash log on two empty members.
///
/// # Errors
/// A member holds log files, or their sizes differ.
pub fn open_flash_log(members: [Member; 2]) -> Result<Replicas, DeviceError> {
    Replicas::open("flash log", Rule::Quorum(1), "durable when the first has it".to_owned(), members.into())
}
