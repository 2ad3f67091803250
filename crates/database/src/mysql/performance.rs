//! The server's performance_schema: commit times, and why it may not have what is asked of it.
//!
//! Neither product times the wait for InnoDB's log as a wait event. Both time the stage in which a session commits, which is that wait: with
//! one job on 10.11 it takes 151 µs per commit with `innodb_flush_log_at_trx_commit = 1` and 0.3 µs with 0. On MariaDB without a binary log
//! the stage is only a part of it, and the figure comes from samples ([`super::own_sessions`], docs/inside.md).

use std::collections::BTreeMap;

use super::knowledge::KNOWLEDGE;
use super::wire::Connection;
use crate::error::TargetError;

/// Stages of a commit, one after the other. Every commit has the first; a binary log adds the others.
pub(super) const MARIADB_STAGES: &[&str] = &["stage/sql/Commit", "stage/sql/Waiting for prior transaction to commit"];
pub(super) const MYSQL_STAGES: &[&str] = &["stage/sql/waiting for handler commit"];

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

impl CommitTimes {
    /// Asks the server. `log_bin`: whether it writes a binary log.
    pub(super) fn ask(c: &mut Connection, log_bin: bool) -> Result<CommitTimes, TargetError> {
        if c.version.is_mariadb() && !log_bin {
            return Ok(CommitTimes::Partial);
        }
        let stages = if c.version.is_mariadb() { MARIADB_STAGES } else { MYSQL_STAGES };
        if c.number("SELECT @@GLOBAL.performance_schema")? != Some(1.0) {
            let parts = [("product", c.version.product()), ("stage", stages.first().copied().unwrap_or_default())];
            return Ok(CommitTimes::Absent(KNOWLEDGE.notes.text("untimed", &parts)));
        }
        let mut missing = missing(c, stages, &["global_instrumentation", "thread_instrumentation"])?;
        if missing.is_none() {
            // The table of the figures may need another grant.
            let monitored = c.value(&KNOWLEDGE.queries.text("monitored", &[]));
            let not = || KNOWLEDGE.notes.text("unmonitored", &[]);
            missing = or_grant(monitored.map(|is| (is.as_deref() != Some("YES")).then(not)))?;
        }
        Ok(missing.map_or(CommitTimes::Timed(stages), CommitTimes::Absent))
    }

    /// Time spent in each stage by all sessions since the server was started, ns.
    pub(super) fn read(&self, c: &mut Connection) -> Result<BTreeMap<String, f64>, TargetError> {
        let CommitTimes::Timed(stages) = self else { return Ok(BTreeMap::new()) };
        let names = stages.join("', '");
        let rows = c.pairs(&KNOWLEDGE.queries.text("stages", &[("names", &names)]))?;
        Ok(rows
            .into_iter()
            .filter_map(|(name, ns)| Some((format!("performance_schema.{name}"), ns.parse().ok()?)))
            .collect())
    }
}

/// Why performance_schema does not count and time what the first of `instruments` (names, or parts of them with %) measures for these
/// `consumers`, and what to do.
pub(super) fn missing(
    c: &mut Connection,
    instruments: &[&str],
    consumers: &[impl AsRef<str>],
) -> Result<Option<String>, TargetError> {
    let Some(first) = instruments.first() else { return Ok(None) };
    let on = c.number(&KNOWLEDGE.queries.text("instruments", &[("name", first)]));
    if on == Ok(Some(0.0)) {
        let all = instruments.join("' OR NAME LIKE '");
        return Ok(Some(KNOWLEDGE.notes.text("instrument-off", &[("first", first), ("all", &all)])));
    }
    let names = consumers.iter().map(AsRef::as_ref).collect::<Vec<_>>().join("', '");
    let off = on.and_then(|_| c.value(&KNOWLEDGE.queries.text("consumer-off", &[("names", &names)])));
    or_grant(off.map(|off| off.map(|name| KNOWLEDGE.notes.text("consumer-off", &[("consumer", &name)]))))
}

/// Why the user may not read what was `asked`, and what to do, if so.
fn or_grant(asked: Result<Option<String>, TargetError>) -> Result<Option<String>, TargetError> {
    match asked {
        Err(TargetError::Server(why)) => Ok(Some(format!("{why}: GRANT SELECT ON performance_schema.* TO the user"))),
        asked => asked,
    }
}
