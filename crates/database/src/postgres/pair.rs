//! A primary with standbys, whose levels of replication a run changes by ALTER SYSTEM. Here is what is asked of a user's own before
//! anything is changed, and the change; see `changed_settings.rs` for how it is undone.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use loadline_model::{Finding, Severity};

use super::changed_settings::{self, CHANGED, Present};
use super::connect::{Endpoint, SessionRole};
use super::knowledge::KNOWLEDGE;
use super::standbys::Identity;
use super::temp::TempServer;
use super::wire::Connection;
use crate::env::of_target;
use crate::error::TargetError;
use crate::request::OpenRequest;

pub(super) type LevelSettings = [(&'static str, String); 2];

/// A standby that commits can wait for.
struct PairStandby {
    endpoint: Endpoint,
    /// The application name of its session at the primary, by which levels name it.
    name: String,
}

/// The standbys of a user, or of a private server, which has nothing to put back.
pub(super) struct Pair {
    standbys: Vec<PairStandby>,
    private: bool,
    level: Mutex<Option<LevelSettings>>,
    /// Whether one of them was not there when a level was brought about the last time.
    pub(super) missing: AtomicBool,
}

impl Pair {
    fn new(standbys: Vec<PairStandby>, private: bool) -> Pair {
        Pair { standbys, private, level: Mutex::default(), missing: AtomicBool::new(false) }
    }

    /// The standbys of a private server.
    pub(super) fn private(server: &TempServer) -> Result<Pair, TargetError> {
        let standbys = server.further.iter();
        let standbys = standbys.map(|s| Ok(PairStandby { endpoint: server.endpoint_of(s)?, name: s.name.clone() }));
        Ok(Pair::new(standbys.collect::<Result<_, TargetError>>()?, true))
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
                return Err(TargetError::Refused(format!(
                    "'{shown}' is no standby (it is not in recovery): give the primary with --target and its standbys with --standby"
                )));
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
        check_sources(&changed_settings::present(&mut c)?)?;
        c.publish()?;
        Ok(Some(Pair::new(standbys, false)))
    }

    /// Names of the standbys in pg_stat_replication.
    pub(super) fn names(&self) -> Vec<String> {
        self.standbys.iter().map(|s| s.name.clone()).collect()
    }

    pub(super) fn endpoints(&self) -> Vec<Endpoint> {
        self.standbys.iter().map(|s| s.endpoint.clone()).collect()
    }

    /// Sets these settings, after what they were is kept in loadline's schema of a user's server. `true`: it still has to read its
    /// configuration.
    pub(super) fn set_level(&self, primary: &Endpoint, level: LevelSettings) -> Result<bool, TargetError> {
        let mut last = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref() == Some(&level) {
            return Ok(false);
        }
        let before = match *last {
            // Not in an administrative session, which has settings of its own.
            None if !self.private => {
                let mut c = primary.connect(SessionRole::Inspect)?;
                let before = changed_settings::present(&mut c)?;
                c.publish()?;
                check_sources(&before)?;
                before
            }
            _ => Vec::new(),
        };
        let mut c = primary.connect(SessionRole::Admin)?;
        if !before.is_empty() {
            changed_settings::keep(&mut c, &before)?;
        }
        for (name, value) in &level {
            changed_settings::alter(&mut c, name, Some(value))?;
        }
        c.publish()?;
        *last = Some(level);
        Ok(true)
    }

    /// Whether the sessions of jobs have the settings that were set last; `c` must not set them for itself.
    pub(super) fn is_set(&self, c: &mut Connection) -> Result<bool, TargetError> {
        let last = self.level.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let present = changed_settings::present(c)?;
        let has = |(name, value): &(&str, String)| present.iter().any(|p| p.name == *name && p.value == *value);
        Ok(last.is_some_and(|level| level.iter().all(has)))
    }
}

/// Coming changes of a run: the settings with their values now, before anything starts.
pub(super) fn findings(c: &mut Connection) -> Result<Vec<Finding>, TargetError> {
    let advice = "levels change it by ALTER SYSTEM, for all sessions of the server, while the run lasts; it is put back at the end, \
                  and by `loadline clean` if the run is killed";
    let present = changed_settings::present(c)?;
    Ok(present.iter().map(|p| Finding::new("levels", Severity::Warning, p.name, p.shown(), advice)).collect())
}

/// The application name of the session at the primary (`c`) that the standby of `s` receives from.
fn session_name(c: &mut Connection, s: &mut Connection, shown: &str) -> Result<String, TargetError> {
    let refused = |why: String| Err(TargetError::Refused(format!("the standby '{shown}' {why}")));
    let blind =
        "cannot be found among the primary's sessions, because the role may not see them: GRANT pg_monitor to it";
    let rows = s.query("SELECT status, slot_name, conninfo FROM pg_stat_wal_receiver")?;
    let Some(row) = rows.into_iter().next() else {
        return refused(
            "receives nothing: it is not connected to a primary. See its primary_conninfo and its log".to_owned(),
        );
    };
    let mut row = row.into_iter();
    let (status, slot, conninfo) = (row.next().flatten(), row.next().flatten(), row.next().flatten());
    let (Some(_), Some(conninfo)) = (status, conninfo) else { return refused(blind.to_owned()) };
    let rows = c.query(
        "SELECT r.application_name, s.slot_name, r.state FROM pg_stat_replication r \
         LEFT JOIN pg_replication_slots s ON s.active_pid = r.pid",
    )?;
    let mut sessions = Vec::new();
    for row in rows {
        let mut row = row.into_iter();
        let (name, slot, state) = (row.next().flatten(), row.next().flatten(), row.next().flatten());
        match (name, state) {
            (Some(name), Some(_)) => sessions.push((name, slot)),
            _ => return refused(blind.to_owned()),
        }
    }
    let by_slot = || sessions.iter().find(|(_, held)| held.is_some() && *held == slot).map(|(name, _)| name.clone());
    let Some(name) = slot.as_ref().map_or_else(|| application_name(&conninfo), |_| by_slot()) else {
        return refused("is not connected to the URL's server itself: give standbys that receive from it".to_owned());
    };
    match sessions.iter().filter(|(other, _)| other.eq_ignore_ascii_case(&name)).count() {
        0 => refused(format!(
            "is not connected to the URL's server itself, which has no replication session '{name}': give standbys that receive from it"
        )),
        1 if name != "*" => Ok(name),
        n => refused(format!(
            "cannot be named in synchronous_standby_names, because {n} replication sessions have the application name '{name}': set \
             application_name in its primary_conninfo to a name of its own"
        )),
    }
}

/// The application name in `conninfo`, as pg_stat_wal_receiver shows it: without quotes.
fn application_name(conninfo: &str) -> Option<String> {
    let is_key = |word: &&str| word.split_once('=').is_some_and(|(key, _)| !key.is_empty());
    let of = |key: &str| {
        let mut words = conninfo.split(' ').skip_while(|word| !word.starts_with(key));
        let first = words.next()?.strip_prefix(key)?;
        let rest = words.take_while(|word| !is_key(word));
        Some(std::iter::once(first).chain(rest).collect::<Vec<_>>().join(" "))
    };
    of("application_name=").filter(|name| !name.is_empty()).or_else(|| of("fallback_application_name="))
}

/// Whether the role may change the settings of the server.
fn check_role(c: &mut Connection) -> Result<(), TargetError> {
    if c.value("SELECT current_setting('allow_alter_system', true)")?.as_deref() == Some("off") {
        return Err(TargetError::Refused(
            "the server does not allow ALTER SYSTEM, by which levels are changed: set allow_alter_system = on".into(),
        ));
    }
    let parameters = c.version.has_parameter_privileges();
    let granted = if parameters {
        let of = CHANGED.map(|name| format!("has_parameter_privilege('{name}', 'ALTER SYSTEM')"));
        format!("{} AND has_function_privilege('pg_catalog.pg_reload_conf()', 'EXECUTE')", of.join(" AND "))
    } else {
        "false".to_owned()
    };
    let sql = format!("SELECT current_setting('is_superuser') = 'on' OR ({granted}), current_user");
    let mut row = c.query(&sql)?.into_iter().next().unwrap_or_default().into_iter();
    if row.next().flatten().as_deref() == Some("t") {
        return Ok(());
    }
    let role = KNOWLEDGE.dialect.quoted(&row.next().flatten().unwrap_or_default());
    let grants = format!(
        "or run: GRANT ALTER SYSTEM ON PARAMETER {} TO {role}; GRANT EXECUTE ON FUNCTION pg_catalog.pg_reload_conf() TO {role}",
        CHANGED.join(", ")
    );
    let grants = if parameters { grants } else { "which it must be before PostgreSQL 15".to_owned() };
    Err(TargetError::Refused(format!(
        "the role {role} may not change {}, which levels do by ALTER SYSTEM: give a superuser, {grants}",
        CHANGED.join(" and ")
    )))
}

/// Whether ALTER SYSTEM would change what the sessions of jobs have, and what it was can be put back.
fn check_sources(present: &[Present]) -> Result<(), TargetError> {
    for p in present {
        if !["default", "configuration file"].contains(&p.source.as_str()) {
            return Err(TargetError::Refused(format!(
                "{} = {}: ALTER SYSTEM, by which levels are changed, does not override this source. Take it away there (the server's \
                 command line, ALTER ROLE … SET, ALTER DATABASE … SET, options in the URL)",
                p.name,
                p.shown()
            )));
        }
        if p.by_alter_system.is_none() {
            return Err(TargetError::Refused(format!(
                "the role may not see which file sets {}, so it could not be put back as it was: GRANT pg_monitor to it",
                p.name
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_standbys_session_is_read_from_its_conninfo() {
        let of = |conninfo: &str| application_name(conninfo).unwrap_or_default();
        let default = "user=a passfile=/p host=/tmp port=5432 fallback_application_name=walreceiver sslmode=prefer";
        assert_eq!(of(default), "walreceiver");
        assert_eq!(of("user=a application_name=my standby fallback_application_name=main/15 port=1"), "my standby");
        assert_eq!(of("user=a application_name=b"), "b");
        assert_eq!(of("user=a"), "");
    }

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
