//! The size of the block cache.

use crate::error::TargetError;

/// Returns the size of the database's block cache, and sets it on a private server.
pub trait BlockCache {
    /// Resizes the block cache of a private server for the next tests; this may restart the server. With
    /// `data_bytes`, the cache is large enough for the indexes of that much data, but not for its rows. With `None` it
    /// gets its usual size. A user's server is not changed. Returns the present size of the cache, bytes; `None` if
    /// unknown.
    fn set_cache(&self, data_bytes: Option<u64>) -> Result<Option<u64>, TargetError>;
}
