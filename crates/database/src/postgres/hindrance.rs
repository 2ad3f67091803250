//! Why a session gets no answer from the server.

use super::wire::Connection;
use crate::error::TargetError;
use crate::patience::waited_for;

/// What a server process waits for, the sessions that hold its lock, and the standbys. A role without pg_monitor sees no names.
/// <https://www.postgresql.org/docs/current/monitoring-stats.html#WAIT-EVENT-TABLE>
const QUESTION: &str = "SELECT wait_event_type || ':' || wait_event, current_setting('synchronous_standby_names'), \
     (SELECT string_agg(concat_ws(', ', coalesce(application_name, 'a standby'), state, sync_state, 'last heard of ' || \
     extract(epoch FROM now() - reply_time)::int || ' s ago'), '; ') FROM pg_stat_replication), \
     (SELECT string_agg(format('%s (user %s, %s, %s)', pid, usename, application_name, state), ', ') FROM pg_stat_activity \
     WHERE pid = ANY (pg_blocking_pids(asked.pid))) FROM pg_stat_activity asked WHERE pid = ";

/// Asks in session `c` what the server process `pid` waits for, if that is not the server's own work.
pub(super) fn hindrance(c: &mut Connection, pid: u32) -> Result<Option<TargetError>, TargetError> {
    let row = c.query(&format!("{QUESTION}{pid}"))?.pop().unwrap_or_default();
    let cell = |at: usize| row.get(at).cloned().flatten();
    let event = cell(0).unwrap_or_default();
    Ok(match event.split_once(':') {
        Some(("IPC", "SyncRep")) => Some(waited_for(format!(
            "a synchronous standby (synchronous_standby_names = '{}'; connected: {}): start it, or ALTER SYSTEM RESET \
             synchronous_standby_names and pg_reload_conf()",
            cell(1).unwrap_or_default(),
            cell(2).unwrap_or_else(|| "none".to_owned())
        ))),
        Some(("Lock", _)) => Some(waited_for(format!(
            "a lock ({event}) that is held by session {}: end that transaction, or that session with pg_terminate_backend",
            cell(3).unwrap_or_else(|| "unknown".to_owned())
        ))),
        _ => None,
    })
}
