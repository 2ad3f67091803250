//! The size of the block cache.

use crate::error::TargetError;

/// Knows the size of the database's block cache, and on a private server sets it.
pub trait BlockCache {
    /// Brings the block cache of a server that loadline owns to what suits the next tests, whatever that
    /// takes (sessions may be lost): just large enough for what leads to the rows of `data_bytes` bytes of data,
    /// but not for the rows, or (`None`) as it was. A user's server stays as it is. Returns the size of the
    /// cache now, bytes; `None` if unknown.
    ///
    /// # Errors
    /// When the server does not follow.
    fn set_cache(&self, data_bytes: Option<u64>) -> Result<Option<u64>, TargetError>;
}
