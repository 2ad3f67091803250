//! Description of a database that needs no connection: `kinds.toml`, and functions.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::LazyLock;

use loadline_model::{Capabilities, Capability, Column, Driver, column};
use serde::Deserialize;

use crate::descriptor::{Embedded, fill};
use crate::error::TargetError;
use crate::render::Rendered;
use crate::request::OpenRequest;
use crate::role::Level;
use crate::target::Target;
use crate::work::Work;

static KINDS: Embedded<Kinds> = Embedded::new("src/kinds.toml", include_str!("kinds.toml"));

/// The file, which describes its parts.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kinds {
    lacks: BTreeMap<String, Vec<Lack>>,
    kinds: BTreeMap<String, KindFacts>,
}

/// A capability that a driver lacks, and why.
pub(crate) type Lack = (Driver, Capability, String);

/// Capabilities that drivers lack by this set of the file.
pub(crate) fn lacking(set: &str) -> Vec<Lack> {
    KINDS.lacks.get(set).cloned().unwrap_or_default()
}

pub trait TargetKind: Sync {
    /// URL scheme, without the colon.
    fn scheme(&self) -> &'static str;

    /// Validates a URL without connecting, and counts its nodes.
    fn check_url(&self, url: &str) -> Result<u32, TargetError>;

    fn open(&self, request: &OpenRequest) -> Result<Box<dyn Target>, TargetError>;

    fn render(&self, work: &Work) -> Vec<Rendered>;

    /// Removes leftovers of dead runs on this machine (private servers, files) and returns what was removed.
    fn clean_leftovers(&self, _: &OpenRequest) -> Result<Vec<String>, TargetError> {
        Ok(Vec::new())
    }

    /// Whether the target at a URL is created for the run and removed after it.
    fn is_temporary(&self, _: &str) -> bool {
        false
    }

    /// Levels of replication that loadline can bring about ([`Levels`](crate::Levels)), in the order of how far a commit
    /// waits.
    fn levels(&self) -> Vec<Level> {
        Vec::new()
    }

    /// Settings that levels change on a server of the user's with standbys of its own ([`OpenRequest::standbys`]), until the run
    /// ends. Empty: levels are only those of replicas that loadline makes.
    fn level_settings(&self) -> &'static [&'static str] {
        &[]
    }

    /// The facts; empty if the file has none, which a test finds.
    fn facts(&self) -> &'static KindFacts {
        static NONE: LazyLock<KindFacts> = LazyLock::new(KindFacts::default);
        KINDS.kinds.get(self.scheme()).unwrap_or(&NONE)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct KindFacts {
    pub aliases: Vec<String>,
    pub product: String,
    /// Key of its sources of figures in [`loadline_model::column`].
    pub source_key: String,
    pub summary: String,
    /// Forms of its URL, each with its meaning.
    pub url_forms: Vec<[String; 2]>,
    no_driver: Option<String>,
    /// Sets of what drivers lack.
    lacks: Vec<String>,
    /// Columns without a figure, and why.
    uncounted: Vec<(String, String)>,
    /// Why its tests are not compared with a limit; `None` for every database.
    pub no_limit: Option<String>,
    /// Why its jobs have no session that could be opened anew; `None` for every database.
    pub no_sessions: Option<String>,
    /// Why it has no levels although it replicates; a sentence of what to do instead included.
    pub no_levels: Option<String>,
    pub native_report: Option<NativeReport>,
}

impl KindFacts {
    /// Abilities, as far as known without a connection.
    pub fn capabilities(&self) -> Capabilities {
        let filled = |why: &String| fill(why, &[("product", &self.product)]);
        let missing = self.lacks.iter().flat_map(|set| lacking(set));
        Capabilities {
            missing: missing.map(|(driver, capability, why)| (driver, capability, filled(&why))).collect(),
            missing_drivers: self.no_driver.iter().map(|why| (Driver::Database, filled(why))).collect(),
            by_setting: Vec::new(),
        }
    }

    /// Columns without a figure on a server of this `product`, and why.
    pub(crate) fn uncounted(&self, product: &str) -> Vec<(&'static Column, String)> {
        let of = |(id, why): &(String, String)| Some((column::column(id)?, fill(why, &[("product", product)])));
        self.uncounted.iter().filter_map(of).collect()
    }
}

impl Deref for dyn TargetKind + '_ {
    type Target = KindFacts;

    fn deref(&self) -> &KindFacts {
        self.facts()
    }
}

/// A database's own report on a test, created only if the user asks for it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeReport {
    /// Name: `AWR report`.
    pub name: String,
    /// Command-line flag that requests it.
    pub flag: String,
    /// Folder of these reports in a run's folder.
    pub folder: String,
    /// File name extension, without the dot.
    pub extension: String,
    /// Notice to users who request it: one line.
    pub notice: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::TARGETS;

    #[test]
    fn every_kind_has_its_facts_and_lacks_what_is_there() {
        let file = KINDS.checked(|_| &[]);
        assert!(file.kinds.keys().all(|scheme| TARGETS.iter().any(|kind| kind.scheme() == scheme)));
        for kind in TARGETS {
            let scheme = kind.scheme();
            assert!(
                !kind.summary.is_empty() && kind.url_forms.iter().all(|[url, _]| url.starts_with(scheme)),
                "{scheme}"
            );
            assert_eq!(kind.facts().uncounted("").len(), kind.uncounted.len(), "{scheme}: no column");
            assert!(kind.lacks.iter().all(|set| !lacking(set).is_empty()), "{scheme}");
        }
    }
}
