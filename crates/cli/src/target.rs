//! From the target's flags to a request.

use std::path::{Path, PathBuf};

use loadline_database::OpenRequest;
use loadline_run::plan::DEFAULT_TARGET;

use crate::args::TargetArgs;
use crate::arguments;

impl TargetArgs {
    /// URL of the target.
    pub(crate) fn url(&self) -> String {
        self.target.clone().unwrap_or_else(|| DEFAULT_TARGET.to_owned())
    }

    /// How to open it; private servers and databases go next to `results`.
    pub(crate) fn request(&self, results: &Path) -> OpenRequest {
        let mut request = OpenRequest::new(&self.url(), absolute(results));
        request.nodes.clone_from(&self.node);
        request.settings = self.setting.iter().cloned().collect();
        request.ask_password = arguments::ask();
        request
    }
}

/// `path` from the root, so that servers in other working directories find it.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A run named by its folder or, in `results`, by its id.
pub(crate) fn run_folder(run: &Path, results: &Path) -> PathBuf {
    let in_results = results.join(run);
    if !run.exists() && in_results.exists() { in_results } else { run.to_owned() }
}
