//! Knowledge of PostgreSQL: `postgres.toml`, in the language of [`crate::descriptor`], its versions, and the query of its counters.

use std::collections::BTreeMap;

use loadline_model::snapshot::counter;
use serde::Deserialize;

use crate::descriptor::{self, Counter, Embedded, Product, Release, Routines, Versioned, Versions};
use crate::dialect::Dialect;
use crate::error::{Causes, Meaning, TargetError};
use crate::facts::WaitEvents;
use crate::role::{Scope, Use};
use crate::rules::Rule;
use crate::view::{Fragments, StatisticsView};

pub(super) static KNOWLEDGE: Embedded<Knowledge> = Embedded::new("src/postgres.toml", include_str!("../postgres.toml"));

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Knowledge {
    pub(super) counters: Vec<Counter>,
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) causes: Causes,
    pub(super) errors: Vec<Meaning>,
    pub(super) hindrances: Vec<Meaning>,
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
    pub(super) notes: Routines,
    messages: BTreeMap<String, String>,
    pub(super) routines: Routines,
    pub(super) fragments: Fragments,
    pub(super) statistics: Vec<StatisticsView<ViewNeeds>>,
    pub(super) dialect: Dialect,
}

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KnownPrivilege {
    pub(super) gives: String,
    pub(super) used: Use,
    #[serde(default)]
    pub(super) versions: Versions,
    pub(super) granted: String,
    pub(super) without_grant: Option<String>,
    #[serde(default)]
    pub(super) grants: Vec<String>,
    #[serde(default)]
    pub(super) changes: Vec<[String; 2]>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ViewNeeds {
    pub(super) rows: ViewRows,
    pub(super) reset: String,
    pub(super) absent: Versioned,
}

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
    pub(super) may_alter: Versioned,
    pub(super) alter_privilege: Versioned,
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

/// Oldest supported version: the first with `pg_stat_wal` and OUT parameters of procedures.
pub(super) const OLDEST: u32 = 14;
pub(super) const NEWEST: u32 = 18;

/// Name of the counter with the position in the log.
pub(super) const LSN: &str = "pg_current_wal_insert_lsn";

/// The release of a version that begins `15.18 (Debian 15.18-0+deb12u1)` or `18beta1`.
pub(super) fn release(version: &str) -> Release {
    Release::new(Product::Postgres, version)
}

/// Refuses a release that is too old; `version` is what the server says.
pub(super) fn check(release: Release, version: &str) -> Result<(), TargetError> {
    if release.is_from(&[OLDEST]) {
        return Ok(());
    }
    let [oldest, newest] = [OLDEST, NEWEST].map(|major| major.to_string());
    Err(refusal("too-old", &[("version", version), ("oldest", &oldest), ("newest", &newest)]))
}

/// The message of this name with `parts` for their names in braces.
pub(super) fn message(name: &str, parts: &[(&str, &str)]) -> String {
    descriptor::message(&KNOWLEDGE.messages, name, parts)
}

pub(super) fn refusal(name: &str, parts: &[(&str, &str)]) -> TargetError {
    TargetError::Refused(message(name, parts))
}

/// The query of a snapshot of the work in `scope`, and the names of its columns. `is_on` says whether a setting is on: times that are
/// not measured are not read, because they would be 0. `proc_stat` adds `/proc/stat` as the last column.
pub(super) fn snapshot_query(
    release: Release,
    scope: Scope,
    is_on: impl Fn(&str) -> bool,
    proc_stat: bool,
    has_standbys: bool,
) -> (String, Vec<String>) {
    let mut names = Vec::new();
    let (mut select, mut from) = (Vec::new(), Vec::new());
    let views = KNOWLEDGE.views.iter().filter(|view| view.versions.has(release));
    for (i, view) in views.enumerate() {
        for column in &view.columns {
            let name = format!("{}.{column}", view.name);
            if KNOWLEDGE.timed_by.get(&name).is_none_or(|setting| is_on(setting)) {
                select.push(match column.as_str() {
                    STATS_RESET => format!("extract(epoch FROM v{i}.{STATS_RESET})"),
                    column => format!("v{i}.{column}"),
                });
                names.push(name);
            }
        }
        from.push(format!("{} v{i}", view.from(scope)));
    }
    select.push("CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_insert_lsn() - '0/0'::pg_lsn END".into());
    names.push(LSN.into());
    if has_standbys {
        select.extend(["behind-bytes", "behind-ns"].map(|name| KNOWLEDGE.queries.text(name, &[])));
        names.extend([counter::REPLICA_BEHIND_BYTES, counter::REPLICA_BEHIND_NS].map(str::to_owned));
    }
    if proc_stat {
        select.push("pg_read_file('/proc/stat')".into());
    }
    (format!("SELECT {}\nFROM {}", select.join(",\n  "), from.join(",\n  ")), names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::BlockBytes;

    #[test]
    fn old_versions_are_refused() {
        let e = |version| check(release(version), version).map_err(|e| e.to_string());
        let old = e("13.4 (Debian 13.4-1)").unwrap_err();
        assert!(old.contains("'13.4 (") && old.contains("14 to 18"), "{old}");
        assert!(e("").is_err() && e("14.0").is_ok() && e("18beta1").is_ok());
        assert_eq!(crate::temp::settings::SERVERS.postgres.oldest, [OLDEST]);
    }

    #[test]
    fn every_message_of_the_code_is_in_the_file() {
        for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/postgres")).unwrap() {
            let text: String = std::fs::read_to_string(file.unwrap().path()).unwrap_or_default();
            let text: String = text.split_whitespace().collect();
            for used in ["message(\"", "refusal(\""].iter().flat_map(|call| text.split(call).skip(1)) {
                let name = used.split('"').next().unwrap();
                assert!(KNOWLEDGE.messages.contains_key(name), "{name}");
            }
        }
    }

    const BLOCK: BlockBytes = BlockBytes { data: 8192.0, log: 8192.0 };

    fn of_major(major: u32) -> Release {
        release(&major.to_string())
    }

    fn sources(version: Release) -> Vec<(&'static str, &'static str, f64)> {
        Counter::sources(&KNOWLEDGE.counters, version, BLOCK)
    }

    #[test]
    fn sql_per_version() {
        for major in 14..=18 {
            let version = of_major(major);
            let (sql, _) = snapshot_query(version, Scope::Jobs, |_| true, true, true);
            let (redo, data): (Vec<_>, Vec<_>) =
                sources(version).into_iter().partition(|(name, ..)| name.starts_with("loadline.redo_"));
            let texts = &KNOWLEDGE.texts;
            let all = |of: &'static Versioned| of.all(version).collect::<Vec<_>>();
            let text = format!(
                "{}\n-- redo: {redo:?}\n-- data: {data:?}\n-- flush: {:?}\n-- settings: {:?} {:?} {:?}",
                sql,
                texts.flush.at(version),
                all(&texts.session_settings),
                all(&texts.observer_settings),
                all(&texts.reserving_settings)
            );
            insta::assert_snapshot!(format!("version_{major}"), text);
        }
    }

    #[test]
    fn wait_events_are_known_in_the_spelling_of_each_version() {
        let waits = &KNOWLEDGE.waits;
        for (events, names) in [
            (&waits.buffer, ["IPC:BufferIO", "IPC:BufferIo"]),
            (&waits.lock, ["IPC:ProcArrayGroupUpdate", "IPC:ProcarrayGroupUpdate"]),
            (&waits.log_sync, ["IO:WALSync", "IO:WalSync"]),
        ] {
            assert!(names.iter().all(|name| events.has(name)), "{names:?}");
        }
    }

    #[test]
    fn every_source_is_read_by_the_query() {
        KNOWLEDGE.checked(|file| &file.counters);
        for major in 14..=19 {
            let version = of_major(major);
            let read = |is_on| snapshot_query(version, Scope::Jobs, |_| is_on, false, false).1;
            assert_eq!(KNOWLEDGE.texts.growth_is_written.at(version).is_some(), major < 16, "{major}");
            for (neutral, source, _) in sources(version) {
                assert_ne!(neutral, counter::BUFFER_WAIT_NS, "only superusers can measure it");
                assert!(read(true).iter().any(|n| n == source), "{major}: {source}");
                let timed = KNOWLEDGE.timed_by.contains_key(source);
                assert_eq!(timed, neutral.ends_with("_ns"), "{major}: {source}");
                assert_eq!(read(false).iter().any(|n| n == source), !timed, "{major}: {neutral} of {source}");
            }
            for text in [&KNOWLEDGE.texts.io_timing, &KNOWLEDGE.texts.reads_are_timed, &KNOWLEDGE.texts.may_checkpoint]
            {
                assert_eq!(text.all(version).count(), 1, "{major}: {text:?}");
            }
        }
    }
}
