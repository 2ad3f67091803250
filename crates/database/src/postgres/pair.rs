//! A primary with standbys, whose levels of replication a run changes by ALTER SYSTEM. What a user's settings were is kept in
//! loadline's schema until they are put back, so that a killed run can be made good.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use loadline_model::{Finding, Severity};

use super::connect::{Endpoint, SessionRole};
use super::knowledge::{KNOWLEDGE, message, refusal};
use super::schema;
use super::sql::{SCHEMA, literal};
use super::standbys::Identity;
use super::temp::TempServer;
use super::wire::{Connection, Values};
use crate::dialect::MARK;
use crate::error::TargetError;
use crate::request::{OpenRequest, of_target};

/// All settings that may be changed.
pub(super) const CHANGED: [&str; 2] = ["synchronous_commit", "synchronous_standby_names"];
/// The table of what they were; `value` is NULL if ALTER SYSTEM had not set it.
const TABLE: &str = "changed_settings";

/// Values of [`CHANGED`].
pub(super) type LevelSettings = [String; 2];

/// A standby that commits can wait for.
pub(super) struct PairStandby {
    pub(super) endpoint: Endpoint,
    /// The application name of its session at the primary, by which levels name it.
    pub(super) name: String,
}

/// The standbys of a user, or of a private server, which has nothing to put back.
#[derive(Default)]
pub(super) struct Pair {
    pub(super) standbys: Vec<PairStandby>,
    private: bool,
    level: Mutex<Option<LevelSettings>>,
    /// Whether one of them was not there when a level was brought about the last time.
    pub(super) missing: AtomicBool,
}

impl Pair {
    pub(super) fn private(server: &TempServer) -> Result<Pair, TargetError> {
        let standbys = server.further.iter();
        let standbys = standbys.map(|s| Ok(PairStandby { endpoint: server.endpoint_of(s)?, name: s.name.clone() }));
        Ok(Pair { standbys: standbys.collect::<Result<_, TargetError>>()?, private: true, ..Pair::default() })
    }

    /// The standbys of `request` of the first of so many `instances`, if it has any. Only reads.
    pub(super) fn open(
        request: &OpenRequest,
        primary: &Endpoint,
        of: &Identity,
        instances: usize,
    ) -> Result<Option<Pair>, TargetError> {
        if request.standbys.is_empty() {
            return Ok(None);
        }
        if instances > 1 {
            return Err(TargetError::Usage("levels of replication are of one primary: leave out --node".into()));
        }
        let mut c = primary.connect(SessionRole::Inspect)?;
        let mut standbys: Vec<PairStandby> = Vec::new();
        let mut known: Vec<Identity> = Vec::new();
        for url in &request.standbys {
            let endpoint = Endpoint::new(url, request, of_target(false))?;
            let shown = endpoint.config.shown.clone();
            let mut s = endpoint.connect(SessionRole::Inspect)?;
            let identity = Identity::read(&mut s, &endpoint, false)?;
            identity.check_standby(&endpoint, of, primary)?;
            if !identity.standby {
                return Err(refusal("no-standby", &[("standby", &shown)]));
            }
            if known.contains(&identity) {
                return Err(TargetError::Usage(format!("the standby '{shown}' is given twice: keep one")));
            }
            let name = session_name(&mut c, &mut s, &shown)?;
            s.publish()?;
            known.push(identity);
            standbys.push(PairStandby { endpoint, name });
        }
        check_role(&mut c)?;
        check_sources(&present(&mut c)?)?;
        c.publish()?;
        Ok(Some(Pair { standbys, ..Pair::default() }))
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.standbys.iter().map(|s| s.name.clone()).collect()
    }

    /// Sets these settings, after what they were is kept. `true`: the server still has to read its configuration.
    pub(super) fn set_level(&self, primary: &Endpoint, level: LevelSettings) -> Result<bool, TargetError> {
        let mut last = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref() == Some(&level) {
            return Ok(false);
        }
        if last.is_none() && !self.private {
            // An administrative session has settings of its own.
            let before = primary.session(SessionRole::Inspect, present)?;
            check_sources(&before)?;
            primary.session(SessionRole::Admin, |c| keep(c, &before))?;
        }
        let mut settings = CHANGED.iter().zip(&level);
        primary.session(SessionRole::Admin, |c| settings.try_for_each(|(name, to)| alter(c, name, Some(to))))?;
        *last = Some(level);
        Ok(true)
    }

    /// Whether the sessions of jobs have the settings that were set last; `c` must not set them for itself.
    pub(super) fn is_set(&self, c: &mut Connection) -> Result<bool, TargetError> {
        let last = self.level.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let present = present(c)?;
        let has = |(name, value): (&&str, &String)| present.iter().any(|p| p.name == *name && p.value == *value);
        Ok(last.is_some_and(|level| CHANGED.iter().zip(&level).all(has)))
    }
}

/// Coming changes of a run: the settings with their values now, before anything starts.
pub(super) fn findings(c: &mut Connection) -> Result<Vec<Finding>, TargetError> {
    let finding = |p: &Present| Finding::new("levels", Severity::Warning, p.name, p.shown(), message("changed", &[]));
    Ok(present(c)?.iter().map(finding).collect())
}

/// The application name of the session at the primary (`c`) that the standby of `s` receives from.
fn session_name(c: &mut Connection, s: &mut Connection, shown: &str) -> Result<String, TargetError> {
    let receivers = s.query(&KNOWLEDGE.queries.text("receiver", &[]))?;
    let Some(receiver) = receivers.first() else { return Err(refusal("receives-nothing", &[("standby", shown)])) };
    let sessions = c.query(&KNOWLEDGE.queries.text("senders", &[]))?;
    if sessions.iter().chain([receiver]).any(|row| row.value(0).is_none()) {
        return Err(refusal("sees-no-senders", &[("standby", shown)]));
    }
    let of_slot = |slot| sessions.iter().find(|row| row.value(1) == Some(slot))?.value(0);
    let Some(name) = receiver.value(1).map_or(receiver.value(0), of_slot) else {
        return Err(refusal("other-primary", &[("standby", shown)]));
    };
    let number = sessions.iter().filter(|row| row.text(0).eq_ignore_ascii_case(name)).count();
    let parts = [("standby", shown), ("name", name), ("number", &number.to_string())];
    match number {
        0 => Err(refusal("no-such-sender", &parts)),
        1 if !["", "*"].contains(&name) => Ok(name.to_owned()),
        _ => Err(refusal("no-name-of-its-own", &parts)),
    }
}

fn check_role(c: &mut Connection) -> Result<(), TargetError> {
    if c.value("SELECT current_setting('allow_alter_system', true)")?.as_deref() == Some("off") {
        return Err(refusal("no-alter-system", &[]));
    }
    let row = c.row(KNOWLEDGE.texts.may_alter.at(c.version).unwrap_or_default())?;
    if row.is_true(0) {
        return Ok(());
    }
    let role = row.text(1);
    let grants = KNOWLEDGE.texts.alter_privilege.at(c.version).unwrap_or_default().replace("{role}", &role);
    Err(refusal("may-not-alter", &[("role", &role), ("settings", &CHANGED.join(" and ")), ("grants", &grants)]))
}

/// A setting as the sessions of the jobs have it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Present {
    name: &'static str,
    value: String,
    /// Where the value comes from: `default`, `configuration file` …
    source: String,
    /// Whether it was set by ALTER SYSTEM; `None` if the role may not see that.
    by_alter_system: Option<bool>,
}

impl Present {
    /// `on (default)`.
    fn shown(&self) -> String {
        let source = if self.by_alter_system == Some(true) { "ALTER SYSTEM" } else { &self.source };
        let value = if self.value.is_empty() { "''" } else { &self.value };
        format!("{value} ({source})")
    }
}

/// The settings now. `c` must not set them for itself.
fn present(c: &mut Connection) -> Result<Vec<Present>, TargetError> {
    let names = CHANGED.map(literal).join(", ");
    let rows = c.query(&KNOWLEDGE.queries.text("origins", &[("names", &names)]))?;
    let present = rows.iter().filter_map(|row| {
        let name = CHANGED.into_iter().find(|name| row.value(0) == Some(name))?;
        let is_in_file = row.value(2) == Some("configuration file");
        let by_alter_system = if is_in_file { row.value(3).map(|is| is == "t") } else { Some(false) };
        Some(Present { name, value: row.text(1), source: row.text(2), by_alter_system })
    });
    Ok(present.collect())
}

/// Keeps what the settings were, unless an earlier value is kept already. Nothing is changed yet.
fn keep(c: &mut Connection, before: &[Present]) -> Result<(), TargetError> {
    schema::ensure(c)?;
    let value = |p: &Present| if p.by_alter_system == Some(true) { literal(&p.value) } else { "NULL".to_owned() };
    let rows: Vec<String> = before.iter().map(|p| format!("({}, {})", literal(p.name), value(p))).collect();
    c.query(&format!(
        "CREATE TABLE IF NOT EXISTS {SCHEMA}.{TABLE} (name text PRIMARY KEY, value text); \
         INSERT INTO {SCHEMA}.{TABLE} VALUES {} ON CONFLICT DO NOTHING",
        rows.join(", ")
    ))
    .map(drop)
}

/// Sets one of [`CHANGED`], or resets it (`None`). The server still has to read its configuration.
fn alter(c: &mut Connection, name: &str, value: Option<&str>) -> Result<(), TargetError> {
    let sql = match value {
        Some(value) => format!("ALTER SYSTEM SET {name} = {}", literal(value)),
        None => format!("ALTER SYSTEM RESET {name}"),
    };
    c.query(&sql).map(drop)
}

/// Puts back what a run changed, and forgets it; returns a line for each setting. If the server refuses one, they stay kept.
pub(super) fn put_back(c: &mut Connection) -> Result<Vec<String>, TargetError> {
    let in_own_schema = KNOWLEDGE.queries.text("own-table", &[("table", TABLE), ("schema", SCHEMA), ("mark", MARK)]);
    if c.value(&in_own_schema)?.is_none() {
        return Ok(Vec::new());
    }
    let kept = c.query(&format!("SELECT name, value FROM {SCHEMA}.{TABLE} ORDER BY 1"))?;
    let mut lines = Vec::new();
    for row in &kept {
        let (found, value) = (row.value(0), row.value(1));
        let Some(name) = CHANGED.into_iter().find(|name| found == Some(name)) else { continue };
        let to = value.map_or("what it was without ALTER SYSTEM".to_owned(), literal);
        alter(c, name, value).map_err(|e| match e {
            TargetError::Server(e) => refusal("put-back", &[("name", name), ("value", &to), ("error", &e.text)]),
            e => e,
        })?;
        let to = value.map_or("reset".to_owned(), |value| format!("put back to {}", literal(value)));
        lines.push(format!("setting {name}: {to}"));
    }
    c.query("SELECT pg_reload_conf()")?;
    c.query(&format!("DROP TABLE {SCHEMA}.{TABLE}"))?;
    Ok(lines)
}

/// Whether ALTER SYSTEM would change what the sessions of jobs have, and what it was can be put back.
fn check_sources(present: &[Present]) -> Result<(), TargetError> {
    for p in present {
        if !["default", "configuration file"].contains(&p.source.as_str()) {
            return Err(refusal("other-source", &[("name", p.name), ("value", &p.shown())]));
        }
        if p.by_alter_system.is_none() {
            return Err(refusal("unseen-source", &[("name", p.name)]));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_alter_system_does_not_change_is_refused() {
        let of = |source: &str, by_alter_system| {
            let present = Present { name: CHANGED[0], value: "on".into(), source: source.into(), by_alter_system };
            check_sources(&[present]).map_err(|e| e.to_string())
        };
        assert_eq!(of("default", Some(false)), Ok(()));
        assert_eq!(of("configuration file", Some(true)), Ok(()));
        assert!(of("command line", Some(false)).unwrap_err().contains("command line"));
        assert!(of("user", Some(false)).unwrap_err().contains("ALTER ROLE"));
        assert!(of("configuration file", None).unwrap_err().contains("pg_monitor"));
    }
}
