//! What stored tests and a probe say about a platform, in the words of the model.

use std::collections::BTreeMap;

use loadline_model::format::{number, parse_bytes};
use loadline_model::probe::{Operation, ProbeRow, ProbedDir};
use loadline_model::{ArmName, Column, Driver, Manifest, TestRecord, column};
use serde::Serialize;

use crate::draw::Spread;
use crate::platform::Platform;

/// Why a run cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// No test of that workload.
    #[error("run {run} has no test of {workload}: it has {has}")]
    NoWorkload {
        /// The run.
        run: String,
        /// The workload.
        workload: String,
        /// Those that it has.
        has: String,
    },
    /// No sweep of commits that wait for the log.
    #[error(
        "run {run} has no sweep over jobs of a workload whose commits wait for the log ({why}): measure one with  loadline run \
         --target '{target}' --workload LGWR-LAT1 --jobs 1,2,4,8"
    )]
    NoSweep {
        /// The run.
        run: String,
        /// What each workload lacks.
        why: String,
        /// Its target.
        target: String,
    },
    /// One number of jobs.
    #[error(
        "{workload} was measured with {jobs} only: a calibration needs two numbers of jobs at least, and five do better. Measure \
         them with  loadline run --target '{target}' --workload {workload} --jobs 1,2,4,8,16"
    )]
    OnePoint {
        /// The workload.
        workload: String,
        /// Its jobs, in words.
        jobs: String,
        /// The target.
        target: String,
    },
    /// Commits of one writer at a time.
    #[error(
        "{product} lets one transaction write at a time: its commits never share a sync, which this model is about. Its rate with \
         many jobs is that of one job, less what taking turns costs"
    )]
    OneWriter {
        /// The database.
        product: String,
    },
}

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

/// A sweep over jobs with what the model needs besides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// Run id.
    pub run: String,
    /// Workload code.
    pub workload: String,
    /// Kind of target.
    pub kind: String,
    /// Product and version.
    pub product: String,
    /// Nodes over which the jobs were spread.
    pub nodes: u32,
    /// CPUs of a node; `None` if unknown.
    pub cpus: Option<u32>,
    /// Whether a client on the node's CPUs drove the load.
    pub client: bool,
    /// Whether the database runs on another machine than loadline.
    pub remote: bool,
    /// Points, by rising jobs.
    pub points: Vec<Point>,
    /// Redo of a transaction, bytes.
    pub redo_bytes: f64,
    /// Size of the redo buffer, bytes.
    pub buffer_bytes: Option<f64>,
    /// Group commit delay that was set, µs.
    pub delay_us: f64,
    /// How the log is written.
    pub operation: Operation,
    /// The log's device by the probe.
    pub probe: Option<MeasuredDevice>,
    /// Median and 99th percentile of the commit time with the fewest jobs, ns.
    pub commit_quantiles: Option<[f64; 2]>,
    /// Mean time that the commit of a single job waited for the log, µs.
    pub single_wait_us: Option<f64>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// The mean of `column` over tests that have it.
fn mean(tests: &[&TestRecord], column: &Column) -> Option<f64> {
    mean_of(tests, |r| r.figure(column))
}

fn mean_of(tests: &[&TestRecord], of: impl Fn(&TestRecord) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = tests.iter().filter_map(|r| of(r)).filter(|v| v.is_finite()).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Time of a write with its sync, µs: what the database times of its log.
fn sync_us(r: &TestRecord) -> Option<f64> {
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

/// Tests that a sweep is made of.
fn sweeps(r: &TestRecord) -> bool {
    r.arm != Some(ArmName::B) && r.swept.is_none() && r.sizes.is_empty() && r.figure(column::RATE_TPS).is_none()
}

/// Whether commits of `r` waited for the log, as its syncs show.
fn waits(r: &TestRecord) -> bool {
    let waited = r.figure(column::COMMITS_PER_REDO_SYNC).is_some_and(|g| g > 0.0 && g <= f64::from(r.jobs) * 1.1 + 0.5);
    waited && r.figure(column::REDO_BYTES_PER_TX).is_some_and(|bytes| bytes > 0.0)
}

impl Measured {
    /// The sweep of `workload` in a run; of the first workload that fits if `None`. `probe` replaces the run's own probe.
    ///
    /// # Errors
    /// [`Unfit`]: what is missing, and which command makes it.
    pub fn of(
        manifest: &Manifest,
        records: &[TestRecord],
        workload: Option<&str>,
        probe: Option<&ProbedDir>,
    ) -> Result<Measured, Unfit> {
        let (run, target) = (manifest.run.clone(), manifest.target.url.clone());
        let product = format!("{} {}", manifest.target.product, manifest.target.version);
        let mut codes: Vec<&str> = Vec::new();
        for r in records {
            if !codes.contains(&r.workload.as_str()) {
                codes.push(&r.workload);
            }
        }
        if let Some(code) = workload.filter(|code| !codes.contains(code)) {
            return Err(Unfit::NoWorkload { run, workload: code.to_owned(), has: codes.join(", ") });
        }
        if manifest.target.kind == "sqlite" {
            return Err(Unfit::OneWriter { product });
        }
        let mut asked: Vec<&str> = codes.into_iter().filter(|code| workload.is_none_or(|w| w == *code)).collect();
        // What is named for the log first.
        asked.sort_by_key(|code| !records.iter().any(|r| r.workload == *code && r.group == "log-writer"));
        let mut why = Vec::new();
        let mut single = None;
        for code in asked {
            match usable(records, code) {
                Ok(tests) if jobs_of(&tests).len() > 1 => return Ok(measured(manifest, &product, code, &tests, probe)),
                Ok(tests) => {
                    let jobs = jobs_of(&tests)
                        .first()
                        .map_or_else(|| "no job".to_owned(), |n| format!("{n} job{}", if *n == 1 { "" } else { "s" }));
                    single.get_or_insert(Unfit::OnePoint { workload: code.to_owned(), jobs, target: target.clone() });
                }
                Err(reason) => why.push(format!("{code}: {reason}")),
            }
        }
        Err(single.unwrap_or_else(|| {
            let why = if why.is_empty() { "it has no tests".to_owned() } else { why.join("; ") };
            Unfit::NoSweep { run, why, target }
        }))
    }
}

fn jobs_of(tests: &[&TestRecord]) -> Vec<u32> {
    let mut jobs: Vec<u32> = tests.iter().map(|r| r.jobs).collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs
}

/// The tests of the largest sweep of `code`: of one driver, number of nodes and set of parameters.
fn usable<'a>(records: &'a [TestRecord], code: &str) -> Result<Vec<&'a TestRecord>, &'static str> {
    let of: Vec<&TestRecord> = records.iter().filter(|r| r.workload == code && sweeps(r)).collect();
    let valid: Vec<&TestRecord> = of.iter().copied().filter(|r| r.valid).collect();
    let commits: Vec<&TestRecord> = valid.iter().copied().filter(|r| waits(r)).collect();
    if of.is_empty() {
        return Err("its tests are no sweep over jobs in a closed loop");
    }
    if valid.is_empty() {
        return Err("none of its tests is valid");
    }
    if commits.is_empty() {
        return Err("its tests show no syncs that commits waited for");
    }
    let like =
        |a: &TestRecord, b: &TestRecord| a.driver == b.driver && a.nodes == b.nodes && a.parameters == b.parameters;
    let group =
        |first: &TestRecord| -> Vec<&'a TestRecord> { commits.iter().copied().filter(|r| like(first, r)).collect() };
    let mut best: Vec<&TestRecord> = Vec::new();
    for first in &commits {
        let group = group(first);
        if jobs_of(&group).len() > jobs_of(&best).len() {
            best = group;
        }
    }
    Ok(best)
}

fn measured(
    manifest: &Manifest,
    product: &str,
    workload: &str,
    tests: &[&TestRecord],
    probe: Option<&ProbedDir>,
) -> Measured {
    let target = &manifest.target;
    let driven = tests.iter().any(|r| r.driver == Driver::Client) && !target.in_process;
    let client = driven && target.local;
    let mut by_jobs: BTreeMap<u32, Vec<&TestRecord>> = BTreeMap::new();
    for r in tests {
        by_jobs.entry(r.jobs).or_default().push(r);
    }
    let points: Vec<Point> = by_jobs.iter().filter_map(|(jobs, tests)| point(*jobs, tests, client)).collect();
    let fewest: Vec<&TestRecord> = by_jobs.values().next().cloned().unwrap_or_default();
    let quantile = |c| mean(&fewest, c).filter(|ns| *ns > 0.0);
    let alone = by_jobs.get(&1);
    let single = alone.and_then(|tests| {
        let sync = || mean(tests, column::LOG_FILE_SYNC_MS).map(|ms| ms * 1e3);
        mean(tests, column::COMMIT_TIME_NS_MEAN).map(|ns| ns / 1e3).or_else(sync)
    });
    let mut notes = Vec::new();
    let disturbed: Vec<String> = points.iter().filter(|p| p.disturbed.is_some()).map(|p| p.jobs.to_string()).collect();
    if !disturbed.is_empty() {
        notes.push(format!(
            "others disturbed the tests with {} jobs: a calibration on them is of the disturbed machine. Measure again on a quiet one",
            disturbed.join(", ")
        ));
    }
    if tests.iter().any(|r| r.arm.is_some()) {
        let of =
            if tests.iter().any(|r| r.level.is_some()) { "the baseline, which waits for no replica" } else { "arm A" };
        notes.push(format!("calibrated on the windows of {of}"));
    }
    let left_out = jobs_of(tests).len() - points.len();
    if left_out > 0 {
        notes.push(format!("{left_out} numbers of jobs have no throughput and are left out"));
    }
    if !target.local {
        notes.push(
            "the database's machine is not loadline's: its CPUs are unknown and never limit here. Say how many there are with \
             --cpus N"
                .to_owned(),
        );
    }
    let dir = probe.or_else(|| manifest.probes.get("log"));
    // The probe of a run has one way of writing only.
    let ways = [operation(&target.settings), Operation::SyncWriteFdatasyncPrealloc];
    let probed = ways.iter().find_map(|way| Some((*way, MeasuredDevice::of(dir?, *way)?)));
    let operation = probed.as_ref().map_or(ways[0], |(way, _)| *way);
    Measured {
        run: manifest.run.clone(),
        workload: workload.to_owned(),
        kind: target.kind.clone(),
        product: product.to_owned(),
        nodes: tests.first().map_or(1, |r| r.nodes.max(1)),
        cpus: target.local.then(|| cpus(manifest, tests)).filter(|n| *n > 0),
        client,
        remote: !target.local,
        points,
        redo_bytes: mean(tests, column::REDO_BYTES_PER_TX).unwrap_or(0.0),
        buffer_bytes: buffer(&target.settings),
        delay_us: target.settings.get("commit_delay").and_then(|v| v.parse().ok()).unwrap_or(0.0),
        operation,
        probe: probed.map(|(_, device)| device),
        commit_quantiles: quantile(column::COMMIT_TIME_NS_P50)
            .zip(quantile(column::COMMIT_TIME_NS_P99))
            .map(|(p50, p99)| [p50, p99]),
        single_wait_us: single.and_then(|us| (us > 0.0).then_some(us)),
        notes,
    }
}

/// The tests with `jobs` jobs as one: throughput is the mean, and what is per transaction is weighed with it, so that a test in which the
/// device stalled counts as little as the transactions that it has.
fn point(jobs: u32, tests: &[&TestRecord], client: bool) -> Option<Point> {
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

/// CPUs of loadline's machine, of which its control group may allow a part only.
fn cpus(manifest: &Manifest, tests: &[&TestRecord]) -> u32 {
    // The cast saturates.
    let limit = mean(tests, column::CPU_LIMIT).map_or(u32::MAX, |cpus| (cpus.round() as u32).max(1));
    manifest.machine.cpus.min(limit)
}

/// Size of the redo buffer as the settings have it. Units are written as MB and kB, and mean MiB and KiB.
fn buffer(settings: &BTreeMap<String, String>) -> Option<f64> {
    let named = ["buffer_bytes", "wal_buffers", "innodb_log_buffer_size", "log_buffer"];
    let text = named.iter().find_map(|name| settings.get(*name))?;
    let binary = text.replace("kB", "KiB").replace("MB", "MiB").replace("GB", "GiB");
    parse_bytes(&binary).ok().filter(|bytes| *bytes > 0).map(|bytes| bytes as f64)
}

/// How the log is written, as the settings have it.
fn operation(settings: &BTreeMap<String, String>) -> Operation {
    let own = ["device", "wal_sync_method", "innodb_flush_method"];
    let text = own.iter().find_map(|name| settings.get(*name)).map_or("", String::as_str);
    if text.contains("mapped") || text.contains("pmem") {
        Operation::PmemPersist
    } else if ["O_DSYNC", "direct", "io_uring", "open_datasync", "open_sync"].iter().any(|how| text.contains(how)) {
        Operation::SyncWriteDsyncPrealloc
    } else {
        Operation::SyncWriteFdatasyncPrealloc
    }
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

    /// What the tests of a sweep say of its device: the median over its points of the syncs that the database timed.
    #[must_use]
    pub fn of_sweep(sweep: &Measured) -> Option<MeasuredDevice> {
        let sync_us = median_sync(&sweep.points)?;
        Some(MeasuredDevice {
            sync_us,
            spread: sweep.commit_quantiles.map(|[p50, p99]| Spread::of_quantiles(p50, p99)),
            cpu_us: None,
            us_per_byte: sweep.probe.as_ref().and_then(|p| p.us_per_byte),
            drift: Drift::of_points(&sweep.points),
            source: format!("run {}, syncs timed by the database, median {} µs", sweep.run, number(sync_us, 1)),
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
        let above = known().find(|k| k.0 >= jobs).or(known().last());
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

#[cfg(test)]
mod tests;
