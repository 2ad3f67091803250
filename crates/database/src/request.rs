//! What is needed to open a target.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::secret::Secret;

/// Asks for a password; the argument says whose.
pub type AskPassword = Arc<dyn Fn(&str) -> Option<Secret> + Send + Sync>;

/// What is needed to open a target.
#[derive(Clone)]
pub struct OpenRequest {
    /// URL, possibly with a password in it.
    pub url: String,
    /// URLs of further nodes.
    pub nodes: Vec<String>,
    /// Settings for a private throwaway server.
    pub settings: BTreeMap<String, String>,
    /// Folder for private servers and embedded databases: next to the results.
    pub scratch: PathBuf,
    /// Asks the user for the password of what the argument names; `None` when there is nobody to
    /// ask.
    pub ask_password: AskPassword,
    /// Run id, for session names; may be empty.
    pub run: String,
    /// Whether the user asked for the database's own reports (which may need a licence).
    pub native_report: bool,
}

impl OpenRequest {
    /// A request for `url` with everything else empty.
    #[must_use]
    pub fn new(url: &str, scratch: PathBuf) -> OpenRequest {
        OpenRequest {
            url: url.to_owned(),
            nodes: Vec::new(),
            settings: BTreeMap::new(),
            scratch,
            ask_password: Arc::new(|_| None),
            run: String::new(),
            native_report: false,
        }
    }
}
