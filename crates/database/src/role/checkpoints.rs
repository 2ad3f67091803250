//! Checkpoints on demand.

use crate::error::TargetError;

/// Makes a checkpoint on demand.
pub trait Checkpoints {
    /// Makes the database write all changed blocks now, and returns when that is done.
    ///
    /// # Errors
    /// [`TargetError::Unsupported`] if this user has no privilege for it.
    fn checkpoint(&self) -> Result<(), TargetError>;
}
