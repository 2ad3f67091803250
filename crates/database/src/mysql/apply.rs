//! Waits until the nodes of a cluster have applied each other's changes.

use std::time::{Duration, Instant};

use super::instance::MysqlInstance;
use super::member::galera::applied;
use super::member::{ClusterKind, group};
use super::wire::Connection;
use crate::error::TargetError;

/// Longest that nodes may take to apply what another has committed.
const CATCHING_UP: Duration = Duration::from_secs(60);
/// Waits until all nodes have applied what any of them has committed. A node that is lost, or has lost its cluster, is not
/// waited for: what it had committed, the others have received.
///
/// # Errors
/// If the first node is lost, or one does not catch up within a minute.
pub(super) fn catch_up(instances: &[MysqlInstance]) -> Result<(), TargetError> {
    let kind = instances.first().and_then(|i| Some(i.member.as_ref()?.kind));
    if kind == Some(ClusterKind::Group) { catch_up_group(instances) } else { catch_up_galera(instances) }
}

fn catch_up_group(instances: &[MysqlInstance]) -> Result<(), TargetError> {
    let mut nodes = of_nodes(instances, |c| group::executed(c).map(Some))?;
    let all: Vec<String> = nodes.iter().map(|(_, _, executed)| executed.clone()).collect();
    for (instance, c, _) in &mut nodes {
        for executed in &all {
            if !group::wait_for(c, executed, CATCHING_UP)? {
                return Err(late(instance));
            }
        }
        instance.ledger.book(c)?;
    }
    Ok(())
}

fn catch_up_galera(instances: &[MysqlInstance]) -> Result<(), TargetError> {
    let mut nodes = of_nodes(instances, applied)?;
    let last = nodes.iter().map(|(_, _, applied)| *applied).fold(0.0, f64::max);
    let deadline = Instant::now() + CATCHING_UP;
    for (instance, c, _) in &mut nodes {
        while applied(c)?.is_some_and(|applied| applied < last) {
            if Instant::now() >= deadline {
                return Err(late(instance));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        instance.ledger.book(c)?;
    }
    Ok(())
}

/// What `read` finds at each node, with the session; without the nodes where it finds nothing or that are lost.
fn of_nodes<T>(
    instances: &[MysqlInstance],
    read: impl Fn(&mut Connection) -> Result<Option<T>, TargetError>,
) -> Result<Vec<(&MysqlInstance, Connection, T)>, TargetError> {
    let mut nodes = Vec::new();
    for (number, instance) in instances.iter().enumerate() {
        match instance.endpoint.connect().and_then(|mut c| Ok((read(&mut c)?, c))) {
            Ok((Some(found), c)) => nodes.push((instance, c, found)),
            Err(e) if number == 0 => return Err(e),
            Ok((None, _)) | Err(_) => {}
        }
    }
    Ok(nodes)
}

fn late(instance: &MysqlInstance) -> TargetError {
    TargetError::Statement(format!(
        "{} has not applied within {} s what another node of the cluster has committed",
        instance.endpoint.config.place(),
        CATCHING_UP.as_secs()
    ))
}
