//! Why a directory could not be probed.

use std::path::PathBuf;

use loadline_device::DeviceError;
use loadline_model::format::bytes;
use loadline_model::probe::Operation;

/// Why a directory could not be probed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// An option has a value that cannot be.
    #[error("{option} is '{value}': {allowed}")]
    Option {
        /// The option's name, e.g. `--dedup`.
        option: &'static str,
        /// What it was set to.
        value: String,
        /// What it may be.
        allowed: String,
    },
    /// What was named is no directory.
    #[error("'{}' is no directory. Name the directory whose storage is to be measured", .0.display())]
    NotADirectory(PathBuf),
    /// The filesystem is mounted read-only.
    #[error("'{}' is on a filesystem that is mounted read-only: the probe writes a file of its own there", .0.display())]
    ReadOnly(PathBuf),
    /// There is not enough free space.
    #[error(
        "'{}' has {} free, and the probe needs {}. Free some space, or choose a smaller file with --size \
         (the least is {})", .dir.display(), bytes(*.free as f64), bytes(*.needed as f64), bytes(*.least as f64)
    )]
    NoSpace {
        /// The directory.
        dir: PathBuf,
        /// What is free, bytes.
        free: u64,
        /// What is needed, bytes.
        needed: u64,
        /// The smallest file there is, bytes.
        least: u64,
    },
    /// Storage refused before anything was measured.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// An operation failed while it was being measured.
    #[error("{operation} of {} in '{}' failed: {cause}. See the system's log for what the storage says of it",
        bytes(*.size as f64), .dir.display())]
    Operation {
        /// What was done.
        operation: Operation,
        /// Bytes each time.
        size: u64,
        /// The directory.
        dir: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A thread could not be started.
    #[error("{count} threads could not be started: {cause}. Check the limit on threads (ulimit -u)")]
    Threads {
        /// How many there were to be.
        count: u32,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The user interrupted the probe; its files are removed.
    #[error("the probe was interrupted")]
    Interrupted,
}
