//! What can go wrong on a log device, in words that say what to do next.

use std::io;

/// Why a log device could not do what it was asked. Each text stands alone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// An operation of the system failed.
    #[error("cannot {action} {what}: {source}. {advice}")]
    Io {
        /// What was tried, as a verb (`write`, `sync`, `preallocate`, ...).
        action: &'static str,
        /// On what: a path, an address.
        what: String,
        /// What the system said.
        source: io::Error,
        /// What to do next.
        advice: String,
    },
    /// The device took fewer bytes than it was given.
    #[error("{what} took {written} of {asked} bytes at offset {offset}. Look at the device and its free space")]
    Short {
        /// On what: a path, an address.
        what: String,
        /// Where in the file.
        offset: u64,
        /// How many bytes it was given.
        asked: usize,
        /// How many it took.
        written: usize,
    },
    /// Too few of a device's members are left (mirrors, a quorum, a standby).
    #[error("{what}: {left} of {members} members left and {needed} are needed ({cause}). {advice}")]
    TooFew {
        /// Which device.
        what: String,
        /// How many members still work.
        left: usize,
        /// How many there are.
        members: usize,
        /// How many are needed for a durable write.
        needed: usize,
        /// What took the last one away.
        cause: String,
        /// What to do next.
        advice: String,
    },
    /// A setting that the device cannot meet.
    #[error("{what} cannot {wish}: {why}. {advice}")]
    Unsupported {
        /// Which device.
        what: String,
        /// What was wished of it.
        wish: String,
        /// Why it cannot.
        why: String,
        /// What to do next.
        advice: String,
    },
}

impl From<loadline_device::DeviceError> for DeviceError {
    fn from(error: loadline_device::DeviceError) -> Self {
        use loadline_device::{DeviceError as E, Step};
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
                super::file::failed(action, &path, cause)
            }
            E::Unsupported { what, path, why } => DeviceError::Unsupported {
                what: path.display().to_string(),
                wish: format!("be used with {what}"),
                why,
                advice: "Choose another log device or another directory".to_owned(),
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
