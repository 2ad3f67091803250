//! Forecasts: from a sweep over jobs to what lies beyond it.
//!
//! Between measured points the time of a cycle is interpolated. Beyond them one of two laws is fitted (`laws`): a closed model
//! of CPUs and log, or the Universal Scalability Law, whichever would have forecast the last points of the platform better from
//! those before them (`fitted`). The errors of these forecasts give the intervals. A series that its law does not follow is
//! refused. [`evaluate`] shows what forecasts of a table are worth: it forecasts the upper half of each series.

use std::ops::RangeInclusive;

use loadline_model::format::counted;
use loadline_model::manifest::RunState;
use loadline_model::{TestRecord, column};

use crate::sweep::{Sweep, SweepPoint, sweeps};

mod fitted;
mod laws;

pub use fitted::{Estimate, Evaluated, Fitted, HeldOut, Jobs, Overall, Question, evaluate, fit, overall};
pub use laws::{Figure, Kind};

/// Points of a series: one has no slope, and each is fitted some hundred times.
const POINTS: RangeInclusive<usize> = 2..=256;

/// One job count of a sweep; several tests of it are one point with their means.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Point {
    pub jobs: f64,
    pub tps: f64,
    pub latency_ms: Option<f64>,
    /// Time between two transactions of a job, thinking and connecting, ms.
    pub away_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    /// Log file sync: part of the transaction time in which the commit waits for the log, ms.
    pub sync_ms: Option<f64>,
    pub redo_kib: Option<f64>,
    pub cpu_pct: Option<f64>,
}

impl Point {
    /// `None` without jobs or throughput.
    fn of_sweep(p: &SweepPoint) -> Option<Point> {
        // A figure of 0 is below what its counter can tell: no law has a place for it.
        let figure = |column| p.figure(column).map(|e| e.mean).filter(|v| v.is_finite() && *v > 0.0);
        let tps = figure(column::COMMIT_THROUGHPUT_TPS)?;
        let jobs = Some(f64::from(p.jobs)).filter(|jobs| *jobs > 0.0)?;
        let away_pct = [column::THINKING_PCT, column::CONNECTING_PCT].into_iter().filter_map(figure);
        let redo_kib = || Some(figure(column::REDO_MIB_PER_S)? * 1024.0 / tps);
        Some(Point {
            jobs,
            tps,
            latency_ms: p.latency_ms().filter(|ms| *ms > 0.0),
            away_ms: away_pct.reduce(|a, b| a + b).map(|pct| pct / 100.0 * jobs / tps * 1e3),
            p99_ms: figure(column::TRANSACTION_TIME_NS_P99).map(|ns| ns / 1e6),
            sync_ms: figure(column::LOG_FILE_SYNC_MS),
            redo_kib: figure(column::REDO_KIB_PER_TX).or_else(redo_kib),
            cpu_pct: figure(column::CPU_BUSY_PCT),
        })
    }

    /// Time from one transaction of a job to its next, s: `jobs / tps` (Little's law).
    fn cycle_s(&self) -> f64 {
        self.jobs / self.tps
    }

    /// Log file sync, s, if it fits into the cycle.
    fn sync_s(&self) -> Option<f64> {
        self.sync_ms.map(|ms| ms / 1e3).filter(|s| *s > 0.0 && *s < self.cycle_s())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Platform: series of the same platform share what its log costs.
    pub platform: String,
    pub workload: String,
    /// `PLATFORM WORKLOAD, 2 nodes`, with what distinguishes it from others of the workload.
    pub name: String,
    /// Points by rising jobs, at least one.
    pub points: Vec<Point>,
}

/// The series of the tests of a run in `state`: valid sweeps of closed loops over jobs; and what was left out or is to be known, in
/// words. `beside`: the tests of all runs, from which a series is distinguished by its name.
pub fn series(state: RunState, records: &[TestRecord], beside: &[TestRecord]) -> (Vec<Series>, Vec<String>) {
    let (all, count) = (records.len(), |which: fn(&&TestRecord) -> bool| records.iter().filter(which).count());
    let (refused, disturbed) = (count(|r| !r.is_usable()), count(|r| r.is_usable() && r.disturbed_by.is_some()));
    let said = [
        (state != RunState::Complete, "the run is not complete: its tests count as they are".to_owned()),
        (refused > 0, format!("{refused} of {all} tests are refused and left out")),
        (
            disturbed > 0,
            format!("{disturbed} of {all} tests were disturbed: what is forecast is the disturbed machine"),
        ),
    ];
    let mut remarks: Vec<String> = said.into_iter().filter_map(|(is_so, remark)| is_so.then_some(remark)).collect();
    let mut found = Vec::new();
    for sweep in sweeps(records) {
        let points: Vec<Point> = sweep.points.iter().filter_map(Point::of_sweep).collect();
        let (platform, workload) = (sweep.platform.clone(), sweep.workload.clone());
        let name = format!("{platform} {workload}{}", distinction(&sweep, beside)).trim().to_owned();
        let series = Series { platform, workload, name, points };
        if !sweep.over_jobs() || sweep.load.is_mixed() || sweep.load.has_rate() {
            remarks.push(format!("{} is left out: it is no sweep of a closed loop over jobs", series.name));
        } else if POINTS.contains(&series.points.len()) {
            found.push(series);
        } else {
            let jobs = counted(series.points.len(), "job count");
            let needed = format!("{} to {} are needed", POINTS.start(), POINTS.end());
            remarks.push(format!("{} is left out: it has {jobs} with a throughput; {needed}", series.name));
        }
    }
    (found, remarks)
}

fn distinction(sweep: &Sweep, records: &[TestRecord]) -> String {
    let others = || records.iter().filter(|r| r.workload == sweep.workload && r.platform == sweep.platform);
    let differs = |name: &str, value: &i64| others().any(|r| r.parameters.get(name) != Some(value));
    let parameters = sweep.parameters.iter().filter(|(name, value)| differs(name, value));
    let parameters = parameters.map(|(name, value)| format!("{name} {value}"));
    let same = |r: &TestRecord| (r.driver, r.nodes, &r.parameters) == (sweep.driver, sweep.nodes, &sweep.parameters);
    let parts = [
        (others().any(|r| r.driver != sweep.driver), format!("{} driver", sweep.driver)),
        (others().any(|r| r.nodes != sweep.nodes), counted(sweep.nodes as usize, "node")),
        (others().any(|r| same(r) && r.run != sweep.run), format!("run {}", sweep.run)),
    ];
    let parts = parts.into_iter().filter_map(|(differs, part)| differs.then_some(part));
    parts.chain(parameters).map(|part| format!(", {part}")).collect()
}

#[cfg(test)]
mod tests;
