//! What a forecast is made from: the points of sweeps over jobs, from a table or a stored run.

use loadline_model::format::counted;
use loadline_model::manifest::RunState;
use loadline_model::{Manifest, TestRecord, column};
use serde::Serialize;

use crate::sweep::{Sweep, SweepPoint, sweeps};

/// Most points of a series: each is fitted some hundred times.
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
    /// Time between two transactions of a job, thinking and connecting, ms.
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
        let point = |p: &SweepPoint| {
            let figure = |column| p.figure(column).map(|e| e.mean);
            let tps = figure(column::COMMIT_THROUGHPUT_TPS).filter(|tps| *tps > 0.0)?;
            let away = [column::THINKING_PCT, column::CONNECTING_PCT].map(figure);
            Some(Point {
                latency_ms: p.latency_ms(),
                p99_ms: figure(column::TRANSACTION_TIME_NS_P99).map(|ns| ns / 1e6),
                sync_ms: figure(column::LOG_FILE_SYNC_MS),
                redo_kib: figure(column::REDO_KIB_PER_TX),
                cpu_pct: figure(column::CPU_BUSY_PCT),
                ..Point::with_away(f64::from(p.jobs), tps, away)
            })
        };
        sweep.points.iter().filter_map(point).collect()
    }

    /// A point whose jobs spend `away_pct` percent of their time between transactions, by cause.
    #[must_use]
    pub fn with_away(jobs: f64, tps: f64, away_pct: [Option<f64>; 2]) -> Point {
        let away_pct = away_pct.into_iter().flatten().reduce(|a, b| a + b);
        Point { jobs, tps, away_ms: away_pct.map(|pct| pct / 100.0 * jobs / tps * 1e3), ..Point::default() }
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
    /// No job count, or more than a sweep has.
    #[error(
        "{series} has {points} different job counts, and a sweep has 1 to {MOST}: is the column of jobs another one?"
    )]
    Length {
        /// Name of the series.
        series: String,
        /// Number of job counts.
        points: usize,
    },
    /// Jobs or throughput are not positive numbers, or beyond all reason.
    #[error("{series} has {column} = {value:e}: a number above 0 is needed, from 1e-9 to 1e12")]
    NotPositive {
        /// Name of the series.
        series: String,
        /// Id of the column.
        column: &'static str,
        /// Its value.
        value: f64,
    },
}

impl Series {
    /// Sorts `points` by jobs and takes the medians of those of the same jobs. Figures other than jobs and throughput that are
    /// not positive numbers count as missing.
    ///
    /// # Errors
    /// No job count, or more than 256; jobs or throughput that are not positive numbers.
    pub fn new(platform: &str, workload: &str, points: &[Point]) -> Result<Series, SeriesError> {
        let mut all = points.to_vec();
        all.sort_by(|a, b| a.jobs.total_cmp(&b.jobs));
        let points: Vec<Point> = all.chunk_by(|a, b| a.jobs == b.jobs).map(median).collect();
        let series = Series { platform: platform.to_owned(), workload: workload.to_owned(), points };
        for (column, value) in all.iter().flat_map(|p| [("jobs", p.jobs), ("commit_throughput_tps", p.tps)]) {
            if !(1e-9..=1e12).contains(&value) {
                return Err(SeriesError::NotPositive { series: series.name(), column, value });
            }
        }
        match series.points.len() {
            1..=MOST => Ok(series),
            points => Err(SeriesError::Length { series: series.name(), points }),
        }
    }

    /// `PLATFORM WORKLOAD`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.platform, self.workload).trim().to_owned()
    }
}

/// The medians of `points` of the same jobs: one repetition that went wrong does not move them.
fn median(points: &[Point]) -> Point {
    let median = |figure: fn(&Point) -> Option<f64>| {
        let values: Vec<f64> = points.iter().filter_map(figure).filter(|v| v.is_finite() && *v > 0.0).collect();
        crate::stats::median(&values)
    };
    Point {
        jobs: points.first().map_or(0.0, |p| p.jobs),
        tps: median(|p| Some(p.tps)).unwrap_or_default(),
        latency_ms: median(|p| p.latency_ms),
        away_ms: median(|p| p.away_ms),
        p99_ms: median(|p| p.p99_ms),
        sync_ms: median(|p| p.sync_ms),
        redo_kib: median(|p| p.redo_kib),
        cpu_pct: median(|p| p.cpu_pct),
    }
}

/// The series of a stored run: its valid sweeps of closed loops over jobs; and what was left out or is to be known, in words.
///
/// # Errors
/// A figure that no series can have.
pub fn of_run(manifest: &Manifest, records: &[TestRecord]) -> Result<(Vec<Series>, Vec<String>), SeriesError> {
    let mut remarks = Vec::new();
    if manifest.state != RunState::Complete {
        remarks.push("the run is not complete: its tests count as they are".to_owned());
    }
    let (all, count) = (records.len(), |which: fn(&&TestRecord) -> bool| records.iter().filter(which).count());
    let (invalid, disturbed) = (count(|r| !r.valid), count(|r| r.valid && r.disturbed_by.is_some()));
    if invalid > 0 {
        remarks.push(format!("{invalid} of {all} tests are invalid and left out"));
    }
    if disturbed > 0 {
        remarks.push(format!("{disturbed} of {all} tests were disturbed: what is forecast is the disturbed machine"));
    }
    let mut found = Vec::new();
    for sweep in sweeps(records) {
        let points = Point::of_sweep(&sweep);
        let why = match &sweep.load {
            _ if !sweep.over_jobs() => "it is no sweep over jobs",
            load if load.is_mixed() => "its jobs are a mix of populations",
            load if load.has_rate() => "its rate was given: no closed loop",
            _ if points.len() < 2 => "it has fewer than 2 valid job counts with a throughput",
            _ => {
                found.push(Series::new(&sweep.platform, &workload(&sweep, records), &points)?);
                continue;
            }
        };
        remarks.push(format!("{} is left out: {why}", sweep.workload));
    }
    Ok((found, remarks))
}

/// Workload, with what distinguishes the sweep from others of the run.
fn workload(sweep: &Sweep, records: &[TestRecord]) -> String {
    let differs = |how: fn(&TestRecord, &Sweep) -> bool| {
        records.iter().any(|record| record.workload == sweep.workload && how(record, sweep))
    };
    let mut name = sweep.workload.clone();
    if differs(|record, sweep| record.driver != sweep.driver) {
        name += &format!(", {} driver", sweep.driver);
    }
    if differs(|record, sweep| record.nodes != sweep.nodes) {
        name += &format!(", {}", counted(sweep.nodes as usize, "node"));
    }
    name
}
