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

use crate::device::Drift;
use crate::measured::Measured;
use crate::platform::{OutOfRange, Platform};
use crate::point::Point;
use crate::run::{Length, Outcome, simulate};
use crate::simplex::minimum;
use crate::start::{Free, start};

/// Errors that the fit expects, as shares: of the throughput, of commits per sync, of CPU time per transaction.
const TPS_ERROR: f64 = 0.03;
const GROUP_ERROR: f64 = 0.1;
const CPU_ERROR: f64 = 0.2;
/// Error at a calibrated point up to which a calibration is good, %.
pub const GOOD_PCT: f64 = 10.0;
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
