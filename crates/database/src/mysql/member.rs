//! Nodes of a Galera cluster of MariaDB: servers that hold one and the same data, on each of which transactions can begin.
//!
//! A transaction commits at the node where it began once all nodes have received its rows in the same order (certification).
//! The others apply it a moment later, so what was written at one is read at another once that has caught up (`server.rs`). CREATE
//! and DROP take effect at all nodes.

use std::time::{Duration, Instant};

use super::knowledge::{KNOWLEDGE, refusal};
use super::settings::MysqlSettings;
use super::wire::Connection;
use crate::error::{TargetError, unless_refused};
use crate::rules::SettingValues as _;

/// A joining node is waited for this long if loadline started it; a user's must be ready.
const JOINING: Duration = Duration::from_secs(60);
/// `wsrep_local_state` of a node that has all data.
const SYNCED: &str = "4";
/// Values of `wsrep_local_state` of a member of the cluster's majority: a donor, one that has joined, and Synced.
pub(super) const MEMBER: [f64; 3] = [2.0, 3.0, 4.0];

/// A server as a node of a cluster, by its own account when it was asked.
#[derive(Debug, Clone)]
pub(super) struct Member {
    /// Name in the cluster, by default that of the machine: several may have the same.
    pub(super) name: String,
    /// Identity of the node's process (`wsrep_gcomm_uuid`).
    id: String,
    pub(super) cluster: String,
    /// Nodes of the cluster, also those that are not of the target.
    pub(super) size: u32,
    /// Whether transactions can begin there: it has all data and takes part in the cluster's majority.
    pub(super) ready: bool,
    /// Number of the last transaction of the cluster that it has applied; `None` if it has lost its cluster.
    pub(super) applied: Option<f64>,
    /// The state in words, and what it must be.
    said: String,
}

impl Member {
    /// The node of `c`, without its name.
    pub(super) fn ask(c: &mut Connection) -> Result<Member, TargetError> {
        let found = c.shown("GLOBAL STATUS", &KNOWLEDGE.member_status)?;
        let of = |name: &str| found.get(name).map_or("", String::as_str);
        let (comment, status) = (of("wsrep_local_state_comment"), of("wsrep_cluster_status"));
        Ok(Member {
            name: String::new(),
            id: of("wsrep_gcomm_uuid").to_owned(),
            cluster: of("wsrep_cluster_state_uuid").to_owned(),
            size: of("wsrep_cluster_size").parse().unwrap_or(0),
            ready: of("wsrep_local_state") == SYNCED && status == "Primary" && of("wsrep_ready") == "ON",
            applied: if status == "Primary" { of("wsrep_last_committed").parse().ok() } else { None },
            said: format!("it is {comment} in a {status} part of the cluster, and must be Synced and Primary"),
        })
    }

    /// The node that `c` leads to, once it is ready; `None` if a server with these settings is in no cluster.
    pub(super) fn await_ready(
        c: &mut Connection,
        settings: &MysqlSettings,
        private: bool,
        place: &str,
    ) -> Result<Option<Member>, TargetError> {
        if !settings.is_on("wsrep_on") || matches!(settings.text("wsrep_provider"), None | Some("" | "none")) {
            return Ok(None);
        }
        let name = settings.text("wsrep_node_name").unwrap_or_default().to_owned();
        let deadline = Instant::now() + if private { JOINING } else { Duration::ZERO };
        loop {
            let member = Member { name: name.clone(), ..Member::ask(c)? };
            if member.ready {
                return Ok(Some(member));
            }
            if Instant::now() >= deadline {
                return Err(refusal("not-ready", &[("place", place), ("name", &name), ("state", &member.said)]));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Checks that `c`, of a job, leads to this node: an address may be that of a proxy.
    pub(super) fn check_place(&self, c: &mut Connection, place: &str) -> Result<(), TargetError> {
        if Member::ask(c)?.id == self.id {
            return Ok(());
        }
        Err(refusal("another-member", &[("place", place)]))
    }
}

/// Refuses the server of `c` at `place`, with these settings, if it is in a replication group, or may be.
pub(super) fn refuse_group(c: &mut Connection, settings: &MysqlSettings, place: &str) -> Result<(), TargetError> {
    // Needs no privilege, unlike the table.
    let Some(group) = settings.text("group_replication_group_name") else { return Ok(()) };
    check_group(place, group, unless_refused(c.number(&KNOWLEDGE.queries.text("group-rests", &[])))?)
}

/// As [`refuse_group`], by the group's name and the answer of `group-rests`, if there is one.
fn check_group(place: &str, group: &str, rests: Option<f64>) -> Result<(), TargetError> {
    if group.is_empty() || rests == Some(1.0) {
        return Ok(());
    }
    Err(refusal("group", &[("place", place), ("group", group)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_member_that_runs_or_may_run_is_refused() {
        let cases = [("5e1f-a", None, true), ("5e1f-a", Some(0.0), true), ("5e1f-a", Some(1.0), false)];
        for (group, rests, is_refused) in cases.into_iter().chain([("", None, false), ("", Some(0.0), false)]) {
            match check_group("h:3306", group, rests) {
                Err(TargetError::Refused(text)) => {
                    assert!(is_refused && text.contains("h:3306") && text.contains("group 5e1f-a"), "{group}: {text}");
                }
                other => assert!(!is_refused && other.is_ok(), "{group} {rests:?}: {other:?}"),
            }
        }
    }
}
