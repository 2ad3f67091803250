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
    /// The session is lost because a disk of the server is full.
    #[error("{0}")]
    NoSpace(String),
    /// The server refused a statement; the session can be used after a rollback.
    #[error(transparent)]
    Server(#[from] Refusal),
    /// A statement did not do what it should, by loadline's own judgement; the session can be used after a rollback.
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
        self.text().push_str(more);
        self
    }

    /// The same failure with `what` before its text.
    #[must_use]
    pub fn after(mut self, what: &str) -> TargetError {
        self.text().insert_str(0, what);
        self
    }

    /// The same failure of a statement with its place in a user's file, if it has one, before its text.
    #[must_use]
    pub fn at(self, place: &str) -> TargetError {
        let has_place = matches!(self, Self::Conflict(_) | Self::Statement(_) | Self::Server(_)) && !place.is_empty();
        if has_place { self.after(&format!("{place}: ")) } else { self }
    }

    fn text(&mut self) -> &mut String {
        let (TargetError::Usage(text)
        | TargetError::Unreachable(text)
        | TargetError::Refused(text)
        | TargetError::Lost(text)
        | TargetError::NoSpace(text)
        | TargetError::Server(Refusal { text, .. })
        | TargetError::Statement(text)
        | TargetError::Conflict(text)
        | TargetError::Unsupported(text)
        | TargetError::Local(text)) = self;
        text
    }

    /// Of a session that is lost, for a full disk of the server if `full_disk`.
    #[must_use]
    pub fn lost(text: String, full_disk: bool) -> TargetError {
        if full_disk { TargetError::NoSpace(text) } else { TargetError::Lost(text) }
    }

    /// Of a connection that the server refuses with `refusal`, which `text` explains: only at the limit of sessions, others may do.
    pub(crate) fn connection(refusal: Refusal, text: String) -> TargetError {
        if refusal.cause == Cause::Sessions { Refusal { text, ..refusal }.into() } else { TargetError::Refused(text) }
    }

    /// Whether a disk of the server is full.
    #[must_use]
    pub fn is_full_disk(&self) -> bool {
        matches!(self, TargetError::NoSpace(_) | TargetError::Server(Refusal { cause: Cause::FullDisk, .. }))
    }

    /// Whether the session is gone.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, TargetError::Lost(_) | TargetError::NoSpace(_))
    }
}

/// A server's refusal of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct Refusal {
    /// The kind of the cause, by the server's code.
    pub cause: Cause,
    /// SQLSTATE, error number, or name of the code, as the server's manual lists it. Empty if the server gave none.
    pub code: String,
    /// What the server said.
    pub text: String,
}

/// Why a server refuses a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A disk, a tablespace or a quota is full.
    FullDisk,
    /// The user lacks a privilege.
    Privilege,
    /// The limit of sessions of the server, the database or the user.
    Sessions,
    /// Another limit of the server or of its settings.
    Limit,
    /// The server forbids it, or does not have what it needs: a primary key, a type, an extension, a function.
    NotAllowed,
    /// Any other.
    Other,
}

impl Cause {
    /// Of an SQLSTATE of PostgreSQL (its manual, appendix A).
    pub(crate) fn of_sqlstate(code: &str) -> Cause {
        match code {
            "53100" => Cause::FullDisk,
            "53300" => Cause::Sessions,
            "42501" => Cause::Privilege,
            "0A000" | "42704" | "42883" | "3F000" | "58P01" | "55000" => Cause::NotAllowed,
            _ if code.starts_with("53") || code.starts_with("54") => Cause::Limit,
            _ => Cause::Other,
        }
    }

    /// Of an error number of MySQL and MariaDB. `os_error`: what the operating system gave it (`errno: 28`), if it says so.
    pub(crate) fn of_mysql(code: u16, os_error: Option<u16>) -> Cause {
        // ENOSPC and EDQUOT.
        if let Some(28 | 122) = os_error {
            return Cause::FullDisk;
        }
        match code {
            1021 | 1114 => Cause::FullDisk,
            1040 | 1203 | 1226 => Cause::Sessions,
            1044 | 1045 | 1095 | 1142 | 1143 | 1227 | 1370 | 1419 | 1698 => Cause::Privilege,
            1041 | 1069..=1071 | 1074 | 1117 | 1118 | 1153 | 1197 | 1206 | 1436 | 1461 | 1969 | 3024 => Cause::Limit,
            1031 | 1075 | 1101 | 1173 | 1178 | 1235 | 1286 | 1289 | 1290 | 1305 | 3098 | 3161 | 3750 => {
                Cause::NotAllowed
            }
            _ => Cause::Other,
        }
    }

    /// Of the number of an ORA- message.
    pub(crate) fn of_oracle(code: u32) -> Cause {
        match code {
            257 | 1536 | 1650..=1659 | 1683 | 1688 | 1691 | 1692 | 19809 | 30036 => Cause::FullDisk,
            1031 | 1720 | 1950 => Cause::Privilege,
            18 | 20 | 2391 => Cause::Sessions,
            1000 | 4031 => Cause::Limit,
            439 | 902 | 904 | 4063 | 6550 => Cause::NotAllowed,
            _ => Cause::Other,
        }
    }
}

/// What follows an unknown table: loadline created it, so somebody dropped it during the run.
pub(crate) const TABLE_GONE: &str = ": loadline created this table and somebody dropped it since. Run again or continue with --resume: \
     loadline then creates it again";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_databases_codes_for_a_full_disk_and_for_limits_are_known() {
        assert_eq!(Cause::of_sqlstate("53100"), Cause::FullDisk);
        assert_eq!(["53200", "54000", "53400"].map(Cause::of_sqlstate), [Cause::Limit; 3]);
        assert_eq!(
            ["42501", "53300", "42P01"].map(Cause::of_sqlstate),
            [Cause::Privilege, Cause::Sessions, Cause::Other]
        );
        assert_eq!([1021, 1114].map(|code| Cause::of_mysql(code, None)), [Cause::FullDisk; 2]);
        assert_eq!([3, 1026, 1030].map(|code| Cause::of_mysql(code, Some(28))), [Cause::FullDisk; 3]);
        assert_eq!(Cause::of_mysql(1026, Some(5)), Cause::Other);
        assert_eq!([1173, 3750].map(|code| Cause::of_mysql(code, None)), [Cause::NotAllowed; 2]);
        assert_eq!([1461, 1040].map(|code| Cause::of_mysql(code, None)), [Cause::Limit, Cause::Sessions]);
        assert_eq!([1653, 257].map(Cause::of_oracle), [Cause::FullDisk; 2]);
    }
}
