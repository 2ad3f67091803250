//! Errors of a log.

use std::io;

use crate::device::DeviceError;
use crate::sync::Arc;

/// Why a log could not be opened, appended to or made durable. Each text can be shown on its own.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// A write or a sync failed. What was not reported durable may or may not be on the device. Nothing more is
    /// reported durable.
    #[error("the log has stopped and reports nothing durable until it is opened again: {0}")]
    Stopped(Arc<DeviceError>),
    /// It was closed.
    #[error("the log is closed: open it again to continue")]
    Closed,
    /// The device's code panicked. As with [`LogError::Stopped`], nothing more is reported durable.
    #[error("the log has stopped and reports nothing durable until it is opened again: its device panicked")]
    Panicked,
    /// A record is too big.
    #[error(
        "a record of {bytes} bytes does not fit into this log, which takes {most}: split it (a transaction may have \
         any number of records), or use a larger buffer and larger files"
    )]
    RecordTooBig {
        /// Payload of the record.
        bytes: u64,
        /// Largest possible payload.
        most: u64,
    },
    /// An invalid setting.
    #[error("the log cannot be opened: {0}")]
    Config(String),
    /// The existing log could not be read.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The system refused a thread.
    #[error("cannot start the log's {0} thread: {1}. Check the limit on threads (ulimit -u)")]
    Thread(&'static str, Arc<io::Error>),
    /// All session numbers of the format are used.
    #[error("all 4294967295 session numbers of the log are used: close it and open it again")]
    Sessions,
}

/// Why an existing log could not be read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its values are")]
pub enum RecoverError {
    /// The device could not be read.
    #[error("the log cannot be read: {0}")]
    Device(Arc<DeviceError>),
    #[error("the log cannot be read: {0}")]
    Sizes(String),
    /// A file between two others is missing, or is no longer a log file.
    #[error(
        "log file {file} on {device} is missing or damaged, but later ones exist: its contents are lost. Put it back, \
         or move all log files away to start a new log"
    )]
    Missing { file: u64, device: String },
    /// The log was made with other sizes.
    #[error(
        "the log on {device} was made with files of {file_bytes} bytes and blocks of {block} bytes, but is opened with \
         {wanted_file_bytes} and {wanted_block}. Use the sizes it was made with, or move its files away to start a \
         new log"
    )]
    OtherSizes { device: String, file_bytes: u64, block: u64, wanted_file_bytes: u64, wanted_block: u64 },
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
