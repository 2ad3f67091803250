//! Galera clusters: servers that hold one and the same data, on each of which transactions can begin.
//!
//! A transaction commits at the node where it began once all nodes have received its rows in the same order (certification).
//! The others apply it a moment later, so what was written at one is read at another once that has caught up (`apply.rs`). CREATE and DROP take
//! effect at all nodes.

use std::time::{Duration, Instant};

use super::wire::Connection;
use crate::error::TargetError;

/// A joining node is waited for this long if loadline started it; a user's must be ready.
const JOINING: Duration = Duration::from_secs(60);
/// `wsrep_local_state` of a node that has all data.
const SYNCED: &str = "4";

/// A server as a node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GaleraNode {
    /// `wsrep_node_name`; by default that of the machine, so two may have the same.
    pub(super) name: String,
    /// Identity of the node's process within the cluster (`wsrep_gcomm_uuid`).
    pub(super) id: String,
    /// Identity of the cluster and its data (`wsrep_cluster_state_uuid`).
    pub(super) cluster: String,
    /// Nodes of the cluster, also those that are not of the target.
    pub(super) size: u32,
}

/// What a node says of its state.
struct State(Vec<(String, String)>);

impl State {
    fn of(&self, name: &str) -> &str {
        self.0.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value.as_str())
    }

    /// Whether it has all data and takes part in the cluster's majority.
    fn is_ready(&self) -> bool {
        self.of("wsrep_local_state") == SYNCED
            && self.of("wsrep_cluster_status") == "Primary"
            && self.of("wsrep_ready") == "ON"
    }
}

impl GaleraNode {
    /// The node that `c` leads to; `None` if the server is in no cluster.
    ///
    /// # Errors
    /// [`TargetError::Refused`] if it is not synced, or has lost the majority of its cluster.
    pub(super) fn ask(c: &mut Connection, private: bool, place: &str) -> Result<Option<GaleraNode>, TargetError> {
        let settings =
            c.pairs("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wsrep_on', 'wsrep_provider', 'wsrep_node_name')")?;
        let of = |name: &str| settings.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value.as_str());
        if !of("wsrep_on").eq_ignore_ascii_case("on") || matches!(of("wsrep_provider"), "" | "none") {
            return Ok(None);
        }
        let deadline = Instant::now() + if private { JOINING } else { Duration::ZERO };
        let state = loop {
            let state = State(c.pairs(
                "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_local_state', 'wsrep_local_state_comment', \
                 'wsrep_cluster_status', 'wsrep_ready', 'wsrep_gcomm_uuid', 'wsrep_cluster_state_uuid', 'wsrep_cluster_size')",
            )?);
            if state.is_ready() {
                break state;
            }
            if Instant::now() >= deadline {
                return Err(TargetError::Refused(format!(
                    "{place} is a node of a Galera cluster (wsrep_node_name {}) and cannot be used: it is {} in a {} part of \
                     the cluster, and must be Synced and Primary",
                    of("wsrep_node_name"),
                    state.of("wsrep_local_state_comment"),
                    state.of("wsrep_cluster_status"),
                )));
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        Ok(Some(GaleraNode {
            name: of("wsrep_node_name").to_owned(),
            id: state.of("wsrep_gcomm_uuid").to_owned(),
            cluster: state.of("wsrep_cluster_state_uuid").to_owned(),
            size: state.of("wsrep_cluster_size").parse().unwrap_or(0),
        }))
    }
}

/// The error for a node that is named twice.
pub(super) fn twice(known: &GaleraNode, [first, second]: [&str; 2]) -> TargetError {
    TargetError::Refused(format!(
        "{first} and {second} are the same node of the Galera cluster (wsrep_node_name {}): name each node once",
        known.name
    ))
}

/// Number of nodes in the cluster of `c`'s node; `None` if that is not ready: it has lost the cluster, or joins it.
pub(super) fn size(c: &mut Connection) -> Result<Option<u32>, TargetError> {
    let state = State(c.pairs(
        "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_local_state', 'wsrep_cluster_status', 'wsrep_ready', \
         'wsrep_cluster_size')",
    )?);
    Ok(state.of("wsrep_cluster_size").parse().ok().filter(|_| state.is_ready()))
}

/// Checks that `c`, of a job, leads to the node `id`: an address may be that of a proxy.
///
/// # Errors
/// [`TargetError::Refused`] if it does not.
pub(super) fn check_place(c: &mut Connection, id: &str, place: &str) -> Result<(), TargetError> {
    let found = c.pairs("SHOW GLOBAL STATUS LIKE 'wsrep_gcomm_uuid'")?;
    if found.iter().any(|(_, value)| value == id) {
        return Ok(());
    }
    Err(TargetError::Refused(format!(
        "{place} led to another node of the cluster than before, or the node was started again: name the address of the node \
         itself"
    )))
}

/// Number of the last transaction of the cluster that the node of `c` has applied; `None` if it has lost its cluster.
pub(super) fn applied(c: &mut Connection) -> Result<Option<f64>, TargetError> {
    let state =
        State(c.pairs("SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_last_committed', 'wsrep_cluster_status')")?);
    Ok(state.of("wsrep_last_committed").parse().ok().filter(|_| state.of("wsrep_cluster_status") == "Primary"))
}
