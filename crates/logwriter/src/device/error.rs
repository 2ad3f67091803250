//! Errors of log devices.

use std::io;
use std::path::Path;

/// Why a log device could not do what it was asked. Each text can be shown on its own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// A system call failed.
    #[error("cannot {action} {what}: {source}. {advice}")]
    Io {
        /// Attempt, as a verb (`write`, `sync`, `preallocate`, ...).
        action: &'static str,
        /// Path or address.
        what: String,
        /// The system's error.
        source: io::Error,
        /// Next step of the user.
        advice: String,
    },
    /// The device took fewer bytes than it was given.
    #[error("{what} took {written} of {asked} bytes at offset {offset}. Check the device and its free space")]
    Short {
        /// Path or address.
        what: String,
        /// Offset in the file, bytes.
        offset: u64,
        asked: usize,
        /// Bytes taken.
        written: usize,
    },
    /// Too few members of a replica set work.
    #[error("{what}: {left} of {members} members left, {needed} needed ({cause}). {advice}")]
    TooFew {
        what: String,
        /// Members that work.
        left: usize,
        members: usize,
        /// Members needed for a durable write.
        needed: usize,
        /// Why the last one failed.
        cause: String,
        /// Next step of the user.
        advice: String,
    },
    /// The device cannot do what it was asked.
    #[error("{what} cannot {wish}: {why}. {advice}")]
    Unsupported {
        what: String,
        /// Request to the device, as a verb phrase.
        wish: String,
        why: String,
        /// Next step of the user.
        advice: String,
    },
}

impl DeviceError {
    /// A failed system call on `path`, with advice.
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> DeviceError {
        let advice = match source.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => "Free some space there, or use smaller or fewer log files",
            Some(libc::EROFS) => "The filesystem is read-only: use another directory, or mount it for writing",
            Some(libc::EACCES | libc::EPERM) => "Use a directory that you may write to",
            Some(libc::ENOENT | libc::ENOTDIR) => "Name an existing directory",
            Some(libc::EIO) => "The device has failed: see the kernel's messages (dmesg)",
            _ => "Check the directory, its device and the kernel's messages (dmesg)",
        };
        DeviceError::Io { action, what: format!("'{}'", path.display()), source, advice: advice.into() }
    }
}

impl From<loadline_storage::DeviceError> for DeviceError {
    fn from(error: loadline_storage::DeviceError) -> Self {
        use loadline_storage::{DeviceError as E, Step};
        match error {
            E::Io { step, path, cause } => {
                let action = match step {
                    Step::Read => "read",
                    Step::Create => "make",
                    Step::Open => "open",
                    Step::Preallocate => "preallocate",
                    Step::Write => "write to",
                    Step::Sync => "sync",
                    Step::Map => "map",
                    _ => "use io_uring on",
                };
                DeviceError::io(action, &path, cause)
            }
            E::Unsupported { what, path, why } => DeviceError::Unsupported {
                what: path.display().to_string(),
                wish: format!("be used with {what}"),
                why,
                advice: "Use another log device or another directory".to_owned(),
            },
            other => DeviceError::Unsupported {
                what: "the log device".to_owned(),
                wish: "do what it was asked".to_owned(),
                why: other.to_string(),
                advice: "Use smaller log files or a smaller buffer".to_owned(),
            },
        }
    }
}
