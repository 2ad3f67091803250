//! The target's flags as a request to open it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use loadline_database::OpenRequest;
use loadline_run::plan::DEFAULT_TARGET;

use crate::args::TargetArgs;
use crate::arguments;

impl TargetArgs {
    pub(crate) fn url(&self) -> String {
        self.options.target.clone().unwrap_or_else(|| DEFAULT_TARGET.to_owned())
    }

    /// The request; private servers and databases are made beside `results`.
    pub(crate) fn request(&self, results: &Path) -> OpenRequest {
        let mut request = OpenRequest::new(&self.url(), absolute(results));
        request.nodes = self.options.node.clone().unwrap_or_default();
        request.settings = self.setting.iter().cloned().collect();
        request.ask_password = arguments::ask();
        request
    }
}

/// Absolute `path`, for servers with another working directory.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The path that names what another before it does.
pub(crate) fn named_twice(paths: &[PathBuf]) -> Option<&PathBuf> {
    let mut seen = BTreeSet::new();
    // Whoever opens it refuses one that does not exist.
    paths.iter().find(|path| !seen.insert(std::fs::canonicalize(path).unwrap_or_else(|_| (*path).clone())))
}

/// Folder of a run, given as a folder or as an id in `results`.
pub(crate) fn run_folder(run: &Path, results: &Path) -> PathBuf {
    let in_results = results.join(run);
    if !run.exists() && in_results.exists() { in_results } else { run.to_owned() }
}
