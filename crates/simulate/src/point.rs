//! The tests with one number of jobs as one point of a sweep.

use loadline_model::{Column, TestRecord, column};
use serde::Serialize;

/// What was measured with one number of jobs: means of the valid tests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Jobs, over all nodes.
    pub jobs: u32,
    /// Transactions per second.
    pub tps: f64,
    /// Mean time of a transaction, µs.
    pub latency_us: Option<f64>,
    /// Tests that count.
    pub tests: Vec<u32>,
    /// Commits per sync of the log.
    pub commits_per_sync: Option<f64>,
    /// Time of a write of the log with its sync, µs.
    pub sync_us: Option<f64>,
    /// CPU time of sessions, and of a client on their CPUs, per transaction, µs.
    pub cpu_us_per_tx: Option<f64>,
    /// What disturbed these tests, if something did.
    pub disturbed: Option<String>,
}

/// The mean of `column` over tests that have it.
pub(crate) fn mean(tests: &[&TestRecord], column: &Column) -> Option<f64> {
    mean_of(tests, |r| r.figure(column))
}

fn mean_of(tests: &[&TestRecord], of: impl Fn(&TestRecord) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = tests.iter().filter_map(|r| of(r)).filter(|v| v.is_finite()).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Time of a write with its sync, µs: what the database times of its log.
pub(crate) fn sync_us(r: &TestRecord) -> Option<f64> {
    // The log writer's own parts; otherwise calls of the log, of which there may be several writes per sync.
    if let (Some(write), Some(sync)) = (r.figure(column::LOG_PART_WRITE_US), r.figure(column::LOG_PART_SYNC_US)) {
        return Some(write + sync);
    }
    let sync = r.figure(column::REDO_SYNC_TIME_US)?;
    let writes = r.figure(column::REDO_WRITES_PER_S).zip(r.figure(column::REDO_SYNC_WRITES_PER_S));
    let per_sync = writes.map_or(1.0, |(writes, syncs)| if syncs > 0.0 { writes / syncs } else { 1.0 });
    Some(sync + r.figure(column::REDO_WRITE_TIME_US).unwrap_or(0.0) * per_sync)
}

/// CPU time of sessions and of a client beside them, per transaction, µs.
fn cpu_us(r: &TestRecord, client: bool) -> Option<f64> {
    let share = r.figure(column::SESSION_CPU_PCT)? + if client { r.figure(column::CLIENT_JOB_CPU_PCT)? } else { 0.0 };
    let tps = r.figure(column::COMMIT_THROUGHPUT_TPS).filter(|tps| *tps > 0.0)?;
    Some(share / 100.0 * f64::from(r.jobs) / tps * 1e6)
}

/// The tests with `jobs` jobs as one: throughput is the mean, and what is per transaction is weighed with it, so that a test in which the
/// device stalled counts as little as the transactions that it has.
pub(crate) fn point(jobs: u32, tests: &[&TestRecord], client: bool) -> Option<Point> {
    let tps = |r: &TestRecord| r.figure(column::COMMIT_THROUGHPUT_TPS).filter(|tps| *tps > 0.0);
    let per_tx = |of: &dyn Fn(&TestRecord) -> Option<f64>| {
        let seen: Vec<(f64, f64)> =
            tests.iter().filter_map(|r| Some((tps(r)?, of(r).filter(|v| v.is_finite())?))).collect();
        let all: f64 = seen.iter().map(|s| s.0).sum();
        (all > 0.0).then(|| seen.iter().map(|(tps, value)| tps * value).sum::<f64>() / all)
    };
    Some(Point {
        jobs,
        tps: mean_of(tests, tps)?,
        latency_us: per_tx(&|r| r.figure(column::COMMIT_LATENCY_MS)).map(|ms| ms * 1e3),
        tests: tests.iter().map(|r| r.test).collect(),
        commits_per_sync: per_tx(&|r| Some(1.0 / r.figure(column::COMMITS_PER_REDO_SYNC)?)).map(|syncs| 1.0 / syncs),
        sync_us: per_tx(&sync_us),
        cpu_us_per_tx: per_tx(&|r| cpu_us(r, client)),
        disturbed: tests.iter().find_map(|r| r.disturbed_by.clone()),
    })
}
