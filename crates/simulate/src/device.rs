//! A log device as a probe or the tests of a sweep measured it.

use loadline_model::format::number;
use loadline_model::probe::{Operation, ProbeRow, ProbedDir};
use serde::Serialize;

use crate::draw::Spread;
use crate::platform::Platform;
use crate::point::Point;

/// A log device as it was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredDevice {
    /// Time of a write of one block with its sync, µs.
    pub sync_us: f64,
    /// Its spread.
    pub spread: Option<Spread>,
    /// CPU time of it, µs.
    pub cpu_us: Option<f64>,
    /// Time per byte, µs.
    pub us_per_byte: Option<f64>,
    /// How fast it was in the tests of a sweep.
    pub drift: Drift,
    /// Where the figures come from.
    pub source: String,
}

impl MeasuredDevice {
    /// The figures of `operation` in a probe: of blocks of 4 KiB, and of the growth of its time up to 256 KiB. `None` without such a
    /// row.
    #[must_use]
    pub fn of(dir: &ProbedDir, operation: Operation) -> Option<MeasuredDevice> {
        const BLOCK: u64 = 4096;
        const LARGE: u64 = 256 * 1024;
        let rows: Vec<&ProbeRow> =
            dir.rows.iter().filter(|r| r.operation == operation && r.depth == 1 && r.mean_ns > 0.0).collect();
        let nearest = |size: u64| rows.iter().min_by_key(|r| r.size_bytes.abs_diff(size)).copied();
        let (block, large) = (nearest(BLOCK)?, nearest(LARGE)?);
        let grows = (large.size_bytes > block.size_bytes)
            .then(|| (large.mean_ns - block.mean_ns).max(0.0) / (large.size_bytes - block.size_bytes) as f64 / 1e3);
        Some(MeasuredDevice {
            sync_us: block.mean_ns / 1e3,
            spread: block.p99_ns.map(|p99| Spread::of_quantiles(block.p50_ns as f64, p99 as f64)),
            cpu_us: (block.cpu_ns_per_op > 0.0).then_some(block.cpu_ns_per_op / 1e3),
            us_per_byte: grows,
            drift: Drift::default(),
            source: format!(
                "probe of {}, {operation}, {} B, {} µs",
                dir.dir,
                block.size_bytes,
                number(block.mean_ns / 1e3, 1)
            ),
        })
    }
}

/// How fast a device was with each number of jobs: its sync over the median of all. Empty where the database timed no syncs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Drift(Vec<(u32, f64)>);

impl Drift {
    pub(crate) fn of_points(points: &[Point]) -> Drift {
        let median = median_sync(points);
        let of = |p: &Point| Some((p.jobs, p.sync_us.filter(|us| *us > 0.0)? / median?));
        Drift(points.iter().map(of).collect::<Option<_>>().unwrap_or_default())
    }

    /// The smallest and the largest, if they are more than a fifth apart.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let least = self.0.iter().map(|d| d.1).reduce(f64::min)?;
        let most = self.0.iter().map(|d| d.1).reduce(f64::max)?;
        (most > least * 1.2).then_some((least, most))
    }

    /// `platform` with the device as fast as it was with `jobs` jobs: interpolated over their logarithm, beyond the numbers measured as
    /// with the nearest.
    pub(crate) fn of(&self, platform: &Platform, jobs: f64) -> Platform {
        let known = || self.0.iter().map(|(jobs, times)| (f64::from(*jobs), times.ln()));
        let below = known().rfind(|k| k.0 <= jobs).or(known().next());
        let above = known().find(|k| k.0 >= jobs).or(known().next_back());
        let mut p = platform.clone();
        if let (Some(below), Some(above)) = (below, above) {
            let share = if above.0 > below.0 { (jobs / below.0).ln() / (above.0 / below.0).ln() } else { 0.0 };
            p.device = p.device.slower((below.1 + (above.1 - below.1) * share).exp());
        }
        p
    }
}

/// Median over `points` of the time of a sync, µs.
pub(crate) fn median_sync(points: &[Point]) -> Option<f64> {
    let mut timed: Vec<f64> = points.iter().filter_map(|p| p.sync_us).filter(|us| *us > 0.0).collect();
    timed.sort_by(f64::total_cmp);
    timed.get(timed.len() / 2).copied()
}
