//! The database's own statistics views.

use loadline_model::activity::View;

use super::Observer;
use crate::error::TargetError;

/// Reads the statistics views of the database, of which the page of a test is made.
pub trait StatisticsViews {
    /// All views as they are now. One that cannot be read (privilege, setting, version) says why.
    fn views(&self) -> Result<Vec<View>, TargetError>;

    /// An observer whose wait samples are of all sessions but loadline's own.
    fn observer_of_all(&self) -> Result<Box<dyn Observer>, TargetError>;
}
