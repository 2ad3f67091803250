//! The differences between private servers of PostgreSQL, MariaDB and MySQL.

use std::io;
use std::path::Path;

use super::child::Stages;
use super::owner::Owner;
use crate::error::TargetError;

/// A product of which loadline can start private servers.
pub(crate) struct Product {
    /// Name for messages: `PostgreSQL`.
    pub(crate) name: &'static str,
    /// Scheme of the target's URL.
    pub(crate) scheme: &'static str,
    /// Prefix of its directory names; a random part follows.
    pub(crate) prefix: &'static str,
    /// Preferred user of the server if loadline is root.
    pub(crate) user: &'static str,
    /// File name of the server program.
    pub(crate) program: &'static str,
    /// Supported versions, for messages: `14 and newer`.
    pub(crate) supported: &'static str,
    /// Name of its package in distributions, for messages.
    pub(crate) package: &'static str,
    /// Example directory of its binaries, for messages.
    pub(crate) bin: &'static str,
    /// The setting for the size of the log, for messages.
    pub(crate) log_setting: &'static str,
    /// Settings that loadline needs to reach the server and to find its processes; users cannot set them.
    pub(crate) reserved: &'static [&'static [&'static str]],
    /// The value of a setting is not shown if its name contains one of these.
    pub(crate) secrets: &'static [&'static str],
    /// The URL's parameter for the number of further servers, of a product that can have them.
    pub(crate) further: Option<&'static str>,
    /// File name of the socket.
    pub(crate) socket: &'static str,
    /// Characters that the path of the socket's directory must not contain.
    pub(crate) unfit: fn(char) -> bool,
    /// Further files in the server's directory.
    pub(crate) besides: &'static [&'static str],
    /// Signals that stop the server, each with the time to wait for its end.
    pub(crate) stages: &'static Stages,
    /// Ends the processes of the server in a directory of this name; returns whether anything still ran.
    pub(crate) end: fn(dir: &Path, name: &str, owner: &Owner) -> io::Result<bool>,
}

impl Product {
    /// The error for a directory or file that cannot be used.
    pub(crate) fn cannot_use(&self, path: &Path, e: &io::Error) -> TargetError {
        TargetError::Local(format!(
            "the private server cannot be created in '{}': {e}. Name another directory with {}:/dir",
            path.display(),
            self.scheme
        ))
    }
}

/// The error for a program that does not start.
pub(crate) fn cannot_run(program: &Path, e: &io::Error) -> TargetError {
    TargetError::Local(format!("'{}' cannot be run: {e}", program.display()))
}
