//! Where a reference log lies: a folder of its own under each of the folders that were named.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::TargetError;
use crate::folder::{self, OWNER, io, lock, remove};

/// Name of the folder that is made under a folder of the user's choice.
const FOLDER: &str = "loadline-wal";
/// Prefix of folders next to the results.
pub(super) const TEMP_PREFIX: &str = "loadline-wal-";
/// A folder that this process alone writes log files to.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    owner: File,
    temporary: Option<TempDir>,
}

impl Folder {
    /// Makes the folder under `parent`, empty; what an earlier run left in it goes.
    pub(super) fn under(parent: &Path) -> Result<Folder, TargetError> {
        if !parent.is_dir() {
            return Err(TargetError::Usage(format!("{} is no folder: make it first", parent.display())));
        }
        let path = parent.join(FOLDER);
        match fs::create_dir(&path) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => known(&path)?,
            Err(e) => return Err(io("making the folder", &path)(e)),
        }
        let owner = own(&path)?;
        for file in files(&path)? {
            fs::remove_file(&file).map_err(io("removing", &file))?;
        }
        Ok(Folder { path, owner, temporary: None })
    }

    /// Makes a folder in `scratch` that goes with this value.
    pub(super) fn temporary(scratch: &Path) -> Result<Folder, TargetError> {
        let (folder, owner) = folder::temporary(scratch, TEMP_PREFIX)?;
        Ok(Folder { path: folder.path().to_owned(), owner, temporary: Some(folder) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes a folder of the user's choice with its log; a temporary one goes by itself.
    pub(super) fn remove(&self) -> Result<Vec<String>, TargetError> {
        if self.temporary.is_some() {
            return Ok(Vec::new());
        }
        remove(&self.path).map(|text| vec![text])
    }

    /// Whether this process holds the folder. It does as long as the value lives.
    pub(super) fn held(&self) -> bool {
        self.owner.metadata().is_ok()
    }
}

/// Takes the owner file; refused while another process holds it.
fn own(path: &Path) -> Result<File, TargetError> {
    let in_use =
        || format!("another loadline run keeps its log in {}: wait for it or give another folder", path.display());
    lock(&path.join(OWNER), in_use)
}

/// Refuses a folder that loadline did not make.
fn known(path: &Path) -> Result<(), TargetError> {
    if path.join(OWNER).is_file() {
        return Ok(());
    }
    Err(TargetError::Refused(format!(
        "{} was not made by loadline: move it away or give another folder",
        path.display()
    )))
}

/// Log files in a folder: everything but the owner file. There are no folders in it.
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
    known(&path)?;
    let owner = own(&path)?;
    let removed = remove(&path);
    drop(owner);
    removed.map(|text| vec![text])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_ones_own_and_what_others_made_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::under(dir.path()).unwrap();
        assert!(folder.held());
        fs::write(folder.path().join("0000"), "x").unwrap();
        assert!(matches!(Folder::under(dir.path()), Err(TargetError::Refused(_))), "one run at a time");
        assert!(clean(dir.path()).is_err(), "a living run is not cleaned away");
        drop(folder);
        let again = Folder::under(dir.path()).unwrap();
        assert!(files(again.path()).unwrap().is_empty(), "the old log is gone");
        drop(again);
        assert_eq!(clean(dir.path()).unwrap().len(), 1);
        fs::create_dir(dir.path().join(FOLDER)).unwrap();
        assert!(Folder::under(dir.path()).unwrap_err().to_string().contains("not made by loadline"));
        assert!(clean(dir.path()).is_err());
    }

    #[test]
    fn what_a_dead_run_left_next_to_the_results_goes() {
        let dir = tempfile::tempdir().unwrap();
        let living = Folder::temporary(dir.path()).unwrap();
        let dead = dir.path().join(format!("{TEMP_PREFIX}dead"));
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(OWNER), "").unwrap();
        assert_eq!(folder::clean_leftovers(dir.path(), TEMP_PREFIX).unwrap().len(), 1);
        assert!(living.path().exists() && !dead.exists());
    }
}
