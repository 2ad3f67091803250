//! Whose work an observer reads.

/// Whose waits are sampled, and whose transactions and accesses are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The jobs' sessions, and the database that they work in.
    Jobs,
    /// All clients but loadline, and all databases of the server.
    All,
}
