//! Knowledge of PostgreSQL: `postgres.toml`, in the language of [`crate::descriptor`].

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::descriptor::{Counter, Embedded, Routines, Versioned, Versions};
use crate::dialect::Dialect;
use crate::error::{Causes, Meaning};
use crate::facts::WaitEvents;
use crate::role::{Scope, Use};
use crate::rules::Rule;
use crate::view::{Fragments, StatisticsView};

pub(super) static KNOWLEDGE: Embedded<Knowledge> = Embedded::new("src/postgres.toml", include_str!("../postgres.toml"));

/// The file, which describes its parts.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Knowledge {
    pub(super) counters: Vec<Counter>,
    pub(super) causes: Causes,
    pub(super) errors: Vec<Meaning>,
    pub(super) waits: WaitEvents,
    pub(super) recorded: Vec<String>,
    pub(super) secret: Vec<String>,
    pub(super) timed_by: BTreeMap<String, String>,
    pub(super) sessions: Sessions,
    pub(super) texts: Texts,
    pub(super) queries: Routines,
    #[serde(rename = "view")]
    pub(super) views: Vec<View>,
    #[serde(rename = "rule")]
    pub(super) rules: Vec<Rule>,
    #[serde(rename = "directory")]
    pub(super) directories: Vec<Rule>,
    #[serde(rename = "privilege")]
    pub(super) privileges: Vec<KnownPrivilege>,
    pub(super) notes: Vec<String>,
    pub(super) routines: Routines,
    pub(super) fragments: Fragments,
    pub(super) statistics: Vec<StatisticsView<ViewNeeds>>,
    pub(super) dialect: Dialect,
}

/// Settings of loadline's sessions.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sessions {
    pub(super) every: BTreeMap<String, String>,
    pub(super) measuring: BTreeMap<String, String>,
    pub(super) preparing: BTreeMap<String, String>,
    pub(super) reading: BTreeMap<String, String>,
    pub(super) nowait: BTreeMap<String, String>,
    pub(super) writing_through: BTreeMap<String, String>,
}

/// A privilege that loadline uses.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KnownPrivilege {
    pub(super) gives: String,
    pub(super) used: Use,
    #[serde(default)]
    pub(super) versions: Versions,
    pub(super) granted: String,
    #[serde(default)]
    pub(super) without_grant: Option<String>,
    #[serde(default)]
    pub(super) grants: Vec<String>,
    #[serde(default)]
    pub(super) changes: Vec<[String; 2]>,
}

/// Requirements of a statistics view beside its query.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ViewNeeds {
    pub(super) rows: ViewRows,
    pub(super) reset: String,
    pub(super) absent: Versioned,
}

/// Where the rows of a statistics view come from.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ViewRows {
    #[default]
    Query,
    Extension,
    OtherSessions,
    AllSessions,
    Settings,
}

/// Differences by version.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Texts {
    pub(super) flush: Versioned,
    pub(super) flush_in_procedure: Versioned,
    pub(super) session_settings: Versioned,
    pub(super) observer_settings: Versioned,
    pub(super) io_timing: Versioned,
    pub(super) reads_are_timed: Versioned,
    pub(super) may_checkpoint: Versioned,
    pub(super) checkpoint_privilege: Versioned,
    pub(super) reserving_settings: Versioned,
    pub(super) growth_is_written: Versioned,
    pub(super) no_redo_blocks: Versioned,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct View {
    pub(super) name: String,
    #[serde(default)]
    pub(super) versions: Versions,
    from: Option<String>,
    pub(super) columns: Vec<String>,
}

/// When a view's counters were last set to 0: a counter of s since 1970. NULL if never.
pub(super) const STATS_RESET: &str = "stats_reset";

impl View {
    /// The FROM item; of the view with a row for each database the sum over all, if `scope` says so.
    pub(super) fn from(&self, scope: Scope) -> String {
        if scope == Scope::Jobs || self.name != "pg_stat_database" {
            return self.from.as_ref().unwrap_or(&self.name).clone();
        }
        let sum =
            |column: &String| format!("{}({column}) AS {column}", if column == STATS_RESET { "max" } else { "sum" });
        format!("(SELECT {} FROM {})", self.columns.iter().map(sum).collect::<Vec<_>>().join(", "), self.name)
    }
}
