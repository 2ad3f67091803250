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

    fn good() -> PgState {
        PgState { version_text: "15.1".into(), ..PgState::default() }
    }

    fn lacking(used: Use, granted: bool) -> PgState {
        let privilege = Privilege { sql: vec![GrantSql::of("x", "y")], gives: "something", granted, used };
        PgState { privileges: vec![privilege], ..good() }
    }

    #[test]
    fn what_is_found_by_settings_and_state() {
        let states = [
            ("a privilege for figures is lacking", lacking(Use::Figures, false)),
            ("one for the machine", lacking(Use::Machine, false)),
            ("one that is needed", lacking(Use::Needed, false)),
            ("none", lacking(Use::Needed, true)),
            ("pooler", PgState { behind: Some("7".into()), ..good() }),
            ("standby", PgState { in_recovery: true, ..good() }),
            ("busy", PgState { others_active: 3, ..good() }),
            ("others are hidden", PgState { others_hidden: true, ..good() }),
        ];
        // Value and unit.
        let settings = [
            "rds.extensions=x=",
            "fsync=off=",
            "fsync=on=",
            "synchronous_commit=off=",
            "synchronous_commit=on=",
            "default_transaction_read_only=on=",
            "default_transaction_read_only=off=",
            "full_page_writes=off=",
            "full_page_writes=on=",
            "wal_level=minimal=",
            "wal_level=replica=",
            "wal_sync_method=open_datasync=",
            "wal_sync_method=fdatasync=",
            "max_wal_size=1024=MB",
            "max_wal_size=8192=MB",
            "data_checksums=off=",
            "data_checksums=on=",
            "autovacuum=off=",
            "autovacuum=on=",
            "log_statement=all=",
            "log_statement=none=",
            "log_min_duration_statement=0=ms",
            "log_min_duration_statement=-1=ms",
        ];
        // Names, for which commits wait, and how many are connected.
        let standbys = ["a", "a, b", "*", "FIRST 2 (a, b)", "ANY 1 (a,b)", "2(a, b)", ""];
        let waiting = standbys.iter().flat_map(|names| ["on", "remote_apply", "local"].map(|commit| (*names, commit)));
        let mut cases: Vec<_> = states.map(|(case, state)| (case.to_owned(), Vec::new(), state)).into();
        cases.extend(settings.map(|s| (s.to_owned(), vec![s.to_owned()], good())));
        cases.extend(waiting.flat_map(|(names, commit)| {
            let settings = [format!("synchronous_standby_names={names}="), format!("synchronous_commit={commit}=")];
            [0, 1, 2].map(|n| {
                let state = PgState { synchronous_standbys: n, ..good() };
                (format!("'{names}' {commit} {n}"), settings.to_vec(), state)
            })
        }));
        let found = |(case, settings, state): &(String, Vec<String>, PgState)| {
            let settings: Vec<_> = settings.iter().map(|s| s.split('=').collect::<Vec<_>>()).collect();
            let settings: Vec<_> = settings.iter().map(|s| (s[0], s[1], s[2])).collect();
            (case.clone(), judge(Version { major: 15 }, &PgSettings::of(&settings), state))
        };
        let plain = found(&("without a setting".to_owned(), Vec::new(), good()));
        insta::assert_snapshot!(rules::told(&plain, cases.iter().map(found)));
    }
}
