//! The error type of all targets.

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;

use crate::facts::Events;

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
    /// This failure with `more` behind its text.
    #[must_use]
    pub fn with(mut self, more: &str) -> TargetError {
        self.text().push_str(more);
        self
    }

    /// This failure with `what` before its text.
    #[must_use]
    pub fn after(mut self, what: &str) -> TargetError {
        self.text().insert_str(0, what);
        self
    }

    /// This failure of a statement with its place in a user's file, if it has one, before its text.
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
    pub fn lost(text: String, full_disk: bool) -> TargetError {
        if full_disk { TargetError::NoSpace(text) } else { TargetError::Lost(text) }
    }

    /// Of a connection that the server refuses with `refusal`, which `text` explains: only at the limit of sessions, others may do.
    pub(crate) fn connection(refusal: Refusal, text: String) -> TargetError {
        if refusal.cause == Cause::Sessions { Refusal { text, ..refusal }.into() } else { TargetError::Refused(text) }
    }

    pub fn is_full_disk(&self) -> bool {
        matches!(self, TargetError::NoSpace(_) | TargetError::Server(Refusal { cause: Cause::FullDisk, .. }))
    }

    pub fn is_lost(&self) -> bool {
        matches!(self, TargetError::Lost(_) | TargetError::NoSpace(_))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct Refusal {
    /// The kind of the cause, by the server's code.
    pub cause: Cause,
    /// SQLSTATE, error number, or name of the code, as the server's manual lists it. Empty if the server gave none.
    pub code: String,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A disk, a tablespace or a quota is full.
    FullDisk,
    Privilege,
    /// The limit of sessions of the server, the database or the user.
    Sessions,
    /// The server forbids it, or does not have what it needs: a primary key, a type, an extension, a function.
    NotAllowed,
    Limit,
    Other,
}

/// Codes of a server's errors by their cause; the first that has a code is its cause. `53*` stands for all that begin so.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Causes(BTreeMap<Cause, Events>);

impl Causes {
    pub(crate) fn cause(&self, code: &str) -> Cause {
        self.0.iter().find(|(_, codes)| codes.has(code)).map_or(Cause::Other, |(cause, _)| *cause)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Meaning {
    codes: Events,
    /// Only those whose text has one of these parts.
    #[serde(default)]
    says: Vec<String>,
    advice: String,
}

impl Meaning {
    /// Advice on the error `code` that says `text`: of the first of `all` that is of both.
    pub(crate) fn advice<'a>(all: &'a [Meaning], code: &str, text: &str) -> Option<&'a str> {
        let says = |of: &Meaning| of.says.is_empty() || of.says.iter().any(|part| text.contains(part));
        all.iter().find(|of| of.codes.has(code) && says(of)).map(|of| of.advice.as_str())
    }
}

/// Answer of the server; nothing if it refuses the statement.
pub(crate) fn unless_refused<T: Default>(answer: Result<T, TargetError>) -> Result<T, TargetError> {
    match answer {
        Err(TargetError::Server(_)) => Ok(T::default()),
        answer => answer,
    }
}

/// An unknown table: loadline created it, so somebody dropped it during the run.
pub(crate) const TABLE_GONE: &str = ": loadline created this table and somebody dropped it since. Run again or continue with --resume: \
     loadline then creates it again";
