//! Checks a server for everything that would spoil the figures of a run.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use loadline_model::{Finding, Severity};

use super::cluster::PgInstance;
use super::connect::{Endpoint, SessionRole};
use super::grants;
use super::knowledge::KNOWLEDGE;
use super::settings::PgSettings;
use super::versions::{NEWEST, Version};
use super::wire::Connection;
use crate::cloud::Cloud;
use crate::error::{TargetError, unless_refused};
use crate::flavour::Flavour;
use crate::role::{JobLimit, Privilege};
use crate::rules::{self, Known};
use crate::storage::{free_space, in_memory};

/// Redo of a fast log writer, bytes per second: `max_wal_size` is compared with it.
const FAST_REDO: f64 = 100.0 * 1024.0 * 1024.0;

/// The state of the server and the privileges of the role.
#[derive(Debug, Clone, Default)]
struct PgState {
    version_text: String,
    in_recovery: bool,
    privileges: Vec<Privilege>,
    /// The session's process, if the handshake told of another one.
    behind: Option<String>,
    others_active: u32,
    /// Whether the role does not see what sessions of other roles do.
    others_hidden: bool,
    /// Standbys for which commits may wait; all that are connected, if the role may not see more.
    synchronous_standbys: u32,
    flavour: Option<&'static Flavour>,
}

/// Checks one instance.
pub(super) fn examine(c: &mut Connection, instance: &PgInstance) -> Result<Vec<Finding>, TargetError> {
    let settings = PgSettings::read(c)?;
    let state = PgState { flavour: instance.endpoint.recognised.flavour(), ..PgState::read(c)? };
    let mut findings = judge(c.version, &settings, &state);
    check_directories(&mut findings, &settings, instance.local);
    Ok(findings)
}

/// Checks a standby of the first instance.
pub(super) fn examine_standby(c: &mut Connection, instance: &PgInstance) -> Result<Vec<Finding>, TargetError> {
    let status = unless_refused(c.value("SELECT status FROM pg_stat_wal_receiver"))?;
    let state = status.clone().unwrap_or_else(|| "no receiver seen".to_owned());
    let (severity, advice) = match status.as_deref() {
        Some("streaming") => (Severity::Ok, "a standby of the first instance: it serves jobs that only read"),
        _ => (Severity::Warning, "it does not stream from its primary, or the role may not see it: it may be behind"),
    };
    let mut findings = vec![Finding::new("standby", severity, "standby", state, advice)];
    check_directories(&mut findings, &PgSettings::read(c)?, instance.local);
    Ok(findings)
}

/// Commits once, as a job does, and says how long it took; nothing if the role may not.
pub(super) fn durable_commit(endpoint: &Endpoint) -> Result<Option<Finding>, TargetError> {
    let mut c = endpoint.connect(SessionRole::Observer)?;
    endpoint.wait_briefly(&mut c)?;
    let begin = Instant::now();
    // The smallest redo that a commit must sync, and standbys confirm, without a table.
    let done = c.query("SELECT pg_logical_emit_message(true, 'loadline', '')");
    let took = format!("{:.1} ms", begin.elapsed().as_secs_f64() * 1e3);
    let finding =
        |severity, value, why| Ok(Some(Finding::new("durable-commit", severity, "durable commit", value, why)));
    match done {
        Ok(_) => c.publish().and(finding(Severity::Ok, took, String::new())),
        Err(TargetError::Lost(why)) => finding(Severity::Impossible, "does not return".to_owned(), why),
        Err(_) => Ok(None),
    }
}

/// Whether the settings of a session of loadline's do not hold: `c` is one.
pub(super) fn lost_settings(c: &mut Connection) -> Result<Option<Finding>, TargetError> {
    let held = c.value(
        "SELECT current_setting('jit') = 'off' AND current_setting('statement_timeout') = '0' \
         AND current_setting('max_parallel_workers_per_gather') = '0'",
    )?;
    let advice = "a connection pool drops the settings of loadline's sessions, so those of the server hold (JIT, timeouts, parallel \
                  queries): give the server's own address";
    let finding = || Finding::new("session-settings", Severity::Refused, "session settings", "ignored", advice);
    Ok((held.as_deref() != Some("t")).then(finding))
}

impl PgState {
    fn read(c: &mut Connection) -> Result<PgState, TargetError> {
        let rows = c.query(
            "SELECT pg_is_in_recovery(), \
             (SELECT count(*) FROM pg_stat_activity WHERE state IN ('active', 'idle in transaction') \
              AND pid <> pg_backend_pid() AND backend_type = 'client backend'), \
             (SELECT count(*) FROM pg_stat_replication WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum')), \
             pg_backend_pid(), pg_has_role('pg_read_all_stats', 'USAGE')",
        )?;
        let privileges = grants::privileges(c)?;
        let row = rows.into_iter().next().unwrap_or_default();
        let text = |i: usize| row.get(i).cloned().flatten();
        let is = |i: usize| text(i).as_deref() == Some("t");
        Ok(PgState {
            version_text: c.version_text.clone(),
            in_recovery: is(0),
            privileges,
            others_active: text(1).and_then(|n| n.parse().ok()).unwrap_or(0),
            synchronous_standbys: text(2).and_then(|n| n.parse().ok()).unwrap_or(0),
            others_hidden: !is(4),
            behind: text(3).filter(|pid| *pid != c.key.pid.to_string()),
            flavour: None,
        })
    }
}

/// How many standbys must confirm a commit: `FIRST 2 (a, b)`, `ANY 1 (a, b)`, `2 (a, b)`, `a, b` (one).
fn standbys_needed(names: &str) -> u32 {
    let words = names.split_once('(').map_or("", |(before, _)| before);
    words.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(1)
}

/// What the rules need beside the settings.
fn facts(version: Version, s: &PgSettings, state: &PgState) -> BTreeMap<&'static str, String> {
    let mut facts = BTreeMap::from([("version", state.version_text.clone()), ("newest", NEWEST.to_string())]);
    let mut say = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    let yes = |is: bool| is.then(|| "yes".to_owned());
    say("newer", yes(version.major > NEWEST));
    say("flavour", state.flavour.map(|flavour| flavour.name.clone()));
    say("flavour_advice", state.flavour.and_then(Flavour::advice).map(str::to_owned));
    say("standby", yes(state.in_recovery));
    say("pooler", state.behind.as_ref().map(|pid| format!("process {pid}")));
    let needed = standbys_needed(s.get("synchronous_standby_names").unwrap_or_default());
    say("standbys_needed", Some(needed.to_string()));
    say("standbys_connected", Some(state.synchronous_standbys.to_string()));
    say("standbys_missing", yes(state.synchronous_standbys < needed));
    say("uncounted_syncs", super::observer::uncounted_syncs(s));
    let wal_size = s.bytes("max_wal_size").unwrap_or(0.0);
    say("max_wal_size_bytes", Some(wal_size.to_string()));
    say("max_wal_size_s", Some(format!("{:.0}", wal_size / FAST_REDO)));
    let seen = state.others_active > 0 || !state.others_hidden;
    say("other-sessions", seen.then(|| state.others_active.to_string()));
    facts
}

/// Judges settings and state. A pure function, so that rare states (a standby, fsync off) can be tested.
fn judge(version: Version, s: &PgSettings, state: &PgState) -> Vec<Finding> {
    let mut out = rules::judge(&KNOWLEDGE.rules, &Known { settings: s, facts: facts(version, s, state) });
    out.extend(state.privileges.iter().filter_map(|p| p.finding(Severity::Impossible)));
    out.extend(s.cloud().map(Cloud::finding));
    out
}

/// Reports the directories of data and log, and whether they are in memory.
fn check_directories(out: &mut Vec<Finding>, settings: &PgSettings, local: bool) {
    let Some(data) = settings.get("data_directory") else {
        let advice = "the role has no privilege to see it: pg_monitor has";
        out.push(Finding::new("data-directory", Severity::Warning, "data directory", "–", advice));
        return;
    };
    let log = format!("{data}/pg_wal");
    for (id, subject, path) in [("data-directory", "data directory", data), ("log-directory", "log directory", &log)] {
        let finding = match local.then(|| in_memory(Path::new(path))) {
            None => Finding::new(id, Severity::Ok, subject, path, "on another machine: its storage is not checked"),
            Some(Some(true)) if id == "log-directory" => {
                let advice = "the log is in main memory: no commit is durable. Put the server on a disk";
                Finding::new(id, Severity::Refused, subject, path, advice)
            }
            Some(Some(true)) => {
                Finding::new(id, Severity::Warning, subject, path, "the data is in main memory: writes cost nothing")
            }
            Some(Some(false)) => Finding::new(id, Severity::Ok, subject, path, ""),
            Some(None) => {
                let advice = "this user has no access to it: whether it is on a disk is unknown";
                Finding::new(id, Severity::Warning, subject, path, advice)
            }
        };
        out.push(finding);
    }
    if local && in_memory(Path::new(data)).is_some() {
        out.push(free_space(Path::new(data)));
    }
}

/// Number of sessions that this instance still accepts for jobs; three are reserved for loadline itself.
pub(super) fn free_sessions(c: &mut Connection, own_name: &str) -> Result<JobLimit, TargetError> {
    let settings = PgSettings::read(c)?;
    let rows = c.query_with(
        "SELECT (SELECT coalesce(sum(numbackends), 0) FROM pg_stat_database), \
         (SELECT count(*) FROM pg_stat_get_activity(NULL) a WHERE starts_with(a.application_name, $1)), \
         (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user), \
         (SELECT count(*) FROM pg_stat_get_activity(NULL) a JOIN pg_roles r ON r.oid = a.usesysid WHERE r.rolname = current_user), \
         (SELECT datconnlimit FROM pg_database WHERE datname = current_database()), \
         (SELECT numbackends FROM pg_stat_database WHERE datname = current_database()), \
         (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)",
        &[own_name],
    )?;
    let row = rows.into_iter().next().unwrap_or_default();
    let number = |i: usize| row.get(i).cloned().flatten().and_then(|n| n.parse::<i64>().ok());
    let used = |i: usize| number(i).unwrap_or(0);
    let own = used(1);
    let reserving = KNOWLEDGE.texts.reserving_settings.all(c.version);
    let reserved: Vec<(&str, i64)> =
        reserving.map(|name| (name, settings.number(name).unwrap_or(0.0) as i64)).collect();
    let max = settings.number("max_connections").unwrap_or(100.0) as i64;
    let others = (used(0) - own).max(0);
    let reserved_sum: i64 = reserved.iter().map(|(_, n)| n).sum();
    let reserved_text: String = reserved.iter().map(|(name, n)| format!("{name} = {n}, ")).collect();
    let mut limit = max - reserved_sum - others - 3;
    let mut because =
        format!("max_connections = {max} ({reserved_text}{others} in use by others, 3 for loadline itself)");
    let superuser = row.get(6).cloned().flatten().as_deref() == Some("t");
    for (what, allowed, in_use) in [("role", number(2), used(3)), ("database", number(4), used(5))] {
        // CONNECTION LIMIT does not apply to superusers; −1 means no limit.
        if let Some(allowed) = allowed.filter(|n| *n >= 0 && !superuser) {
            let others = (in_use - own).max(0);
            let free = allowed - others - 3;
            if free < limit {
                limit = free;
                because = format!(
                    "the {what}'s CONNECTION LIMIT = {allowed} ({others} in use by others, 3 for loadline itself)"
                );
            }
        }
    }
    Ok(JobLimit { jobs: Some(u32::try_from(limit.max(0)).unwrap_or(0)), because })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::{GrantSql, Use};

    fn severity(settings: &[(&str, &str, &str)], state: &PgState, id: &str) -> Option<Severity> {
        let findings = judge(Version { major: 15 }, &PgSettings::of(settings), state);
        for f in &findings {
            assert!(f.severity == Severity::Ok || !f.advice.is_empty(), "{}: no advice", f.id);
        }
        findings.iter().find(|f| f.id == id).map(|f| f.severity)
    }

    fn good() -> PgState {
        PgState { version_text: "15.1".into(), ..PgState::default() }
    }

    fn lacking(used: Use) -> Privilege {
        Privilege { sql: vec![GrantSql::of("x", "y")], gives: "something", granted: false, used }
    }

    #[test]
    fn missing_privileges_poolers_and_clouds_are_warnings() {
        for (id, state) in [
            ("privilege", PgState { privileges: vec![lacking(Use::Figures)], ..good() }),
            ("pooler", PgState { behind: Some("7".into()), ..good() }),
        ] {
            assert_eq!(severity(&[], &state, id), Some(Severity::Warning), "{id}");
        }
        let granted = Privilege { granted: true, ..lacking(Use::Needed) };
        let state = PgState { privileges: vec![granted, lacking(Use::Machine)], ..good() };
        assert_eq!(severity(&[], &state, "privilege"), None);
        assert_eq!(severity(&[("rds.extensions", "x", "")], &good(), "cloud"), Some(Severity::Warning));
        assert_eq!(severity(&[], &good(), "cloud"), None);
    }

    #[test]
    fn settings_without_durable_commits_are_refused() {
        for (name, value) in [("fsync", "off"), ("synchronous_commit", "off")] {
            assert_eq!(severity(&[(name, value, "")], &good(), name), Some(Severity::Refused), "{name}");
            assert_eq!(severity(&[(name, "on", "")], &good(), name), Some(Severity::Ok), "{name}");
        }
    }

    #[test]
    fn a_missing_synchronous_standby_is_named_before_anything_waits_for_it() {
        let with = |names: &str, commit: &str, connected: u32| {
            let settings = [("synchronous_standby_names", names, ""), ("synchronous_commit", commit, "")];
            let state = PgState { synchronous_standbys: connected, ..good() };
            severity(&settings, &state, "synchronous_standby_names").unwrap()
        };
        for (names, needed) in
            [("a", 1), ("a, b", 1), ("*", 1), ("FIRST 2 (a, b)", 2), ("ANY 1 (a,b)", 1), ("2(a, b)", 2)]
        {
            assert_eq!(with(names, "on", needed), Severity::Ok, "{names}");
            assert_eq!(with(names, "remote_apply", needed - 1), Severity::Impossible, "{names}");
            assert_eq!(with(names, "local", 0), Severity::Ok, "{names}: nothing waits for it");
        }
        assert_eq!(with("", "on", 0), Severity::Ok);
    }

    #[test]
    fn read_only_servers_are_refused() {
        for (id, state) in [
            ("standby", PgState { in_recovery: true, ..good() }),
            ("privilege", PgState { privileges: vec![lacking(Use::Needed)], ..good() }),
        ] {
            assert_eq!(severity(&[], &state, id), Some(Severity::Impossible), "{id}");
            assert_eq!(severity(&[], &good(), id), None, "{id}");
        }
        let name = "default_transaction_read_only";
        assert_eq!(severity(&[(name, "on", "")], &good(), name), Some(Severity::Impossible));
        assert_eq!(severity(&[(name, "off", "")], &good(), name), None);
    }

    #[test]
    fn unusual_settings_are_warnings() {
        for (name, bad, well, unit, id) in [
            ("full_page_writes", "off", "on", "", "full_page_writes"),
            ("wal_level", "minimal", "replica", "", "wal_level"),
            ("wal_sync_method", "open_datasync", "fdatasync", "", "wal_sync_method"),
            ("max_wal_size", "1024", "8192", "MB", "max_wal_size"),
            ("data_checksums", "off", "on", "", "data_checksums"),
            ("autovacuum", "off", "on", "", "autovacuum"),
            ("log_statement", "all", "none", "", "statement-logging"),
            ("log_min_duration_statement", "0", "-1", "ms", "statement-logging"),
        ] {
            assert_eq!(severity(&[(name, bad, unit)], &good(), id), Some(Severity::Warning), "{name} = {bad}");
            assert_eq!(severity(&[(name, well, unit)], &good(), id), Some(Severity::Ok), "{name} = {well}");
        }
        let busy = PgState { others_active: 3, ..good() };
        assert_eq!(severity(&[], &busy, "other-sessions"), Some(Severity::Warning));
        let hidden = PgState { others_hidden: true, ..good() };
        assert_eq!(severity(&[], &hidden, "other-sessions"), Some(Severity::Warning));
        assert_eq!(severity(&[], &good(), "other-sessions"), Some(Severity::Ok));
    }
}
