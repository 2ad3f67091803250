//! Free space, as the database itself says.

use crate::error::TargetError;

/// Knows how much space is free for data.
pub trait DiskSpace {
    /// Space that is free for data; `None` if unknown.
    ///
    /// # Errors
    /// When the target does not answer.
    fn free_space(&self) -> Result<Option<FreeSpace>, TargetError>;
}

/// Space that is free for data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FreeSpace {
    /// Bytes.
    pub bytes: u64,
    /// Where: `the tablespace USERS`.
    pub place: String,
    /// Why there may be more than that; `None` where there is not.
    pub may_grow: Option<String>,
}
