//! The data set that many workloads read.

use crate::data_set::FoundTable;
use crate::error::TargetError;

/// Keeps the data set.
pub trait DataSet {
    /// Tables of the data set that are in place.
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
