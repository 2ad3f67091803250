//! Where the private server is put.

use std::path::Path;

use super::address::{Address, SCHEME};
use super::binaries::Binaries;
use super::user::ServerUser;
use crate::error::TargetError;
use crate::temp::place::Wanted;
pub(super) use crate::temp::place::{FALLBACK, Location};

/// Chooses the place: the URL's directory, else the results folder, else [`FALLBACK`].
pub(super) fn choose(
    address: &Address,
    scratch: &Path,
    user: &ServerUser,
    binaries: &Binaries,
) -> Result<Location, TargetError> {
    let program = binaries.postgres();
    crate::temp::place::choose(Wanted {
        scheme: SCHEME,
        log_setting: "max_wal_size",
        dir: address.dir.as_deref(),
        scratch,
        user,
        program: &program,
    })
}

/// The error for a directory that cannot be used.
pub(super) fn cannot_use(path: &Path, e: &std::io::Error) -> TargetError {
    crate::temp::place::cannot_use(path, SCHEME, e)
}
