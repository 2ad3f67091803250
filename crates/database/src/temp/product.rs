//! What distinguishes the private servers of one product from those of another.

use std::io;
use std::path::Path;

use super::child::Stages;
use super::owner::Owner;
use crate::error::TargetError;

/// A product that loadline starts private servers of.
pub(crate) struct Product {
    /// Its name, for messages: `PostgreSQL`.
    pub(crate) name: &'static str,
    /// Scheme of the target's URL.
    pub(crate) scheme: &'static str,
    /// How the names of its directories begin; a random part follows.
    pub(crate) prefix: &'static str,
    /// The user that the server runs as when loadline is root, if there is one.
    pub(crate) user: &'static str,
    /// A directory of its binaries, for messages.
    pub(crate) bin: &'static str,
    /// The setting that says how large the log grows, for messages.
    pub(crate) log_setting: &'static str,
    /// Settings that loadline makes itself, to reach the server and to find its processes.
    pub(crate) reserved: &'static [&'static str],
    /// The value of a setting is not shown if its name holds one of these.
    pub(crate) secrets: &'static [&'static str],
    /// Name of the socket in its directory.
    pub(crate) socket: &'static str,
    /// Characters that the path of the socket's directory must not have.
    pub(crate) unfit: fn(char) -> bool,
    /// Further files in the server's directory.
    pub(crate) besides: &'static [&'static str],
    /// Signals that end the server, and how long it has to follow each.
    pub(crate) stages: &'static Stages,
    /// Ends what runs of the server in a directory with this name; says whether anything still ran.
    pub(crate) end: fn(dir: &Path, name: &str, owner: &Owner) -> io::Result<bool>,
}

impl Product {
    /// The error for a directory or file that cannot be used.
    pub(crate) fn cannot_use(&self, path: &Path, e: &io::Error) -> TargetError {
        TargetError::Local(format!(
            "the private server cannot be made in «{}»: {e}. Name another directory with {}:/dir",
            path.display(),
            self.scheme
        ))
    }
}

/// The error for a program that does not start.
pub(crate) fn cannot_run(program: &Path, e: &io::Error) -> TargetError {
    TargetError::Local(format!("«{}» cannot be run: {e}", program.display()))
}
