//! Names of the files in a run folder, and finding a run.

use std::path::{Path, PathBuf};

use crate::error::{StoreError, io_error};

pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const TESTS: &str = "tests.jsonl";
pub(crate) const LIVE: &str = "live.jsonl";
pub(crate) const LOCK: &str = ".lock";
/// Part of the names of temporary files.
pub(crate) const TEMPORARY: &str = ".tmp-";

/// Folder and extension of a file that a test has beside its line.
pub(crate) type SideFile<'a> = (&'a str, &'a str);
pub(crate) const SERIES: SideFile<'_> = ("series", "csv");
pub(crate) const HISTOGRAMS: SideFile<'_> = ("histograms", "hlog");
pub(crate) const SNAPSHOTS: SideFile<'_> = ("snapshots", "json");
pub(crate) const ACTIVITY: SideFile<'_> = ("activity", "json");
/// Those whose folders are in every run.
pub(crate) const SIDE_FILES: [SideFile<'_>; 4] = [SERIES, HISTOGRAMS, SNAPSHOTS, ACTIVITY];

pub(crate) fn side_file(run: &Path, (folder, extension): SideFile<'_>, test: u32) -> PathBuf {
    run.join(folder).join(format!("{test}.{extension}"))
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

pub fn id(run: &Path) -> String {
    let absolute = std::fs::canonicalize(run).unwrap_or_else(|_| run.to_owned());
    absolute.file_name().map_or_else(|| run.display().to_string(), |n| n.to_string_lossy().into_owned())
}
