//! Names of the files in a run folder, and finding a run.

use std::path::{Path, PathBuf};

use crate::error::{StoreError, io_error};

pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const TESTS: &str = "tests.jsonl";
pub(crate) const LIVE: &str = "live.jsonl";
pub(crate) const LOCK: &str = ".lock";
pub(crate) const SERIES: &str = "series";
pub(crate) const HISTOGRAMS: &str = "histograms";
pub(crate) const SNAPSHOTS: &str = "snapshots";
pub(crate) const ACTIVITY: &str = "activity";
/// Directories of every run folder.
pub(crate) const DIRECTORIES: [&str; 4] = [SERIES, HISTOGRAMS, SNAPSHOTS, ACTIVITY];
/// Part of the names of temporary files.
pub(crate) const TEMPORARY: &str = ".tmp-";

pub(crate) fn series(run: &Path, test: u32) -> PathBuf {
    run.join(SERIES).join(format!("{test}.csv"))
}

pub(crate) fn histograms(run: &Path, test: u32) -> PathBuf {
    run.join(HISTOGRAMS).join(format!("{test}.hlog"))
}

pub(crate) fn snapshots(run: &Path, test: u32) -> PathBuf {
    run.join(SNAPSHOTS).join(format!("{test}.json"))
}

pub(crate) fn activity(run: &Path, test: u32) -> PathBuf {
    run.join(ACTIVITY).join(format!("{test}.json"))
}

/// Path of a database's own report of a test; `folder` and `extension` come from a target.
pub(crate) fn native(run: &Path, folder: &str, test: u32, extension: &str) -> Result<PathBuf, String> {
    let plain = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if !plain(folder) || !plain(extension) || DIRECTORIES.contains(&folder) {
        return Err(format!("'{folder}/{test}.{extension}' is not a valid path of a report"));
    }
    Ok(run.join(folder).join(format!("{test}.{extension}")))
}

/// The run folder for `path`: the folder itself or its `manifest.json`.
pub(crate) fn locate(path: &Path) -> Result<PathBuf, StoreError> {
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(StoreError::Missing(path.to_owned())),
        Err(e) => return Err(io_error("open", path, e, "Check the path and its permissions.")),
    };
    if !meta.is_dir() {
        let named_so = path.file_name().is_some_and(|n| n == MANIFEST);
        return match path.parent() {
            // The parent of a bare 'manifest.json' is '', which no system call accepts.
            Some(parent) if named_so && parent.as_os_str().is_empty() => Ok(PathBuf::from(".")),
            Some(parent) if named_so => Ok(parent.to_owned()),
            _ => Err(StoreError::NotARun(path.to_owned())),
        };
    }
    if path.join(MANIFEST).exists() {
        return Ok(path.to_owned());
    }
    let runs: Vec<String> = runs_in(path)?.iter().map(|run| id(run)).collect();
    if runs.is_empty() {
        return Err(StoreError::NotARun(path.to_owned()));
    }
    Err(StoreError::HoldsRuns { path: path.to_owned(), runs })
}

/// The run folders in `path`, by name: those with a manifest or tests, also damaged ones.
///
/// # Errors
/// `path` is not a folder, or cannot be listed.
pub fn runs_in(path: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let cannot = |e| io_error("list", path, e, "Check the path and its permissions.");
    let mut runs = Vec::new();
    for entry in std::fs::read_dir(path).map_err(cannot)? {
        let folder = entry.map_err(cannot)?.path();
        if [MANIFEST, TESTS].iter().any(|file| folder.join(file).exists()) {
            runs.push(folder);
        }
    }
    runs.sort();
    Ok(runs)
}

/// The run's id: the name of its folder.
pub(crate) fn id(run: &Path) -> String {
    let absolute = std::fs::canonicalize(run).unwrap_or_else(|_| run.to_owned());
    absolute.file_name().map_or_else(|| run.display().to_string(), |n| n.to_string_lossy().into_owned())
}
