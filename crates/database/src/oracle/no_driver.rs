//! Replaces the driver if it is not built in: says how to build it in.

use super::address::OraAddress;
use super::session::OraSession;
use crate::error::TargetError;
use crate::secret::Secret;

/// Whether the driver is built in.
pub(super) const BUILT_IN: bool = false;

/// How to build the driver in.
pub(super) fn missing(address: &str) -> TargetError {
    TargetError::Unsupported(format!(
        "{address}: this loadline was built without the Oracle driver. Build it in, in loadline's source folder: \
         cargo install --path crates/cli --features oracle"
    ))
}

/// Opens no session.
pub(super) fn connect(address: &OraAddress, _: &Secret, _: &str) -> Result<Box<dyn OraSession>, TargetError> {
    Err(missing(&address.shown()))
}
