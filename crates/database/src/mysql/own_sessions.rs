//! The sessions of loadline: samples what those of the jobs do, and how many of others work, from the server's process list.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loadline_model::snapshot::WaitSample;

use super::wire::{Connection, Row, Rows};
use crate::error::TargetError;
use crate::other_sessions::{SessionTask, Sessions};
use crate::scope::Scope;

/// Needs no privilege: users see their own sessions, and all of loadline's have one user.
const SESSIONS: (&str, [usize; 3]) = ("SELECT ID, COMMAND, STATE, USER FROM information_schema.PROCESSLIST", [1, 2, 3]);
/// The same on MySQL, with the positions of command, state and user: there a query of that table writes its rows into a temporary
/// table of InnoDB and counts them as changed (8.0.33: 40 a second).
const MYSQL_SESSIONS: (&str, [usize; 3]) = ("SHOW PROCESSLIST", [4, 6, 1]);

/// The threads that run the sessions: MariaDB names them here, MySQL in performance_schema only.
const THREADS: &str =
    "SELECT ID, TID FROM information_schema.PROCESSLIST WHERE COMMAND <> 'Daemon' AND USER <> 'system user'";
const MYSQL_THREADS: &str = "SELECT PROCESSLIST_ID, THREAD_OS_ID FROM performance_schema.threads \
     WHERE PROCESSLIST_COMMAND <> 'Daemon' AND PROCESSLIST_USER <> 'system user'";

/// Code of the error of KILL if the session has ended.
const NO_SUCH_SESSION: u16 = 1094;

/// Commands of sessions that work, and the states in which they only wait for a time or a name.
const WORKING: [&str; 5] = ["Query", "Execute", "Prepare", "Fetch", "Killed"];
const RESTING: [&str; 2] = ["User sleep", "User lock"];

/// Commands of sessions that serve no client: the server's own, replication, and those that log in.
const NO_CLIENT: [&str; 7] =
    ["Daemon", "Connect", "Binlog Dump", "Binlog Dump GTID", "Slave_IO", "Slave_SQL", "Slave_worker"];
/// Users of the server's own sessions.
const NO_USER: [&str; 2] = ["system user", "event_scheduler"];

/// Sessions of MySQL itself that it counts as running: the event scheduler, though it rests, and those that apply what other members of
/// a group commit; 0 for a user who does not see them.
pub(super) fn at_work_for_the_server(c: &mut Connection) -> Result<usize, TargetError> {
    if c.version.mariadb {
        return Ok(0);
    }
    let (sql, [command, _, user]) = MYSQL_SESSIONS;
    let rows = c.query(sql)?;
    let [system, scheduler] = NO_USER;
    let at_work = |row: &&Row| match &*text(row, user) {
        name if name == scheduler => true,
        name => name == system && !["Daemon", "Sleep"].contains(&&*text(row, command)),
    };
    Ok(rows.iter().filter(at_work).count())
}

/// The server's ids of loadline's sessions, and whether each is a job's.
type Ids = BTreeMap<u32, bool>;

/// The sessions of loadline with a server.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnSessions(Arc<Mutex<Ids>>);

impl OwnSessions {
    fn ids(&self) -> MutexGuard<'_, Ids> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session.
    pub(super) fn add(&self, session: u32, of_job: bool) {
        self.ids().insert(session, of_job);
    }

    /// Ids of the jobs' sessions.
    pub(super) fn of_jobs(&self) -> Vec<u32> {
        self.ids().iter().filter(|(_, of_job)| **of_job).map(|(id, _)| *id).collect()
    }

    /// Adds the current states of the sessions in `scope` to `sample`, and the number of others at work, which are unknown
    /// unless this user `sees_all` sessions. What the server itself `applies` of its cluster is no other's work. Returns whether all
    /// in `scope` could be seen.
    pub(super) fn sample(
        &self,
        c: &mut Connection,
        scope: Scope,
        (sees_all, applies): (bool, bool),
        sample: &mut WaitSample,
    ) -> Result<bool, TargetError> {
        let (sql, columns) = if c.version.mariadb { SESSIONS } else { MYSQL_SESSIONS };
        let (rows, own) = (c.query(sql)?, self.ids());
        let known = sees_all && is_listed(&rows, c);
        match scope {
            Scope::Jobs => {
                count(&rows, columns, |row| id(row).is_some_and(|id| own.get(&id) == Some(&true)), sample);
                let others = || others_at_work(&rows, columns, &own, applies);
                sample.others = sample.others.filter(|_| known).map(|n| n + others());
            }
            Scope::All if known => count(&rows, columns, |row| is_others_client(row, columns, &own), sample),
            Scope::All => {}
        }
        Ok(known || scope == Scope::Jobs)
    }

    /// Command and state of all sessions but loadline's own; `None` if not all can be seen.
    pub(super) fn others(
        &self,
        c: &mut Connection,
        sees_all: bool,
    ) -> Result<Option<Vec<(String, String)>>, TargetError> {
        let (sql, [command, state, _]) = if c.version.mariadb { SESSIONS } else { MYSQL_SESSIONS };
        let (rows, own) = (c.query(sql)?, self.ids());
        let others = rows.iter().filter(|row| id(row).is_some_and(|id| !own.contains_key(&id)));
        let doing = |row: &Row| (text(row, command).into_owned(), text(row, state).into_owned());
        Ok((sees_all && is_listed(&rows, c)).then(|| others.map(doing).collect()))
    }

    /// Condition under which a row of the process list is a client's session and not loadline's.
    pub(super) fn are_others(&self) -> String {
        let ids: Vec<String> = self.ids().keys().chain([&0]).map(u32::to_string).collect();
        let quoted = |names: &[&str]| format!("'{}'", names.join("', '"));
        format!(
            "ID NOT IN ({}) AND COMMAND NOT IN ({}) AND USER NOT IN ({})",
            ids.join(", "),
            quoted(&NO_CLIENT),
            quoted(&NO_USER)
        )
    }

    /// The threads of the jobs' sessions, as [`Self::all_threads`].
    pub(super) fn job_threads(&self, c: &mut Connection) -> Result<Vec<u32>, TargetError> {
        let (all, own) = (OwnSessions::all_threads(c)?, self.ids());
        Ok(all.iter().filter(|t| own.get(&t.session) == Some(&true)).map(|t| t.task).collect())
    }

    /// The threads of the sessions of others, and that of `c`, as [`Self::all_threads`].
    pub(super) fn other_threads(&self, c: &mut Connection) -> Result<Sessions, TargetError> {
        let (all, ids) = (OwnSessions::all_threads(c)?, self.ids());
        let own = all.iter().find(|t| t.session == c.session).map(|t| t.task);
        Ok(Sessions { own, others: all.into_iter().filter(|t| !ids.contains_key(&t.session)).collect() })
    }

    /// The threads of the operating system that run sessions, but no replication or events; none on a MySQL whose
    /// performance_schema is off or cannot be read. With a thread pool, any of its threads runs any session: none too.
    fn all_threads(c: &mut Connection) -> Result<Vec<SessionTask>, TargetError> {
        let pool = c.value("SELECT @@thread_handling")?.is_some_and(|h| h.starts_with("pool"));
        if pool {
            return Ok(Vec::new());
        }
        let rows = match c.query(if c.version.mariadb { THREADS } else { MYSQL_THREADS }) {
            Err(TargetError::Server(_)) if !c.version.mariadb => return Ok(Vec::new()),
            rows => rows?,
        };
        Ok(rows.iter().filter_map(|r| Some(SessionTask { session: id(r)?, task: text(r, 1).parse().ok()? })).collect())
    }
}

/// Ends those of the sessions `ids` that are still there. Returns how many; `None` behind a proxy, where ids are not the server's.
pub(super) fn end(c: &mut Connection, ids: &[u32]) -> Result<Option<u32>, TargetError> {
    let rows = c.query(if c.version.mariadb { SESSIONS.0 } else { MYSQL_SESSIONS.0 })?;
    if !is_listed(&rows, c) {
        return Ok(None);
    }
    let mut ended = 0;
    for session in rows.iter().filter_map(id).filter(|id| ids.contains(id)) {
        match c.query(&format!("KILL {session}")) {
            Ok(_) => ended += 1,
            Err(TargetError::Server(_)) if c.last_code == NO_SUCH_SESSION => {}
            Err(e) => return Err(e),
        }
    }
    Ok(Some(ended))
}

/// The id of a row's session.
fn id(row: &Row) -> Option<u32> {
    text(row, 0).parse().ok()
}

/// Whether the list has the session of `c`. A proxy gives its clients ids of its own.
fn is_listed(rows: &Rows, c: &Connection) -> bool {
    rows.iter().any(|row| id(row) == Some(c.session))
}

/// Whether it is a client's session and not loadline's.
fn is_others_client(row: &Row, [command, _, user]: [usize; 3], own: &Ids) -> bool {
    !NO_CLIENT.contains(&text(row, command).as_ref())
        && !NO_USER.contains(&text(row, user).as_ref())
        && id(row).is_some_and(|id| !own.contains_key(&id))
}

/// Sessions that are not loadline's and work; without those that apply what other members of a cluster committed, if the server
/// `applies` such.
fn others_at_work(rows: &Rows, [command, state, user]: [usize; 3], own: &Ids, applies: bool) -> u32 {
    let works = |row: &&Row| {
        !(applies && NO_USER.contains(&text(row, user).as_ref()))
            && WORKING.contains(&text(row, command).as_ref())
            && !RESTING.contains(&text(row, state).as_ref())
            && id(row).is_some_and(|id| !own.contains_key(&id))
    };
    rows.iter().filter(works).count() as u32
}

fn text(row: &[Option<Vec<u8>>], column: usize) -> Cow<'_, str> {
    row.get(column).and_then(Option::as_ref).map(|v| String::from_utf8_lossy(v)).unwrap_or_default()
}

fn count(rows: &Rows, [command, state, _]: [usize; 3], counts: impl Fn(&Row) -> bool, sample: &mut WaitSample) {
    for row in rows.iter().filter(|row| counts(row)) {
        let event = match (text(row, command).as_ref(), text(row, state).as_ref()) {
            ("Sleep", _) => "Client:idle".to_owned(),
            (_, "") => "Stage:none".to_owned(),
            (_, stage) => format!("Stage:{stage}"),
        };
        *sample.sessions.entry(event).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_those_of_jobs_and_others_are_nobody_of_loadline() {
        let row = |id: &str, command: &str, state: Option<&str>| {
            vec![Some(id.into()), Some(command.into()), state.map(Into::into), Some("ann".into())]
        };
        let rows = vec![
            row("1", "Execute", Some("Commit")),
            row("2", "Sleep", Some("")),
            row("3", "Execute", Some("Commit")),
            row("4", "Execute", None),
            row("8", "Query", Some("Filling schema table")),
            row("9", "Query", Some("Sending data")),
            row("10", "Execute", None),
            row("11", "Query", Some("User sleep")),
            row("12", "Sleep", Some("")),
            row("13", "Daemon", Some("Waiting on empty queue")),
        ];
        let own: Ids = [(1, true), (2, true), (3, true), (4, true), (8, false)].into();
        let mut sample = WaitSample::default();
        count(&rows, SESSIONS.1, |row| own.get(&id(row).unwrap()) == Some(&true), &mut sample);
        assert_eq!(others_at_work(&rows, SESSIONS.1, &own, false), 2);
        let expected = [("Client:idle".to_owned(), 1), ("Stage:Commit".to_owned(), 2), ("Stage:none".to_owned(), 1)];
        assert_eq!(sample.sessions, expected.into());
        let mut system = row("14", "Query", Some("Waiting for dependent transaction to commit"));
        system[3] = Some("system user".into());
        let applier = vec![system.clone()];
        assert_eq!([false, true].map(|applies| others_at_work(&applier, SESSIONS.1, &own, applies)), [1, 0]);
        let others = rows.iter().chain([&system]).filter(|row| is_others_client(row, SESSIONS.1, &own));
        assert_eq!(others.filter_map(id).collect::<Vec<_>>(), [9, 10, 11, 12]);
    }
}
