//! The data set that many workloads share.

use crate::data_set::FoundTable;
use crate::error::TargetError;

/// Manages the data set.
pub trait DataSet {
    /// Existing tables of the data set.
    ///
    /// # Errors
    /// When the target does not answer.
    fn data_set(&self) -> Result<Vec<FoundTable>, TargetError>;

    /// Drops all tables of the data set.
    ///
    /// # Errors
    /// When a statement fails.
    fn drop_data_set(&self) -> Result<(), TargetError>;
}
