//! Disk space of the log while data are loaded.

use super::settings::PgSettings;
use super::wire::Connection;
use crate::error::TargetError;
use crate::role::LogSpace;

/// Estimates the disk space of the log from the server's settings. The slots of a `private` server are those of standbys
/// that follow it at once.
pub(super) fn estimate(c: &mut Connection, data: u64, indexes: u64, private: bool) -> Result<LogSpace, TargetError> {
    let settings = PgSettings::read(c)?;
    let slots = c.value("SELECT count(*) FROM pg_replication_slots WHERE NOT temporary")?;
    let slots = slots.as_deref() != Some("0") && !private;
    Ok(of_settings(&settings, slots, data.saturating_add(indexes)))
}

/// Segments are reused after each checkpoint, and a checkpoint starts near `max_wal_size`. That is a soft limit, so half
/// of it is added. The archiver and replication slots may retain segments without limit
/// (<https://www.postgresql.org/docs/current/wal-configuration.html>).
fn of_settings(settings: &PgSettings, slots: bool, written: u64) -> LogSpace {
    let archived = settings.get("archive_mode").is_some_and(|mode| mode != "off");
    let size = |name: &str| settings.bytes(name).unwrap_or(0.0).max(0.0) as u64;
    let limit = match size("max_wal_size") {
        0 => written,
        _ if archived || slots => written,
        max => (max + max / 2).saturating_add(size("wal_keep_size")),
    };
    LogSpace { bytes: written.min(limit), ..LogSpace::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_bounded_if_segments_are_reused() {
        let settings = |archive: &str| PgSettings::of(&[("archive_mode", archive, ""), ("max_wal_size", "1024", "MB")]);
        let limit = 1536 << 20;
        assert_eq!(of_settings(&settings("off"), false, 1 << 40).bytes, limit);
        assert_eq!(of_settings(&settings("off"), false, 1 << 20).bytes, 1 << 20, "no more than is written");
        assert_eq!(of_settings(&settings("on"), false, 1 << 40).bytes, 1 << 40);
        assert_eq!(of_settings(&settings("off"), true, 1 << 40).bytes, 1 << 40);
        assert_eq!(of_settings(&PgSettings::default(), false, 1 << 40).bytes, 1 << 40, "unknown settings");
    }
}
