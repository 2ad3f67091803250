//! A file of `loadline snapshot`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use loadline_model::watched::{WATCHED_SCHEMA, Watched};

use crate::atomic;
use crate::error::{StoreError, io_error};
use crate::stored::read_json;

const PERMISSIONS: &str = "Check its permissions, or choose another folder with --results.";

/// A new file for a snapshot. It is removed when dropped, unless it was written.
#[derive(Debug)]
pub struct WatchedFile {
    path: PathBuf,
    written: bool,
}

impl WatchedFile {
    /// Creates `NAME.json`, or `NAME-2.json`, … if that exists, in `results`, which is created if missing.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub fn create(results: &Path, name: &str) -> Result<WatchedFile, StoreError> {
        std::fs::create_dir_all(results).map_err(|e| io_error("create", results, e, PERMISSIONS))?;
        let mut n = 1;
        loop {
            let path = results.join(if n == 1 { format!("{name}.json") } else { format!("{name}-{n}.json") });
            match File::create_new(&path) {
                Ok(_) => return Ok(WatchedFile { path, written: false }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => n += 1,
                Err(e) => return Err(io_error("create", &path, e, PERMISSIONS)),
            }
        }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `watched` and keeps the file.
    ///
    /// # Errors
    /// It cannot be written, e.g. because the disk is full.
    pub fn write(mut self, watched: &Watched) -> Result<PathBuf, StoreError> {
        let text = serde_json::to_vec_pretty(watched);
        let text = text.map_err(|e| io_error("encode", &self.path, io::Error::other(e), "Please report this."))?;
        atomic::replace(&self.path, &text)?;
        self.written = true;
        Ok(self.path.clone())
    }
}

impl Drop for WatchedFile {
    fn drop(&mut self) {
        if !self.written {
            // Best effort: an empty file is not mistaken for a snapshot.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Reads what [`WatchedFile::write`] wrote.
///
/// # Errors
/// The file is missing, damaged or of a newer layout.
pub fn read_watched(path: &Path) -> Result<Watched, StoreError> {
    if !path.exists() {
        return Err(StoreError::Missing(path.to_owned()));
    }
    read_json(path, WATCHED_SCHEMA)
}
