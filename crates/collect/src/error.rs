//! Errors of reading counters.

use std::path::PathBuf;

/// Why a counter, an inventory or the counters at window start or end could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// A file of the kernel, or the given path, could not be read.
    #[error("cannot read '{}': {cause}. Check that it exists and that this user may read it", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The process has reached its limit of open files.
    #[error(
        "none of {files} files under '{}' could be opened: the limit of open files of this process is reached. Raise it \
        (ulimit -n)", .path.display()
    )]
    OpenFiles {
        /// The directory.
        path: PathBuf,
        /// Number of files.
        files: u32,
    },
    /// The storage under a directory could not be determined.
    #[error(transparent)]
    Device(#[from] loadline_storage::DeviceError),
    /// A file of the kernel is not as documented in proc(5).
    #[error("{file} has an unknown format: {what}. Its figures are left out")]
    Format {
        /// The file, e.g. `/proc/stat`.
        file: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// `/proc/diskstats` has no line for the device.
    #[error("/proc/diskstats has no device '{0}': it was removed, or is not visible in this container")]
    NoDevice(String),
    /// A system call failed.
    #[error("{call} failed: {cause}")]
    Call {
        /// Its name.
        call: &'static str,
        /// The system's error.
        cause: nix::errno::Errno,
    },
    /// The sampler's thread could not be started.
    #[error("the sampler could not be started: {0}. Check the limit on threads (ulimit -u)")]
    Spawn(std::io::Error),
    /// The sampler's thread did not answer in time.
    #[error(
        "the counters at the window's '{edge}' did not arrive within {waited_s:.1} s: the database does not answer \
        queries on its statistics, or loadline gets no CPU to ask. If all CPUs are busy, run fewer jobs, or loadline on \
        another machine than the database"
    )]
    Stuck {
        /// `open` (window start) or `close` (window end).
        edge: String,
        /// Time waited after it was due, s.
        waited_s: f64,
    },
    /// The sampler's thread ended early.
    #[error("the sampler ended early: the counters at the window's '{edge}' are lost")]
    Ended {
        /// `open` (window start) or `close` (window end).
        edge: String,
    },
}

/// Reads a small text file of the kernel.
pub(crate) fn read(path: impl Into<PathBuf>) -> Result<String, CollectError> {
    let path = path.into();
    std::fs::read_to_string(&path).map_err(|cause| CollectError::Read { path, cause })
}
