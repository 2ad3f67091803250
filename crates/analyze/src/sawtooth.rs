//! Commit time over redo since the last commit: a sawtooth, a straight line, or neither.
//!
//! A log that is flushed in the background each time a threshold is crossed leaves a commit only
//! what is not flushed yet: its time rises with the redo written before it and falls at each
//! crossing. What tells that apart from noise, and how sure it is, is found here:
//!
//! 1. Each size is represented by the median of its commit times; medians far off a robust line are
//!    pulled in, and sizes whose times scatter more weigh less (`data`). Where the medians show no clear
//!    sawtooth, the lower quartiles are searched as well, and then the lowest deciles: on a device that
//!    others use, most commits may meet a stall. The probability of chance is tripled for three looks.
//! 2. For every period from 3 steps of size to half the range, and every phase, the sawtooth that
//!    fits best beside a smooth trend is computed (`scan`). The trend may bend, so that a bend is not
//!    taken for a long tooth.
//! 3. Whether it fits better than chance is asked of the data themselves: the same search is made
//!    over the trend's residuals in random order (Freedman and Lane 1983), which holds for any
//!    distribution of the noise and pays for having searched. Sizes are measured in random order, so
//!    that drift over time is noise here as well.
//! 4. Intervals: the commit times of each size are drawn anew (bootstrap) and everything is fitted
//!    again. The period's interval holds as well what the size of the steps leaves open: falls are
//!    seen between two sizes only, so all periods that put them there fit alike. It is wide rather than
//!    narrow: in trials it held the true period in more than 95 of 100 scans.
//!
//! Pure and deterministic: random orders come from a generator with a fixed seed. Periods below 3
//! steps and above half the range cannot be seen.

mod data;
mod scan;
mod search;

use loadline_model::Random;
use loadline_model::limits::SizePoint;
use serde::Serialize;

use crate::stats::Interval;
use data::Data;
use search::{Found, Search, Verdict};

const MIB: f64 = 1024.0 * 1024.0;
/// Sizes needed before a shape is looked for.
pub const MIN_POINTS: usize = 16;
/// Commit times needed at a size; sizes with fewer are left out.
pub const MIN_SAMPLES: usize = 3;
/// A sawtooth is called one up to this probability of chance.
pub const ALPHA: f64 = 0.02;
/// Share of what the trend leaves from which on a sawtooth in the medians needs no second look.
const WELL_EXPLAINED: f64 = 0.5;
/// Quantiles of each size's commit times that are searched, in this order, until one is clear.
const QUANTILES: [f64; 3] = [0.5, 0.25, 0.1];
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
        /// The quantile of each size's commit times that it was found in: 0.5, the medians, 0.25 or
        /// 0.1, which stalls leave alone for longer. Depth and floor are theirs.
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
        /// About the depth that teeth need to stand out of the scatter, ns: lower ones
        /// would not have been seen.
        hidden_ns: f64,
        /// The quantile of each size's commit times that the line was laid through, as above.
        quantile: f64,
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
    let mut rng = Random::new(SEED);
    let mut looks: Vec<(Search<'_>, f64)> = Vec::new();
    let (mut found, mut broken): (Option<(usize, Found)>, Option<String>) = (None, None);
    for quantile in QUANTILES {
        let Some(search) = Search::new(&data, quantile) else { break };
        let mut by_noise = 0.0;
        match search.verdict(&mut rng) {
            Verdict::Chance(share) => by_noise = share,
            Verdict::Broken(reason) => broken = broken.or(Some(reason)),
            Verdict::Teeth(teeth) => {
                by_noise = teeth.by_noise;
                if found.is_none_or(|(_, f)| f.share() < teeth.share()) {
                    found = Some((looks.len(), teeth));
                }
            }
        }
        looks.push((search, by_noise));
        let clear = found.is_some_and(|(_, f)| f.share() >= WELL_EXPLAINED);
        if clear || (broken.is_some() && found.is_none()) {
            break;
        }
    }
    let sawtooth = found.and_then(|(i, teeth)| looks.get(i).and_then(|(search, _)| search.sawtooth(teeth, &mut rng)));
    if let Some(sawtooth) = sawtooth {
        return sawtooth;
    }
    if let Some(reason) = broken {
        return undecided(reason);
    }
    // The medians, unless noise makes them blind and a lower quantile is not.
    let clearest = looks.iter().find(|(search, by_noise)| !search.is_blind(*by_noise)).or(looks.first());
    let Some((search, by_noise)) = clearest else {
        return undecided("the sizes do not differ, or their figures are beyond computing with");
    };
    search.bend(&mut rng).map_or_else(|| search.straight(*by_noise, &mut rng), undecided)
}
