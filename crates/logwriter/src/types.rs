//! Positions and commit modes.

/// A position in the log: the number of bytes before it. Records, headers and padding count; the header blocks of
/// files do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// Whether a commit waits until it is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommitMode {
    /// Returns when it is durable.
    Wait,
    /// Returns at once; a later group makes it durable.
    Nowait,
}
