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
    /// The transaction lost against another one (deadlock, certification) and was rolled back: tried again, it may succeed.
    #[error("{0}")]
    Conflict(String),
    /// The target cannot do what is asked.
    #[error("{0}")]
    Unsupported(String),
    /// Files or processes of a private server or an embedded database failed after it was opened (exit code 1).
    #[error("{0}")]
    Local(String),
}

impl TargetError {
    /// The same failure with `more` behind its text.
    #[must_use]
    pub fn with(mut self, more: &str) -> TargetError {
        let (TargetError::Usage(text)
        | TargetError::Unreachable(text)
        | TargetError::Refused(text)
        | TargetError::Lost(text)
        | TargetError::Statement(text)
        | TargetError::Conflict(text)
        | TargetError::Unsupported(text)
        | TargetError::Local(text)) = &mut self;
        text.push_str(more);
        self
    }
}

/// Whether a message of a database or of the system says that a disk is full.
#[must_use]
pub fn says_disk_full(text: &str) -> bool {
    const WORDS: [&str; 12] = [
        // The system, and MariaDB that passes on its number.
        "No space left on device", "Disk quota exceeded", "rror 28 ",
        // PostgreSQL: its code in any language, and the hint to `wrote only 4096 of 8192 bytes`.
        " 53100: ", "Check free disk space",
        // MariaDB and MySQL: a disk, a table or a tablespace that cannot grow; and the state of a session that waits.
        "(error 1021)", "(error 1114)", "for free space", // SQLite, and others.
        "disk is full", "Disk full",
        // Oracle: a tablespace that cannot grow, and an archiver without space.
        "ORA-0165", "ORA-00257",
    ];
    WORDS.iter().any(|part| text.contains(part))
}

/// The text for an unknown table: loadline created it, so somebody dropped it during the run.
pub(crate) fn table_gone(error: &str) -> String {
    format!(
        "{error}: loadline created this table and somebody dropped it since. Run again or continue with --resume: \
         loadline then creates it again"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_databases_words_for_a_full_disk_are_known() {
        for text in [
            "ERROR 53100: could not extend file \"base/5/16401\": No space left on device",
            "PANIC 53100: could not write to file \"pg_wal/xlogtemp.4711\": No space left on device",
            "initdb: error: wrote only 4096 of 8192 bytes; Check free disk space.",
            "The table 'data_fact' is full (error 1114)",
            "Disk full (/tmp/#sql); waiting for someone to free some space... (errno: 28) (error 1021)",
            "Error writing file '/data/bin' (errno: 28 \"No space left on device\") (error 1026)",
            "Got error 28 from storage engine (error 1030)",
            "InnoDB: preallocating 2147483648 bytes for file ./ib_logfile101 failed with error 28 – InnoDB: Cannot set log file",
            "its statement has waited 30 s for free space: a disk that it writes to is full",
            "database or disk is full",
            "ORA-01653: unable to extend table ANN.LOADLINE_X by 128 in tablespace USERS",
            "cannot write: Disk quota exceeded (os error 122)",
        ] {
            assert!(says_disk_full(text), "{text}");
        }
        for text in ["ERROR 53200: out of memory", "Lock wait timeout exceeded (error 1205)", "disk I/O error"] {
            assert!(!says_disk_full(text), "{text}");
        }
    }
}
