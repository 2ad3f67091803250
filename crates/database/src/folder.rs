//! Folders that loadline creates. Each has an owner file that stays locked as long as its run lives.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::error::TargetError;

/// The owner file.
pub(crate) const OWNER: &str = "owner.lock";

/// The error for a file operation (`what`: "creating", "removing") that failed at `path`.
pub(crate) fn io<'a>(what: &'a str, path: &'a Path) -> impl FnOnce(std::io::Error) -> TargetError + 'a {
    move |e| TargetError::Local(format!("{what} {} failed: {e}", path.display()))
}

/// Creates the file at `path` and locks it; `in_use` is the message if another process holds the lock.
///
/// # Errors
/// [`TargetError::Refused`] with `in_use`; [`TargetError::Local`].
pub(crate) fn lock(path: &Path, in_use: impl FnOnce() -> String) -> Result<File, TargetError> {
    try_lock(path).map_err(io("creating", path))?.ok_or_else(|| TargetError::Refused(in_use()))
}

/// Creates the file at `path` and locks it; `None` if another process holds the lock. The system releases it when its holder dies.
pub(crate) fn try_lock(path: &Path) -> std::io::Result<Option<File>> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// Creates a folder in `scratch` that is removed with the returned value. Removes folders of dead runs first.
pub(crate) fn temporary(scratch: &Path, prefix: &str) -> Result<(TempDir, File), TargetError> {
    fs::create_dir_all(scratch).map_err(io("creating the folder", scratch))?;
    clean_leftovers(scratch, prefix)?;
    let folder =
        tempfile::Builder::new().prefix(prefix).tempdir_in(scratch).map_err(io("creating a folder in", scratch))?;
    let owner = lock(&folder.path().join(OWNER), || format!("{} is in use", folder.path().display()))?;
    Ok((folder, owner))
}

/// Removes a folder. Retries if a file appears meanwhile: a log may prepare its next file in the background.
pub(crate) fn remove(path: &Path) -> Result<String, TargetError> {
    let mut removed = fs::remove_dir_all(path);
    for _ in 0..50 {
        match &removed {
            Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty => {
                std::thread::sleep(Duration::from_millis(10));
                removed = fs::remove_dir_all(path);
            }
            _ => break,
        }
    }
    removed.map_err(io("removing", path))?;
    Ok(format!("removed {}", path.display()))
}

/// Removes the temporary folders in `scratch` whose owner is dead.
pub(crate) fn clean_leftovers(scratch: &Path, prefix: &str) -> Result<Vec<String>, TargetError> {
    let Ok(entries) = fs::read_dir(scratch) else { return Ok(Vec::new()) };
    let mut removed = Vec::new();
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(prefix);
        // Without an owner file it is not loadline's, or not ready yet.
        let Some(owner) = ours.then(|| File::open(entry.path().join(OWNER)).ok()).flatten() else { continue };
        if owner.try_lock().is_ok() {
            removed.push(format!("{} (its run is dead)", remove(&entry.path())?));
        }
    }
    Ok(removed)
}
