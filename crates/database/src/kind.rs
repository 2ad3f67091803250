//! What a database says of itself before it is opened.

use loadline_model::Capabilities;

use crate::error::TargetError;
use crate::render::Rendered;
use crate::request::OpenRequest;
use crate::target::Target;
use crate::work::Work;

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
