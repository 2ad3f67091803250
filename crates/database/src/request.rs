//! The request to open a target, and where its passwords come from.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A password. It cannot be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a password.
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    /// The password, for authentication only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Looks up an environment variable. A parameter, so that tests do not change the environment of the process.
pub(crate) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The process's environment; empty variables count as unset, as in libpq.
pub(crate) fn process_env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// The environment of a target: none for a private server, whose URL says all. What is set is meant for others.
pub(crate) fn of_target(private: bool) -> Env<'static> {
    if private { &|_| None } else { &process_env }
}

/// Asks the user for a password; the argument says whose. `None` if nobody can be asked.
pub type AskPassword = Arc<dyn Fn(&str) -> Option<Secret> + Send + Sync>;

/// How the sessions of jobs reach the server. All others reach it directly.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Way {
    /// Directly, with prepared statements and settings of their own.
    #[default]
    Own,
    /// Directly, but as [`Way::Via`] in all else, so that the two differ in the way alone.
    Direct,
    /// Through the proxy or pooler at this URL, possibly with a password in it. It may give each transaction to another session of the
    /// server, so jobs have no settings of their own and, in PostgreSQL, no prepared statements with names.
    Via(String),
}

#[derive(Clone)]
pub struct OpenRequest {
    pub url: String,
    pub nodes: Vec<String>,
    /// Settings (`--setting`) for a private server or an embedded database.
    pub settings: BTreeMap<String, String>,
    /// The results folder, where private servers and embedded databases are placed.
    pub scratch: PathBuf,
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
    /// How jobs reach the server; one that is not [`Way::Own`] can be changed ([`Ways`](crate::Ways)).
    pub way: Way,
    /// Set when the user wants to stop: sessions outside the timed window then no longer wait for the server.
    pub interrupted: Arc<AtomicBool>,
}

impl OpenRequest {
    /// A request for `url`; all else is empty.
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
            way: Way::Own,
            interrupted: Arc::default(),
        }
    }

    /// URLs of all that it names, possibly with passwords in them.
    pub fn urls(&self) -> Vec<String> {
        let via = if let Way::Via(url) = &self.way { Some(url) } else { None };
        [&self.url].into_iter().chain(&self.nodes).chain(&self.standbys).chain(via).cloned().collect()
    }

    /// The command that removes what a run with this request left, to be pasted into a shell; without the password.
    pub fn clean_command(&self) -> String {
        let (url, results) = (crate::redact(&self.url), self.scratch.to_string_lossy());
        format!("loadline clean --target {} --results {}", for_shell(&url), for_shell(&results))
    }
}

fn for_shell(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./:@%+=,".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_pasted_and_shows_no_password() {
        let request = OpenRequest::new("postgres://ann:s3cret@h/d?host=/x&port=1", "/it's here".into());
        let shown = request.clean_command();
        assert_eq!(shown, r"loadline clean --target 'postgres://ann@h/d?host=/x&port=1' --results '/it'\''s here'");
    }
}
