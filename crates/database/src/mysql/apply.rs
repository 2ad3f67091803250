//! Waits until the nodes of a cluster have applied each other's changes.

use std::time::{Duration, Instant};

use super::instance::MysqlInstance;
use super::member::applied;
use crate::error::TargetError;

/// Longest that nodes may take to apply what another has committed.
const CATCHING_UP: Duration = Duration::from_secs(60);

/// Waits until all nodes have applied what any of them has committed. A node that is lost, or has lost its cluster, is not
/// waited for: what it had committed, the others have received.
///
/// # Errors
/// If the first node is lost, or one does not catch up within a minute.
pub(super) fn catch_up(instances: &[MysqlInstance]) -> Result<(), TargetError> {
    let mut nodes = Vec::new();
    for (number, instance) in instances.iter().enumerate() {
        match instance.endpoint.connect().and_then(|mut c| Ok((applied(&mut c)?, c))) {
            Ok((Some(applied), c)) => nodes.push((instance, c, applied)),
            Err(e) if number == 0 => return Err(e),
            Ok((None, _)) | Err(_) => {}
        }
    }
    let last = nodes.iter().map(|(_, _, applied)| *applied).fold(0.0, f64::max);
    let deadline = Instant::now() + CATCHING_UP;
    for (instance, c, _) in &mut nodes {
        while applied(c)?.is_some_and(|applied| applied < last) {
            if Instant::now() >= deadline {
                return Err(TargetError::Statement(format!(
                    "{} has not applied within {} s what another node of the cluster has committed",
                    instance.endpoint.config.place(),
                    CATCHING_UP.as_secs()
                )));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        instance.ledger.book(c)?;
    }
    Ok(())
}
