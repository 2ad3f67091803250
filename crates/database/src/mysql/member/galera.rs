//! Galera clusters of MariaDB.
//!
//! A transaction commits at the node where it began once all nodes have received its rows in the same order (certification).
//! The others apply it a moment later, so what was written at one is read at another once that has caught up (`apply.rs`). CREATE
//! and DROP take effect at all nodes.

use super::State;
use crate::error::TargetError;
use crate::mysql::wire::Connection;

/// `wsrep_local_state` of a node that has all data.
const SYNCED: &str = "4";
/// Values of `wsrep_local_state` of a member of the cluster's majority: a donor, one that has joined, and Synced.
pub(in crate::mysql) const MEMBER: [f64; 3] = [2.0, 3.0, 4.0];

/// The node's name, if the server of `c` is one; by default that of the machine, so two may have the same.
pub(in crate::mysql) fn name(c: &mut Connection) -> Result<Option<String>, TargetError> {
    let settings =
        c.pairs("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wsrep_on', 'wsrep_provider', 'wsrep_node_name')")?;
    let of = |name: &str| settings.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value.as_str());
    let is_node = of("wsrep_on").eq_ignore_ascii_case("on") && !matches!(of("wsrep_provider"), "" | "none");
    Ok(is_node.then(|| of("wsrep_node_name").to_owned()))
}

/// Whether it has all data and takes part in the cluster's majority, and in which cluster.
pub(in crate::mysql) fn state(c: &mut Connection) -> Result<State, TargetError> {
    let found = c.pairs(
        "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_local_state', 'wsrep_local_state_comment', \
         'wsrep_cluster_status', 'wsrep_ready', 'wsrep_gcomm_uuid', 'wsrep_cluster_state_uuid', 'wsrep_cluster_size')",
    )?;
    let of = |name: &str| found.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value.as_str());
    let (comment, status) = (of("wsrep_local_state_comment"), of("wsrep_cluster_status"));
    Ok(State {
        ready: of("wsrep_local_state") == SYNCED && status == "Primary" && of("wsrep_ready") == "ON",
        id: of("wsrep_gcomm_uuid").to_owned(),
        cluster: of("wsrep_cluster_state_uuid").to_owned(),
        size: of("wsrep_cluster_size").parse().unwrap_or(0),
        said: format!("it is {comment} in a {status} part of the cluster, and must be Synced and Primary"),
    })
}

/// Number of the last transaction of the cluster that the node of `c` has applied; `None` if it has lost its cluster.
pub(in crate::mysql) fn applied(c: &mut Connection) -> Result<Option<f64>, TargetError> {
    let found =
        c.pairs("SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_last_committed', 'wsrep_cluster_status')")?;
    let of = |name: &str| found.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value.as_str());
    Ok(of("wsrep_last_committed").parse().ok().filter(|_| of("wsrep_cluster_status") == "Primary"))
}
