//! Checks a server for everything that would spoil the figures of a run.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use loadline_model::{Finding, Severity};

use super::connect::{Endpoint, SessionRole};
use super::knowledge::{KNOWLEDGE, KnownPrivilege, NEWEST, message};
use super::server::PgInstance;
use super::settings::PgSettings;
use super::wire::{Connection, Values};
use crate::cloud::Cloud;
use crate::error::{TargetError, unless_refused};
use crate::flavour::Flavour;
use crate::role::{GrantSql, JobLimit, Privilege, Use};
use crate::rules::{self, Known, SettingValues as _};
use crate::storage::{free_space, in_memory};

/// Redo of a fast log writer, bytes per second: `max_wal_size` is compared with it.
const FAST_REDO: f64 = 100.0 * 1024.0 * 1024.0;

type Facts = BTreeMap<&'static str, String>;

pub(super) fn examine(c: &mut Connection, instance: &PgInstance) -> Result<Vec<Finding>, TargetError> {
    let settings = PgSettings::read(c)?;
    let (facts, standbys) = facts(c, instance.endpoint.recognised.flavour())?;
    let privileges = privileges(c)?;
    Ok([judge(&settings, facts, standbys, &privileges), directories(&settings, instance.local)].concat())
}

pub(super) fn examine_standby(c: &mut Connection, instance: &PgInstance) -> Result<Vec<Finding>, TargetError> {
    let status = unless_refused(c.value("SELECT status FROM pg_stat_wal_receiver"))?;
    let state = status.clone().unwrap_or_else(|| "no receiver seen".to_owned());
    let (severity, advice) = match status.as_deref() {
        Some("streaming") => (Severity::Ok, message("streams", &[])),
        _ => (Severity::Warning, message("streams-not", &[])),
    };
    let standby = Finding::new("standby", severity, "standby", state, advice);
    Ok([vec![standby], directories(&PgSettings::read(c)?, instance.local)].concat())
}

/// Checks that a standby of the user's keeps what it confirms: at a level that waits for it, commits are as durable as its log.
pub(super) fn examine_given(c: &mut Connection, local: bool) -> Result<Vec<Finding>, TargetError> {
    let settings = PgSettings::read(c)?;
    let rules = rules::judge(&KNOWLEDGE.rules, &Known { settings: &settings, facts: Facts::new() });
    Ok(rules.into_iter().filter(|f| f.id == "fsync").chain(directories(&settings, local)).collect())
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
    let held = c.value(&KNOWLEDGE.queries.text("settings-hold", &[]))?;
    let advice = || message("settings-lost", &[]);
    let finding = || Finding::new("session-settings", Severity::Refused, "session settings", "ignored", advice());
    Ok((held.as_deref() != Some("t")).then(finding))
}

/// Inputs of the rules from the server's state, and the number of standbys for which commits may wait.
fn facts(c: &mut Connection, flavour: Option<&Flavour>) -> Result<(Facts, u32), TargetError> {
    let row = c.row(&KNOWLEDGE.queries.text("state", &[]))?;
    let mut facts = Facts::from([("version", c.version_text.clone()), ("newest", NEWEST.to_string())]);
    let mut say = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    let yes = |is: bool| is.then(|| "yes".to_owned());
    say("newer", yes(c.version.is_from(&[NEWEST + 1])));
    say("flavour", flavour.map(|flavour| flavour.name.clone()));
    say("flavour_advice", flavour.and_then(Flavour::advice).map(str::to_owned));
    say("standby", yes(row.is_true(0)));
    // The handshake told of another process than the session's.
    let behind = row.value(3).filter(|pid| *pid != c.pid.to_string());
    say("pooler", behind.map(|pid| format!("process {pid}")));
    let active: u32 = row.number(1).unwrap_or(0);
    say("other-sessions", (active > 0 || row.is_true(4)).then(|| active.to_string()));
    Ok((facts, row.number(2).unwrap_or(0)))
}

/// The privileges that loadline uses, with statements for this role and database.
pub(super) fn privileges(c: &mut Connection) -> Result<Vec<Privilege>, TargetError> {
    let (texts, version) = (&KNOWLEDGE.texts, c.version);
    let all = KNOWLEDGE.privileges.iter().filter(|p| p.versions.has(version));
    let asked = all.clone().map(|p| format!("({}), ({})", p.granted, p.without_grant.as_deref().unwrap_or("false")));
    let sql = format!(
        "SELECT quote_ident(current_user), quote_ident(current_database()), (SELECT rolsuper FROM pg_roles WHERE rolname = \
         current_user), {}",
        asked.collect::<Vec<_>>().join(", ")
    );
    let sql = sql.replace("{reads_are_timed}", texts.reads_are_timed.at(version).unwrap_or_default());
    let row = c.row(&sql.replace("{may_checkpoint}", texts.may_checkpoint.at(version).unwrap_or_default()))?;
    let filled = |sql: &String| sql.replace("{role}", &row.text(0)).replace("{database}", &row.text(1));
    let privilege = |(at, known): (usize, &'static KnownPrivilege)| {
        let grants = known.grants.iter().map(|what| GrantSql::for_role(&filled(what), &row.text(0)));
        let change = |[change, back]: &[String; 2]| GrantSql { grant: filled(change), revoke: Some(filled(back)) };
        let mut sql: Vec<GrantSql> = grants.chain(known.changes.iter().map(change)).collect();
        // An owner and a superuser have it without a grant.
        if row.is_true(4 + 2 * at) || row.is_true(2) && known.used != Use::Setting {
            sql.iter_mut().for_each(|sql| sql.revoke = None);
        }
        Privilege { sql, gives: &known.gives, granted: row.is_true(3 + 2 * at), used: known.used }
    };
    Ok(all.enumerate().map(privilege).collect())
}

/// How many standbys must confirm a commit: `FIRST 2 (a, b)`, `ANY 1 (a, b)`, `2 (a, b)`, `a, b` (one).
fn standbys_needed(names: &str) -> u32 {
    let words = names.split_once('(').map_or("", |(before, _)| before);
    words.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(1)
}

/// Judges settings and state. A pure function, so that rare states (a standby, fsync off) can be tested.
fn judge(s: &PgSettings, mut facts: Facts, standbys: u32, privileges: &[Privilege]) -> Vec<Finding> {
    let needed = standbys_needed(s.text("synchronous_standby_names").unwrap_or_default());
    facts.extend([
        ("standbys_needed", needed.to_string()),
        ("standbys_connected", standbys.to_string()),
        ("max_wal_size_s", format!("{:.0}", s.number("max_wal_size").unwrap_or(0.0) / FAST_REDO)),
    ]);
    facts.extend((standbys < needed).then(|| ("standbys_missing", "yes".to_owned())));
    facts.extend(super::settings::uncounted_syncs(s).map(|why| ("uncounted_syncs", why)));
    let mut out = rules::judge(&KNOWLEDGE.rules, &Known { settings: s, facts });
    out.extend(privileges.iter().filter_map(|p| p.finding(Severity::Impossible)));
    out.extend(s.cloud().map(Cloud::finding));
    out
}

fn directories(settings: &PgSettings, local: bool) -> Vec<Finding> {
    let place = |path: &Path| match local.then(|| in_memory(path)) {
        None => "elsewhere",
        Some(None) => "unknown",
        Some(Some(true)) => "memory",
        Some(Some(false)) => "disk",
    };
    let mut facts = Facts::new();
    let data = settings.text("data_directory").map(Path::new);
    if let Some(data) = data {
        let log = data.join("pg_wal");
        facts.extend([("data-directory", data.display().to_string()), ("data_place", place(data).to_owned())]);
        facts.extend([("log-directory", log.display().to_string()), ("log_place", place(&log).to_owned())]);
    }
    let mut found = rules::judge(&KNOWLEDGE.directories, &Known { settings, facts });
    found.extend(data.filter(|data| local && in_memory(data).is_some()).map(free_space));
    found
}

/// Number of sessions that this instance still accepts for jobs; three are reserved for loadline itself.
pub(super) fn free_sessions(c: &mut Connection, own_name: &str) -> Result<JobLimit, TargetError> {
    let settings = PgSettings::read(c)?;
    let reserving = KNOWLEDGE.texts.reserving_settings.all(c.version);
    let reserved: Vec<(&str, i64)> =
        reserving.map(|name| (name, settings.number(name).unwrap_or(0.0) as i64)).collect();
    let rows = c.query_with(&KNOWLEDGE.queries.text("sessions", &[]), &[own_name])?;
    let free = rows.iter().filter_map(|row| {
        let reserved = if row.is_true(3) { &reserved[..] } else { &[] };
        let said: String = reserved.iter().map(|(name, n)| format!("{name} = {n}, ")).collect();
        let (allowed, others) = (row.number::<i64>(1)?, row.number::<i64>(2)?.max(0));
        let because = format!("{} = {allowed} ({said}{others} in use by others, 3 for loadline itself)", row.text(0));
        Some((allowed - others - 3 - reserved.iter().map(|(_, n)| n).sum::<i64>(), because))
    });
    let (jobs, because) = free.min_by_key(|(jobs, _)| *jobs).unwrap_or_default();
    Ok(JobLimit { jobs: Some(u32::try_from(jobs.max(0)).unwrap_or(0)), because })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cases::cases;

    type Texts = BTreeMap<String, String>;

    fn found(settings: &Texts, facts: Facts, standbys: u32, privileges: &[Privilege], id: &str) -> Vec<Severity> {
        let settings: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let findings = judge(&PgSettings::from_pairs(&settings), facts, standbys, privileges);
        for f in &findings {
            assert!(f.severity == Severity::Ok || !f.advice.is_empty(), "{}: no advice", f.id);
        }
        findings.into_iter().filter(|f| f.id == id).map(|f| f.severity).collect()
    }

    #[test]
    fn what_spoils_the_figures_is_found_by_its_setting() {
        for (settings, facts, standbys, id, want) in cases::<(Texts, Texts, u32, String, Vec<_>)>("postgres-doctor") {
            let good = [("version", "15.1".to_owned()), ("other-sessions", "0".to_owned())].into_iter();
            let facts: Facts = good.chain(facts.into_iter().map(|(name, value)| (&*name.leak(), value))).collect();
            let what = format!("{settings:?} {facts:?} {standbys}: {id}");
            assert_eq!(found(&settings, facts, standbys, &[], &id), want, "{what}");
        }
        let hidden = found(&Texts::new(), Facts::new(), 0, &[], "other-sessions");
        assert_eq!(hidden, [Severity::Warning]);
    }

    #[test]
    fn a_log_in_memory_is_refused() {
        for (place, want) in [("memory", Severity::Refused), ("disk", Severity::Ok)] {
            let facts = Facts::from([("log-directory", "/pg_wal".to_owned()), ("log_place", place.to_owned())]);
            let found = rules::judge(&KNOWLEDGE.directories, &Known { settings: &PgSettings::default(), facts });
            assert!(found.iter().any(|f| f.id == "log-directory" && f.severity == want), "{place}: {found:?}");
        }
    }

    #[test]
    fn a_missing_privilege_is_as_severe_as_its_use() {
        let lacking =
            |used| Privilege { sql: vec![GrantSql::for_role("x", "y")], gives: "something", granted: false, used };
        let privilege = |all: &[Privilege]| found(&Texts::new(), Facts::new(), 0, all, "privilege");
        assert_eq!(privilege(&[lacking(Use::Figures)]), [Severity::Warning]);
        let granted = Privilege { granted: true, ..lacking(Use::Needed) };
        assert_eq!(privilege(&[granted, lacking(Use::Machine)]), []);
        assert_eq!(privilege(&[lacking(Use::Needed)]), [Severity::Impossible]);
    }
}
