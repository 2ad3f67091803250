//! Folders that loadline creates. Each has an owner file that stays locked as long as its run lives.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::error::TargetError;

const OWNER: &str = "owner.lock";

/// The error for a file operation (`what`: "creating", "removing") that failed at `path`.
pub(crate) fn io<'a>(what: &'a str, path: &'a Path) -> impl FnOnce(std::io::Error) -> TargetError + 'a {
    move |e| TargetError::Local(format!("{what} {} failed: {e}", path.display()))
}

/// Creates the file at `path` and locks it; [`TargetError::Refused`] with `in_use` if another process holds the lock.
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

/// A folder of loadline's, locked by this process as long as this value lives.
#[derive(Debug)]
pub(crate) struct OwnedFolder {
    path: PathBuf,
    /// Removes it on drop.
    temporary: Option<TempDir>,
    /// Dropped after it.
    _parents: Parents,
    _owner: File,
}

/// Folders that were made for a temporary one, the innermost first. On drop those are removed that nobody else uses.
#[derive(Debug, Default)]
pub(crate) struct Parents(Vec<PathBuf>);

impl Parents {
    /// Makes `folder`, with those above it.
    pub(crate) fn make(folder: &Path) -> std::io::Result<Parents> {
        let parents = Parents(folder.ancestors().take_while(|dir| !dir.exists()).map(Path::to_owned).collect());
        fs::create_dir_all(folder).map(|()| parents)
    }
}

impl Drop for Parents {
    fn drop(&mut self) {
        self.0.iter().for_each(|dir| drop(fs::remove_dir(dir)));
    }
}

impl OwnedFolder {
    /// Creates a folder in `scratch` that is removed on drop. Removes folders of dead runs first.
    pub(crate) fn temporary(scratch: &Path, prefix: &str) -> Result<OwnedFolder, TargetError> {
        let parents = Parents::make(scratch).map_err(io("creating the folder", scratch))?;
        clean_leftovers(scratch, prefix)?;
        let made = tempfile::Builder::new().prefix(prefix).tempdir_in(scratch);
        let made = made.map_err(io("creating a folder in", scratch))?;
        let owner = lock_folder(made.path())?;
        Ok(OwnedFolder { path: made.path().to_owned(), temporary: Some(made), _parents: parents, _owner: owner })
    }

    /// Creates the folder `name` under `parent`, or empties it if an earlier run left it.
    pub(crate) fn under(parent: &Path, name: &str) -> Result<OwnedFolder, TargetError> {
        if !parent.is_dir() {
            return Err(TargetError::Usage(format!("{} is not a folder: create it first", parent.display())));
        }
        let path = parent.join(name);
        match fs::create_dir(&path) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::AlreadyExists => check_is_ours(&path)?,
            Err(e) => return Err(io("creating the folder", &path)(e)),
        }
        let owner = lock_folder(&path)?;
        for file in fs::read_dir(&path).map_err(io("reading", &path))?.flatten().map(|entry| entry.path()) {
            if file.is_file() && !file.ends_with(OWNER) {
                fs::remove_file(&file).map_err(io("removing", &file))?;
            }
        }
        Ok(OwnedFolder { path, temporary: None, _parents: Parents::default(), _owner: owner })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the folder with its files; a temporary one is removed on drop.
    pub(crate) fn remove(&self) -> Result<Vec<String>, TargetError> {
        if self.temporary.is_some() {
            return Ok(Vec::new());
        }
        remove(&self.path).map(|text| vec![text])
    }
}

/// Locks the owner file in `folder`; refused while another process holds it.
fn lock_folder(folder: &Path) -> Result<File, TargetError> {
    let in_use = || format!("another loadline run uses {}: wait for it or give another folder", folder.display());
    lock(&folder.join(OWNER), in_use)
}

fn check_is_ours(folder: &Path) -> Result<(), TargetError> {
    if folder.join(OWNER).is_file() {
        return Ok(());
    }
    Err(TargetError::Refused(format!(
        "{} was not created by loadline: move it away or give another folder",
        folder.display()
    )))
}

/// Removes a folder that a dead run left; nothing if there is none.
pub(crate) fn clean(folder: &Path) -> Result<Vec<String>, TargetError> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    check_is_ours(folder)?;
    let _owner = lock_folder(folder)?;
    remove(folder).map(|text| vec![text])
}

/// Removes a folder. Retries if a file appears meanwhile: a log may prepare its next file in the background.
fn remove(path: &Path) -> Result<String, TargetError> {
    let mut tries = 50;
    loop {
        match fs::remove_dir_all(path) {
            Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty && tries > 0 => tries -= 1,
            done => return done.map(|()| format!("removed {}", path.display())).map_err(io("removing", path)),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_exclusive_and_foreign_folders_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (open, path) = (|| OwnedFolder::under(dir.path(), "own"), dir.path().join("own"));
        let folder = open().unwrap();
        fs::write(folder.path().join("0000"), "x").unwrap();
        assert!(matches!(open(), Err(TargetError::Refused(_))), "one run at a time");
        assert!(clean(&path).is_err(), "a running run's folder is not removed");
        drop(folder);
        let again = open().unwrap();
        assert!(!path.join("0000").exists(), "what was in it is removed");
        drop(again);
        assert_eq!(clean(&path).unwrap().len(), 1);
        fs::create_dir(&path).unwrap();
        assert!(open().unwrap_err().to_string().contains("not created by loadline"));
        assert!(clean(&path).is_err());
    }

    #[test]
    fn a_temporary_folder_is_removed_and_leftovers_of_dead_runs_are_found() {
        let scratch = tempfile::tempdir().unwrap();
        let left = || clean_leftovers(scratch.path(), "own-").unwrap().len();
        let live = OwnedFolder::temporary(scratch.path(), "own-").unwrap();
        assert_eq!(left(), 0, "a live one stays");
        let [dead, foreign] = ["own-dead", "own-foreign"].map(|name| scratch.path().join(name));
        [&dead, &foreign].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
        fs::write(dead.join(OWNER), "").unwrap();
        assert_eq!(left(), 1);
        drop(live);
        drop(OwnedFolder::temporary(&scratch.path().join("a/results"), "own-").unwrap());
        assert!(foreign.exists() && fs::read_dir(scratch.path()).unwrap().count() == 1);
    }
}
