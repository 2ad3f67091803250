//! Errors of log devices.

use std::io;
use std::path::Path;

use loadline_storage::Step;

/// Why a log device could not do what it was asked. Each text can be shown on its own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its values are")]
pub enum DeviceError {
    /// A file or a buffer could not be used.
    #[error(transparent)]
    Storage(#[from] loadline_storage::DeviceError),
    /// A connection or a thread could not be used. `action` is a verb.
    #[error("cannot {action} {what}: {source}. {advice}")]
    Io { action: &'static str, what: String, source: io::Error, advice: String },
    /// Fewer members of a replica set work than a durable write needs; why the last one failed.
    #[error("{what}: {left} of {members} members left, {needed} needed ({cause}). {advice}")]
    TooFew { what: String, left: usize, members: usize, needed: usize, cause: String, advice: String },
    /// The device cannot do what it was asked. `wish` is a verb phrase.
    #[error("{what} cannot {wish}: {why}. {advice}")]
    Unsupported { what: String, wish: String, why: String, advice: String },
}

impl DeviceError {
    pub(super) fn io(step: Step, path: &Path, cause: impl Into<io::Error>) -> DeviceError {
        loadline_storage::DeviceError::io(step, path, cause).into()
    }
}
