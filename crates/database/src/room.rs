//! Room for data on a target: what a load takes there, and what is free.

/// What is free for data, as the database itself says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FreeRoom {
    /// Bytes.
    pub bytes: u64,
    /// Where: `the tablespace USERS`.
    pub place: String,
    /// Why there may be more than that; `None` where there is not.
    pub may_grow: Option<String>,
}

/// What the log takes while data are loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogRoom {
    /// Bytes beside what it takes already.
    pub bytes: u64,
    /// The folder that takes them, where it is not that of the log (`TargetInfo::log_dir`).
    pub dir: Option<String>,
    /// What of it is not known, in words.
    pub unknown: Option<String>,
}
