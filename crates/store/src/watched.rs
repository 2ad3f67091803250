//! A file of `loadline snapshot`.

use std::io;
use std::path::{Path, PathBuf};

use loadline_model::watched::{WATCHED_SCHEMA, Watched};

use crate::atomic;
use crate::error::{StoreError, io_error};
use crate::stored::read_json;

const PERMISSIONS: &str = "Check its permissions, or choose another folder with --results.";

/// Writes `watched` to a new file in `results`, which is created if missing: `NAME.json`, or `NAME-2.json`, … if that exists.
/// Returns its path.
///
/// # Errors
/// The folder or the file cannot be written.
pub fn write_watched(results: &Path, name: &str, watched: &Watched) -> Result<PathBuf, StoreError> {
    std::fs::create_dir_all(results).map_err(|e| io_error("create", results, e, PERMISSIONS))?;
    let named = |n: u32| results.join(if n == 1 { format!("{name}.json") } else { format!("{name}-{n}.json") });
    let path = (1..u32::MAX).map(named).find(|path| !path.exists()).unwrap_or_else(|| named(1));
    let text = serde_json::to_vec_pretty(watched);
    let text = text.map_err(|e| io_error("encode", &path, io::Error::other(e), "Please report this."))?;
    atomic::replace(&path, &text)?;
    Ok(path)
}

/// Reads what [`write_watched`] wrote.
///
/// # Errors
/// The file is missing, damaged or of a newer layout.
pub fn read_watched(path: &Path) -> Result<Watched, StoreError> {
    if !path.exists() {
        return Err(StoreError::Missing(path.to_owned()));
    }
    read_json(path, WATCHED_SCHEMA)
}
