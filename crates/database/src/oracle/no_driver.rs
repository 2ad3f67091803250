//! In place of the driver where it is not built in: says how to build it in.

use super::address::OraAddress;
use super::session::OraSession;
use crate::error::TargetError;
use crate::secret::Secret;

/// Whether the driver is there.
pub(super) const BUILT_IN: bool = false;

/// What to do to have it.
pub(super) fn missing(address: &str) -> TargetError {
    TargetError::Unsupported(format!(
        "{address}: this loadline was built without the Oracle driver. Build it in, in loadline's source folder: \
         cargo install --path crates/cli --features oracle"
    ))
}

/// Opens no session.
pub(super) fn dial(address: &OraAddress, _: &Secret, _: &str) -> Result<Box<dyn OraSession>, TargetError> {
    Err(missing(&address.shown()))
}
