//! What a forecast is made from: the points of one sweep over jobs, checked.

use loadline_model::column;
use serde::Serialize;

use crate::sweep::{Sweep, SweepPoint};

/// Most points of a series.
const MOST: usize = 256;

/// One job count of a sweep; several tests of it are one point with their means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Point {
    /// Jobs.
    pub jobs: f64,
    /// Throughput, transactions per second.
    pub tps: f64,
    /// Mean transaction time, ms.
    pub latency_ms: Option<f64>,
    /// Time between two transactions of a job, thinking and connecting, ms, if it was measured.
    pub away_ms: Option<f64>,
    /// 99th percentile of the transaction time, ms.
    pub p99_ms: Option<f64>,
    /// Log file sync: part of the transaction time in which the commit waits for the log, ms.
    pub sync_ms: Option<f64>,
    /// Redo of a transaction, KiB.
    pub redo_kib: Option<f64>,
    /// CPU busy, percent.
    pub cpu_pct: Option<f64>,
}

impl Point {
    /// The points of a sweep over jobs that have a throughput.
    #[must_use]
    pub fn of_sweep(sweep: &Sweep) -> Vec<Point> {
        let of = |p: &SweepPoint| {
            let figure = |column| p.figure(column).map(|e| e.mean);
            let jobs = f64::from(p.jobs);
            let tps = figure(column::COMMIT_THROUGHPUT_TPS).filter(|tps| *tps > 0.0)?;
            let away =
                [column::THINKING_PCT, column::CONNECTING_PCT].into_iter().filter_map(figure).reduce(|a, b| a + b);
            Some(Point {
                jobs,
                tps,
                latency_ms: p.latency_ms(),
                away_ms: away.map(|pct| pct / 100.0 * jobs / tps * 1e3),
                p99_ms: figure(column::TRANSACTION_TIME_NS_P99).map(|ns| ns / 1e6),
                sync_ms: figure(column::LOG_FILE_SYNC_MS),
                redo_kib: figure(column::REDO_KIB_PER_TX),
                cpu_pct: figure(column::CPU_BUSY_PCT),
            })
        };
        sweep.points.iter().filter_map(of).collect()
    }

    /// Time from one transaction of a job to its next, s: `jobs / tps` (Little's law).
    pub(crate) fn cycle_s(&self) -> f64 {
        self.jobs / self.tps
    }

    /// Log file sync, s, if it fits into the cycle.
    pub(crate) fn sync_s(&self) -> Option<f64> {
        self.sync_ms.map(|ms| ms / 1e3).filter(|s| *s > 0.0 && *s < self.cycle_s())
    }
}

/// A sweep over jobs of one workload on one platform.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Platform: series of the same platform share what its log costs.
    pub platform: String,
    /// Workload, with what distinguishes it from others of the platform.
    pub workload: String,
    /// Points by rising jobs, at least one.
    pub points: Vec<Point>,
}

/// Why points make no series.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SeriesError {
    /// No point.
    #[error("{0} has no point")]
    Empty(String),
    /// More job counts than a sweep has: each is fitted some hundred times.
    #[error(
        "{series} has {points} different job counts, and a sweep has at most {MOST}: is the column of jobs another one?"
    )]
    TooMany {
        /// The series.
        series: String,
        /// Their number.
        points: usize,
    },
    /// Jobs or throughput are not positive numbers, or beyond all reason.
    #[error("{series} has {column} = {value:e}: a number above 0 is needed, from 1e-9 to 1e12")]
    NotPositive {
        /// The series.
        series: String,
        /// Id of the column.
        column: &'static str,
        /// The value.
        value: f64,
    },
}

impl Series {
    /// Sorts `points` by jobs and takes the medians of those of the same jobs. Figures other than jobs and throughput that are not positive
    /// numbers count as missing.
    ///
    /// # Errors
    /// No point, or more than 256 job counts; jobs or throughput that are not positive numbers.
    pub fn new(platform: &str, workload: &str, points: &[Point]) -> Result<Series, SeriesError> {
        let mut series =
            Series { platform: platform.to_owned(), workload: workload.to_owned(), points: points.to_vec() };
        if points.is_empty() {
            return Err(SeriesError::Empty(series.name()));
        }
        for (column, value) in points.iter().flat_map(|p| [("jobs", p.jobs), ("commit_throughput_tps", p.tps)]) {
            if !(1e-9..=1e12).contains(&value) {
                return Err(SeriesError::NotPositive { series: series.name(), column, value });
            }
        }
        series.points.sort_by(|a, b| a.jobs.total_cmp(&b.jobs));
        series.points = series.points.chunk_by(|a, b| a.jobs == b.jobs).map(middle).collect();
        let points = series.points.len();
        if points > MOST {
            return Err(SeriesError::TooMany { series: series.name(), points });
        }
        Ok(series)
    }

    /// `PLATFORM WORKLOAD`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.platform, self.workload).trim().to_owned()
    }
}

/// The medians of `points` of the same jobs: one repetition that went wrong does not move them.
fn middle(points: &[Point]) -> Point {
    let of = |figure: fn(&Point) -> Option<f64>| {
        let values: Vec<f64> = points.iter().filter_map(figure).filter(|v| v.is_finite() && *v > 0.0).collect();
        crate::stats::median(&values)
    };
    Point {
        jobs: points.first().map_or(0.0, |p| p.jobs),
        tps: of(|p| Some(p.tps)).unwrap_or_default(),
        latency_ms: of(|p| p.latency_ms),
        away_ms: of(|p| p.away_ms),
        p99_ms: of(|p| p.p99_ms),
        sync_ms: of(|p| p.sync_ms),
        redo_kib: of(|p| p.redo_kib),
        cpu_pct: of(|p| p.cpu_pct),
    }
}
