//! Source of the blocks that a test read: a cache, the device, or both.

use loadline_model::DataSource;

use crate::figures::access::Access;
use crate::server_memory::ServerMemory;

/// Reads and their bytes in a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reads {
    pub(crate) count: f64,
    pub(crate) bytes: f64,
}

/// Facts about caches, collected before a test.
#[derive(Debug, Clone, Default)]
pub(crate) struct CacheFacts {
    /// Size of the database's own block cache, bytes.
    pub(crate) cache_bytes: Option<u64>,
    /// Bytes of the tables read.
    pub(crate) table_bytes: Option<u64>,
    pub(crate) memory: Option<ServerMemory>,
    /// Time from the end of the jobs' window until a checkpoint had synced their changes, s, or why there was none. `None` if
    /// the database makes none, or none is needed.
    pub(crate) synced_s: Option<Result<f64, String>>,
    /// Why the data files are not kept out of the page cache, if so.
    pub(crate) not_kept_out: Option<String>,
    /// Whether figures from caches are kept and marked.
    pub(crate) allow_cached: bool,
}

/// Minimum share of the device for the source `Device`.
pub(crate) const MIN_DEVICE_SHARE: f64 = 0.9;
/// Upper bound of the device's share for the source `Cached`.
pub(crate) const MAX_CACHED_SHARE: f64 = 0.1;

/// The source of blocks of which this share (0…1) came from the device.
pub(crate) fn source_by_share(share: f64) -> DataSource {
    if share >= MIN_DEVICE_SHARE {
        DataSource::Device
    } else if share < MAX_CACHED_SHARE {
        DataSource::Cached
    } else {
        DataSource::Lukewarm
    }
}

/// Share (0…1) of the database's reads that the device served; `None` without reads.
///
/// Sequential reads are compared by bytes, because the device reads many blocks at once. Random reads are compared by
/// number as well: read-ahead and rounding to pages add bytes that the database did not request. Other users of the
/// device make the share too high.
pub(crate) fn device_share(database: Reads, device: Reads, access: Access) -> Option<f64> {
    let share = |a: f64, b: f64| (b > 0.0).then(|| (a / b).min(1.0));
    let bytes = share(device.bytes, database.bytes)?;
    match access {
        Access::Sequential => Some(bytes),
        Access::Random => Some(bytes.min(share(device.count, database.count)?)),
    }
}

/// Share (0…1) of the blocks requested by transactions that the database did not find in its own cache.
pub(crate) fn beyond_own_cache(asked: f64, read: f64) -> Option<f64> {
    (asked > 0.0).then(|| (read / asked).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn reads(count: f64, bytes: f64) -> Reads {
        Reads { count, bytes }
    }

    #[test]
    fn the_thresholds_are_as_stated() {
        for (share, source) in [
            (1.0, DataSource::Device),
            (0.9, DataSource::Device),
            (0.899, DataSource::Lukewarm),
            (0.1, DataSource::Lukewarm),
            (0.099, DataSource::Cached),
            (0.0, DataSource::Cached),
        ] {
            assert_eq!(source_by_share(share), source, "{share}");
        }
        assert_eq!(source_by_share(f64::NAN), DataSource::Lukewarm, "unknown is not the device");
    }

    #[test]
    fn single_blocks_need_number_and_bytes() {
        let database = reads(1000.0, 8_192_000.0);
        let share = |device| device_share(database, device, Access::Random).unwrap();
        assert_eq!(share(reads(1000.0, 8_192_000.0)), 1.0);
        assert_eq!(share(reads(1300.0, 9_000_000.0)), 1.0, "others read, too");
        assert_eq!(share(reads(100.0, 13_000_000.0)), 0.1, "100 reads of 128 KiB are read-ahead");
        assert_eq!(share(reads(5000.0, 819_200.0)), 0.1, "many small reads of something else");
        assert_eq!(share(reads(0.0, 0.0)), 0.0);
        // SQLite's 1 KiB pages take a page of 4 KiB each from the device.
        assert_eq!(device_share(reads(10.0, 10_240.0), reads(9.0, 36_864.0), Access::Random), Some(0.9));
    }

    #[test]
    fn scans_are_compared_by_bytes() {
        let share = |device| device_share(reads(1000.0, 8_192_000.0), device, Access::Sequential);
        assert_eq!(share(reads(63.0, 8_192_000.0)), Some(1.0));
        assert_eq!(share(reads(63.0, 4_096_000.0)), Some(0.5));
        assert_eq!(device_share(reads(0.0, 0.0), reads(5.0, 5.0), Access::Sequential), None);
        assert_eq!(beyond_own_cache(100.0, 5.0), Some(0.05));
        assert_eq!(beyond_own_cache(100.0, 190.0), Some(1.0), "an index and a table");
        assert_eq!(beyond_own_cache(0.0, 5.0), None);
    }
}
