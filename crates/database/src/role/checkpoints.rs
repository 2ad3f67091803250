//! Checkpoints on demand.

use crate::error::TargetError;

/// Makes a checkpoint on demand.
pub trait Checkpoints {
    /// Makes the database write all changed blocks now, and returns when that is done.
    fn checkpoint(&self) -> Result<(), TargetError>;
}
