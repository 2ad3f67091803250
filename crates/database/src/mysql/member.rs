//! Nodes of a Galera cluster of MariaDB: servers that hold one and the same data, on each of which transactions can begin.
//!
//! A transaction commits at the node where it began once all nodes have received its rows in the same order (certification).
//! The others apply it a moment later, so what was written at one is read at another once that has caught up (`server.rs`). CREATE
//! and DROP take effect at all nodes.

use std::time::{Duration, Instant};

use super::wire::Connection;
use crate::error::TargetError;

/// A joining node is waited for this long if loadline started it; a user's must be ready.
const JOINING: Duration = Duration::from_secs(60);
/// `wsrep_local_state` of a node that has all data.
const SYNCED: &str = "4";
/// Values of `wsrep_local_state` of a member of the cluster's majority: a donor, one that has joined, and Synced.
pub(super) const MEMBER: [f64; 3] = [2.0, 3.0, 4.0];

/// A server as a node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// Name in the cluster, by default that of the machine: several may have the same.
    pub(super) name: String,
    /// Identity of the node's process (`wsrep_gcomm_uuid`).
    id: String,
    pub(super) cluster: String,
    /// Nodes of the cluster, also those that are not of the target.
    pub(super) size: u32,
}

/// State of a node by its own account.
struct State {
    /// Whether transactions can begin there: it has all data and takes part in the cluster's majority.
    ready: bool,
    id: String,
    cluster: String,
    size: u32,
    /// The state in words, and what it must be.
    said: String,
}

impl State {
    fn ask(c: &mut Connection) -> Result<State, TargetError> {
        const STATUS: [&str; 7] = [
            "wsrep_local_state", "wsrep_local_state_comment", "wsrep_cluster_status", "wsrep_ready",
            "wsrep_gcomm_uuid", "wsrep_cluster_state_uuid", "wsrep_cluster_size",
        ];
        let found = c.shown("GLOBAL STATUS", STATUS)?;
        let of = |name: &str| found.get(name).map_or("", String::as_str);
        let (comment, status) = (of("wsrep_local_state_comment"), of("wsrep_cluster_status"));
        Ok(State {
            ready: of("wsrep_local_state") == SYNCED && status == "Primary" && of("wsrep_ready") == "ON",
            id: of("wsrep_gcomm_uuid").to_owned(),
            cluster: of("wsrep_cluster_state_uuid").to_owned(),
            size: of("wsrep_cluster_size").parse().unwrap_or(0),
            said: format!("it is {comment} in a {status} part of the cluster, and must be Synced and Primary"),
        })
    }
}

impl Member {
    /// The node that `c` leads to; `None` if the server is in no cluster.
    pub(super) fn ask(c: &mut Connection, private: bool, place: &str) -> Result<Option<Member>, TargetError> {
        let settings = c.shown("GLOBAL VARIABLES", ["wsrep_on", "wsrep_provider", "wsrep_node_name"])?;
        let of = |name: &str| settings.get(name).map_or("", String::as_str);
        if !of("wsrep_on").eq_ignore_ascii_case("on") || matches!(of("wsrep_provider"), "" | "none") {
            return Ok(None);
        }
        let name = of("wsrep_node_name").to_owned();
        let deadline = Instant::now() + if private { JOINING } else { Duration::ZERO };
        loop {
            let State { ready, id, cluster, size, said } = State::ask(c)?;
            if ready {
                return Ok(Some(Member { name, id, cluster, size }));
            }
            if Instant::now() >= deadline {
                return Err(TargetError::Refused(format!(
                    "{place} is a member of a Galera cluster ({name}) and cannot be used: {said}"
                )));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Checks that `c`, of a job, leads to this node: an address may be that of a proxy.
    pub(super) fn check_place(&self, c: &mut Connection, place: &str) -> Result<(), TargetError> {
        if State::ask(c)?.id == self.id {
            return Ok(());
        }
        Err(TargetError::Refused(format!(
            "{place} led to another member of the Galera cluster than before, or the server was started again: name the address \
             of the server itself"
        )))
    }

    /// The error if it is named twice.
    pub(super) fn twice(&self, [first, second]: [&str; 2]) -> TargetError {
        TargetError::Refused(format!(
            "{first} and {second} are the same member of the Galera cluster ({}): name each once",
            self.name
        ))
    }
}

/// Number of nodes in the cluster of `c`; `None` if that of `c` is not ready: it has lost the cluster, or joins it.
pub(super) fn size(c: &mut Connection) -> Result<Option<u32>, TargetError> {
    let state = State::ask(c)?;
    Ok(state.ready.then_some(state.size))
}

/// Number of the last transaction of the cluster that the node of `c` has applied; `None` if it has lost its cluster.
pub(super) fn applied(c: &mut Connection) -> Result<Option<f64>, TargetError> {
    let found = c.shown("GLOBAL STATUS", ["wsrep_last_committed", "wsrep_cluster_status"])?;
    let of = |name: &str| found.get(name).map_or("", String::as_str);
    Ok(of("wsrep_last_committed").parse().ok().filter(|_| of("wsrep_cluster_status") == "Primary"))
}

/// Refuses the server of `c` at `place` if it is in a replication group, or may be.
///
/// # Errors
/// [`TargetError::Refused`] with the group, and what to do.
pub(super) fn refuse_group(c: &mut Connection, place: &str) -> Result<(), TargetError> {
    // Needs no privilege, unlike the table.
    let settings = c.pairs("SHOW GLOBAL VARIABLES WHERE Variable_name = 'group_replication_group_name'")?;
    let Some((_, group)) = settings.into_iter().next() else { return Ok(()) };
    let states = c.query("SELECT MEMBER_STATE FROM performance_schema.replication_group_members");
    let states = match states {
        Ok(rows) => Some(rows.into_iter().flatten().flatten().collect()),
        Err(TargetError::Server(_)) => None,
        Err(e) => return Err(e),
    };
    check_group(place, &group, states)
}

/// As [`refuse_group`], by the group's name and the states of its members; `None` if the user may not read them.
fn check_group(place: &str, group: &str, states: Option<Vec<String>>) -> Result<(), TargetError> {
    // Group replication that is configured and not started has one member, which is OFFLINE. A table without members says nothing:
    // performance_schema is off.
    let runs = states.is_none_or(|states| states.is_empty() || states.iter().any(|state| state != "OFFLINE"));
    if group.is_empty() || !runs {
        return Ok(());
    }
    Err(TargetError::Refused(format!(
        "{place} is a member of the MySQL replication group {group}, and loadline measures no replication groups: stop group \
         replication there (STOP GROUP_REPLICATION), or name a server that is in no group"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_member_that_runs_or_may_run_is_refused() {
        let of = |group: &str, states: Option<&[&str]>| {
            check_group("h:3306", group, states.map(|all| all.iter().map(|s| (*s).to_owned()).collect()))
        };
        let refused = of("5e1f-a", Some(&["ONLINE", "RECOVERING"])).map_err(|e| e.to_string());
        let text = refused.expect_err("a member");
        assert!(text.contains("h:3306") && text.contains("group 5e1f-a") && text.contains("STOP GROUP_REPLICATION"));
        for states in [Some(&["ONLINE"][..]), Some(&["ERROR"]), Some(&[]), None] {
            assert!(matches!(of("5e1f-a", states), Err(TargetError::Refused(_))), "{states:?}");
        }
        for (group, states) in [("", None), ("5e1f-a", Some(&["OFFLINE"][..]))] {
            assert_eq!(of(group, states), Ok(()), "{group} {states:?}");
        }
    }
}
