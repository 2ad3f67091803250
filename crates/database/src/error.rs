//! The error type of all targets.

use thiserror::Error;

/// A failure of a target. Its text never contains a secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TargetError {
    /// The URL or a setting is invalid (usage, exit code 2).
    #[error("{0}")]
    Usage(String),
    /// Nothing answers at the address, or the private server cannot be started (exit code 3).
    #[error("{0}")]
    Unreachable(String),
    /// The database answers but refuses: password, privilege, standby, lock, version (exit code 3).
    #[error("{0}")]
    Refused(String),
    /// The session is lost: the server closed it, or it was cancelled.
    #[error("{0}")]
    Lost(String),
    /// A statement failed; the session can be used after a rollback.
    #[error("{0}")]
    Statement(String),
    /// The target cannot do what is asked.
    #[error("{0}")]
    Unsupported(String),
    /// Files or processes of a private server or an embedded database failed after it was opened (exit code 1).
    #[error("{0}")]
    Local(String),
}

/// The text for an unknown table: loadline created it, so somebody dropped it during the run.
pub(crate) fn table_gone(error: &str) -> String {
    format!(
        "{error}: loadline created this table and somebody dropped it since. Run again or continue with --resume: \
         loadline then creates it again"
    )
}
