//! What the server does for a session that waits for it.

use super::wire::Connection;
use crate::error::TargetError;
use crate::patience::Doing;

/// Asks in session `c` what the server process `pid` does.
/// <https://www.postgresql.org/docs/current/monitoring-stats.html#WAIT-EVENT-TABLE>
pub(super) fn doing(c: &mut Connection, pid: u32) -> Result<Doing, TargetError> {
    let event = format!("SELECT wait_event_type || ':' || wait_event FROM pg_stat_activity WHERE pid = {pid}");
    let event = c.value(&event)?.unwrap_or_default();
    Ok(match event.as_str() {
        "IPC:SyncRep" => Doing::Waits("a synchronous standby: see synchronous_standby_names at the server".to_owned()),
        lock if lock.starts_with("Lock:") => {
            let holders = format!(
                "SELECT string_agg(format('%s (user %s, %s, %s)', pid, usename, application_name, state), ', ') \
                 FROM pg_stat_activity WHERE pid = ANY (pg_blocking_pids({pid}))"
            );
            let who = c.value(&holders)?.map_or(String::new(), |who| format!(" that is held by session {who}"));
            Doing::Waits(format!(
                "a lock ({event}){who}: end that transaction, or that session with pg_terminate_backend"
            ))
        }
        _ => Doing::Works,
    })
}
