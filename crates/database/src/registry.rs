//! All kinds of targets, and how one is opened.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use loadline_model::Capabilities;
use loadline_model::format::nearest;

use crate::error::TargetError;
use crate::render::Rendered;
use crate::session::Target;
use crate::work::Work;
use crate::{mysql, null, oracle, postgres, sqlite, wal};

/// A kind of target.
pub struct TargetKind {
    /// URL scheme, without the colon.
    pub scheme: &'static str,
    /// Other schemes that mean the same.
    pub aliases: &'static [&'static str],
    /// Product name.
    pub product: &'static str,
    /// Key of its figures' sources in [`loadline_model::column`].
    pub source_key: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Forms of its URL with what they mean.
    pub url_forms: &'static [(&'static str, &'static str)],
    /// What it cannot do: known before it is opened.
    pub capabilities: fn() -> Capabilities,
    /// Checks a URL without connecting.
    pub check_url: fn(&str) -> Result<(), TargetError>,
    /// Opens it.
    pub open: fn(&OpenRequest) -> Result<Box<dyn Target>, TargetError>,
    /// What it makes of a workload.
    pub render: fn(&Work) -> Vec<Rendered>,
    /// Removes what dead runs left on this machine outside any server (private servers, files);
    /// the path is the results folder.
    pub clean_leftovers: fn(&OpenRequest) -> Result<Vec<String>, TargetError>,
    /// Whether the target is made for the run and removed after it.
    pub is_temporary: fn(&str) -> bool,
    /// The report that the database itself makes of a test, if it makes one.
    pub native_report: Option<&'static NativeReport>,
}

/// A database's own report of what went on in a test, made only for users who ask for it.
#[derive(Debug)]
pub struct NativeReport {
    /// What it is: `AWR report`.
    pub name: &'static str,
    /// Flag by which it is asked for.
    pub flag: &'static str,
    /// Folder of these reports in a run's folder.
    pub folder: &'static str,
    /// How the names of their files end, without the dot.
    pub extension: &'static str,
    /// What whoever asks for it is told: one line.
    pub notice: &'static str,
}

/// All kinds.
pub static TARGETS: &[&TargetKind] = &[
    &sqlite::KIND,
    &postgres::KIND,
    &postgres::TEMP_KIND,
    &mysql::KIND,
    &mysql::TEMP_KIND,
    &oracle::KIND,
    &wal::KIND,
    &null::KIND,
];

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

/// A password. It cannot be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a password.
    #[must_use]
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    /// The password itself, for the authentication exchange only.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The kind that `url` names.
///
/// # Errors
/// [`TargetError::Usage`] naming the scheme and the known ones.
pub fn kind_of(url: &str) -> Result<&'static TargetKind, TargetError> {
    let names = |k: &TargetKind| std::iter::once(k.scheme).chain(k.aliases.iter().copied()).collect::<Vec<_>>();
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme).to_ascii_lowercase();
    if url.contains(':')
        && let Some(kind) = TARGETS.iter().find(|k| names(k).contains(&scheme.as_str()))
    {
        return Ok(kind);
    }
    let known = TARGETS.iter().flat_map(|k| names(k));
    let hint = nearest(&scheme, known.clone()).map_or(String::new(), |n| format!(": did you mean «{n}:»?"));
    let known = known.map(|n| format!("{n}:")).collect::<Vec<_>>().join(", ");
    Err(TargetError::Usage(format!("«{}» is no target{hint} (known: {known})", crate::redact(url))))
}

/// Opens the target that `request` names.
///
/// # Errors
/// [`TargetError`] of the kind.
pub fn open(request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
    let kind = kind_of(&request.url)?;
    for node in &request.nodes {
        if kind_of(node)?.scheme != kind.scheme {
            return Err(TargetError::Usage(format!(
                "the node «{}» is of another kind than the target: all nodes must be {}:",
                crate::redact(node),
                kind.scheme
            )));
        }
    }
    (kind.open)(request)
}
