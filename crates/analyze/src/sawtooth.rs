//! Commit time over redo since the last commit: a sawtooth, a straight line, or neither.
//!
//! A log that is flushed in the background each time a threshold is crossed leaves a commit only
//! what is not flushed yet: its time rises with the redo written before it and falls at each
//! crossing. What tells that apart from noise, and how sure it is, is found here:
//!
//! 1. Each size is represented by the median of its commit times; medians far off a robust line are
//!    pulled in, and sizes whose times scatter more weigh less (`data`).
//! 2. For every period from 3 steps of size to half the range, and every phase, the sawtooth that
//!    fits best beside a smooth trend is computed (`scan`). The trend may bend, so that a bend is not
//!    taken for a long tooth.
//! 3. Whether it fits better than chance is asked of the data themselves: the same search is made
//!    over the trend's residuals in random order (Freedman and Lane 1983), which holds for any
//!    distribution of the noise and pays for having searched. Sizes are measured in random order, so
//!    that drift over time is noise here as well.
//! 4. Intervals: the commit times of each size are drawn anew (bootstrap) and everything is fitted
//!    again. The period's interval holds as well what the size of the steps leaves open: falls are
//!    seen between two sizes only, so all periods that put them there fit alike.
//!
//! Pure and deterministic: random orders come from a generator with a fixed seed. Periods below 3
//! steps and above half the range cannot be seen.

mod data;
mod scan;

use loadline_model::limits::SizePoint;
use serde::Serialize;

use crate::stats::{Interval, quantile};
use data::{Data, Rng};
use scan::{Fit, Local, Space, Tables};

const MIB: f64 = 1024.0 * 1024.0;
/// Sizes needed before a shape is looked for.
pub const MIN_POINTS: usize = 16;
/// Commit times needed at a size; sizes with fewer are left out.
pub const MIN_SAMPLES: usize = 3;
/// A sawtooth is called one up to this probability of chance.
pub const ALPHA: f64 = 0.01;
/// Teeth lower than this share of the mean commit time are no finding: rounding makes them.
const LEAST_AMPLITUDE: f64 = 0.01;
const PERMUTATIONS: u32 = 199;
/// Random orders that fit as well before the search is given up: chance is likely by then.
const ENOUGH: u32 = 12;
const REPLICATES: usize = 200;
const SEED: u64 = 0x6c6f_6164_6c69_6e65;

/// What commit time does as redo since the last commit grows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "shape")]
pub enum Shape {
    /// It rises, falls sharply, and rises again, at equal distances.
    Sawtooth {
        /// Redo from one fall to the next, bytes.
        period_bytes: f64,
        /// 95 % interval of the period, bytes.
        period_interval: Interval,
        /// Depth of a fall, ns.
        amplitude_ns: f64,
        /// 95 % interval of the depth, ns.
        amplitude_interval: Interval,
        /// Redo at the first fall, bytes: between 0 and the period.
        first_fall_bytes: f64,
        /// Commit time right after a fall, on the trend at size 0, ns.
        floor_ns: f64,
        /// What is added by size regardless of teeth, ns per MiB of redo.
        trend_ns_per_mib: f64,
        /// Probability that noise around a smooth trend fits a sawtooth this well.
        p_value: f64,
    },
    /// No period: a straight line fits.
    Straight {
        /// Commit time at size 0, ns.
        intercept_ns: f64,
        /// Rise, ns per MiB of redo.
        ns_per_mib: f64,
        /// 95 % interval of the rise, ns per MiB.
        interval: Interval,
        /// Share of the variance of the medians that the line explains, 0…1.
        r2: f64,
    },
    /// Nothing can be said.
    Undecided {
        /// Why.
        reason: String,
    },
}

impl Shape {
    /// The fitted commit time at `redo_bytes`, ns; `None` if nothing was fitted.
    #[must_use]
    pub fn fitted_ns(&self, redo_bytes: f64) -> Option<f64> {
        match self {
            Shape::Sawtooth { period_bytes, first_fall_bytes, amplitude_ns, floor_ns, trend_ns_per_mib, .. } => {
                let tooth = ((redo_bytes - first_fall_bytes) / period_bytes).rem_euclid(1.0);
                Some(floor_ns + trend_ns_per_mib * redo_bytes / MIB + amplitude_ns * tooth)
            }
            Shape::Straight { intercept_ns, ns_per_mib, .. } => Some(intercept_ns + ns_per_mib * redo_bytes / MIB),
            Shape::Undecided { .. } => None,
        }
    }
}

fn undecided(reason: impl Into<String>) -> Shape {
    Shape::Undecided { reason: reason.into() }
}

/// The shape of commit time over redo. `points` may come in any order; those without
/// [`MIN_SAMPLES`] commit times or a finite size are left out.
#[must_use]
pub fn shape(points: &[SizePoint]) -> Shape {
    let data = Data::of(points);
    if data.len() < MIN_POINTS {
        return undecided(format!(
            "{} sizes have at least {MIN_SAMPLES} commit times, and {MIN_POINTS} are needed",
            data.len()
        ));
    }
    let Some(prepared) = data.prepared() else {
        return undecided("all sizes are the same, or their figures are beyond computing with");
    };
    let Some(space) = Space::new(data.steps(), &prepared.sigma) else {
        return undecided("the sizes do not span a range");
    };
    let residual = space.residual(&prepared.medians);
    let tables = Tables::whole_range(&space, data.steps());
    let mut rng = Rng::new(SEED);
    let straight = |rng: &mut Rng| straight(&data, &prepared, rng);
    let noise = residual.iter().map(|r| r * r).sum::<f64>();
    let Some(best) = tables.best(&space, &residual).filter(|_| noise > 1e-18 * prepared.weighted_square()) else {
        return straight(&mut rng);
    };
    let p_value = chance(&space, &tables, &residual, best.share, &mut rng);
    if p_value > ALPHA {
        return match bend(&space, &prepared.medians, &prepared.sigma, data.steps(), &mut rng) {
            Some(reason) => undecided(reason),
            None => straight(&mut rng),
        };
    }
    // Two falls make a period, and a kink is none. A sawtooth and a broken line have as many parameters.
    if let Some((share, at)) = space.one_break(data.steps(), &residual).filter(|(share, _)| *share >= best.share) {
        let place = data.bytes_between(at) / MIB;
        return undecided(format!(
            "one step or kink, near {place:.2} MiB, explains {:.0} % of what a smooth curve leaves, and no sawtooth explains \
             more; a period needs two falls: sweep to larger sizes",
            share * 100.0
        ));
    }
    sawtooth(&data, &space, &prepared, &best, p_value, &mut rng)
        .filter(
            |s| matches!(s, Shape::Sawtooth { amplitude_ns, .. } if *amplitude_ns >= LEAST_AMPLITUDE * prepared.mean()),
        )
        .unwrap_or_else(|| straight(&mut rng))
}

/// Probability of fitting at least `observed` of the variance when the order is chance.
fn chance(space: &Space, tables: &Tables, residual: &[f64], observed: f64, rng: &mut Rng) -> f64 {
    let mut shuffled = residual.to_vec();
    let (mut as_good, mut made) = (0, 0);
    while made < PERMUTATIONS && as_good < ENOUGH {
        rng.shuffle(&mut shuffled);
        let mut around = shuffled.clone();
        space.project_out(&mut around);
        made += 1;
        if tables.best(space, &around).is_some_and(|b| b.share >= observed) {
            as_good += 1;
        }
    }
    f64::from(as_good + 1) / f64::from(made + 1)
}

/// Why a straight line does not fit, if it does not: the trend bends beyond chance.
fn bend(space: &Space, medians: &[f64], sigma: &[f64], steps: &[f64], rng: &mut Rng) -> Option<String> {
    let line = Space::line(steps, sigma)?;
    let mut residual = line.residual(medians);
    let square = |r: &[f64]| r.iter().map(|v| v * v).sum::<f64>();
    let gain = |r: &[f64]| {
        let mut rest = r.to_vec();
        space.project_out(&mut rest);
        1.0 - square(&rest) / square(r)
    };
    let observed = gain(&residual);
    let mut as_good = 0;
    for _ in 0..PERMUTATIONS {
        rng.shuffle(&mut residual);
        let mut around = residual.clone();
        line.project_out(&mut around);
        as_good += u32::from(gain(&around) >= observed);
    }
    let p = f64::from(as_good + 1) / f64::from(PERMUTATIONS + 1);
    (p <= ALPHA && observed > 0.5).then(|| {
        format!(
            "no period, and no straight line either: the curve bends (bending explains {:.0} % of what the line leaves)",
            observed * 100.0
        )
    })
}

fn straight(data: &Data, prepared: &data::Prepared, rng: &mut Rng) -> Shape {
    let fit = |medians: &[f64]| scan::least_squares(&[data.steps()], medians, &prepared.sigma);
    let Some([intercept_ns, per_step]) = fit(&prepared.medians) else {
        return undecided("a straight line could not be fitted");
    };
    let per_mib = MIB / data.step_bytes();
    let mut slopes: Vec<f64> = Vec::with_capacity(REPLICATES);
    for _ in 0..REPLICATES {
        slopes.extend(fit(&prepared.like(data.resampled(rng))).map(|c: [f64; 2]| c[1] * per_mib));
    }
    let Some(interval) = percentiles(&slopes) else {
        return undecided("the interval of a straight line could not be computed");
    };
    let mean = prepared.mean();
    let (mut left, mut all) = (0.0, 0.0);
    for (x, y) in data.steps().iter().zip(&prepared.medians) {
        left += (y - intercept_ns - per_step * x).powi(2);
        all += (y - mean).powi(2);
    }
    let intercept_ns = intercept_ns - per_step * data.first_bytes() / data.step_bytes();
    // Times that do not vary at all lie on the line.
    let r2 = if all > 0.0 { (1.0 - left / all).clamp(0.0, 1.0) } else { 1.0 };
    Shape::Straight { intercept_ns, ns_per_mib: per_step * per_mib, interval, r2 }
}

fn sawtooth(
    data: &Data,
    space: &Space,
    prepared: &data::Prepared,
    best: &Fit,
    p_value: f64,
    rng: &mut Rng,
) -> Option<Shape> {
    let local = Tables::around(space, data.steps(), best.frequency);
    let here = local.locate(space, &space.residual(&prepared.medians))?;
    let tooth = |l: &Local, medians: &[f64]| {
        let teeth: Vec<f64> = data.steps().iter().map(|x| (x * l.frequency - l.phase).rem_euclid(1.0)).collect();
        scan::least_squares(&[data.steps(), &teeth], medians, &prepared.sigma)
    };
    let [level, per_step, amplitude_ns] = tooth(&here, &prepared.medians)?;
    let (mut periods, mut amplitudes) = (Vec::new(), Vec::new());
    for _ in 0..REPLICATES {
        let medians = prepared.like(data.resampled(rng));
        if let Some(again) = local.locate(space, &space.residual(&medians)) {
            periods.push(1.0 / again.frequency);
            amplitudes.extend(tooth(&again, &medians).map(|c: [f64; 3]| c[2]));
        }
    }
    let step = data.step_bytes();
    let (drawn, amplitude) = (percentiles(&periods)?, percentiles(&amplitudes)?);
    let period = 1.0 / here.frequency;
    let period_bytes = period * step;
    // Sizes count from the first one, falls from size 0.
    let first_fall_bytes = (here.phase * period_bytes + data.first_bytes()).rem_euclid(period_bytes);
    Some(Shape::Sawtooth {
        period_bytes,
        period_interval: Interval {
            low: drawn.low.min(here.low_period).min(period) * step,
            high: drawn.high.max(here.high_period).max(period) * step,
        },
        amplitude_ns,
        amplitude_interval: Interval { low: amplitude.low.min(amplitude_ns), high: amplitude.high.max(amplitude_ns) },
        first_fall_bytes,
        floor_ns: level - per_step * data.first_bytes() / step,
        trend_ns_per_mib: per_step * MIB / step,
        p_value,
    })
}

fn percentiles(values: &[f64]) -> Option<Interval> {
    Some(Interval { low: quantile(values, 0.025)?, high: quantile(values, 0.975)? })
}
