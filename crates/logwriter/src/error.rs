//! What can go wrong with a log, in words that say what to do next.

use std::io;

use crate::device::DeviceError;
use crate::sync::Arc;

/// Why a log could not be opened, appended to or made durable. Each text stands alone.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// A write or a sync failed. What was not reported durable before may or may not be on the
    /// device; nothing is reported durable any more.
    #[error("the log has stopped and reports nothing durable until it is opened again: {0}")]
    Stopped(Arc<DeviceError>),
    /// The log was closed.
    #[error("the log is closed: open it again to go on")]
    Closed,
    /// The device's code panicked. As with [`LogError::Stopped`], nothing is reported durable any
    /// more.
    #[error("the log has stopped and reports nothing durable until it is opened again: its device panicked")]
    Panicked,
    /// A record does not fit.
    #[error(
        "a record of {bytes} bytes does not fit into a log that takes {most}: append it in pieces (a transaction may \
         have any number of records), or give the log a larger buffer and larger files"
    )]
    RecordTooBig {
        /// Of the payload.
        bytes: u64,
        /// The most that a record's payload may have.
        most: u64,
    },
    /// A setting that no log can have.
    #[error("the log cannot be opened: {0}")]
    Config(String),
    /// The log that is there could not be read.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The system gave no thread.
    #[error("cannot start the log's {0} thread: {1}. Look at the limit on threads (ulimit -u)")]
    Thread(&'static str, Arc<io::Error>),
    /// More sessions than the format has numbers for.
    #[error("the log has given out all its 4294967295 session numbers: close it and open it again")]
    Sessions,
}

/// Why a log that is there could not be read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// The device could not be read.
    #[error("the log cannot be read: {0}")]
    Device(Arc<DeviceError>),
    /// Sizes that no log can have.
    #[error("the log cannot be read: {0}")]
    Sizes(String),
    /// A file between two others is not there, or is not a log file any more.
    #[error(
        "log file {file} on {device} is missing or damaged while later ones are there: what it held is lost. Put it \
         back, or move all log files away to begin a new log"
    )]
    Missing {
        /// The file's number.
        file: u64,
        /// Which device.
        device: String,
    },
    /// The log was made with other sizes.
    #[error(
        "the log on {device} was made with files of {file_bytes} bytes and blocks of {block} bytes, and is opened with \
         {wanted_file_bytes} and {wanted_block}. Open it as it was made, or move its files away to begin a new log"
    )]
    OtherSizes {
        /// Which device.
        device: String,
        /// Of the log that is there.
        file_bytes: u64,
        /// Of the log that is there.
        block: u64,
        /// As the device is opened.
        wanted_file_bytes: u64,
        /// As the device is opened.
        wanted_block: u64,
    },
}

impl From<DeviceError> for LogError {
    fn from(cause: DeviceError) -> Self {
        Self::Stopped(Arc::new(cause))
    }
}

impl From<DeviceError> for RecoverError {
    fn from(cause: DeviceError) -> Self {
        Self::Device(Arc::new(cause))
    }
}
