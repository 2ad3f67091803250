//! Why a session gets no answer from the server.

use super::wire::Connection;
use crate::error::TargetError;
use crate::patience::waited_for;

/// The state of a session that writes to a full disk. The server tries again every minute.
const FULL_DISK: &str = "Waiting for someone to free space";
/// A state that begins as those that wait, but passes.
const PASSES: &str = "Waiting for prior transaction to commit";

/// Asks in session `c` what `session` waits for, if that is not the server's own work: another session, a replica, or a full disk,
/// itself or in a commit behind one that does. <https://mariadb.com/kb/en/general-thread-states/>,
/// <https://dev.mysql.com/doc/refman/8.0/en/general-thread-states.html>
pub(super) fn hindrance(c: &mut Connection, session: u32) -> Result<Option<TargetError>, TargetError> {
    let states = format!(
        "SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = {session} OR STATE LIKE '{FULL_DISK}%' \
                          ORDER BY ID = {session} DESC"
    );
    let rows = c.query(&states)?;
    let mut states =
        rows.iter().map(|row| String::from_utf8_lossy(row.first().and_then(Option::as_deref).unwrap_or_default()));
    let state = states.next().unwrap_or_default();
    if state.starts_with(FULL_DISK) || state.starts_with("Commit") && states.next().is_some() {
        let why = "its statement waited for free space: a disk that it writes to is full";
        return Ok(Some(TargetError::NoSpace(why.to_owned())));
    }
    let waits =
        ["Waiting for", "User lock"].iter().any(|waits| state.starts_with(*waits)) && !state.starts_with(PASSES);
    let who = format!("another session or a replica ('{state}'): end that session (SHOW PROCESSLIST, KILL)");
    Ok(waits.then(|| waited_for(who)))
}
