//! The database's own reports.

use crate::error::TargetError;

/// Reports what the database itself recorded of a test, in the format that [`crate::NativeReport`] says.
pub trait NativeReports {
    /// Marks this moment in the database's history of performance data.
    ///
    /// # Errors
    /// When it may not be used.
    fn native_mark(&self) -> Result<i64, TargetError>;

    /// The report of what went on from the mark `from` until now.
    ///
    /// # Errors
    /// When there is no such report.
    fn native_report(&self, from: i64) -> Result<String, TargetError>;
}
