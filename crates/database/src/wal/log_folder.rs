//! The folder of a reference log: one of its own under each folder that the user named.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::TargetError;
use crate::folder::{self, OWNER, io, lock, remove};

/// Name of the folder that is created under the user's folder.
const FOLDER: &str = "loadline-wal";
/// Prefix of temporary folders next to the results.
pub(super) const TEMP_PREFIX: &str = "loadline-wal-";
/// A folder for log files, locked by this process.
#[derive(Debug)]
pub(super) struct LogFolder {
    path: PathBuf,
    /// Held as long as this lives.
    _owner: File,
    temporary: Option<TempDir>,
}

impl LogFolder {
    /// Creates the folder under `parent`, or empties it if an earlier run left it.
    pub(super) fn under(parent: &Path) -> Result<LogFolder, TargetError> {
        if !parent.is_dir() {
            return Err(TargetError::Usage(format!("{} is not a folder: create it first", parent.display())));
        }
        let path = parent.join(FOLDER);
        match fs::create_dir(&path) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => check_is_ours(&path)?,
            Err(e) => return Err(io("creating the folder", &path)(e)),
        }
        let owner = lock_owner(&path)?;
        for file in files(&path)? {
            fs::remove_file(&file).map_err(io("removing", &file))?;
        }
        Ok(LogFolder { path, _owner: owner, temporary: None })
    }

    /// Creates a folder in `scratch` that is removed when this value is dropped.
    pub(super) fn temporary(scratch: &Path) -> Result<LogFolder, TargetError> {
        let (folder, owner) = folder::temporary(scratch, TEMP_PREFIX)?;
        Ok(LogFolder { path: folder.path().to_owned(), _owner: owner, temporary: Some(folder) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the folder with its log; a temporary one is removed on drop.
    pub(super) fn remove(&self) -> Result<Vec<String>, TargetError> {
        if self.temporary.is_some() {
            return Ok(Vec::new());
        }
        remove(&self.path).map(|text| vec![text])
    }
}

/// Locks the owner file; refused while another process holds it.
fn lock_owner(path: &Path) -> Result<File, TargetError> {
    let in_use =
        || format!("another loadline run has its log in {}: wait for it or give another folder", path.display());
    lock(&path.join(OWNER), in_use)
}

/// Refuses a folder that loadline did not make.
fn check_is_ours(path: &Path) -> Result<(), TargetError> {
    if path.join(OWNER).is_file() {
        return Ok(());
    }
    Err(TargetError::Refused(format!(
        "{} was not created by loadline: move it away or give another folder",
        path.display()
    )))
}

/// Log files in a folder: all files but the owner file.
fn files(path: &Path) -> Result<Vec<PathBuf>, TargetError> {
    let entries = fs::read_dir(path).map_err(io("reading", path))?;
    Ok(entries.flatten().map(|e| e.path()).filter(|p| p.is_file() && !p.ends_with(OWNER)).collect())
}

/// Removes the folder under `parent` if a dead run left it there.
pub(super) fn clean(parent: &Path) -> Result<Vec<String>, TargetError> {
    let path = parent.join(FOLDER);
    if !path.exists() {
        return Ok(Vec::new());
    }
    check_is_ours(&path)?;
    let owner = lock_owner(&path)?;
    let removed = remove(&path);
    drop(owner);
    removed.map(|text| vec![text])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_exclusive_and_foreign_folders_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = LogFolder::under(dir.path()).unwrap();
        fs::write(folder.path().join("0000"), "x").unwrap();
        assert!(matches!(LogFolder::under(dir.path()), Err(TargetError::Refused(_))), "one run at a time");
        assert!(clean(dir.path()).is_err(), "a running run's folder is not removed");
        drop(folder);
        let again = LogFolder::under(dir.path()).unwrap();
        assert!(files(again.path()).unwrap().is_empty(), "the old log is removed");
        drop(again);
        assert_eq!(clean(dir.path()).unwrap().len(), 1);
        fs::create_dir(dir.path().join(FOLDER)).unwrap();
        assert!(LogFolder::under(dir.path()).unwrap_err().to_string().contains("not created by loadline"));
        assert!(clean(dir.path()).is_err());
    }

    #[test]
    fn leftovers_of_dead_runs_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let living = LogFolder::temporary(dir.path()).unwrap();
        let dead = dir.path().join(format!("{TEMP_PREFIX}dead"));
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(OWNER), "").unwrap();
        assert_eq!(folder::clean_leftovers(dir.path(), TEMP_PREFIX).unwrap().len(), 1);
        assert!(living.path().exists() && !dead.exists());
    }
}
