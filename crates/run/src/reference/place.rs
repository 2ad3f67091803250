//! Folders in which references are measured.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use loadline_model::manifest::TargetInfo;

/// A directory of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Its log directory.
    Log,
    /// Its data directory.
    Data,
}

/// A writable folder on the filesystem of the database's log or data: the run's `scratch` folder if it is there, else
/// the nearest writable parent of the database's directory. Never inside the database's directories.
///
/// # Errors
/// Why there is none, and what the user can do.
pub fn writable_dir(info: &TargetInfo, role: Role, scratch: &Path) -> Result<PathBuf, String> {
    let (dir, what) = match role {
        Role::Log => (&info.log_dir, "log"),
        Role::Data => (&info.data_dir, "data"),
    };
    let Some(log_dir) = dir.as_deref().filter(|_| info.local).map(Path::new) else {
        return Err(format!(
            "the filesystem of the database's {what} is not accessible from here: run `loadline probe` on the \
            database's machine and pass its figures with --limits FILE"
        ));
    };
    let device = |path: &Path| fs::metadata(path).map(|m| m.dev()).ok();
    let Some(wanted) = device(log_dir) else {
        return Err(format!(
            "{} cannot be read by this user: run `loadline probe` as a user who can read it and pass its figures with \
            --limits FILE",
            log_dir.display()
        ));
    };
    if device(scratch) == Some(wanted) {
        return Ok(scratch.to_owned());
    }
    let dirs = [&info.log_dir, &info.data_dir];
    let own = |path: &Path| dirs.iter().filter_map(|d| d.as_deref()).any(|d| path.starts_with(d));
    let above = log_dir.ancestors().skip(1).take_while(|p| device(p) == Some(wanted)).filter(|p| !own(p));
    let mut writable = above.filter(|p| tempfile::tempdir_in(p).is_ok());
    match writable.next() {
        Some(path) => Ok(path.to_owned()),
        None => Err(format!(
            "no writable folder found on the filesystem of {}: put --results there, or pass the figures of `loadline \
            probe` with --limits FILE",
            log_dir.display()
        )),
    }
}
