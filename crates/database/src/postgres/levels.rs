//! The role [`Levels`] of a private server with standbys, or of a user's own. A commit waits as far as synchronous_commit says, for as
//! many as synchronous_standby_names: <https://www.postgresql.org/docs/current/warm-standby.html>, `Synchronous Replication`.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::connect::SessionRole;
use super::knowledge::{KNOWLEDGE, message};
use super::pair::{LevelSettings, Pair};
use super::schema::checkpoint_if_allowed;
use super::server::Postgres;
use super::wire::{Connection, Row, Values};
use crate::error::TargetError;
use crate::role::{Level, Levels, Replica, ReplicaWatch, find_level, wait_in_force};

/// Values of synchronous_commit: whether a commit waits for its own disk, and whether for standbys.
const MODES: [(&str, bool, bool); 5] = [
    ("off", false, false),
    ("local", true, false),
    ("remote_write", true, true),
    ("on", true, true),
    ("remote_apply", true, true),
];
/// Time for standbys to be attached as a level needs.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time in which the checkpointer reads changed settings if it cannot be asked for anything: it is woken up for that.
const CHECKPOINTER_READS: Duration = Duration::from_millis(300);
/// The longest, whatever the link's delay.
const MOST: Duration = Duration::from_secs(600);

/// End of the log that the standbys are to have.
const END: &str = "SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::text";
/// A standby that acknowledges nothing for this long, beside the way there and back, hangs: if it is loadline's, it is started again.
const HANGS: Duration = Duration::from_secs(5);
/// Time for the standbys of a user's, if one of them was not there before an earlier window.
const ONCE_MISSING: Duration = Duration::from_secs(1);

struct PgLevel {
    level: Level,
    settings: LevelSettings,
    /// Value of sync_state of the standbys for which commits wait, and how many have it.
    state: (&'static str, usize),
}

fn levels(standbys: &[String]) -> Vec<PgLevel> {
    let all = standbys.len();
    let mut levels = Vec::new();
    for (mode, durable, waits) in MODES {
        let mut add = |suffix: String, names: String, replicas: usize, waits_for: usize, state| {
            let (replicas, waits_for) = (replicas as u32, waits_for as u32);
            let name = format!("{mode}{suffix}");
            let level = Level { name, alias: None, replicas, waits_for, durable, at_once: false };
            levels.push(PgLevel { level, settings: [mode.to_owned(), names], state });
        };
        let listed: Vec<String> = standbys.iter().map(|name| KNOWLEDGE.dialect.quoted(name)).collect();
        let names = |how: &str, k: usize, of: usize| format!("{how} {k} ({})", listed[..of.min(all)].join(", "));
        if !waits {
            // The standby is there for those who wait: they are not these.
            add(String::new(), names("FIRST", 1, 1), 0, 0, ("sync", 0));
            continue;
        }
        for k in 1..=all {
            if k < all {
                add(format!(":any-{k}"), names("ANY", k, all), all, k, ("quorum", all));
            }
            let suffix = if k == 1 { String::new() } else { format!(":first-{k}") };
            add(suffix, names("FIRST", k, k), k, k, ("sync", k));
        }
    }
    levels
}

/// Levels of up to two standbys.
pub(super) fn known() -> Vec<Level> {
    levels(&["1", "2"].map(str::to_owned)).into_iter().map(|level| level.level).collect()
}

impl Postgres {
    fn levelled(&self) -> Result<&Pair, TargetError> {
        self.pair.as_deref().ok_or_else(|| TargetError::Unsupported("this target was not opened with replicas".into()))
    }
}

impl Levels for Postgres {
    fn bring_about(&self, level: Option<&str>, delay: Duration) -> Result<(), TargetError> {
        let pair = self.levelled()?;
        let standbys = pair.names();
        let known = levels(&standbys);
        let wanted = find_level(&known, |known| known.level.name.as_str(), level)?;
        let baseline = ["on".to_owned(), String::new()];
        let settings = wanted.map_or(baseline.clone(), |l| l.settings.clone());
        let primary = self.primary();
        let private = self.private_server();
        if private.is_none() && !delay.is_zero() {
            return Err(TargetError::Usage(message("delay", &[])));
        }
        if let Some(mut server) = private {
            server.links().iter().for_each(|link| link.set_delay(delay));
            server.revive(&[])?;
        }
        let changed = pair.set_level(primary, settings)?;
        if changed {
            self.reload()?;
            // The checkpointer tells commits whether there are synchronous standbys once it has read the file: before it makes one.
            if !primary.session(SessionRole::Admin, checkpoint_if_allowed)? {
                std::thread::sleep(CHECKPOINTER_READS);
            }
        }
        let way = delay.saturating_mul(20);
        let patience =
            if pair.missing.load(Ordering::Relaxed) { ONCE_MISSING } else { PATIENCE.saturating_add(way).min(MOST) };
        let mut started_again = false;
        let waited = primary.session(SessionRole::Inspect, |c| {
            let (end, first) = (c.number(END)?.unwrap_or(0), look(c, &standbys)?);
            wait_in_force(level, patience, &primary.request.interrupted, |waited| {
                let found = look(c, &standbys)?;
                let hang = hanging(&first, &found, end);
                if pair.is_set(c)? && hang.is_empty() && is_in_force(&found, standbys.len(), wanted) {
                    return Ok(None);
                }
                let again = !hang.is_empty() && !started_again && waited >= HANGS + way;
                // One that is being killed loses its link before it is seen to have ended.
                if (again || found.len() < standbys.len())
                    && let Some(mut server) = self.private_server()
                {
                    started_again |= again;
                    server.revive(if again { &hang } else { &[] })?;
                }
                let silent = |r: &Replica| if hang.contains(&r.name) { ", acknowledges nothing" } else { "" };
                let found: Vec<String> =
                    found.iter().map(|r| format!("{}: {}{}", r.name, r.state, silent(r))).collect();
                let found = if found.is_empty() { "none is attached".to_owned() } else { found.join("; ") };
                Ok(Some(format!("of {} standbys, {found}", standbys.len())))
            })
        });
        if self.server.is_none() {
            pair.missing.store(waited.is_err(), Ordering::Relaxed);
            if waited.is_err() {
                // Commits of others on the user's server must no longer wait for a standby that is away.
                let _ = pair.set_level(primary, baseline).and_then(|_| self.reload());
            }
        }
        waited
    }

    fn watch(&self) -> Result<ReplicaWatch, TargetError> {
        let mut c = self.primary().connect(SessionRole::Observer)?;
        let names = self.levelled()?.names();
        // Those to a user's own standbys are not loadline's.
        let links = self.private_server().map_or_else(Vec::new, |server| server.links());
        ReplicaWatch::new(links, move || {
            let found = look(&mut c, &names);
            c.publish()?;
            found
        })
    }
}

/// Names of those that have not acknowledged the log up to `end`, nor anything since the first look.
fn hanging(first: &[Replica], found: &[Replica], end: u64) -> Vec<String> {
    let before = |r: &Replica| first.iter().find(|f| f.name == r.name).and_then(|f| f.acknowledged);
    let hangs = |r: &&Replica| r.acknowledged.is_none_or(|at| at[0] < end && before(r) == Some(at));
    found.iter().filter(hangs).map(|r| r.name.clone()).collect()
}

/// Whether all standbys are attached, and the level or the baseline holds for each.
fn is_in_force(found: &[Replica], standbys: usize, level: Option<&PgLevel>) -> bool {
    let number = |state: &str| found.iter().filter(|r| r.state == format!("streaming, {state}")).count();
    let attached = found.iter().filter(|r| r.state.starts_with("streaming, ")).count();
    attached == standbys
        && match level {
            None => number("async") == standbys,
            Some(level) => number(level.state.0) >= level.state.1,
        }
}

/// The standbys of these names: a user's primary may have others.
fn look(c: &mut Connection, names: &[String]) -> Result<Vec<Replica>, TargetError> {
    let replica = |row: &Row| Replica {
        name: row.text(0),
        synchronous: matches!(row.value(2), Some("sync" | "quorum")),
        state: format!("{}, {}", row.text(1), row.text(2)),
        behind_bytes: row.number::<f64>(3).map(|n| n.max(0.0) as u64),
        behind_s: row.number(4),
        acknowledged: row.number(5).zip(row.number(6)).map(<[u64; 2]>::from),
    };
    let rows = c.query(&KNOWLEDGE.queries.text("standbys", &[]))?;
    Ok(rows.iter().map(replica).filter(|r| names.contains(&r.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;
    use crate::postgres::pair::CHANGED;

    fn levels_of(n: usize) -> Vec<PgLevel> {
        levels(&(1..=n).map(|i| format!("standby{i}")).collect::<Vec<_>>())
    }

    #[test]
    fn levels_are_ordered_by_how_far_a_commit_waits_and_name_their_standbys() {
        let mut text = String::new();
        for (n, level) in (1..=3).flat_map(|n| levels_of(n).into_iter().map(move |level| (n, level))) {
            let Level { name, replicas, waits_for, .. } = level.level;
            let settings: Vec<_> = CHANGED.into_iter().zip(level.settings).collect();
            text += &format!("{n} {name}: {replicas} replicas, waits for {waits_for}, {settings:?}\n");
        }
        insta::assert_snapshot!("levels", text);
    }

    #[test]
    fn a_standby_that_acknowledges_nothing_hangs() {
        let at = |at: Option<u64>| {
            vec![Replica { name: "a".into(), acknowledged: at.map(|at| [at, 1]), ..Replica::default() }]
        };
        let hangs = |first, now| !hanging(&at(first), &at(now), 100).is_empty();
        assert!(!hangs(Some(90), Some(100)) && !hangs(Some(10), Some(11)), "it has all, or is on its way");
        assert!(hangs(Some(90), Some(90)) && hangs(None, None));
        assert!(hanging(&at(Some(90)), &[], 100).is_empty(), "it is not attached, which is said otherwise");
        assert!(hanging(&[], &at(Some(90)), 100).is_empty(), "it has just come back");
    }

    #[test]
    fn a_level_is_in_force_when_its_standbys_are_synchronous() {
        let levels = levels_of(2);
        for (states, level, want) in cases::<(Vec<String>, String, bool)>("postgres-levels-in-force") {
            let replica = |s: &String| Replica { state: format!("streaming, {s}"), ..Replica::default() };
            let found: Vec<_> = states.iter().map(replica).collect();
            let of = levels.iter().find(|l| l.level.name == level);
            assert_eq!((is_in_force(&found, 2, of), of.is_none()), (want, level.is_empty()), "{states:?} {level}");
        }
    }
}
