//! What can go wrong between a program and its storage.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What was being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Reading a file, or what the kernel says of it.
    Read,
    /// Making a file.
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
        /// What was being done.
        step: Step,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Something was asked for that this machine or filesystem cannot do.
    #[error("{what} cannot be used on '{}': {why}", .path.display())]
    Unsupported {
        /// What was asked for.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why not, and what to do instead.
        why: String,
    },
    /// Memory for a buffer could not be had.
    #[error("no memory for a buffer of {bytes} bytes. Use smaller blocks or fewer at once")]
    NoMemory {
        /// Its size.
        bytes: usize,
    },
    /// An offset or a length outside of what was mapped or set up.
    #[error("{what}: {offset} + {bytes} bytes is outside of the {size} bytes there")]
    Range {
        /// What was addressed.
        what: &'static str,
        /// Where it began.
        offset: u64,
        /// How long it was.
        bytes: u64,
        /// How much there is.
        size: u64,
    },
}

impl DeviceError {
    /// Wraps what the system said.
    pub(crate) fn io(step: Step, path: &Path, cause: impl Into<io::Error>) -> DeviceError {
        DeviceError::Io { step, path: path.to_owned(), cause: cause.into() }
    }

    /// What the system said, if it was the system that refused.
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
        K::PermissionDenied => "Check that this user may do so",
        K::NotADirectory => "Name a directory",
        K::ReadOnlyFilesystem => "Name a directory on a filesystem that can be written",
        K::StorageFull | K::QuotaExceeded => "Free some space, or use less of it",
        K::AlreadyExists => "Remove it if it is no longer needed",
        _ => "See the system's log for what the storage says of it",
    }
}
