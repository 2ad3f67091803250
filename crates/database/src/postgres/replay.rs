//! Waits until standbys have replayed what a primary has written.

use std::time::{Duration, Instant};

use super::connect::{Endpoint, SessionRole};
use super::sql::literal;
use super::wire::Connection;
use crate::error::TargetError;
use crate::patience::go_on;

/// Time without progress after which a standby is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until each of `standbys` has replayed the log that `primary` has on disk now.
///
/// # Errors
/// [`TargetError::Local`] if one of them does not get on.
pub(super) fn wait(primary: &Endpoint, standbys: &[Endpoint]) -> Result<(), TargetError> {
    if standbys.is_empty() {
        return Ok(());
    }
    let mut c = primary.connect(SessionRole::Inspect)?;
    let end = c.value("SELECT pg_current_wal_flush_lsn()")?.unwrap_or_default();
    c.publish()?;
    standbys.iter().try_for_each(|standby| {
        let mut c = standby.connect(SessionRole::Inspect)?;
        reach(&mut c, &end, standby)?;
        c.publish()
    })
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
        let paused = row.get(1) == Some("paused");
        if paused || since.elapsed() > PATIENCE {
            let how = if paused { "its replay is paused" } else { "it does not get on" };
            return Err(TargetError::Local(format!(
                "the standby at {} is {behind:.0} bytes of log behind its primary, and {how}: see its log",
                standby.config.place()
            )));
        }
        go_on(&standby.interrupted, "waiting for a standby")?;
        std::thread::sleep(Duration::from_millis(2));
    }
}
