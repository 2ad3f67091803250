//! Joins private servers of MySQL into a replication group.

use super::connect::Endpoint;
use super::temp::random_uuid;
use crate::env::of_target;
use crate::error::TargetError;
use crate::request::OpenRequest;

/// User by which members talk, and by which one that joins fetches transactions from another.
const RECOVERY: &str = "loadline_recovery@'127.0.0.1'";

/// Joins the private servers at `url` and at the nodes of `request`, which run, into a group: the first begins it.
///
/// # Errors
/// What a server says to a statement.
pub(super) fn join(url: &str, request: &OpenRequest) -> Result<(), TargetError> {
    // At most 32 characters.
    let password = random_uuid()?.replace('-', "");
    for (number, url) in std::iter::once(url).chain(request.nodes.iter().map(String::as_str)).enumerate() {
        let mut c = Endpoint::new(url, request, of_target(true))?.connect()?;
        let mut run = |sql: &str| c.query(sql).map(drop);
        // Each has this user for itself: what is not logged is not sent to the others.
        run("SET SESSION sql_log_bin = 0")?;
        run(&format!("CREATE USER IF NOT EXISTS {RECOVERY}"))?;
        run(&format!("ALTER USER {RECOVERY} IDENTIFIED BY '{password}'"))?;
        run(&format!("GRANT REPLICATION SLAVE ON *.* TO {RECOVERY}"))?;
        run(&format!("GRANT GROUP_REPLICATION_STREAM, CONNECTION_ADMIN ON *.* TO {RECOVERY}"))?;
        run("SET SESSION sql_log_bin = 1")?;
        run(&format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_USER = 'loadline_recovery', SOURCE_PASSWORD = '{password}' \
             FOR CHANNEL 'group_replication_recovery'"
        ))?;
        // The password is encrypted with the other's key, on this machine's own network.
        run("SET GLOBAL group_replication_recovery_get_public_key = 1")?;
        let first = number == 0;
        run(&format!("SET GLOBAL group_replication_bootstrap_group = {}", u8::from(first)))?;
        run("START GROUP_REPLICATION")?;
        run("SET GLOBAL group_replication_bootstrap_group = 0")?;
    }
    Ok(())
}
