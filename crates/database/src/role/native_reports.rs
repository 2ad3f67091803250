//! The database's own reports.

use crate::error::TargetError;

/// Creates the database's own report on a test, described by [`crate::NativeReport`].
pub trait NativeReports {
    /// Takes a snapshot in the database's performance history and returns its number.
    fn native_mark(&self) -> Result<i64, TargetError>;

    /// The report from the snapshot `from` until now.
    fn native_report(&self, from: i64) -> Result<String, TargetError>;
}
