//! In place of the driver where it is not built in: says how to build it in.

use super::place::Place;
use super::session::Session;
use crate::error::TargetError;
use crate::registry::Secret;

/// Whether the driver is there.
pub(super) const BUILT_IN: bool = false;

/// What to do to have it.
pub(super) fn missing(place: &str) -> TargetError {
    TargetError::Unsupported(format!(
        "{place}: this loadline was built without the Oracle driver. Build it in, in loadline's source folder: \
         cargo install --path crates/cli --features oracle"
    ))
}

/// Opens no session.
pub(super) fn dial(place: &Place, _: &Secret, _: &str) -> Result<Box<dyn Session>, TargetError> {
    Err(missing(&place.shown()))
}
