//! Commit times from the server's performance_schema.
//!
//! Neither product times the wait for InnoDB's log as a wait event: MariaDB's sessions queue on an InnoDB
//! lock without an instrument (and 10.8 dropped `wait/io/file/innodb/innodb_log_file`), MySQL's on an
//! InnoDB event. Both time the stage in which a session commits. With one job on 10.11 it takes 151 µs per
//! commit with `innodb_flush_log_at_trx_commit = 1` and 0.3 µs with 0, so it is the wait for the log. A
//! statement inside a transaction passes the stage as well, in 0.3 µs.
//!
//! MariaDB without a binary log differs. A session that finds another one writing the log leaves the stage
//! and waits before it sends its answer (gdb shows it in `net_real_write`, on a condition without an
//! instrument; the process list shows `Updating status`). With 8 jobs 185 of 304 samples were there and 72
//! in the stage. So the figure then comes from samples ([`super::own_sessions`]). With a binary log no
//! session leaves the stage early (0.59 ms timed, 0.57 ms sampled), and its times are used.

use std::collections::BTreeMap;

use super::version::Version;
use super::wire::Connection;
use crate::error::TargetError;

/// Stages of a commit, one after the other. Every commit has the first; a binary log adds the others.
pub(super) const MARIADB_STAGES: &[&str] = &["stage/sql/Commit", "stage/sql/Waiting for prior transaction to commit"];
pub(super) const MYSQL_STAGES: &[&str] = &["stage/sql/waiting for handler commit"];

/// Prefix of the stages' times in a snapshot, ns.
pub(super) const STAGE_TIME: &str = "performance_schema.";

/// Whether performance_schema times commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommitTimes {
    /// Yes, in these stages.
    Timed(&'static [&'static str]),
    /// Not the whole wait, whatever the settings are.
    Partial,
    /// No, for this reason, which a setting or a grant changes.
    Absent(String),
}

/// The settings that decide whether the server times commits.
#[derive(Debug, Clone, Default)]
struct Instruments {
    on: bool,
    /// Whether we may read its tables.
    readable: bool,
    /// Instruments that are enabled and timed.
    timed: Vec<String>,
    /// Instruments that exist.
    known: Vec<String>,
    /// Consumers that are off.
    consumers_off: Vec<String>,
    /// Whether sessions of our user are monitored.
    monitored: bool,
}

impl CommitTimes {
    /// Asks the server. `log_bin`: whether it writes a binary log.
    pub(super) fn ask(c: &mut Connection, log_bin: bool) -> Result<CommitTimes, TargetError> {
        if c.version.mariadb && !log_bin {
            return Ok(CommitTimes::Partial);
        }
        let stages = if c.version.mariadb { MARIADB_STAGES } else { MYSQL_STAGES };
        let found = read_instruments(c, stages)?;
        Ok(judge(&found, stages, &c.version))
    }

    /// Time spent in each stage by all sessions since the server was started, ns.
    pub(super) fn read(&self, c: &mut Connection) -> Result<BTreeMap<String, f64>, TargetError> {
        let CommitTimes::Timed(stages) = self else { return Ok(BTreeMap::new()) };
        let rows = c.pairs(&format!(
            "SELECT EVENT_NAME, SUM_TIMER_WAIT DIV 1000 FROM performance_schema.events_stages_summary_global_by_event_name \
             WHERE EVENT_NAME IN ({})",
            list(stages)
        ))?;
        Ok(rows.into_iter().filter_map(|(name, ns)| Some((format!("{STAGE_TIME}{name}"), ns.parse().ok()?))).collect())
    }
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

fn read_instruments(c: &mut Connection, stages: &[&str]) -> Result<Instruments, TargetError> {
    let mut found =
        Instruments { on: c.number("SELECT @@GLOBAL.performance_schema")? == Some(1.0), ..Instruments::default() };
    if !found.on {
        return Ok(found);
    }
    let instruments = c.pairs(&format!(
        "SELECT NAME, ENABLED = 'YES' AND TIMED = 'YES' FROM performance_schema.setup_instruments WHERE NAME IN ({})",
        list(stages)
    ));
    let more = instruments.and_then(|instruments| {
        let consumers = c.pairs(
            "SELECT NAME, ENABLED FROM performance_schema.setup_consumers WHERE NAME IN ('global_instrumentation', \
             'thread_instrumentation') AND ENABLED = 'NO'",
        )?;
        let monitored =
            c.value("SELECT INSTRUMENTED FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()")?;
        // The table of the figures may need another grant.
        c.query("SELECT COUNT(*) FROM performance_schema.events_stages_summary_global_by_event_name")?;
        Ok((instruments, consumers, monitored))
    });
    match more {
        Ok((instruments, consumers, monitored)) => {
            found.readable = true;
            found.timed = instruments.iter().filter(|(_, on)| on == "1").map(|(name, _)| name.clone()).collect();
            found.known = instruments.into_iter().map(|(name, _)| name).collect();
            found.consumers_off = consumers.into_iter().map(|(name, _)| name).collect();
            found.monitored = monitored.as_deref() == Some("YES");
            Ok(found)
        }
        Err(TargetError::Server(_)) => Ok(found),
        Err(e) => Err(e),
    }
}

fn judge(found: &Instruments, stages: &'static [&'static str], version: &Version) -> CommitTimes {
    let Some(first) = stages.first() else { return CommitTimes::Absent("no stage is known".into()) };
    let absent = |why: String| CommitTimes::Absent(why);
    let at_start = format!("performance_schema = ON and performance_schema_instrument = '{first}=ON'");
    if !found.on {
        return absent(format!(
            "performance_schema is off, and nothing else in {} times commits: start the server with {at_start}",
            version.product()
        ));
    }
    if !found.readable {
        return absent(
            "the user may not read performance_schema: GRANT SELECT ON performance_schema.* TO the user".into(),
        );
    }
    if !found.known.iter().any(|name| name == first) {
        return absent(format!("this server's performance_schema has no instrument '{first}'"));
    }
    if !found.timed.iter().any(|name| name == first) {
        return absent(format!(
            "performance_schema does not time the stage of a commit: UPDATE performance_schema.setup_instruments SET ENABLED \
             = 'YES', TIMED = 'YES' WHERE NAME IN ({}), or start the server with {at_start}",
            list(stages)
        ));
    }
    if let Some(consumer) = found.consumers_off.first() {
        return absent(format!(
            "performance_schema's consumer '{consumer}' is off: UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' \
             WHERE NAME = '{consumer}'"
        ));
    }
    if !found.monitored {
        return absent(
            "performance_schema does not monitor this user's sessions: check setup_actors and \
             performance_schema_max_thread_instances"
                .into(),
        );
    }
    CommitTimes::Timed(stages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_the_way_out() {
        let version = Version::parse("10.11.6-MariaDB");
        let good = Instruments {
            on: true,
            readable: true,
            timed: vec!["stage/sql/Commit".into()],
            known: vec!["stage/sql/Commit".into()],
            consumers_off: Vec::new(),
            monitored: true,
        };
        let of = |found: &Instruments| judge(found, MARIADB_STAGES, &version);
        assert_eq!(of(&good), CommitTimes::Timed(MARIADB_STAGES));
        for (found, words) in [
            (Instruments { on: false, ..good.clone() }, "performance_schema_instrument = 'stage/sql/Commit=ON'"),
            (Instruments { readable: false, ..good.clone() }, "GRANT SELECT ON performance_schema.*"),
            (Instruments { known: vec![], ..good.clone() }, "has no instrument"),
            (Instruments { timed: vec![], ..good.clone() }, "SET ENABLED = 'YES'"),
            (Instruments { consumers_off: vec!["thread_instrumentation".into()], ..good.clone() }, "setup_consumers"),
            (Instruments { monitored: false, ..good.clone() }, "setup_actors"),
        ] {
            let said = of(&found);
            assert!(matches!(&said, CommitTimes::Absent(why) if why.contains(words)), "{words}: {said:?}");
        }
    }
}
