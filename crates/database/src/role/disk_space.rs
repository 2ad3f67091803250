//! Free disk space as reported by the database.

use crate::error::TargetError;

/// Reports free disk space.
pub trait DiskSpace {
    /// Free space for data; `None` if unknown.
    fn free_space(&self) -> Result<Option<FreeSpace>, TargetError>;
}

/// Free space for data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FreeSpace {
    /// Bytes.
    pub bytes: u64,
    /// Where: `the tablespace USERS`.
    pub place: String,
    /// Why more space may be available (for example autoextend); `None` if not.
    pub may_grow: Option<String>,
}
