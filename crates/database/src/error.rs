//! How a target fails.

use thiserror::Error;

/// A failure of a target. Texts never hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TargetError {
    /// The URL or a setting cannot be taken (usage, exit code 2).
    #[error("{0}")]
    Usage(String),
    /// Nothing answers at the address (exit code 3).
    #[error("{0}")]
    Unreachable(String),
    /// The database answers but will not have us: password, privilege, standby, lock, version
    /// (exit code 3).
    #[error("{0}")]
    Refused(String),
    /// The session is gone: the server went away or the session was cancelled.
    #[error("{0}")]
    Lost(String),
    /// A statement failed; the session lives on after a rollback.
    #[error("{0}")]
    Statement(String),
    /// The target cannot do what is asked.
    #[error("{0}")]
    Unsupported(String),
    /// Files or processes of a private server or an embedded database.
    #[error("{0}")]
    Local(String),
}

/// What to say when the database knows no such table: loadline made it, so somebody has dropped it.
pub(crate) fn table_gone(error: &str) -> String {
    format!(
        "{error}: loadline made this table, and somebody has dropped it since. Run again, or go on with --resume: it is \
         then made anew"
    )
}
