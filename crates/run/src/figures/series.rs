//! Time series of a test, one row per second.

use loadline_collect::Point;
use loadline_collect::os::{CpuShares, DiskRates};
use loadline_load::Measured;
use loadline_model::snapshot::counter;
use loadline_model::{Series, column};

use super::MIB;

/// One row per second of a test.
pub(crate) fn series(measured: &Measured) -> Series {
    let schedule = &measured.schedule;
    series_of(&measured.collected.points, schedule.open_ns, schedule.window_ns(), Some(&measured.merged.per_second))
}

/// One row per second: rates of counters between `points`, and of the jobs' own count per second, or else of the commits that
/// the database counted.
pub(crate) fn series_of(points: &[Point], open_ns: u64, window_ns: u64, per_second: Option<&[u64]>) -> Series {
    let columns = [
        column::COMMIT_THROUGHPUT_TPS,
        column::REDO_MIB_PER_S,
        column::REDO_WRITES_PER_S,
        column::REDO_SYNC_WRITES_PER_S,
        column::CPU_BUSY_PCT,
        column::CPU_IOWAIT_PCT,
        column::DEVICE_WRITES_PER_S,
        column::DEVICE_UTIL_PCT,
        column::BLOCK_READS_PER_S,
    ];
    // The reading nearest to a time, if at most 0.2 s away.
    let near =
        |ns: u64| points.iter().min_by_key(|p| p.at_ns.abs_diff(ns)).filter(|p| p.at_ns.abs_diff(ns) < 200_000_000);
    let rows = (0..window_ns.div_ceil(1_000_000_000)).map(|i| {
        let begin = i * 1_000_000_000;
        let end = (begin + 1_000_000_000).min(window_ns);
        let seconds = (end - begin) as f64 / 1e9;
        let pair = near(open_ns + begin).zip(near(open_ns + end)).filter(|(a, b)| b.at_ns > a.at_ns);
        let rate = |name: &str| pair.and_then(|(a, b)| counter_rate(a, b, name));
        let cpu =
            pair.and_then(|(a, b)| a.cpu.as_ref().zip(b.cpu.as_ref())).and_then(|(a, b)| CpuShares::between(a, b));
        let disk = pair.and_then(|(a, b)| {
            let (x, y) = a.disk.as_ref().zip(b.disk.as_ref())?;
            DiskRates::between(x, y, (b.at_ns - a.at_ns) as f64 / 1e9)
        });
        vec![
            Some(end as f64 / 1e9),
            match per_second {
                Some(counts) => counts.get(i as usize).map(|n| *n as f64 / seconds),
                None => rate(counter::COMMITS),
            },
            rate(counter::REDO_BYTES).map(|r| r / MIB),
            rate(counter::REDO_WRITES),
            rate(counter::REDO_SYNCS),
            cpu.map(|c| c.busy_pct),
            cpu.map(|c| c.iowait_pct),
            disk.map(|d| d.writes_per_s),
            disk.map(|d| d.util_pct),
            rate(counter::BLOCK_READS),
        ]
    });
    Series {
        columns: std::iter::once("t_s").chain(columns.map(|c| c.id)).map(str::to_owned).collect(),
        rows: rows.collect(),
    }
}

fn counter_rate(a: &Point, b: &Point, name: &str) -> Option<f64> {
    let (a, b) = a.snapshot.as_ref().zip(b.snapshot.as_ref())?;
    let seconds = a.seconds_until(b);
    (seconds > 0.0).then(|| a.delta(b, name).map(|d| d / seconds)).flatten()
}
