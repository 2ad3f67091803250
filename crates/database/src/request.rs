//! The request to open a target.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::secret::Secret;

/// Asks the user for a password; the argument says whose. `None` if nobody can be asked.
pub type AskPassword = Arc<dyn Fn(&str) -> Option<Secret> + Send + Sync>;

/// What is needed to open a target.
#[derive(Clone)]
pub struct OpenRequest {
    /// URL, possibly with a password in it.
    pub url: String,
    /// URLs of further nodes.
    pub nodes: Vec<String>,
    /// Settings (`--setting`) for a private server or an embedded database.
    pub settings: BTreeMap<String, String>,
    /// The results folder, where private servers and embedded databases are placed.
    pub scratch: PathBuf,
    /// Asks the user for a password.
    pub ask_password: AskPassword,
    /// Run id, for session names; may be empty.
    pub run: String,
    /// Whether the user requested the database's own reports (which may need a licence).
    pub native_report: bool,
    /// Replicas that levels need, each behind a link whose delay can be changed (`loadline replica-cost`); 0: none but those of
    /// the URL, without links.
    pub replicas: u32,
    /// URLs of the user's own standbys of the target, for levels.
    pub standbys: Vec<String>,
    /// Set when the user wants to stop: sessions outside the timed window then no longer wait for the server.
    pub interrupted: Arc<AtomicBool>,
}

impl OpenRequest {
    /// A request for `url`; all else is empty.
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
            replicas: 0,
            standbys: Vec::new(),
            interrupted: Arc::default(),
        }
    }
}
