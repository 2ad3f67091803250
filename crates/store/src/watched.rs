//! A file of `loadline snapshot`.

use std::fs::File;
use std::path::{Path, PathBuf};

use loadline_model::activity::{WATCHED_SCHEMA, Watched};

use crate::atomic;
use crate::error::StoreError;
use crate::folder::create_numbered;
use crate::stored::read_json;

/// A new file for a snapshot. It is removed when dropped, unless it was written.
#[derive(Debug)]
pub struct WatchedFile {
    path: PathBuf,
    written: bool,
}

impl WatchedFile {
    /// Creates `NAME.json`, or `NAME-2.json`, … if that exists, in `results`, which is created if missing.
    pub fn create(results: &Path, name: &str) -> Result<WatchedFile, StoreError> {
        let path = create_numbered(results, name, ".json", |path| File::create_new(path).map(drop))?;
        Ok(WatchedFile { path, written: false })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn write(mut self, watched: &Watched) -> Result<PathBuf, StoreError> {
        atomic::replace_json(&self.path, watched)?;
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

pub fn read_watched(path: &Path) -> Result<Watched, StoreError> {
    if !path.exists() {
        return Err(StoreError::Missing(path.to_owned()));
    }
    read_json(path, WATCHED_SCHEMA, |text| serde_json::from_slice(text))
}
