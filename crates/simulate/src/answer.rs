//! The answer: the calibrated platform and each what-if over jobs, with bounds where the model was never held against a measurement.

use loadline_model::format::number;
use loadline_model::{ArmName, TestRecord, column};
use serde::Serialize;

use crate::calibrate::{Calibration, calibrate, error_pct};
use crate::device::Drift;
use crate::measured::Measured;
use crate::platform::{OutOfRange, Platform};
use crate::run::{Length, Outcome, simulate};
use crate::what_if::{OtherDevice, WhatIf};

/// How many times faster or slower a device may be for a line of its own: such changes were held against measurements
/// (docs/simulate.md). Beyond, and between a device that jobs sleep for and one in memory, two lines are bounds.
pub const TRIED: f64 = 3.0;
/// Longest CPU time of a transaction that it may have only because its job has slept, µs: cold caches, the way out of idle. 7 to 17 µs
/// were seen between a device and memory.
const SLEEP_US: f64 = 20.0;
/// Least share of its CPU time that it has without that.
const AWAKE: f64 = 0.1;

/// What a line says of the throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The platform is not slower.
    Slowest,
    /// It is not faster.
    Fastest,
}

/// One line of the answer: a platform over jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Its name: `as measured`, or that of the changes.
    pub name: String,
    /// Whether it is a bound; the other one is the line before or after it.
    pub bound: Option<Bound>,
    /// The platform.
    pub platform: Platform,
    /// How fast its device was with some numbers of jobs.
    pub drift: Drift,
    /// What was assumed for the changes.
    pub assumed: Vec<String>,
    /// What it does, by jobs.
    pub outcomes: Vec<Outcome>,
    /// The same of calibrations without one point each.
    #[serde(skip)]
    left_out: Vec<Platform>,
    /// Nodes over which the jobs of `drift` were spread.
    #[serde(skip)]
    measured_nodes: u32,
}

impl Line {
    /// `platform` with its device as fast as it was with so many jobs on each node.
    fn then(&self, platform: &Platform, jobs: u32) -> Platform {
        let each = f64::from(jobs) * f64::from(self.measured_nodes) / f64::from(platform.nodes);
        self.drift.of(platform, each)
    }

    /// What it does with `jobs` jobs. The interval is that of the simulation and of the calibration: twice the standard error by the
    /// jackknife over its points (Tukey 1958), which sees what the fit leaves open and not what the model leaves out.
    fn at(&self, jobs: u32, length: Length) -> Result<Outcome, OutOfRange> {
        let mut outcome = simulate(&self.then(&self.platform, jobs), jobs, length)?;
        let short = Length { commits: Some(20_000), ..length };
        let others = self.left_out.iter().map(|p| Ok(simulate(&self.then(p, jobs), jobs, short)?.tps));
        let others = others.collect::<Result<Vec<f64>, OutOfRange>>()?;
        let n = others.len() as f64;
        let mean = others.iter().sum::<f64>() / n;
        if n > 1.0 {
            let variance = others.iter().map(|tps| (tps / mean - 1.0).powi(2)).sum::<f64>() * (n - 1.0) / n;
            outcome.tps_within = outcome.tps_within.hypot(2.0 * variance.sqrt());
        }
        Ok(outcome)
    }
}

/// A measured point that took no part in the calibration, beside what the model said of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Checked {
    /// Run that measured it.
    pub run: String,
    /// The line that should be like it.
    pub line: String,
    /// Jobs.
    pub jobs: u32,
    /// Measured throughput.
    pub tps: f64,
    /// Simulated throughput: of one line, or its lower and its upper bound.
    pub simulated_tps: Vec<f64>,
    /// Simulated against measured, %: how far the nearer bound is off; 0 between them.
    pub error_pct: f64,
}

/// All that a simulation says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// What it was calibrated on.
    pub measured: Measured,
    /// The calibration and its error.
    pub calibration: Calibration,
    /// Seed of all randomness.
    pub seed: u64,
    /// Lines: the first one is the platform as it was measured.
    pub lines: Vec<Line>,
    /// What of the lines goes beyond what the model was held against.
    pub beyond: Vec<String>,
    /// The last what-if against what was really measured on such a platform, if that was given.
    pub checked: Vec<Checked>,
}

/// Name of the line of the calibrated platform.
pub const AS_MEASURED: &str = "as measured";

impl Answer {
    /// Calibrates on `measured` and simulates each of `what_ifs` with each of `jobs`.
    ///
    /// # Errors
    /// A value outside its range.
    pub fn of(measured: Measured, what_ifs: &[WhatIf], jobs: &[u32], length: Length) -> Result<Answer, OutOfRange> {
        // Refuse before the work of a calibration.
        let rough = crate::start::start(&measured).0;
        what_ifs.iter().try_for_each(|what_if| what_if.of(&measured, &rough).map(drop))?;
        let calibration = calibrate(&measured, length.seed)?;
        let own = Drift::of_points(&measured.points);
        let calibrated = &calibration.platform;
        let mut lines: Vec<Line> = Vec::new();
        let mut far = Vec::new();
        for what_if in std::iter::once(&WhatIf::default()).chain(what_ifs) {
            let (platform, mut assumed) = what_if.of(&measured, calibrated)?;
            let drift = match &what_if.device {
                None => own.clone(),
                Some(OtherDevice::Measured { other, .. }) => other.drift.clone(),
                Some(_) => Drift::default(),
            };
            if let Some((least, most)) = own.range().filter(|_| what_if.device.is_some() && drift == Drift::default()) {
                assumed.push(format!(
                    "this device is as fast with any number of jobs; the calibrated one took {} to {} times its median: `× as measured` \
                     has that in it",
                    number(least, 2),
                    number(most, 2)
                ));
            }
            let name = if what_if.is_empty() { AS_MEASURED.to_owned() } else { what_if.name() };
            let untried = untried(calibrated, &platform);
            let bound = untried.is_some();
            far.extend(untried.map(|how| format!("{name}: {how}")));
            let of = |from: &Platform| Ok(variants(from, &what_if.of(&measured, from)?.0, bound));
            let left_out = calibration.left_out.iter().map(of).collect::<Result<Vec<_>, OutOfRange>>()?;
            for (n, (bound, platform)) in variants(calibrated, &platform, bound).into_iter().enumerate() {
                let words = match bound {
                    None => "",
                    Some(Bound::Slowest) => " (slowest)",
                    Some(Bound::Fastest) => " (fastest)",
                };
                lines.push(Line {
                    name: format!("{name}{words}"),
                    bound,
                    platform,
                    drift: drift.clone(),
                    assumed: std::mem::take(&mut assumed),
                    outcomes: Vec::new(),
                    left_out: left_out.iter().filter_map(|v| Some(v.get(n)?.1.clone())).collect(),
                    measured_nodes: measured.nodes,
                });
            }
        }
        for line in &mut lines {
            line.outcomes = jobs.iter().map(|jobs| line.at(*jobs, length)).collect::<Result<_, _>>()?;
        }
        if let Some((base, changed)) = lines.split_first_mut() {
            changed.iter_mut().for_each(|line| line.assumed.extend(slower(base, line)));
        }
        let beyond = beyond(&measured, jobs, &far);
        Ok(Answer { measured, calibration, seed: length.seed, lines, beyond, checked: Vec::new() })
    }

    /// Commits that were simulated for the lines.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.lines.iter().flat_map(|l| &l.outcomes).map(|o| o.commits).sum()
    }

    /// Adds `points` (jobs and throughput) that run `run` measured where the last what-if should hold.
    ///
    /// # Errors
    /// A number of jobs outside its range.
    pub fn check_against(&mut self, run: &str, points: &[(u32, f64)]) -> Result<(), OutOfRange> {
        let length = Length { seed: self.seed, commits: None };
        let lines = if self.lines.last().is_some_and(|l| l.bound.is_some()) { 2 } else { 1 };
        let last = self.lines.get(self.lines.len().saturating_sub(lines)..).unwrap_or_default();
        for (jobs, tps) in points {
            let says = |line: &Line| Ok(line.at(*jobs, length)?.tps);
            let simulated = last.iter().map(says).collect::<Result<Vec<f64>, OutOfRange>>()?;
            let errors = || simulated.iter().map(|says| error_pct(*says, *tps));
            let between = errors().any(|e| e <= 0.0) && errors().any(|e| e >= 0.0);
            let nearest = errors().min_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(f64::NAN);
            self.checked.push(Checked {
                run: run.to_owned(),
                line: last.first().map_or_else(String::new, |l| l.name.clone()),
                jobs: *jobs,
                tps: *tps,
                simulated_tps: simulated,
                error_pct: if between { 0.0 } else { nearest },
            });
        }
        Ok(())
    }
}

/// Where `line` is slower than `base` although nothing of it is.
fn slower(base: &Line, line: &Line) -> Option<String> {
    let (a, b) = (&base.platform, &line.platform);
    let cpus = |p: &Platform| p.cpus.unwrap_or(u32::MAX);
    let no_worse = b.device.sync_us <= a.device.sync_us && cpus(b) >= cpus(a) && b.nodes == a.nodes;
    let same = b.standby == a.standby && b.delay_us <= a.delay_us && line.bound != Some(Bound::Slowest);
    let less = base.outcomes.iter().zip(&line.outcomes).filter(|(a, b)| b.tps < a.tps * 0.97);
    let jobs: Vec<String> = less.map(|(_, o)| o.jobs.to_string()).collect();
    (no_worse && same && !jobs.is_empty()).then(|| {
        format!(
            "slower than as measured with {} jobs: groups get smaller, so that syncs take more CPU time, or jobs wake up on CPUs \
             that were idle. The parts of the model say so, no measurement does",
            jobs.join(", ")
        )
    })
}

/// In which way the device of `changed` is none for which the model was held against measurements, if so.
pub(crate) fn untried(calibrated: &Platform, changed: &Platform) -> Option<String> {
    let (from, to) = (calibrated.device, changed.device);
    let times = if to.sync_us > 0.0 { from.sync_us / to.sync_us } else { f64::INFINITY };
    let memory = from.in_memory() != to.in_memory();
    if !memory && (1.0 / TRIED..=TRIED).contains(&times) {
        return None;
    }
    let (times, how) = if times >= 1.0 { (times, "fast") } else { (1.0 / times, "slow") };
    let sleeps = match (memory, to.in_memory()) {
        (true, true) => ", and no job sleeps for it",
        (true, false) => ", and jobs sleep for it",
        (false, _) => "",
    };
    let times = match times {
        ..10.0 => number(times, 1),
        ..1000.0 => number(times, 0),
        _ => "over 1,000".to_owned(),
    };
    Some(format!("{times} times as {how} as the one calibrated{sleeps}"))
}

/// What the reader of lines with `jobs` and of `bounds` must know.
fn beyond(measured: &Measured, jobs: &[u32], bounds: &[String]) -> Vec<String> {
    let mut said = Vec::new();
    if !bounds.is_empty() {
        said.push(format!(
            "bounds instead of a figure, as the device is another kind: {}. Up to {SLEEP_US} µs of a transaction's CPU time may be there \
             only because its job has slept, on cold caches and a CPU that was idle: one sweep cannot tell. One bound takes that as \
             none, the other as all. A sweep on such a device tells: `loadline run --target wal:DIR` there",
            bounds.join("; ")
        ));
    }
    let most = measured.points.iter().map(|p| p.jobs).max().unwrap_or(1);
    if jobs.iter().any(|jobs| *jobs > most.saturating_mul(2)) {
        said.push(format!(
            "at most {most} jobs were measured. What more of them cost in locks, memory and connections is in no part of the model: \
             with many times as many its lines are upper bounds"
        ));
    }
    said
}

/// `changed` itself, or its two bounds: with a faster device all of the CPU time stays, or only what is left without the sleeps' part;
/// with a slower one that part comes on top, or nothing.
fn variants(calibrated: &Platform, changed: &Platform, bound: bool) -> Vec<(Option<Bound>, Platform)> {
    let p = changed;
    if !bound {
        return vec![(None, p.clone())];
    }
    let all = p.cpu_us + p.switch_us;
    let (slowest, fastest) = if p.device.sync_us <= calibrated.device.sync_us {
        let awake = (all - SLEEP_US).max(all * AWAKE);
        let fastest = Platform { cpu_us: awake, switch_us: 0.0, wake_us: 0.0, ..p.clone() };
        (p.clone(), fastest)
    } else {
        (Platform { cpu_us: p.cpu_us + SLEEP_US, ..p.clone() }, p.clone())
    };
    vec![(Some(Bound::Slowest), slowest), (Some(Bound::Fastest), fastest)]
}

/// Throughput by jobs of windows in which commits waited for a standby about `rtt_us` away (within a fifth), in a run of levels; it wrote
/// them first if `written`.
#[must_use]
pub fn with_standby(records: &[TestRecord], workload: &str, rtt_us: f64, written: bool) -> Vec<(u32, f64)> {
    const WRITTEN: [&str; 3] = ["on", "written", "both"];
    const RECEIVED: [&str; 2] = ["remote_write", "received"];
    let levels: &[&str] = if written { &WRITTEN } else { &RECEIVED };
    let fits = |r: &&TestRecord| {
        let near = r.figure(column::RTT_MS).is_some_and(|ms| (ms * 1e3 / rtt_us - 1.0).abs() <= 0.2);
        let level = r.arm == Some(ArmName::B) && r.level.as_ref().is_some_and(|l| levels.contains(&l.level.as_str()));
        r.valid && r.workload == workload && level && near
    };
    let mut by_jobs: std::collections::BTreeMap<u32, Vec<f64>> = std::collections::BTreeMap::new();
    for r in records.iter().filter(fits) {
        by_jobs.entry(r.jobs).or_default().extend(r.figure(column::COMMIT_THROUGHPUT_TPS));
    }
    let mean = |tps: &[f64]| tps.iter().sum::<f64>() / tps.len() as f64;
    by_jobs.into_iter().filter(|(_, tps)| !tps.is_empty()).map(|(jobs, tps)| (jobs, mean(&tps))).collect()
}
