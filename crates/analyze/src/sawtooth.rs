//! Commit time over redo since the last commit: a sawtooth, a straight line, or neither.
//!
//! If the log is flushed in the background at each crossing of a threshold, a commit only flushes the rest: its time
//! rises with the redo written before it and falls at each crossing. Such a sawtooth is distinguished from noise as
//! follows:
//!
//! 1. Each size is represented by the median of its commit times. Medians far off a robust line are clipped, and sizes
//!    with more scatter weigh less (`data`). If the medians show no clear sawtooth, the lower quartiles are searched,
//!    then the lowest deciles: on a shared device most commits may meet a stall. The probability of chance is tripled
//!    for the three searches.
//! 2. For every period from 3 size steps to half the range, and every phase, the best sawtooth beside a smooth trend is
//!    fitted (`scan`). The trend may bend, so that a bend is not mistaken for a long tooth.
//! 3. A permutation test gives the probability of chance: the same search over the trend's residuals in random order
//!    (Freedman and Lane 1983). It is valid for any distribution of the noise and accounts for the search. Sizes are
//!    measured in random order, so drift over time is noise as well.
//! 4. Intervals: the commit times of each size are resampled (bootstrap) and everything is fitted again. The period's
//!    interval also includes the uncertainty from the step size: a fall is only known to lie between two sizes, so all
//!    periods that put it there fit equally. The interval is conservative: in trials it contained the true period in
//!    more than 95 of 100 scans.
//!
//! Pure and deterministic: the random generator has a fixed seed. Periods below 3 steps or above half the range cannot
//! be found.

mod data;
mod scan;
mod search;

use loadline_model::Random;
use loadline_model::limits::SizePoint;
use serde::Serialize;

use crate::stats::Interval;
use data::ScanData;
use search::{QuantileSearch, SignificantFit, Verdict};

const MIB: f64 = 1024.0 * 1024.0;
/// Fewest sizes for a shape.
pub const MIN_POINTS: usize = 16;
/// Fewest commit times of a size; sizes with fewer are left out.
pub const MIN_SAMPLES: usize = 3;
/// Highest probability of chance for a sawtooth.
pub const ALPHA: f64 = 0.02;
/// Share of the residual explained by a sawtooth that makes further searches unnecessary.
const WELL_EXPLAINED: f64 = 0.5;
/// Quantiles of each size's commit times to search, in this order, until one is clear.
const QUANTILES: [f64; 3] = [0.5, 0.25, 0.1];
const SEED: u64 = 0x6c6f_6164_6c69_6e65;

/// Shape of commit time over redo since the last commit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "shape")]
pub enum Shape {
    /// It rises and falls sharply, periodically.
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
        /// Slope of the trend under the teeth, ns per MiB of redo.
        trend_ns_per_mib: f64,
        /// Probability that noise around a smooth trend gives such a fit.
        p_value: f64,
        /// The quantile of each size's commit times with the sawtooth: 0.5, 0.25 or 0.1 (lower ones are less sensitive
        /// to stalls). Depth and floor refer to it.
        quantile: f64,
    },
    /// No period: a straight line fits.
    Straight {
        /// Commit time at size 0, ns.
        intercept_ns: f64,
        /// Rise, ns per MiB of redo.
        ns_per_mib: f64,
        /// 95 % interval of the rise, ns per MiB.
        interval: Interval,
        /// Share of the variance of the quantiles that the line explains, 0…1.
        r2: f64,
        /// Approximate depth of the smallest teeth that the scatter would not hide, ns.
        hidden_ns: f64,
        /// The quantile of each size's commit times that was fitted.
        quantile: f64,
    },
    /// The shape is unknown.
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

/// The shape of commit time over redo. `points` in any order; those with fewer than [`MIN_SAMPLES`] commit times or
/// without a finite size are left out.
#[must_use]
pub fn shape(points: &[SizePoint]) -> Shape {
    let data = ScanData::of(points);
    if data.len() < MIN_POINTS {
        return undecided(format!(
            "{} sizes have at least {MIN_SAMPLES} commit times, but {MIN_POINTS} are needed",
            data.len()
        ));
    }
    let mut rng = Random::new(SEED);
    let mut searches: Vec<(QuantileSearch<'_>, f64)> = Vec::new();
    let (mut found, mut broken): (Option<(usize, SignificantFit)>, Option<String>) = (None, None);
    for quantile in QUANTILES {
        let Some(search) = QuantileSearch::new(&data, quantile, searches.last().map(|(search, _)| search)) else {
            break;
        };
        let mut by_noise = 0.0;
        match search.verdict(&mut rng) {
            Verdict::Chance(share) => by_noise = share,
            Verdict::Broken(reason) => broken = broken.or(Some(reason)),
            Verdict::Teeth(teeth) => {
                by_noise = teeth.by_noise;
                if found.is_none_or(|(_, f)| f.share() < teeth.share()) {
                    found = Some((searches.len(), teeth));
                }
            }
        }
        searches.push((search, by_noise));
        let clear = found.is_some_and(|(_, f)| f.share() >= WELL_EXPLAINED);
        if clear || (broken.is_some() && found.is_none()) {
            break;
        }
    }
    let sawtooth =
        found.and_then(|(i, teeth)| searches.get(i).and_then(|(search, _)| search.sawtooth(teeth, &mut rng)));
    if let Some(sawtooth) = sawtooth {
        return sawtooth;
    }
    if let Some(reason) = broken {
        return undecided(reason);
    }
    // The medians, unless too noisy while a lower quantile is not.
    let clearest = searches.iter().find(|(search, by_noise)| !search.is_too_noisy(*by_noise)).or(searches.first());
    let Some((search, by_noise)) = clearest else {
        return undecided("the sizes do not differ, or their figures are out of range");
    };
    search.bend(&mut rng).map_or_else(|| search.straight(*by_noise, &mut rng), undecided)
}
