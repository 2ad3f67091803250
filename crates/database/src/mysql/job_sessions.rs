//! Samples what the jobs' sessions do, from the server's process list.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use loadline_model::snapshot::WaitSample;

use super::wire::{Connection, Row, Rows};
use crate::error::TargetError;

/// Needs no privilege: users see their own sessions, and all of loadline's have one user.
const SESSIONS: (&str, [usize; 2]) = ("SELECT ID, COMMAND, STATE FROM information_schema.PROCESSLIST", [1, 2]);
/// The same on MySQL, with the positions of command and state: there a query of that table writes its rows into a temporary
/// table of InnoDB and counts them as changed (8.0.33: 40 a second).
const MYSQL_SESSIONS: (&str, [usize; 2]) = ("SHOW PROCESSLIST", [4, 6]);

/// Samples in which a session waits for the log: the stages of [`super::performance`], as the process list
/// shows them, and the state in which MariaDB holds an answer back until the log is on disk (0 of 320 samples
/// with `innodb_flush_log_at_trx_commit = 0`).
const LOG_SYNC_EVENTS: &[&str] = &[
    "Stage:Commit",
    "Stage:Waiting for prior transaction to commit",
    "Stage:waiting for handler commit",
    "Stage:Updating status",
];
/// The same with MariaDB's thread pool, which suspends the session a stage earlier (8 jobs: 132 of 240
/// samples). Without the pool that stage takes 1 µs per statement.
const WITH_POOL: &[&str] = &[
    "Stage:Commit",
    "Stage:Waiting for prior transaction to commit",
    "Stage:waiting for handler commit",
    "Stage:Updating status",
    "Stage:Starting cleanup",
];

/// Samples that count as waiting for the log. `pool`: whether the server has a thread pool.
pub(super) fn log_sync_events(pool: bool) -> &'static [&'static str] {
    if pool { WITH_POOL } else { LOG_SYNC_EVENTS }
}

/// The threads that run the sessions: MariaDB names them here, MySQL in performance_schema only.
const THREADS: &str = "SELECT ID, TID FROM information_schema.PROCESSLIST";
const MYSQL_THREADS: &str =
    "SELECT PROCESSLIST_ID, THREAD_OS_ID FROM performance_schema.threads WHERE PROCESSLIST_ID IS NOT NULL";

/// The server's ids of the jobs' sessions.
#[derive(Debug, Clone, Default)]
pub(super) struct JobSessions(Arc<Mutex<BTreeSet<u32>>>);

impl JobSessions {
    /// Adds the session of a job.
    pub(super) fn add(&self, session: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(session);
    }

    /// Adds the sessions' current states to `sample`.
    ///
    /// # Errors
    /// If the query fails.
    pub(super) fn sample(&self, c: &mut Connection, sample: &mut WaitSample) -> Result<(), TargetError> {
        let (sql, columns) = if c.version.mariadb { SESSIONS } else { MYSQL_SESSIONS };
        let rows = c.query(sql)?;
        count(&rows, columns, &self.0.lock().unwrap_or_else(PoisonError::into_inner), sample);
        Ok(())
    }

    /// The threads of the operating system that run the sessions; none on a MySQL whose performance_schema is off or
    /// cannot be read. With a thread pool, any of its threads runs any session, so none belongs to a job.
    ///
    /// # Errors
    /// If the query fails.
    pub(super) fn threads(&self, c: &mut Connection) -> Result<Vec<u32>, TargetError> {
        let pool = c.value("SELECT @@thread_handling")?.is_some_and(|h| h.starts_with("pool"));
        if pool {
            return Ok(Vec::new());
        }
        let rows = match c.query(if c.version.mariadb { THREADS } else { MYSQL_THREADS }) {
            Err(TargetError::Statement(_)) if !c.version.mariadb => return Ok(Vec::new()),
            rows => rows?,
        };
        let jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(of_jobs(&rows, &jobs).filter_map(|row| text(row, 1).parse().ok()).collect())
    }
}

/// The rows that begin with the id of a job's session.
fn of_jobs<'a>(rows: &'a Rows, jobs: &BTreeSet<u32>) -> impl Iterator<Item = &'a Row> {
    rows.iter().filter(|row| text(row, 0).parse().is_ok_and(|id: u32| jobs.contains(&id)))
}

fn text(row: &[Option<Vec<u8>>], column: usize) -> Cow<'_, str> {
    row.get(column).and_then(Option::as_ref).map(|v| String::from_utf8_lossy(v)).unwrap_or_default()
}

fn count(rows: &Rows, [command, state]: [usize; 2], jobs: &BTreeSet<u32>, sample: &mut WaitSample) {
    for row in of_jobs(rows, jobs) {
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
    fn only_jobs_are_counted() {
        let row = |id: &str, command: &str, state: Option<&str>| {
            vec![Some(id.into()), Some(command.into()), state.map(Into::into)]
        };
        let rows = vec![
            row("1", "Execute", Some("Commit")),
            row("2", "Sleep", Some("")),
            row("3", "Execute", Some("Commit")),
            row("4", "Execute", None),
            row("9", "Query", Some("Filling schema table")),
        ];
        let mut sample = WaitSample::default();
        count(&rows, SESSIONS.1, &[1, 2, 3, 4].into(), &mut sample);
        let expected = [("Client:idle".to_owned(), 1), ("Stage:Commit".to_owned(), 2), ("Stage:none".to_owned(), 1)];
        assert_eq!(sample.sessions, expected.into());
    }
}
