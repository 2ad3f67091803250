//! The sessions of loadline in the server's process list: samples what those of the jobs do, and how many of others work; why one gets no
//! answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loadline_model::snapshot::WaitSample;

use super::knowledge::{KNOWLEDGE, ProcessList};
use super::protocol::Row;
use super::wire::Connection;
use crate::error::TargetError;
use crate::other_sessions::{SessionTask, Sessions};
use crate::patience::waited_for;
use crate::role::Scope;

/// Code of the error of KILL if the session has ended.
const NO_SUCH_SESSION: u16 = 1094;

/// The state of a session that writes to a full disk. The server tries again every minute.
const FULL_DISK: &str = "Waiting for someone to free space";
/// A state that begins as those that wait, but passes.
const PASSES: &str = "Waiting for prior transaction to commit";

/// A session in the process list.
struct Listed {
    id: u32,
    command: String,
    state: String,
    user: String,
    waits_for_row: bool,
}

impl Listed {
    fn is_servers(&self) -> bool {
        KNOWLEDGE.process_list.no_user.contains(&self.user)
    }

    fn is_clients(&self) -> bool {
        !KNOWLEDGE.process_list.no_client.contains(&self.command) && !self.is_servers()
    }

    fn works(&self) -> bool {
        let ProcessList { working, resting, .. } = &KNOWLEDGE.process_list;
        working.contains(&self.command) && !resting.contains(&self.state)
    }

    fn event(&self) -> String {
        match (&*self.command, &*self.state) {
            _ if self.waits_for_row => ROW_LOCK.to_owned(),
            ("Sleep", _) => "Client:idle".to_owned(),
            (_, "") => "Stage:none".to_owned(),
            (_, stage) => format!("Stage:{stage}"),
        }
    }
}

fn list(c: &mut Connection) -> Result<Vec<Listed>, TargetError> {
    let rows = c.query(KNOWLEDGE.sessions.at(c.version.release).unwrap_or_default())?;
    let at = |name: &str| c.names.iter().position(|other| other.eq_ignore_ascii_case(name));
    let columns = ["id", "command", "state", "user"].map(at);
    let listed = |mut row: Row| {
        let [id, command, state, user] = columns.map(|at| row.get_mut(at?)?.take()).map(Option::unwrap_or_default);
        Some(Listed { id: id.parse().ok()?, command, state, user, waits_for_row: false })
    };
    Ok(rows.into_iter().filter_map(listed).collect())
}

/// Whether the list has the session of `c`. A proxy gives its clients ids of its own.
fn has_own(listed: &[Listed], c: &Connection) -> bool {
    listed.iter().any(|session| session.id == c.session)
}

/// As [`has_own`], asked now.
pub(super) fn is_listed(c: &mut Connection) -> Result<bool, TargetError> {
    Ok(has_own(&list(c)?, c))
}

/// The server's ids of loadline's sessions, whether each is a job's, and that job's number, if known.
type Ids = BTreeMap<u32, (bool, Option<u32>)>;

/// Event of a session that waits for a lock of a row, which no state of the process list tells.
const ROW_LOCK: &str = "Lock:row";

/// InnoDB returns its last list to whoever asks within 100 ms after another one, ns (MariaDB 10.11: as long as somebody asked every
/// 60 ms, it never changed).
const LIST_STAYS_NS: u64 = 101_000_000;

#[derive(Debug, Clone, Default)]
pub(super) struct OwnSessions(Arc<Mutex<Ids>>);

impl OwnSessions {
    fn ids(&self) -> MutexGuard<'_, Ids> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, session: u32, of_job: bool, job: Option<u32>) {
        self.ids().insert(session, (of_job, job));
    }

    pub(super) fn of_jobs(&self) -> Vec<u32> {
        self.ids().iter().filter(|(_, (of_job, _))| *of_job).map(|(id, _)| *id).collect()
    }

    /// Adds the current states of the sessions in `scope` to `sample`, and the number of others at work, which are unknown
    /// unless this user `sees_all` sessions. What the server itself `applies` of its cluster is no other's work. Returns whether all
    /// in `scope` could be seen.
    pub(super) fn sample(
        &self,
        c: &mut Connection,
        scope: Scope,
        (sees_all, applies): (bool, bool),
        rows: &mut RowWaits,
        sample: &mut WaitSample,
    ) -> Result<bool, TargetError> {
        let mut listed = list(c)?;
        let known = sees_all && has_own(&listed, c);
        // MySQL writes the rows of such lists into a table of InnoDB, and counts them.
        let is_new = !(known && c.version.is_mariadb()) || rows.mark(c, &mut listed)?;
        if known || scope == Scope::Jobs {
            add(&listed, &self.ids(), scope, (known, applies), sample);
        }
        if !is_new {
            sample.jobs.clear();
        }
        Ok(known || scope == Scope::Jobs)
    }

    /// The server's ids of all of them, for a query.
    pub(super) fn listed(&self) -> String {
        self.ids().keys().chain([&0]).map(u32::to_string).collect::<Vec<_>>().join(", ")
    }

    /// The threads of the jobs' sessions, as [`all_threads`].
    pub(super) fn job_threads(&self, c: &mut Connection) -> Result<Vec<u32>, TargetError> {
        let (all, own) = (all_threads(c)?, self.ids());
        Ok(all.iter().filter(|t| own.get(&t.session).is_some_and(|(of_job, _)| *of_job)).map(|t| t.task).collect())
    }

    /// The threads of the sessions of others, and that of `c`, as [`all_threads`].
    pub(super) fn other_threads(&self, c: &mut Connection) -> Result<Sessions, TargetError> {
        let (all, ids) = (all_threads(c)?, self.ids());
        let own = all.iter().find(|t| t.session == c.session).map(|t| t.task);
        Ok(Sessions { own, others: all.into_iter().filter(|t| !ids.contains_key(&t.session)).collect() })
    }
}

/// Sessions that wait for a lock of a row.
#[derive(Debug, Default)]
pub(super) struct RowWaits {
    asked_ns: u64,
    waiters: Vec<u32>,
}

impl RowWaits {
    /// Marks these sessions. Returns whether they are those of now, which depends on the time alone: whoever uses only such samples
    /// sees no state more often than another one.
    fn mark(&mut self, c: &mut Connection, listed: &mut [Listed]) -> Result<bool, TargetError> {
        let is_new = loadline_storage::now_ns().saturating_sub(self.asked_ns) > LIST_STAYS_NS;
        if is_new {
            let some = c.pairs(&KNOWLEDGE.queries.text("row-lock-waits", &[]))?.iter().any(|(_, waits)| waits != "0");
            let waiters = KNOWLEDGE.queries.text("row-lock-waiters", &[]);
            let waiters = if some { c.query(&waiters)? } else { Vec::new() };
            self.waiters = waiters.into_iter().flatten().flatten().filter_map(|id| id.parse().ok()).collect();
            self.asked_ns = loadline_storage::now_ns();
        }
        listed.iter_mut().for_each(|session| session.waits_for_row = self.waiters.contains(&session.id));
        Ok(is_new)
    }
}

/// See [`OwnSessions::sample`]; `known`: whether all sessions are listed.
fn add(listed: &[Listed], own: &Ids, scope: Scope, (known, applies): (bool, bool), sample: &mut WaitSample) {
    let mut others = 0;
    for session in listed {
        let own = own.get(&session.id);
        let in_scope = match scope {
            Scope::Jobs => own.is_some_and(|(of_job, _)| *of_job),
            Scope::All => own.is_none() && session.is_clients(),
        };
        if in_scope {
            *sample.sessions.entry(session.event()).or_default() += 1;
            sample.jobs.entry(session.event()).or_default().extend(own.and_then(|(_, number)| *number));
        }
        others += u32::from(own.is_none() && session.works() && !(applies && session.is_servers()));
    }
    if scope == Scope::Jobs {
        sample.others = if known { sample.others.map(|n| n + others) } else { None };
    }
}

/// The threads of the operating system that run sessions, but no replication or events; none on a MySQL whose
/// performance_schema is off or cannot be read. With a thread pool, any of its threads runs any session: none too.
fn all_threads(c: &mut Connection) -> Result<Vec<SessionTask>, TargetError> {
    if c.value("SELECT @@thread_handling")?.is_some_and(|h| h.starts_with("pool")) {
        return Ok(Vec::new());
    }
    let rows = match c.pairs(KNOWLEDGE.threads.at(c.version.release).unwrap_or_default()) {
        Err(TargetError::Server(_)) if !c.version.is_mariadb() => return Ok(Vec::new()),
        rows => rows?,
    };
    let task = |(session, task): &(String, String)| {
        Some(SessionTask { session: session.parse().ok()?, task: task.parse().ok()? })
    };
    Ok(rows.iter().filter_map(task).collect())
}

/// Asks in session `c` what `session` waits for, if that is not the server's own work: another session, a replica, or a full disk,
/// itself or in a commit behind one that does. <https://mariadb.com/kb/en/general-thread-states/>,
/// <https://dev.mysql.com/doc/refman/8.0/en/general-thread-states.html>
pub(super) fn hindrance(c: &mut Connection, session: u32) -> Result<Option<TargetError>, TargetError> {
    let states = KNOWLEDGE.queries.text("states", &[("session", &session.to_string()), ("full-disk", FULL_DISK)]);
    let mut states = c.query(&states)?.into_iter().map(|row| row.into_iter().next().flatten().unwrap_or_default());
    let state = states.next().unwrap_or_default();
    if state.starts_with(FULL_DISK) || state.starts_with("Commit") && states.next().is_some() {
        let why = "its statement waited for free space: a disk that it writes to is full";
        return Ok(Some(TargetError::NoSpace(why.to_owned())));
    }
    let waits =
        ["Waiting for", "User lock"].iter().any(|waits| state.starts_with(*waits)) && !state.starts_with(PASSES);
    let who = format!("another session or a replica ('{state}'): end that session (SHOW PROCESSLIST, KILL)");
    Ok(waits.then(|| waited_for(who)))
}

/// Ends those of the sessions `ids` that are still there. Returns how many; `None` behind a proxy, where ids are not the server's.
pub(super) fn end(c: &mut Connection, ids: &[u32]) -> Result<Option<u32>, TargetError> {
    let listed = list(c)?;
    if !has_own(&listed, c) {
        return Ok(None);
    }
    let mut ended = 0;
    for session in listed.iter().filter(|session| ids.contains(&session.id)) {
        match c.run(&format!("KILL {}", session.id)) {
            Ok(()) => ended += 1,
            Err(TargetError::Server(_)) if c.last_code == NO_SUCH_SESSION => {}
            Err(e) => return Err(e),
        }
    }
    Ok(Some(ended))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;

    #[test]
    fn states_are_those_of_jobs_and_others_are_nobody_of_loadline() {
        let listed = cases("mysql-sessions").into_iter().map(|(id, command, state, user)| {
            let waits_for_row = id == 3;
            Listed { id, command, state, user, waits_for_row }
        });
        let listed: Vec<Listed> = listed.collect();
        let own: Ids =
            [(1, (true, None)), (2, (true, Some(5))), (3, (true, Some(0))), (4, (true, None)), (8, (false, None))]
                .into();
        let sampled = |scope, known, applies| {
            let mut sample = WaitSample { others: Some(0), ..WaitSample::default() };
            add(&listed, &own, scope, (known, applies), &mut sample);
            let jobs: Vec<_> =
                sample.jobs.iter().flat_map(|(event, jobs)| jobs.iter().map(|n| (&**event, *n))).collect();
            let numbered = [("Client:idle", 5), ("Lock:row", 0)];
            assert_eq!(jobs, if scope == Scope::Jobs { &numbered[..] } else { &[] });
            let sessions = sample.sessions.into_iter().map(|(event, n)| format!("{event} {n}"));
            (sessions.collect::<Vec<_>>().join(", "), sample.others)
        };
        let jobs = "Client:idle 1, Lock:row 1, Stage:Commit 1, Stage:none 1".to_owned();
        assert_eq!(sampled(Scope::Jobs, true, false), (jobs.clone(), Some(3)));
        assert_eq!(sampled(Scope::Jobs, true, true).1, Some(2));
        assert_eq!(sampled(Scope::Jobs, false, false), (jobs, None));
        let clients = "Client:idle 1, Stage:Sending data 1, Stage:User sleep 1, Stage:none 1";
        assert_eq!(sampled(Scope::All, true, false).0, clients);
    }
}
