//! The device probe: measures in about half a minute what the storage under a directory allows.
//!
//! [`probe`] creates a test file, fills it, and measures sync writes, reads and sequential transfers. The measurements
//! alternate in short slices, so that good and bad moments of a shared device affect all of them. It touches only its own
//! files.

use std::path::PathBuf;

use loadline_model::format::bytes;
use loadline_model::probe::Operation;

use crate::DeviceError;

mod data;
mod options;
mod plan;
mod queue;
mod run;
mod session;
mod sync;
mod testfile;

pub use options::{ProbeOptions, SMALLEST_FILE};
pub use plan::{Point, points};
pub use run::{Event, probe};
pub use session::ProbeSession;

/// Why a directory could not be probed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    #[error("{option} is '{value}': {allowed}")]
    Option { option: &'static str, value: String, allowed: String },
    #[error("'{}' is not a directory. Name a directory on the storage to measure", .0.display())]
    NotADirectory(PathBuf),
    #[error("'{}' is on a read-only filesystem, but the probe must write a file there. Name another directory", .0.display())]
    ReadOnly(PathBuf),
    #[error(
        "'{}' has {} free, but the probe needs {}. Free some space, or use a smaller file with --size \
         (at least {})", .dir.display(), bytes(*.free as f64), bytes(*.needed as f64), bytes(*.least as f64)
    )]
    NoSpace {
        dir: PathBuf,
        /// Bytes, as the others.
        free: u64,
        needed: u64,
        /// The smallest possible file.
        least: u64,
    },
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("{operation} of {} in '{}' failed: {cause}. See the system's log (dmesg)",
        bytes(*.size as f64), .dir.display())]
    Operation { operation: Operation, size: u64, dir: PathBuf, cause: std::io::Error },
    #[error("{count} threads could not be started: {cause}. Check the limit on threads (ulimit -u)")]
    Threads { count: u32, cause: std::io::Error },
    #[error("the probe was interrupted")]
    Interrupted,
}
