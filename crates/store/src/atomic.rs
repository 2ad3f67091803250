//! Atomic and durable file writes.

use std::fs::File;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;

use crate::error::{StoreError, io_error};
use crate::layout::TEMPORARY;

const PERMISSIONS: &str = "Check the folder's permissions and that its filesystem is not read-only.";

/// Replaces `path` by `contents` atomically: temporary file, fsync, rename, fsync of the directory. After a crash at any
/// moment, the file is the old or the new one.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> Result<(), StoreError> {
    put_in_place(path, |temporary| write_synced(temporary, contents))?;
    sync_directory(path.parent().unwrap_or(path))
}

/// Replaces `path` by `value` as JSON, as [`replace`] does.
pub(crate) fn replace_json(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    let text = serde_json::to_vec_pretty(value);
    let mut text = text.map_err(|e| io_error("encode", path, e.into(), "Please report this."))?;
    text.push(b'\n');
    replace(path, &text)
}

fn put_in_place(path: &Path, write: impl FnOnce(&Path) -> Result<(), StoreError>) -> Result<(), StoreError> {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unique = format!("{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let temporary = path.with_file_name(format!(".{name}{TEMPORARY}{unique}"));
    let outcome = write(&temporary)
        .and_then(|()| std::fs::rename(&temporary, path).map_err(|e| io_error("replace", path, e, PERMISSIONS)));
    if outcome.is_err() {
        // Best effort: the first error is the one to report.
        let _ = std::fs::remove_file(&temporary);
    }
    outcome
}

/// Writes a file and syncs it. Removes it if that fails, to free its space.
pub(crate) fn write_synced(path: &Path, contents: &[u8]) -> Result<(), StoreError> {
    let written = File::create(path).and_then(|mut file| {
        file.write_all(contents)?;
        file.sync_all()
    });
    written.map_err(|e| {
        let _ = std::fs::remove_file(path);
        io_error("write", path, e, PERMISSIONS)
    })
}

/// Makes the names of new files in `directory` durable.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), StoreError> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    match File::open(directory).and_then(|d| d.sync_all()) {
        Ok(()) => Ok(()),
        // Some filesystems (FUSE, network) have no fsync of directories: nothing more can be done.
        Err(e) if matches!(e.kind(), std::io::ErrorKind::InvalidInput | std::io::ErrorKind::Unsupported) => Ok(()),
        Err(e) => Err(io_error("sync", directory, e, "Check the health of its filesystem.")),
    }
}

/// Writes `contents` atomically to the file `relative` (e.g. `report/index.html`) of run folder `run`, and creates
/// directories as needed. Returns its path. Syncs nothing: a run has a page for each test, all of which can be made again.
/// `relative` may not lead out of the folder.
pub fn write_report(run: &Path, relative: &str, contents: &[u8]) -> Result<PathBuf, StoreError> {
    let inside = Path::new(relative);
    let plain = !relative.is_empty() && inside.components().all(|c| matches!(c, Component::Normal(_)));
    if !plain {
        let cause = std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a path inside the run folder");
        return Err(io_error("write", inside, cause, "Give a relative path, such as report/index.html."));
    }
    let path = run.join(inside);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|e| io_error("create", parent, e, PERMISSIONS))?;
    }
    put_in_place(&path, |temporary| {
        std::fs::write(temporary, contents).map_err(|e| io_error("write", &path, e, PERMISSIONS))
    })?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_replaces_the_old_one_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["one", "two"] {
            let path = write_report(dir.path(), "report/index.html", text.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(path).unwrap(), text);
        }
        assert_eq!(std::fs::read_dir(dir.path().join("report")).unwrap().count(), 1);
    }

    #[test]
    fn a_report_stays_inside_its_run() {
        let dir = tempfile::tempdir().unwrap();
        for bad in ["", "../x", "/tmp/x", "report/../../x"] {
            let error = write_report(dir.path(), bad, b"x").unwrap_err().to_string();
            assert!(error.contains("not a path inside"), "{bad}: {error}");
        }
    }

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("taken");
        std::fs::create_dir_all(path.join("by-a-directory")).unwrap();
        assert!(replace(&path, b"x").is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    }
}
