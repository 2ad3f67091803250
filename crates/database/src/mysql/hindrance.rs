//! Why a session gets no answer from the server.

use super::wire::Connection;
use crate::error::TargetError;
use crate::role::Hindrance;

/// The state of a session that waits for another one or for a replica, and not for the server's own work.
/// <https://mariadb.com/kb/en/general-thread-states/>,
/// <https://dev.mysql.com/doc/refman/8.0/en/general-thread-states.html>
const WAITS: [&str; 2] = ["Waiting for", "User lock"];
/// A state that begins like those, but passes.
const PASSES: &str = "Waiting for prior transaction to commit";

/// The state of a session that writes to a full disk. The server tries again every minute.
const FULL_DISK: &str = "Waiting for someone to free space";

/// Whether a session in `state` waits for a full disk: itself, or in a commit behind one that does.
fn waits_for_disk(c: &mut Connection, state: &str) -> Result<bool, TargetError> {
    let others = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE '{FULL_DISK}%'");
    Ok(state.starts_with(FULL_DISK) || state.starts_with("Commit") && c.number(&others)?.is_some_and(|n| n > 0.0))
}

/// Asks in session `c` what `session` waits for, if that is not the server's own work.
pub(super) fn hindrance(c: &mut Connection, session: u32) -> Result<Option<Hindrance>, TargetError> {
    let state = format!("SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = {session}");
    let state = c.value(&state)?.unwrap_or_default();
    if waits_for_disk(c, &state)? {
        return Ok(Some(Hindrance::full_disk()));
    }
    if state.starts_with(PASSES) || !WAITS.iter().any(|waits| state.starts_with(waits)) {
        return Ok(None);
    }
    let oldest = format!(
        "SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX \
         WHERE trx_mysql_thread_id <> {session} ORDER BY trx_started LIMIT 1"
    );
    // Without the privilege PROCESS, or without a transaction, nobody is named.
    let who = c.value(&oldest).ok().flatten();
    let who = who.map_or(String::new(), |id| format!("; the oldest open transaction is that of session {id}"));
    Ok(Some(Hindrance::waits_for(format!(
        "another session or a replica ('{state}'{who}): end that session (SHOW PROCESSLIST, KILL)"
    ))))
}
