//! The operating system user that the server runs as: PostgreSQL refuses to run as root.

use crate::error::TargetError;
pub(super) use crate::temp::user::ServerUser;

/// Oneself; as root the user `postgres` if there is one, else `nobody`.
pub(super) fn choose() -> Result<ServerUser, TargetError> {
    ServerUser::choose("PostgreSQL", "postgres")
}
