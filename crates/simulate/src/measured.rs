//! What stored tests and a probe say about a platform, in the words of the model.

use std::collections::BTreeMap;

use loadline_model::format::{number, parse_bytes};
use loadline_model::probe::{Operation, ProbedDir};
use loadline_model::{ArmName, Driver, JobLoad, Manifest, TestRecord, column};
use serde::Serialize;

use crate::device::{Drift, MeasuredDevice, median_sync};
use crate::draw::Spread;
use crate::point::{Point, mean, point};

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

/// Tests that a sweep is made of.
fn sweeps(r: &TestRecord) -> bool {
    r.arm != Some(ArmName::B) && r.swept.is_none() && r.sizes.is_empty() && r.load() == JobLoad::default()
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
                Ok(tests) if jobs_of(&tests).len() > 1 => {
                    let mut found = measured(manifest, &product, code, &tests, probe);
                    found.notes.extend(left_out(records, code, &tests));
                    return Ok(found);
                }
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

    /// What its tests say of its device: the median over its points of the syncs that the database timed.
    #[must_use]
    pub fn timed_device(&self) -> Option<MeasuredDevice> {
        let sync_us = median_sync(&self.points)?;
        Some(MeasuredDevice {
            sync_us,
            spread: self.commit_quantiles.map(|[p50, p99]| Spread::of_quantiles(p50, p99)),
            cpu_us: None,
            us_per_byte: self.probe.as_ref().and_then(|p| p.us_per_byte),
            drift: Drift::of_points(&self.points),
            source: format!("run {}, syncs timed by the database, median {} µs", self.run, number(sync_us, 1)),
        })
    }
}

fn jobs_of(tests: &[&TestRecord]) -> Vec<u32> {
    let mut jobs: Vec<u32> = tests.iter().map(|r| r.jobs).collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs
}

/// What of the sweeps of `code` took no part because it is invalid.
fn left_out(records: &[TestRecord], code: &str, tests: &[&TestRecord]) -> Option<String> {
    let invalid: Vec<&TestRecord> = records.iter().filter(|r| r.workload == code && sweeps(r) && !r.valid).collect();
    let has = jobs_of(tests);
    let gone: Vec<String> =
        jobs_of(&invalid).iter().filter(|jobs| !has.contains(jobs)).map(ToString::to_string).collect();
    let without =
        if gone.is_empty() { String::new() } else { format!(": there is no valid one with {} jobs", gone.join(", ")) };
    let all = invalid.len() + tests.len();
    (!invalid.is_empty()).then(|| format!("invalid tests took no part, {} of {all}{without}", invalid.len()))
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

#[cfg(test)]
mod tests;
