//! Sawtooth or trend, in one quantile of each size's commit times.

use loadline_model::Random;
use loadline_model::format::duration_ns;

use super::data::{Data, Prepared};
use super::scan::{Fit, Local, Space, Tables, least_squares};
use super::{ALPHA, MIB, QUANTILES, Shape, undecided};
use crate::stats::{Interval, quantile};

/// Teeth lower than this share of the mean commit time are no finding: rounding makes them.
const LEAST_AMPLITUDE: f64 = 0.01;
const PERMUTATIONS: u32 = 199;
/// Random orders that fit as well before the search is given up: chance is likely by then.
const ENOUGH: u32 = 6;
const REPLICATES: usize = 200;
/// Share of the first tooth that the period is not read from.
const FIRST_TOOTH: f64 = 0.25;
/// Each quantile that is searched has its own chance to err.
const LOOKS: f64 = QUANTILES.len() as f64;

/// The search in one quantile.
pub(super) struct Search<'a> {
    data: &'a Data,
    quantile: f64,
    prepared: Prepared,
    space: Space,
    residual: Vec<f64>,
    tables: Tables,
}

/// What came out.
pub(super) enum Verdict {
    /// Nothing that noise would not show as well; and the most that noise showed, as a share.
    Chance(f64),
    /// Beyond chance, but one step or kink explains it: why no period is told.
    Broken(String),
    /// A sawtooth.
    Teeth(Found),
}

/// A sawtooth that is no chance.
#[derive(Clone, Copy)]
pub(super) struct Found {
    best: Fit,
    p_value: f64,
    /// The most that noise showed, as a share.
    pub(super) by_noise: f64,
}

impl<'a> Search<'a> {
    /// `None` if there is nothing to be computed with.
    pub(super) fn new(data: &'a Data, quantile: f64) -> Option<Search<'a>> {
        let prepared = data.prepared(quantile)?;
        let space = Space::new(data.steps(), &prepared.sigma)?;
        let residual = space.residual(&prepared.medians);
        let tables = Tables::whole_range(&space, data.steps());
        Some(Search { data, quantile, prepared, space, residual, tables })
    }

    pub(super) fn verdict(&self, rng: &mut Random) -> Verdict {
        if self.is_exact(&self.residual) {
            return Verdict::Chance(0.0);
        }
        let Some(best) = self.tables.best(&self.space, &self.residual) else { return Verdict::Chance(0.0) };
        let (p_value, by_noise) = self.chance(best.share, rng);
        let p_value = (p_value * LOOKS).min(1.0);
        if p_value > ALPHA {
            return Verdict::Chance(by_noise);
        }
        // Two falls make a period, and a kink is none. A sawtooth and a broken line have as many parameters.
        match self.space.one_break(self.data.steps(), &self.residual) {
            Some((share, at)) if share >= best.share => Verdict::Broken(format!(
                "one step or kink, near {:.2} MiB, explains {:.0} % of what a smooth curve leaves, and no sawtooth explains \
                 more; a period needs two falls: sweep to larger sizes",
                self.data.bytes_between(at) / MIB,
                share * 100.0
            )),
            _ => Verdict::Teeth(Found { best, p_value, by_noise }),
        }
    }

    /// Whether nothing but the rounding of arithmetic is left: that is no noise.
    fn is_exact(&self, residual: &[f64]) -> bool {
        let square: f64 = residual.iter().map(|r| r * r).sum();
        square.is_nan() || square <= 1e-18 * self.prepared.weighted_square()
    }

    /// Probability of fitting at least `observed` of the variance when the order is chance, and the most
    /// that was fitted.
    fn chance(&self, observed: f64, rng: &mut Random) -> (f64, f64) {
        let mut shuffled = self.residual.clone();
        let (mut as_good, mut made, mut most) = (0, 0, 0.0);
        while made < PERMUTATIONS && as_good < ENOUGH {
            rng.shuffle(&mut shuffled);
            let mut around = shuffled.clone();
            self.space.project_out(&mut around);
            made += 1;
            let share = self.tables.best(&self.space, &around).map_or(0.0, |b| b.share);
            as_good += u32::from(share >= observed);
            most = share.max(most);
        }
        (f64::from(as_good + 1) / f64::from(made + 1), most)
    }

    /// Why a straight line does not fit, if it does not: the trend bends beyond chance.
    pub(super) fn bend(&self, rng: &mut Random) -> Option<String> {
        let line = Space::line(self.data.steps(), &self.prepared.sigma)?;
        let mut residual = line.residual(&self.prepared.medians);
        if self.is_exact(&residual) {
            return None;
        }
        let square = |r: &[f64]| r.iter().map(|v| v * v).sum::<f64>();
        let gain = |r: &[f64]| {
            let mut rest = r.to_vec();
            self.space.project_out(&mut rest);
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
        (p <= ALPHA / LOOKS && observed > 0.5).then(|| {
            format!(
                "no period, and no straight line either: the curve bends (bending explains {:.0} % of what the line leaves)",
                observed * 100.0
            )
        })
    }

    /// About the depth that teeth need to stand out of the noise, ns, where noise alone explains the share
    /// `by_noise`.
    ///
    /// Teeth of depth a add a²/12 to the noise's variance v, so they explain a share s = a²/(a² + 12 v),
    /// which must be above that of noise in random orders.
    fn hidden_ns(&self, by_noise: f64) -> f64 {
        let n = self.residual.len().max(1) as f64;
        // Residuals are in units of σ; so is the depth, which a typical σ makes a time.
        let variance = self.residual.iter().map(|r| r * r).sum::<f64>() / n;
        let sigma = self.prepared.sigma.iter().sum::<f64>() / n;
        (12.0 * variance * by_noise / (1.0 - by_noise).max(1e-9)).sqrt() * sigma
    }

    /// Whether noise would hide teeth as deep as the commit is long.
    pub(super) fn is_blind(&self, by_noise: f64) -> bool {
        let hidden = self.hidden_ns(by_noise);
        !hidden.is_finite() || hidden > self.prepared.mean()
    }

    /// The straight line; undecided where noise would hide teeth as deep as the commit is long.
    pub(super) fn straight(&self, by_noise: f64, rng: &mut Random) -> Shape {
        let (data, prepared) = (self.data, &self.prepared);
        let fit = |values: &[f64]| least_squares(&[data.steps()], values, &prepared.sigma);
        let Some([intercept, per_step]) = fit(&prepared.medians) else {
            return undecided("a straight line could not be fitted");
        };
        let per_mib = MIB / data.step_bytes();
        let again = (0..REPLICATES).filter_map(|_| fit(&data.resampled(prepared, rng)));
        let slopes: Vec<f64> = again.map(|[_, slope]| slope * per_mib).collect();
        let Some(interval) = percentiles(&slopes) else {
            return undecided("the interval of a straight line could not be computed");
        };
        let mean = prepared.mean();
        let hidden_ns = self.hidden_ns(by_noise);
        if self.is_blind(by_noise) {
            return undecided(format!(
                "the commit times scatter so much that teeth of {} would be hidden in it, and the mean of the medians is \
                 {}: measure more commits a size, or on a machine that nothing else uses",
                duration_ns(hidden_ns),
                duration_ns(mean)
            ));
        }
        let (mut left, mut all) = (0.0, 0.0);
        for (x, y) in data.steps().iter().zip(&prepared.medians) {
            left += (y - intercept - per_step * x).powi(2);
            all += (y - mean).powi(2);
        }
        Shape::Straight {
            intercept_ns: intercept - per_step * data.first_bytes() / data.step_bytes(),
            ns_per_mib: per_step * per_mib,
            interval,
            // Times that do not vary at all lie on the line.
            hidden_ns,
            quantile: self.quantile,
            r2: if all > 0.0 { (1.0 - left / all).clamp(0.0, 1.0) } else { 1.0 },
        }
    }
}

impl Found {
    /// Share of what the trend leaves that the teeth explain.
    pub(super) fn share(&self) -> f64 {
        self.best.share
    }
}

impl Search<'_> {
    /// Period, depth and where it falls, with intervals; `None` if the teeth are too low to be one.
    pub(super) fn sawtooth(&self, found: Found, rng: &mut Random) -> Option<Shape> {
        let Search { data, prepared, .. } = self;
        // The first tooth may be longer than the others: a flush that has begun is waited for, so a fall
        // comes a little after its threshold, and none that late comes after size 0. A period that fits
        // all falls must not be bent to fit the smallest sizes, so they do not take part.
        let least = FIRST_TOOTH / found.best.frequency * data.step_bytes();
        let small = |x: f64| data.first_bytes() + x * data.step_bytes() < least;
        let weak = |(x, s): (&f64, &f64)| if small(*x) { s * 1e6 } else { *s };
        let sigma: Vec<f64> = data.steps().iter().zip(&prepared.sigma).map(weak).collect();
        let space = &Space::new(data.steps(), &sigma)?;
        let local = Tables::around(space, data.steps(), found.best.frequency);
        let here = local.locate(space, &space.residual(&prepared.medians))?;
        let tooth = |l: &Local, values: &[f64]| {
            let teeth: Vec<f64> = data.steps().iter().map(|x| (x * l.frequency - l.phase).rem_euclid(1.0)).collect();
            least_squares(&[data.steps(), &teeth], values, &sigma)
        };
        let [level, per_step, amplitude_ns] = tooth(&here, &prepared.medians)?;
        let (mut periods, mut amplitudes) = (Vec::new(), Vec::new());
        for _ in 0..REPLICATES {
            let values = data.resampled(prepared, rng);
            if let Some(again) = local.locate(space, &space.residual(&values)) {
                periods.push(1.0 / again.frequency);
                amplitudes.extend(tooth(&again, &values).map(|[_, _, amplitude]| amplitude));
            }
        }
        let step = data.step_bytes();
        let (drawn, amplitude) = (percentiles(&periods)?, percentiles(&amplitudes)?);
        let period = 1.0 / here.frequency;
        let period_bytes = period * step;
        (amplitude_ns >= LEAST_AMPLITUDE * prepared.mean()).then(|| Shape::Sawtooth {
            period_bytes,
            period_interval: Interval {
                low: drawn.low.min(here.low_period).min(period) * step,
                high: drawn.high.max(here.high_period).max(period) * step,
            },
            amplitude_ns,
            amplitude_interval: Interval {
                low: amplitude.low.min(amplitude_ns),
                high: amplitude.high.max(amplitude_ns),
            },
            // Steps count from the first size, falls from size 0.
            first_fall_bytes: (here.phase * period_bytes + data.first_bytes()).rem_euclid(period_bytes),
            floor_ns: level - per_step * data.first_bytes() / step,
            trend_ns_per_mib: per_step * MIB / step,
            p_value: found.p_value,
            quantile: self.quantile,
        })
    }
}

fn percentiles(values: &[f64]) -> Option<Interval> {
    Some(Interval { low: quantile(values, 0.025)?, high: quantile(values, 0.975)? })
}
