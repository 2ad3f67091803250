//! Positions and commit modes.

use std::fmt;

/// A position in the log: the number of bytes before it. Records, headers and padding count; the header blocks of
/// files do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether a commit waits until it is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommitMode {
    /// Returns when it is durable.
    Wait,
    Nowait,
}
