//! Errors of storage access.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The operation that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Reading a file or its attributes.
    Read,
    /// Creating a file.
    Create,
    /// Opening a file.
    Open,
    /// Reserving blocks.
    Preallocate,
    /// Writing a file.
    Write,
    /// Making a file durable.
    Sync,
    /// Mapping a file into memory.
    Map,
    /// Setting up or using an io_uring.
    Ring,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Read => "read",
            Step::Create => "create",
            Step::Open => "open",
            Step::Preallocate => "reserve space in",
            Step::Write => "write",
            Step::Sync => "sync",
            Step::Map => "map",
            Step::Ring => "use an io_uring on",
        })
    }
}

/// Why storage could not be used as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// A system call on a file failed.
    #[error("cannot {step} '{}': {cause}. {}", .path.display(), advice(.cause))]
    Io {
        /// The operation.
        step: Step,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// This machine or filesystem cannot do what was requested.
    #[error("{what} cannot be used on '{}': {why}", .path.display())]
    Unsupported {
        /// What was requested.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why not, and what to do instead.
        why: String,
    },
    /// No memory for a buffer.
    #[error("no memory for a buffer of {bytes} bytes. Use smaller blocks or fewer at once")]
    NoMemory {
        /// Its size.
        bytes: usize,
    },
    /// An offset or length outside the mapped range.
    #[error("{what}: offset {offset} + {bytes} bytes is outside its {size} bytes")]
    Range {
        /// What was accessed.
        what: &'static str,
        /// Offset of the access.
        offset: u64,
        /// Length of the access.
        bytes: u64,
        /// Size of the range.
        size: u64,
    },
}

impl DeviceError {
    /// Wraps a system error.
    pub(crate) fn io(step: Step, path: &Path, cause: impl Into<io::Error>) -> DeviceError {
        DeviceError::Io { step, path: path.to_owned(), cause: cause.into() }
    }

    /// The system's error, if there is one.
    #[must_use]
    pub fn cause(&self) -> Option<&io::Error> {
        match self {
            DeviceError::Io { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

/// What the user can do about `cause`.
fn advice(cause: &io::Error) -> &'static str {
    use io::ErrorKind as K;
    match cause.kind() {
        K::NotFound => "Check that it exists",
        K::PermissionDenied => "Check the permissions of this user",
        K::NotADirectory => "Name a directory",
        K::ReadOnlyFilesystem => "Name a directory on a writable filesystem",
        K::StorageFull | K::QuotaExceeded => "Free some space, or use less",
        K::AlreadyExists => "Remove it if it is no longer needed",
        _ => "See the system's log (dmesg)",
    }
}
