//! The data set that many workloads share.

use loadline_workload::Table;

use crate::data_set::FoundTable;
use crate::error::TargetError;
use crate::work::Work;

/// Manages the data set.
pub trait DataSet {
    /// Existing tables of the data set.
    fn data_set(&self) -> Result<Vec<FoundTable>, TargetError>;

    /// Compares a sample of the rows of `table`, which `work` reads and which is complete, with what they must be.
    ///
    /// # Errors
    /// [`TargetError::Refused`] if a row differs, or when a statement fails.
    fn check_rows(&self, work: &Work, table: &Table) -> Result<(), TargetError>;

    /// Drops all tables of the data set.
    fn drop_data_set(&self) -> Result<(), TargetError>;
}
