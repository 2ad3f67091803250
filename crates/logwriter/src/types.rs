//! The two words that all of it is about.

use std::fmt;

/// A position in the log: how many bytes of it lie before. Records, headers and filling count;
/// the blocks at the files' beginnings do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether a commit waits until it is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Commit {
    /// It returns when it is.
    Wait,
    /// It returns at once.
    Nowait,
}
