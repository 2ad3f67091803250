//! The size of the block cache.

use crate::error::TargetError;

/// What the block cache of a private server is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheUse {
    /// Its usual size.
    Usual,
    /// Reads from the device: room for the indexes of this many bytes of data, but not for their rows.
    Reads(u64),
    /// Changes, which must soon be written: room for few changed blocks of this many bytes of data. If the database reads
    /// past the operating system's page cache, the cache still holds the data, so that changes need no reads.
    Writes(u64),
}

impl CacheUse {
    /// Bytes of data that the cache is small for.
    #[must_use]
    pub fn small_for(self) -> Option<u64> {
        match self {
            CacheUse::Usual => None,
            CacheUse::Reads(bytes) | CacheUse::Writes(bytes) => Some(bytes),
        }
    }
}

/// Returns the size of the database's block cache, and sets it on a private server.
pub trait BlockCache {
    /// Makes the block cache of a private server ready for the next tests; this may restart the server. A user's server
    /// is not changed. Returns the present size of the cache, bytes; `None` if unknown.
    ///
    /// # Errors
    /// When the server cannot be changed.
    fn set_cache(&self, used: CacheUse) -> Result<Option<u64>, TargetError>;
}
