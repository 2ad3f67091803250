//! Why a session gets no answer from the server.

use super::wire::Connection;
use crate::error::TargetError;
use crate::role::Hindrance;

/// The standbys that are connected, in one text. A role without pg_monitor sees no names.
const STANDBYS: &str = "SELECT string_agg(concat_ws(', ', coalesce(application_name, 'a standby'), state, sync_state, \
     'last heard of ' || extract(epoch FROM now() - reply_time)::int || ' s ago'), '; ') FROM pg_stat_replication";

/// Asks in session `c` what the server process `pid` waits for, if that is not the server's own work.
/// <https://www.postgresql.org/docs/current/monitoring-stats.html#WAIT-EVENT-TABLE>
pub(super) fn hindrance(c: &mut Connection, pid: u32) -> Result<Option<Hindrance>, TargetError> {
    let event = format!("SELECT wait_event_type || ':' || wait_event FROM pg_stat_activity WHERE pid = {pid}");
    let event = c.value(&event)?.unwrap_or_default();
    if event == "IPC:SyncRep" {
        let names = c.value("SHOW synchronous_standby_names")?.unwrap_or_default();
        let connected = c.value(STANDBYS)?.unwrap_or_else(|| "none".to_owned());
        return Ok(Some(Hindrance::waits_for(format!(
            "a synchronous standby (synchronous_standby_names = '{names}'; connected: {connected}): start it, or ALTER \
             SYSTEM RESET synchronous_standby_names and pg_reload_conf()"
        ))));
    }
    if event.starts_with("Lock:") {
        let holders = format!(
            "SELECT string_agg(format('%s (user %s, %s, %s)', pid, usename, application_name, state), ', ') \
             FROM pg_stat_activity WHERE pid = ANY (pg_blocking_pids({pid}))"
        );
        let who = c.value(&holders)?.map_or(String::new(), |who| format!(" that is held by session {who}"));
        return Ok(Some(Hindrance::waits_for(format!(
            "a lock ({event}){who}: end that transaction, or that session with pg_terminate_backend"
        ))));
    }
    Ok(stopped(c, &event)?.map(Hindrance::waits_for))
}

/// The process of the server that does not run, and that the session may wait for, if there is one.
fn stopped(c: &mut Connection, event: &str) -> Result<Option<String>, TargetError> {
    let processes = c.query("SELECT pid, backend_type, wait_event FROM pg_stat_activity")?;
    Ok(processes.into_iter().find_map(|row| {
        let [pid, kind, waits_in] = <[_; 3]>::try_from(row).ok()?.map(Option::unwrap_or_default);
        // A checkpoint that was asked for, and a checkpointer that has not begun it.
        let idle = event == "IPC:CheckpointStart" && waits_in == "CheckpointerMain";
        (idle || is_stopped(&pid)).then(|| {
            format!("the server's process {pid} ({kind}), which does not run: is it stopped? (kill -CONT {pid} there)")
        })
    }))
}

/// Whether `pid` is a process of a PostgreSQL on this machine that is stopped.
fn is_stopped(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.contains("(postgres) T ")
}
