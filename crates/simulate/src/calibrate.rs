//! Fits the model to a measured sweep.
//!
//! Measured figures are the start and are trusted as far as they are good. The fit minimises the sum of (ln(simulated / measured) / σ)²
//! over the points, with σ = 3 % for throughput, 10 % for commits per sync and 20 % for CPU time per transaction, and of
//! (ln(parameter / its start) / its trust)², over four or five parameters, by the downhill simplex over their logarithms.
//! All simulations of a fit share their random numbers, so it is deterministic.
//!
//! Devices drift. Where the database timed its syncs, each point is simulated with the device as fast as it was in that test: the
//! fitted sync times the test's own over the median. Lines that keep the device take it as it was at these numbers of jobs.

use serde::Serialize;

use crate::draw::Spread;
use crate::measured::{Drift, Measured, Point, median_sync};
use crate::platform::{Device, OutOfRange, Platform};
use crate::run::{Length, Outcome, simulate};
use crate::simplex::minimum;

/// Errors that the fit expects, as shares: of the throughput, of commits per sync, of CPU time per transaction.
const TPS_ERROR: f64 = 0.03;
const GROUP_ERROR: f64 = 0.1;
const CPU_ERROR: f64 = 0.2;
/// Error at a calibrated point up to which a calibration is good, %.
pub const GOOD_PCT: f64 = 10.0;
/// Spread of the CPU time of transactions: nobody measures it. σ = 0.5 is a coefficient of variation of 53 %.
const CPU_SPREAD: Spread = Spread::LogNormal(0.5);
/// CPU time of a job that has slept, µs: with caches that are a little cold (Li, Ding, Shen: Quantifying the cost of context switch,
/// 2007, have 4 µs and more). Each commit on a device sleeps once, so a sweep on one cannot tell it from the CPU time of a transaction; only
/// on a device in memory are commits without it.
const SWITCH_US: f64 = 5.0;
/// Wake-up of an idle CPU and of a job, µs: where a fit starts.
const WAKE_US: f64 = 20.0;
const HAND_US: f64 = 5.0;

/// A parameter of a calibrated platform.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameter {
    /// What it is.
    pub name: &'static str,
    /// Its value after the fit, µs.
    pub us: f64,
    /// What was measured, µs, if it was.
    pub measured_us: Option<f64>,
    /// Where it comes from.
    pub source: String,
}

/// What the model says of a calibrated point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fitted {
    /// What was measured.
    pub point: Point,
    /// What the calibrated model says.
    pub simulated: Outcome,
    /// Simulated against measured throughput, %.
    pub error_pct: f64,
    /// The same of a model that was calibrated without this point; `None` with fewer than three points.
    pub left_out_error_pct: Option<f64>,
}

/// A platform that behaves as a measured one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The platform.
    pub platform: Platform,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// How well it fits.
    pub points: Vec<Fitted>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// Platforms that were calibrated without one of the points each; none with fewer than three points.
    #[serde(skip)]
    pub(crate) left_out: Vec<Platform>,
}

impl Calibration {
    /// Largest error at a calibrated point, without its sign, %.
    #[must_use]
    pub fn worst_pct(&self) -> f64 {
        self.points.iter().map(|p| p.error_pct.abs()).fold(0.0, f64::max)
    }

    /// Largest error at a point that was left out of its calibration, %.
    #[must_use]
    pub fn worst_left_out_pct(&self) -> Option<f64> {
        self.points.iter().filter_map(|p| p.left_out_error_pct).map(f64::abs).reduce(f64::max)
    }

    /// Whether the model holds at all calibrated points ([`GOOD_PCT`]).
    #[must_use]
    pub fn good(&self) -> bool {
        self.worst_pct() <= GOOD_PCT
    }
}

/// A parameter that is fitted.
struct Free {
    name: &'static str,
    at: fn(&mut Platform) -> &mut f64,
    start: f64,
    /// Standard deviation of its logarithm: how far it may be from its start.
    trust: f64,
    measured: bool,
    source: String,
}

/// Calibrates on `measured`.
///
/// # Errors
/// A measured figure that no platform has, such as a negative CPU time.
pub fn calibrate(measured: &Measured, seed: u64) -> Result<Calibration, OutOfRange> {
    let (start, free) = start(measured);
    start.check()?;
    let drift = Drift::of_points(&measured.points);
    let all: Vec<&Point> = measured.points.iter().collect();
    let fitted = fit(&start, &free, &all, &drift, seed);
    let (mut points, mut left_out) = (Vec::new(), Vec::new());
    let length = Length { seed, commits: None };
    for point in &measured.points {
        let simulated = simulate(&drift.of(&fitted, f64::from(point.jobs)), point.jobs, length)?;
        let others: Vec<&Point> = all.iter().copied().filter(|other| other.jobs != point.jobs).collect();
        let left_out_error_pct = if others.len() >= 2 {
            let without = fit(&start, &free, &others, &drift, seed);
            let tps = simulate(&drift.of(&without, f64::from(point.jobs)), point.jobs, length)?.tps;
            left_out.push(without);
            Some(error_pct(tps, point.tps))
        } else {
            None
        };
        let error_pct = error_pct(simulated.tps, point.tps);
        points.push(Fitted { point: point.clone(), simulated, error_pct, left_out_error_pct });
    }
    let mut platform = fitted;
    let parameters = free.iter().map(|f| Parameter {
        name: f.name,
        us: *(f.at)(&mut platform),
        measured_us: f.measured.then_some(f.start),
        source: f.source.clone(),
    });
    let parameters = parameters.collect::<Vec<_>>().into_iter().chain(fixed(measured, &platform)).collect();
    Ok(Calibration { parameters, platform, points, notes: notes(measured), left_out })
}

/// Simulated against measured, %.
#[must_use]
pub fn error_pct(simulated: f64, measured: f64) -> f64 {
    (simulated / measured - 1.0) * 100.0
}

/// The platform that the figures say, before the fit.
pub(crate) fn rough(measured: &Measured) -> Platform {
    start(measured).0
}

/// The platform that the figures say, and what the fit may change of it.
fn start(m: &Measured) -> (Platform, Vec<Free>) {
    let first = m.points.first();
    let latency = first.map_or(1000.0, |p| p.latency_us.unwrap_or(f64::from(p.jobs) / p.tps * 1e6));
    let [cpu, submit] = cpu_parts(m);
    let sync = sync(m, latency);
    let submit_us = submit.or_else(|| m.probe.as_ref()?.cpu_us).unwrap_or(0.0).min(sync.us * 0.9);
    let spread = m.probe.as_ref().and_then(|p| p.spread);
    let spread = m.commit_quantiles.map(|[p50, p99]| Spread::of_quantiles(p50, p99)).or(spread);
    let device = Device {
        sync_us: sync.us,
        spread: spread.unwrap_or(Spread::Fixed),
        cpu_us: submit_us,
        us_per_byte: m.probe.as_ref().and_then(|p| p.us_per_byte).unwrap_or(0.0),
    }
    .or_memory();
    let rest = (latency - sync.us).max(latency * 0.02);
    // Sleeps of a transaction: for its commit, and of client and session for each other.
    let sleeps = if m.client { 2.0 } else { 0.0 } + if device.in_memory() { 0.0 } else { 1.0 };
    let total = cpu.unwrap_or(rest);
    let cpu_us = (total - sleeps * SWITCH_US).max(total * 0.2).max(0.1);
    let mut platform = Platform {
        cpus: m.cpus,
        nodes: m.nodes,
        cpu_us,
        cpu_spread: CPU_SPREAD,
        away_us: 0.0,
        client: m.client,
        switch_us: SWITCH_US,
        wake_us: WAKE_US,
        hand_us: HAND_US,
        redo_bytes: m.redo_bytes,
        buffer_bytes: m.buffer_bytes,
        gather: m.kind == "wal",
        delay_us: m.delay_us,
        siblings: if m.kind == "postgres" || m.kind == "postgres-temp" { 5 } else { 1 },
        device,
        standby: None,
    };
    let cpu_source = if cpu.is_some() {
        "CPU time of the sessions per transaction, less that of syncs and of sleeps".to_owned()
    } else {
        "no CPU time was measured: latency with the fewest jobs, less the sync".to_owned()
    };
    let mut free = vec![
        Free {
            name: "CPU time of a transaction",
            at: |p| &mut p.cpu_us,
            start: cpu_us,
            trust: 1.0,
            measured: cpu.is_some(),
            source: cpu_source,
        },
        Free {
            name: "write and sync of the log",
            at: |p| &mut p.device.sync_us,
            start: sync.us,
            trust: sync.trust,
            measured: sync.measured,
            source: sync.source,
        },
        Free {
            name: "writer's time per job that it wakes",
            at: |p| &mut p.hand_us,
            start: HAND_US,
            trust: 1.5,
            measured: false,
            source: format!("fitted, from {HAND_US} µs"),
        },
    ];
    if device.cpu_us > 0.0 && !device.in_memory() {
        free.push(Free {
            name: "of the sync, on a CPU",
            at: |p| &mut p.device.cpu_us,
            start: device.cpu_us,
            trust: 0.5,
            measured: true,
            source: if submit.is_some() {
                "CPU time per transaction against 1 / commits per sync, slope".to_owned()
            } else {
                "probe, CPU time per operation".to_owned()
            },
        });
    }
    // On another machine the network is what nobody measured; its idle CPUs are part of it.
    if m.remote {
        platform.wake_us = 0.0;
        platform.away_us = (rest - cpu_us).max(latency * 0.05);
        free.push(Free {
            name: "network between client and server",
            at: |p| &mut p.away_us,
            start: platform.away_us,
            trust: 1.0,
            measured: false,
            source: "fitted, from the latency with the fewest jobs less CPU and sync".to_owned(),
        });
    } else {
        free.push(Free {
            name: "wake-up on an idle CPU",
            at: |p| &mut p.wake_us,
            start: WAKE_US,
            trust: 1.0,
            measured: false,
            source: format!("fitted, from {WAKE_US} µs"),
        });
    }
    (platform, free)
}

struct Start {
    us: f64,
    trust: f64,
    measured: bool,
    source: String,
}

/// Time of a write of the log, from the best source there is.
fn sync(m: &Measured, latency: f64) -> Start {
    if let Some(us) = median_sync(&m.points) {
        let source = "timed by the database in these tests (median over the points)".to_owned();
        return Start { us, trust: 0.05, measured: true, source };
    }
    if let Some(us) = m.single_wait_us {
        let source = "no sync was timed: commit wait of a single job".to_owned();
        return Start { us: us.min(latency), trust: 0.3, measured: true, source };
    }
    if let Some(probe) = &m.probe {
        // A sync cannot take longer than the transaction that waits for it.
        let us = probe.sync_us.min(latency);
        return Start { us, trust: 0.4, measured: true, source: probe.source.clone() };
    }
    let source = "neither a sync nor a commit was timed and there is no probe: latency with the fewest jobs".to_owned();
    Start { us: latency * 0.8, trust: 1.0, measured: false, source }
}

/// CPU time of a transaction and of a sync: the line `CPU per transaction = a + b / commits per sync` through the points (least
/// squares). Both absent if no CPU time was measured; without a spread of commits per sync it is all the transaction's.
fn cpu_parts(m: &Measured) -> [Option<f64>; 2] {
    let seen: Vec<(f64, f64)> = m
        .points
        .iter()
        .filter_map(|p| Some((1.0 / p.commits_per_sync.filter(|g| *g > 0.0)?, p.cpu_us_per_tx?)))
        .collect();
    let n = seen.len() as f64;
    if seen.is_empty() {
        return [None, None];
    }
    let (mx, my) = (seen.iter().map(|s| s.0).sum::<f64>() / n, seen.iter().map(|s| s.1).sum::<f64>() / n);
    let sxx: f64 = seen.iter().map(|s| (s.0 - mx).powi(2)).sum();
    let sxy: f64 = seen.iter().map(|s| (s.0 - mx) * (s.1 - my)).sum();
    let slope = sxy / sxx;
    let at_zero = my - slope * mx;
    if sxx > 1e-6 && slope > 0.0 && at_zero > 0.0 {
        return [Some(at_zero), Some(slope)];
    }
    [Some(seen.iter().map(|s| s.1).fold(f64::INFINITY, f64::min)), None]
}

/// What a parameter set costs.
fn cost(p: &mut Platform, free: &[Free], points: &[&Point], drift: &Drift, seed: u64) -> f64 {
    let off = |simulated: f64, measured: f64, expected: f64| ((simulated / measured).ln() / expected).powi(2);
    let mut sum = 0.0;
    for point in points {
        // As many groups at every point.
        let commits = (point.commits_per_sync.unwrap_or(1.0) * 500.0).clamp(1000.0, 20_000.0) as u64;
        let Ok(outcome) =
            simulate(&drift.of(p, f64::from(point.jobs)), point.jobs, Length { seed, commits: Some(commits) })
        else {
            return f64::INFINITY;
        };
        sum += off(outcome.tps, point.tps, TPS_ERROR);
        sum += point.commits_per_sync.map_or(0.0, |g| off(outcome.commits_per_sync, g, GROUP_ERROR));
        sum += point.cpu_us_per_tx.map_or(0.0, |us| off(outcome.cpu_us_per_tx, us, CPU_ERROR));
    }
    for f in free {
        sum += off(*(f.at)(p), f.start, f.trust);
    }
    sum
}

/// Edge of the first simplex: parameters start e^0.5 away from each other.
const STEP: f64 = 0.5;

/// The best platform of two searches, the second one from the first one's end.
fn fit(start: &Platform, free: &[Free], points: &[&Point], drift: &Drift, seed: u64) -> Platform {
    let with = |logs: &[f64]| {
        let mut p = start.clone();
        free.iter().zip(logs).for_each(|(f, log)| *(f.at)(&mut p) = f.start * log.exp());
        if start.device.in_memory() {
            p.device.cpu_us = p.device.sync_us;
        }
        p
    };
    let at = |logs: &[f64]| cost(&mut with(logs), free, points, drift, seed);
    let first = minimum(&vec![0.0; free.len()], STEP, 0.02, 150, at).0;
    with(&minimum(&first, -STEP, 0.02, 150, at).0)
}

/// Parameters that are not fitted.
fn fixed(m: &Measured, p: &Platform) -> Vec<Parameter> {
    let bytes = if m.probe.is_some() { "probe, 4 KiB against 256 KiB" } else { "no probe: assumed" };
    let parameter = |name, us, source: &str| Parameter { name, us, measured_us: None, source: source.to_owned() };
    vec![
        parameter("CPU time of a job that has slept", p.switch_us, "assumed: the switch to it, cold caches"),
        parameter("per KiB written", p.device.us_per_byte * 1024.0, bytes),
    ]
}

fn notes(m: &Measured) -> Vec<String> {
    let mut notes = m.notes.clone();
    if m.points.len() < 3 {
        notes.push("two points fit almost any model: its error there says little. Measure five".to_owned());
    }
    if m.probe.is_none() {
        notes.push(
            "there is no probe of the log's device: how its time grows with the size of a write is unknown and taken as 0. Make one \
             with  loadline probe LOG_DIR --format json --output FILE  and give it with --probe FILE"
                .to_owned(),
        );
    }
    if m.client && m.points.iter().all(|p| p.cpu_us_per_tx.is_none()) {
        notes.push("the CPU time of client and sessions was not measured: it is fitted".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests;
