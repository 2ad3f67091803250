//! Why a directory could not be probed.

use std::path::PathBuf;

use crate::DeviceError;
use loadline_model::format::bytes;
use loadline_model::probe::Operation;

/// Why a directory could not be probed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// An option has an invalid value.
    #[error("{option} is '{value}': {allowed}")]
    Option {
        /// The option's name, e.g. `--dedup`.
        option: &'static str,
        /// The invalid value.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// The path is not a directory.
    #[error("'{}' is not a directory. Name a directory on the storage to measure", .0.display())]
    NotADirectory(PathBuf),
    /// The filesystem is mounted read-only.
    #[error("'{}' is on a read-only filesystem, but the probe must write a file there. Name another directory", .0.display())]
    ReadOnly(PathBuf),
    /// There is not enough free space.
    #[error(
        "'{}' has {} free, but the probe needs {}. Free some space, or use a smaller file with --size \
         (at least {})", .dir.display(), bytes(*.free as f64), bytes(*.needed as f64), bytes(*.least as f64)
    )]
    NoSpace {
        /// The directory.
        dir: PathBuf,
        /// Free space, bytes.
        free: u64,
        /// Needed space, bytes.
        needed: u64,
        /// The smallest possible file, bytes.
        least: u64,
    },
    /// An error before the measurements.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A measured operation failed.
    #[error("{operation} of {} in '{}' failed: {cause}. See the system's log (dmesg)",
        bytes(*.size as f64), .dir.display())]
    Operation {
        /// The operation.
        operation: Operation,
        /// Bytes per operation.
        size: u64,
        /// The directory.
        dir: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// Threads could not be started.
    #[error("{count} threads could not be started: {cause}. Check the limit on threads (ulimit -u)")]
    Threads {
        /// Number of threads.
        count: u32,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The user interrupted the probe; its files are removed.
    #[error("the probe was interrupted")]
    Interrupted,
}
