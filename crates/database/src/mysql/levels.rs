//! The role [`Levels`] of a private MariaDB with a replica: semi-synchronous replication.
//!
//! A commit waits until a replica has written its events to the relay log: before it is committed in InnoDB, and so before others
//! see it (AFTER_SYNC), or after that (AFTER_COMMIT). <https://mariadb.com/kb/en/semisynchronous-replication/>
//!
//! A server whose replica is away, or is late, stops waiting (`Rpl_semi_sync_master_status` is OFF), and commits that did not
//! wait are counted (`Rpl_semi_sync_master_no_tx`).

use std::sync::MutexGuard;
use std::time::Duration;

use super::knowledge::KNOWLEDGE;
use super::server::Mysql;
use super::temp::TempServer;
use super::wire::Connection;
use crate::error::TargetError;
use crate::role::{Level, Levels, Replica, ReplicaWatch, find_level, wait_in_force};
use crate::temp::Server;

/// The levels, other names of them, and their values of `rpl_semi_sync_master_wait_point`; without one a commit does not wait, as in the
/// baseline.
const LEVELS: [(&str, Option<&str>, Option<&str>); 3] =
    [("off", None, None), ("after-sync", Some("on"), Some("AFTER_SYNC")), ("after-commit", None, Some("AFTER_COMMIT"))];
/// A replica that does not answer for this long is started again; one that is looked at in a window counts as away sooner.
const HANGS: Duration = Duration::from_secs(5);
const AWAY: Duration = Duration::from_secs(2);
/// Time for the replica to be attached as a level needs.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn levels() -> Vec<Level> {
    let level = |(name, alias, point): (&str, _, Option<&str>)| {
        let waits = u32::from(point.is_some());
        Level { name: name.to_owned(), alias, replicas: waits, waits_for: waits, durable: true, at_once: false }
    };
    LEVELS.into_iter().map(level).collect()
}

/// Has the replica follow the server, once.
pub(super) fn follow(server: &TempServer) -> Result<(), TargetError> {
    let Some(replica) = server.replica() else { return Ok(()) };
    let mut c = server.endpoint_of(replica)?.connect()?;
    c.run(&KNOWLEDGE.queries.text("follow", &[("port", &replica.way.1.to_string())]))?;
    c.run("START SLAVE")
}

/// State of semi-synchronous replication by the server.
#[derive(Debug, Default, PartialEq)]
struct Said {
    /// Whether commits wait.
    on: bool,
    /// Replicas that acknowledge.
    clients: u32,
    /// Commits that did not wait, so far.
    unacknowledged: u64,
    /// File and position at which the binary log ends.
    end: (String, u64),
}

impl Said {
    fn ask(c: &mut Connection) -> Result<Said, TargetError> {
        const STATUS: [&str; 3] =
            ["Rpl_semi_sync_master_status", "Rpl_semi_sync_master_clients", "Rpl_semi_sync_master_no_tx"];
        let shown = c.shown("GLOBAL STATUS", STATUS)?;
        let [status, clients, unacknowledged] = STATUS.map(|name| shown.get(name).map_or("", String::as_str));
        let (file, position) = c.pairs("SHOW MASTER STATUS")?.into_iter().next().unwrap_or_default();
        Ok(Said {
            on: status == "ON",
            clients: clients.parse().unwrap_or(0),
            unacknowledged: unacknowledged.parse().unwrap_or(0),
            end: (file, position.parse().unwrap_or(0)),
        })
    }
}

/// State of a replica by its own account.
#[derive(Debug, Default, PartialEq)]
struct Followed {
    receives: bool,
    applies: bool,
    error: String,
    /// File and position up to which it has applied the server's binary log.
    applied: (String, u64),
}

impl Followed {
    fn ask(c: &mut Connection) -> Result<Followed, TargetError> {
        let row = c.query("SHOW SLAVE STATUS")?.into_iter().next().unwrap_or_default();
        let of = |name: &str| {
            let value = c.names.iter().position(|n| n == name).and_then(|at| row.get(at)?.clone());
            value.unwrap_or_default()
        };
        let errors = [of("Last_IO_Error"), of("Last_SQL_Error")];
        Ok(Followed {
            receives: of("Slave_IO_Running") == "Yes",
            applies: of("Slave_SQL_Running") == "Yes",
            error: errors.into_iter().filter(|e| !e.is_empty()).collect::<Vec<_>>().join("; "),
            applied: (of("Relay_Master_Log_File"), of("Exec_Master_Log_Pos").parse().unwrap_or(0)),
        })
    }

    fn state(&self, server: &Said) -> String {
        let receives = if self.receives { "receiving" } else { "not receiving" };
        let applies = if self.applies { "" } else { ", not applying" };
        let waited = if server.on { ", semi-sync" } else { ", async" };
        let error = if self.error.is_empty() { String::new() } else { format!(" ({})", self.error) };
        format!("{receives}{applies}{waited}{error}")
    }

    /// Bytes of the binary log that it has not applied; unknown across two files.
    fn behind_bytes(&self, server: &Said) -> Option<u64> {
        (self.applied.0 == server.end.0).then(|| server.end.1.saturating_sub(self.applied.1))
    }
}

impl Mysql {
    /// The private server, if it has a replica.
    fn replicated(&self) -> Result<MutexGuard<'_, TempServer>, TargetError> {
        let none = || TargetError::Unsupported("this target was not opened with replicas".into());
        self.private().filter(|server| server.replica().is_some()).ok_or_else(none)
    }

    /// Sessions at the server and at its replica, which answers `within` this time.
    fn sessions(&self, within: Duration) -> Result<Sessions, TargetError> {
        let server = self.replicated()?;
        let named = |replica: &Server| server.endpoint_of(replica).map(|at| (replica.name.clone(), at));
        let at = server.replica().map(named).transpose()?;
        // One that hangs keeps nobody else waiting.
        drop(server);
        let (name, replica) = at.map(|(name, at)| (name, at.connect_within(within).ok())).unwrap_or_default();
        Ok(Sessions { server: self.first().endpoint.connect()?, name, replica })
    }
}

impl Levels for Mysql {
    fn bring_about(&self, level: Option<&str>, delay: Duration) -> Result<(), TargetError> {
        let point = find_level(&LEVELS, |(name, ..)| *name, level)?.and_then(|(.., point)| *point);
        self.replicated()?.links().iter().for_each(|link| link.set_delay(delay));
        let first = self.first();
        first.admin(|c| {
            // The server reads it for each commit, also for those under way: none is.
            let wait_point = point.map(|point| format!("SET GLOBAL rpl_semi_sync_master_wait_point = {point}"));
            let enabled = format!("SET GLOBAL rpl_semi_sync_master_enabled = {}", u8::from(point.is_some()));
            wait_point.iter().chain([&enabled]).try_for_each(|sql| c.run(sql))
        })?;
        let mut silent = Vec::new();
        wait_in_force(level, PATIENCE + 20 * delay, &first.endpoint.request.interrupted, |_| {
            // Each time: one that was killed just now may still seem to run.
            self.replicated()?.revive(&silent)?;
            let mut sessions = self.sessions(HANGS)?;
            let (server, followed) = sessions.look()?;
            silent = if followed.is_none() { vec![sessions.name.clone()] } else { Vec::new() };
            let waits_as_wanted = server.on == point.is_some() && (point.is_none() || server.clients > 0);
            let found = match followed {
                Some(followed) if waits_as_wanted && followed.receives && followed.applies => return Ok(None),
                Some(followed) => followed.state(&server),
                None => "does not answer".to_owned(),
            };
            Ok(Some(format!("{}: {found}", sessions.name)))
        })
    }

    fn watch(&self) -> Result<ReplicaWatch, TargetError> {
        let links = self.replicated()?.links();
        let mut sessions = self.sessions(AWAY)?;
        let mut unacknowledged = Said::ask(&mut sessions.server)?.unacknowledged;
        ReplicaWatch::new(links, move || {
            let (server, followed) = sessions.look()?;
            let all_waited = server.unacknowledged == std::mem::replace(&mut unacknowledged, server.unacknowledged);
            let unwaited = if server.on && !all_waited { ", commits did not wait" } else { "" };
            let replica = |followed: Followed| Replica {
                name: sessions.name.clone(),
                state: format!("{}{unwaited}", followed.state(&server)),
                synchronous: server.on && server.clients > 0 && all_waited,
                behind_bytes: followed.behind_bytes(&server),
                // Seconds_Behind_Master counts whole seconds.
                behind_s: None,
                acknowledged: None,
            };
            Ok(followed.filter(|followed| followed.receives).map(replica).into_iter().collect())
        })
    }
}

struct Sessions {
    server: Connection,
    name: String,
    /// `None` if it was away once.
    replica: Option<Connection>,
}

impl Sessions {
    /// Answers of the server and its replica now; the replica may not answer.
    fn look(&mut self) -> Result<(Said, Option<Followed>), TargetError> {
        let server = Said::ask(&mut self.server)?;
        let followed = self.replica.as_mut().and_then(|c| Followed::ask(c).ok());
        // One that has ended is not connected, nor is one that hangs: what it answers later would be of this question.
        self.replica.take_if(|_| followed.is_none());
        Ok((server, followed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_is_known_within_a_file() {
        let server = Said { end: ("binlog.000002".to_owned(), 900), ..Said::default() };
        let of = |file: &str, position| Followed { applied: (file.to_owned(), position), ..Followed::default() };
        assert_eq!(of("binlog.000002", 300).behind_bytes(&server), Some(600));
        assert_eq!(of("binlog.000001", 300).behind_bytes(&server), None);
        assert_eq!(of("binlog.000002", 950).behind_bytes(&server), Some(0), "asked a moment later");
    }
}
