//! The target's flags as a request to open it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use loadline_database::OpenRequest;
use loadline_run::plan::DEFAULT_TARGET;
use loadline_store::PACKED;
use tempfile::TempDir;

use crate::args::TargetArgs;
use crate::arguments;
use crate::exit::Failure;

impl TargetArgs {
    /// URL of the target.
    pub(crate) fn url(&self) -> String {
        self.target.clone().unwrap_or_else(|| DEFAULT_TARGET.to_owned())
    }

    /// The request; private servers and databases are made beside `results`.
    pub(crate) fn request(&self, results: &Path) -> OpenRequest {
        let mut request = OpenRequest::new(&self.url(), absolute(results));
        request.nodes.clone_from(&self.node);
        request.settings = self.setting.iter().cloned().collect();
        request.ask_password = arguments::ask();
        request
    }
}

/// Absolute `path`, for servers with another working directory.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Folder of a run, given as a folder or as an id in `results`.
pub(crate) fn run_on_disk(run: &Path, results: &Path) -> PathBuf {
    let in_results = results.join(run);
    if !run.exists() && in_results.exists() { in_results } else { run.to_owned() }
}

/// Folders of packed runs that this process has unpacked, until it ends.
static UNPACKED: Mutex<Vec<TempDir>> = Mutex::new(Vec::new());

/// The same for commands that only read the run: a packed one (`RUN.loadline`) is unpacked into a temporary folder.
pub(crate) fn run_folder(run: &Path, results: &Path) -> Result<PathBuf, Failure> {
    let path = run_on_disk(run, results);
    if !path.is_file() || path.extension().is_none_or(|end| end != PACKED) {
        return Ok(path);
    }
    let folder = tempfile::tempdir().map_err(|e| Failure::failed(format!("no temporary folder: {e}")))?;
    let run = loadline_store::unpack(&path, folder.path())?;
    UNPACKED.lock().unwrap_or_else(PoisonError::into_inner).push(folder);
    Ok(run)
}

/// Whether `folder` is of a packed run: what is written into it is lost.
pub(crate) fn is_unpacked(folder: &Path) -> bool {
    let unpacked = UNPACKED.lock().unwrap_or_else(PoisonError::into_inner);
    unpacked.iter().any(|temporary| folder.starts_with(temporary.path()))
}

/// Removes the folders of packed runs.
pub(crate) fn remove_unpacked() {
    UNPACKED.lock().unwrap_or_else(PoisonError::into_inner).clear();
}
