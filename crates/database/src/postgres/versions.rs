//! The versions of PostgreSQL and the query of its counters; what differs by version is in `postgres.toml`.

use loadline_model::snapshot::counter;

use super::knowledge::{KNOWLEDGE, STATS_RESET};
use crate::descriptor::{Product, Release};
use crate::error::TargetError;
use crate::role::Scope;

/// Oldest supported version: the first with `pg_stat_wal` and OUT parameters of procedures.
pub(super) const OLDEST: u32 = 14;
/// Newest supported version.
pub(super) const NEWEST: u32 = 18;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub(super) major: u32,
}

impl From<Version> for Release {
    fn from(version: Version) -> Release {
        Release { product: Product::Postgres, number: [version.major, 0, 0] }
    }
}

/// Name of the counter with the position in the log.
pub(super) const LSN: &str = "pg_current_wal_insert_lsn";

impl Version {
    /// Parses `15.18 (Debian 15.18-0+deb12u1)` or `18beta1`.
    pub(super) fn parse(text: &str) -> Version {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        Version { major: digits.parse().unwrap_or(0) }
    }

    /// Checks that loadline supports this version.
    pub(super) fn check(self, text: &str) -> Result<(), TargetError> {
        if self.major >= OLDEST {
            return Ok(());
        }
        Err(TargetError::Refused(format!(
            "the server is PostgreSQL '{text}', which loadline does not support: it must be {OLDEST} to {NEWEST}"
        )))
    }

    /// Whether the privilege to change a setting can be granted.
    pub(super) fn has_parameter_privileges(self) -> bool {
        self.major >= 15
    }

    /// The query of a snapshot of the work in `scope`, and the names of its columns. `is_on` says whether a setting is on: times that are not measured are not read, because
    /// they would be 0. `proc_stat` adds `/proc/stat` as the last column.
    pub(super) fn snapshot_query(
        self,
        scope: Scope,
        is_on: impl Fn(&str) -> bool,
        proc_stat: bool,
        has_standbys: bool,
    ) -> (String, Vec<String>) {
        let mut names = Vec::new();
        let (mut select, mut from) = (Vec::new(), Vec::new());
        let views = KNOWLEDGE.views.iter().filter(|view| view.versions.has(self.into()));
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
            let slowest = |of: &str| format!("(SELECT max({of}) FROM pg_stat_replication WHERE state = 'streaming')");
            let bytes = "greatest(pg_current_wal_lsn() - replay_lsn, 0)";
            select.push(slowest(bytes));
            select.push(slowest(&format!(
                "CASE WHEN {bytes} = 0 THEN 0 ELSE extract(epoch FROM replay_lag) * 1000000000 END"
            )));
            names.extend([counter::REPLICA_BEHIND_BYTES, counter::REPLICA_BEHIND_NS].map(str::to_owned));
        }
        if proc_stat {
            select.push("pg_read_file('/proc/stat')".into());
        }
        (format!("SELECT {}\nFROM {}", select.join(",\n  "), from.join(",\n  ")), names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::{BlockBytes, Counter, Versioned};

    #[test]
    fn versions_are_read() {
        for (text, major) in [("15.18 (Debian 15.18-0+deb12u1)", 15), ("18beta1", 18), ("9.6.24", 9), ("", 0)] {
            assert_eq!(Version::parse(text).major, major, "{text}");
        }
        let e = Version::parse("13.4").check("13.4").unwrap_err().to_string();
        assert!(e.contains("'13.4'") && e.contains("14 to 18"), "{e}");
    }

    const BLOCK: BlockBytes = BlockBytes { data: 8192.0, log: 8192.0 };

    fn sources(version: Version) -> Vec<(&'static str, &'static str, f64)> {
        Counter::sources(&KNOWLEDGE.counters, version.into(), BLOCK)
    }

    #[test]
    fn sql_per_version() {
        for major in 14..=18 {
            let version = Version { major };
            let (sql, _) = version.snapshot_query(Scope::Jobs, |_| true, true, true);
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
    fn growth_is_counted_separately_from_16_on() {
        for major in 14..=18 {
            let version = Version { major };
            assert_eq!(KNOWLEDGE.texts.growth_is_written.at(version).is_some(), major < 16, "{major}");
            // A time that only superusers can measure must not become a figure.
            assert!(!sources(version).iter().any(|(neutral, ..)| *neutral == counter::BUFFER_WAIT_NS), "{major}");
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
            let version = Version { major };
            let read = |is_on| version.snapshot_query(Scope::Jobs, |_| is_on, false, false).1;
            for (neutral, source, _) in sources(version) {
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
