//! What is peculiar about a target's files.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

/// What is peculiar about a target's files and about the counters of them; nothing, by default.
#[derive(Debug, Clone, Default)]
pub struct FileFacts {
    /// The files of the data, where the data directory holds others as well, or files that must not be opened
    /// by name.
    pub own: Option<OwnFiles>,
    /// Where the blocks by which a table grows are counted among those written to data files, besides the writes
    /// of their content: what to say of it.
    pub growth_is_written: Option<&'static str>,
}

/// The files of a database, all of them.
#[derive(Debug, Clone)]
pub struct OwnFiles {
    /// Open ones, for those on which this process holds locks: closing any other descriptor of them would give up
    /// these locks (fcntl_locking(2)).
    pub open: Vec<Arc<File>>,
    /// Files that hold none; they need not be there.
    pub named: Vec<PathBuf>,
}
