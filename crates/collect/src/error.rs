//! What can go wrong while counters are read.

use std::path::PathBuf;

/// Why a counter, an inventory or an edge of the window could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// A file of the kernel, or the path asked about, could not be read.
    #[error("cannot read '{}': {cause}. Check that it exists and that this user may read it", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// This process may not open any more files.
    #[error(
        "none of {files} files under '{}' could be opened: this process has as many open as it may. Raise the limit of \
        open files (ulimit -n)", .path.display()
    )]
    OpenFiles {
        /// The directory.
        path: PathBuf,
        /// Files that there are.
        files: u32,
    },
    /// What is under a directory could not be found out.
    #[error(transparent)]
    Device(#[from] loadline_device::DeviceError),
    /// A file of the kernel does not look as documented in proc(5).
    #[error("{file} is not as expected: {what}. Its figures are left out")]
    Format {
        /// The file, e.g. `/proc/stat`.
        file: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// `/proc/diskstats` has no line for the device.
    #[error("/proc/diskstats has no device '{0}': it may have been removed, or is not visible in this container")]
    NoDevice(String),
    /// A system call failed.
    #[error("{call} failed: {cause}")]
    Call {
        /// Its name.
        call: &'static str,
        /// What the system said.
        cause: nix::errno::Errno,
    },
    /// The sampler's thread could not be started.
    #[error("the sampler could not be started: {0}. Check the limit on threads (ulimit -u)")]
    Spawn(std::io::Error),
    /// The sampler's thread did not answer in time.
    #[error(
        "the counters at the window's edge '{edge}' did not come within {waited_s:.1} s: the database does not \
        answer queries on its statistics"
    )]
    Stuck {
        /// Name of the edge.
        edge: String,
        /// How long was waited after the edge was due, s.
        waited_s: f64,
    },
    /// The sampler's thread has ended before its time.
    #[error("the sampler has ended early: the counters at the window's edge '{edge}' are lost")]
    Ended {
        /// Name of the edge.
        edge: String,
    },
}

/// Reads a small text file of the kernel.
pub(crate) fn read(path: impl Into<PathBuf>) -> Result<String, CollectError> {
    let path = path.into();
    std::fs::read_to_string(&path).map_err(|cause| CollectError::Read { path, cause })
}
