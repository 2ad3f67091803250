//! Checkpoints on demand.

use crate::error::TargetError;

/// Makes a checkpoint when asked to.
pub trait Checkpoints {
    /// Has the database write out all changed blocks now, and returns when that is done.
    ///
    /// # Errors
    /// [`TargetError::Unsupported`] if this user may not ask for it.
    fn checkpoint(&self) -> Result<(), TargetError>;
}
