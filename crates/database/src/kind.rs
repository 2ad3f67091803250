//! Description of a database that needs no connection.

use loadline_model::Capabilities;

use crate::error::TargetError;
use crate::render::Rendered;
use crate::request::OpenRequest;
use crate::role::Level;
use crate::target::Target;
use crate::work::Work;

/// A kind of target, as listed in the registry.
pub struct TargetKind {
    /// URL scheme, without the colon.
    pub scheme: &'static str,
    /// Other accepted URL schemes.
    pub aliases: &'static [&'static str],
    pub product: &'static str,
    /// Key of its sources of figures in [`loadline_model::column`].
    pub source_key: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// Forms of its URL, each with its meaning.
    pub url_forms: &'static [(&'static str, &'static str)],
    /// Abilities, as far as known without a connection.
    pub capabilities: fn() -> Capabilities,
    /// Validates a URL without connecting, and counts its nodes.
    pub check_url: fn(&str) -> Result<u32, TargetError>,
    pub open: fn(&OpenRequest) -> Result<Box<dyn Target>, TargetError>,
    pub render: fn(&Work) -> Vec<Rendered>,
    /// Removes leftovers of dead runs on this machine (private servers, files) and returns what was removed.
    pub clean_leftovers: fn(&OpenRequest) -> Result<Vec<String>, TargetError>,
    /// Whether the target at a URL is created for the run and removed after it.
    pub is_temporary: fn(&str) -> bool,
    /// Why its tests are not compared with a limit; `None` for every database.
    pub no_limit: Option<&'static str>,
    /// Why its jobs have no session that could be opened anew; `None` for every database.
    pub no_sessions: Option<&'static str>,
    /// The database's own report on a test, if there is one.
    pub native_report: Option<&'static NativeReport>,
    /// Levels of replication that loadline can bring about ([`Levels`](crate::Levels)), in the order of how far a commit
    /// waits.
    pub levels: fn() -> Vec<Level>,
    /// Why it has no levels although it replicates; a sentence of what to do instead included.
    pub no_levels: Option<&'static str>,
    /// Settings that levels change on a server of the user's with standbys of its own ([`OpenRequest::standbys`]), until the run
    /// ends. Empty: levels are only those of replicas that loadline makes.
    pub level_settings: &'static [&'static str],
}

/// A database's own report on a test, created only if the user asks for it.
#[derive(Debug)]
pub struct NativeReport {
    /// Name: `AWR report`.
    pub name: &'static str,
    /// Command-line flag that requests it.
    pub flag: &'static str,
    /// Folder of these reports in a run's folder.
    pub folder: &'static str,
    /// File name extension, without the dot.
    pub extension: &'static str,
    /// Notice to users who request it: one line.
    pub notice: &'static str,
}
