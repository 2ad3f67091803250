//! Which server a session leads to, and the wait until standbys have replayed what a primary has written.

use std::time::{Duration, Instant};

use super::connect::{Endpoint, SessionRole};
use super::knowledge::{message, refusal};
use super::sql::literal;
use super::wire::{Connection, Values};
use crate::error::{TargetError, unless_refused};
use crate::patience::go_on;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    /// Of the database cluster: equal for a primary, its standbys and copies. `None` without the privilege to see it.
    pub(super) system: Option<String>,
    /// Of the instance: its name if it is a private server, which may be restarted, else its start time.
    instance: String,
    pub(super) standby: bool,
}

impl Identity {
    pub(super) fn read(c: &mut Connection, endpoint: &Endpoint, private: bool) -> Result<Identity, TargetError> {
        let instance =
            if private { "current_setting('cluster_name')" } else { "date_part('epoch', pg_postmaster_start_time())" };
        let row = c.row(&format!("SELECT ({instance})::text, pg_is_in_recovery()"))?;
        let system = unless_refused(c.value("SELECT system_identifier::text FROM pg_control_system()"))?;
        // Two servers may have been started at the same time: without the identifier the address distinguishes them.
        let place = if system.is_none() { endpoint.config.place() } else { String::new() };
        Ok(Identity { system, instance: format!("{place} {}", row.text(0)), standby: row.is_true(1) })
    }

    /// Refuses a further server, at `endpoint`, unless it is a standby of the first.
    pub(super) fn check_standby(
        &self,
        endpoint: &Endpoint,
        first: &Identity,
        at: &Endpoint,
    ) -> Result<(), TargetError> {
        let (shown, at) = (&endpoint.config.shown, &at.config.shown);
        let parts = [("url", shown.as_str()), ("first", at)];
        match (&first.system, &self.system) {
            _ if first.standby => Err(refusal("standby-first", &parts)),
            _ if !self.standby => Err(refusal("own-server", &parts)),
            (Some(a), Some(b)) if a == b => Ok(()),
            (Some(a), Some(b)) => {
                Err(refusal("standby-of-another", &[&parts[..], &[("its", b.as_str()), ("other", a)]].concat()))
            }
            _ => Err(refusal("unknown-primary", &parts)),
        }
    }
}

/// Time without progress after which a standby is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until each of `standbys` has replayed the log that `primary` has on disk now; [`TargetError::Local`] if one does not get on.
pub(super) fn wait(primary: &Endpoint, standbys: &[Endpoint]) -> Result<(), TargetError> {
    if standbys.is_empty() {
        return Ok(());
    }
    let end = primary.session(SessionRole::Inspect, |c| c.value("SELECT pg_current_wal_flush_lsn()"))?;
    let end = end.unwrap_or_default();
    standbys.iter().try_for_each(|standby| standby.session(SessionRole::Inspect, |c| reach(c, &end, standby)))
}

/// Waits until the standby of `c` has replayed up to `end`.
fn reach(c: &mut Connection, end: &str, standby: &Endpoint) -> Result<(), TargetError> {
    let sql = format!(
        "SELECT pg_wal_lsn_diff({}, pg_last_wal_replay_lsn())::text, pg_get_wal_replay_pause_state()",
        literal(end)
    );
    let (mut least, mut since) = (f64::INFINITY, Instant::now());
    loop {
        let row = c.row(&sql)?;
        let behind = row.number(0).unwrap_or(f64::INFINITY);
        if behind <= 0.0 {
            return Ok(());
        }
        if behind < least {
            (least, since) = (behind, Instant::now());
        }
        let paused = row.value(1) == Some("paused");
        if paused || since.elapsed() > PATIENCE {
            let how = if paused { "its replay is paused" } else { "it does not get on" };
            let (place, bytes) = (standby.config.place(), format!("{behind:.0}"));
            return Err(TargetError::Local(message("behind", &[("place", &place), ("bytes", &bytes), ("how", how)])));
        }
        go_on(&standby.request.interrupted, "waiting for a standby")?;
        std::thread::sleep(Duration::from_millis(2));
    }
}
