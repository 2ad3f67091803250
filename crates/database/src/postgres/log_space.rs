//! What the log takes while data are loaded.

use super::settings::PgSettings;
use super::wire::Connection;
use crate::error::TargetError;
use crate::role::LogSpace;

/// Asks the server whether it uses its log again, and when.
pub(super) fn needed(c: &mut Connection, data: u64, indexes: u64) -> Result<LogSpace, TargetError> {
    let settings = PgSettings::read(c)?;
    let slots = c.value("SELECT count(*) FROM pg_replication_slots WHERE NOT temporary")?;
    Ok(judge(&settings, slots.as_deref() != Some("0"), data.saturating_add(indexes)))
}

/// Segments are used again after each checkpoint, and there is one when `max_wal_size` is near; it is no hard
/// limit, so half of it is added. The archiver and the slots of replicas hold them back for as long as they
/// need them (<https://www.postgresql.org/docs/current/wal-configuration.html>).
fn judge(settings: &PgSettings, slots: bool, written: u64) -> LogSpace {
    let archived = settings.get("archive_mode").is_some_and(|mode| mode != "off");
    let size = |name: &str| settings.bytes(name).unwrap_or(0.0).max(0.0) as u64;
    let most = match size("max_wal_size") {
        0 => written,
        _ if archived || slots => written,
        most => (most + most / 2).saturating_add(size("wal_keep_size")),
    };
    LogSpace { bytes: written.min(most), ..LogSpace::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_bounded_where_it_is_used_again() {
        let settings = |archive: &str| PgSettings::of(&[("archive_mode", archive, ""), ("max_wal_size", "1024", "MB")]);
        let most = 1536 << 20;
        assert_eq!(judge(&settings("off"), false, 1 << 40).bytes, most);
        assert_eq!(judge(&settings("off"), false, 1 << 20).bytes, 1 << 20, "no more than is written");
        assert_eq!(judge(&settings("on"), false, 1 << 40).bytes, 1 << 40);
        assert_eq!(judge(&settings("off"), true, 1 << 40).bytes, 1 << 40);
        assert_eq!(judge(&PgSettings::default(), false, 1 << 40).bytes, 1 << 40, "nothing is known");
    }
}
