//! Searches one quantile of the commit times for a sawtooth, or fits a straight line.

use loadline_model::Random;
use loadline_model::format::duration_ns;

use super::data::{Prepared, ScanData};
use super::scan::{Fit, FrequencyTables, PeriodEstimate, WeightedTrend, least_squares};
use super::{ALPHA, MIB, QUANTILES, Shape, undecided};
use crate::stats::{Interval, quantile};

/// Smallest depth of teeth, as a share of the mean commit time: rounding makes smaller ones.
const LEAST_AMPLITUDE: f64 = 0.01;
const PERMUTATIONS: u32 = 199;
/// Permutations that fit as well until the search stops: chance is likely then.
const ENOUGH: u32 = 6;
const REPLICATES: usize = 200;
/// Share of the first tooth left out of the fit of the period.
const FIRST_TOOTH: f64 = 0.25;
/// Number of searches, for the Bonferroni correction.
const SEARCHES: f64 = QUANTILES.len() as f64;

/// A search in one quantile.
pub(super) struct QuantileSearch<'a> {
    data: &'a ScanData,
    quantile: f64,
    prepared: Prepared,
    space: WeightedTrend,
    residual: Vec<f64>,
    tables: FrequencyTables,
}

/// Result of a search.
pub(super) enum Verdict {
    /// Nothing beyond chance; with the largest share that noise explained.
    Chance(f64),
    /// Beyond chance, but one step or kink explains it; with the reason in words.
    Broken(String),
    /// A sawtooth.
    Teeth(SignificantFit),
}

/// A sawtooth beyond chance.
#[derive(Clone, Copy)]
pub(super) struct SignificantFit {
    best: Fit,
    p_value: f64,
    /// Largest share that noise explained.
    pub(super) by_noise: f64,
}

impl<'a> QuantileSearch<'a> {
    /// `None` if the figures cannot be computed with. `other`: a search of other quantiles.
    pub(super) fn new(
        data: &'a ScanData,
        quantile: f64,
        other: Option<&QuantileSearch<'a>>,
    ) -> Option<QuantileSearch<'a>> {
        let prepared = data.prepared(quantile)?;
        let space = WeightedTrend::new(data.steps(), &prepared.sigma)?;
        let residual = space.residual(&prepared.medians);
        let tables = FrequencyTables::whole_range(&space, data.steps(), other.map(|o| &o.tables));
        Some(QuantileSearch { data, quantile, prepared, space, residual, tables })
    }

    pub(super) fn verdict(&self, rng: &mut Random) -> Verdict {
        if self.is_exact(&self.residual) {
            return Verdict::Chance(0.0);
        }
        let Some(best) = self.tables.best(&self.space, &self.residual) else { return Verdict::Chance(0.0) };
        let (p_value, by_noise) = self.chance(best.share, rng);
        let p_value = (p_value * SEARCHES).min(1.0);
        if p_value > ALPHA {
            return Verdict::Chance(by_noise);
        }
        // A single step or kink is not a period. A sawtooth and a broken line have the same number of parameters.
        match self.space.one_break(self.data.steps(), &self.residual) {
            Some((share, at)) if share >= best.share => Verdict::Broken(format!(
                "one step or kink near {:.2} MiB explains {:.0} % of the residuals of a smooth curve, and no sawtooth explains \
                 more; a period needs two falls: scan larger sizes",
                self.data.bytes_between(at) / MIB,
                share * 100.0
            )),
            _ => Verdict::Teeth(SignificantFit { best, p_value, by_noise }),
        }
    }

    /// Whether the residual is only rounding.
    fn is_exact(&self, residual: &[f64]) -> bool {
        let square: f64 = residual.iter().map(|r| r * r).sum();
        square.is_nan() || square <= 1e-18 * self.prepared.weighted_square()
    }

    /// Probability that residuals in random order give a share of at least `observed`, and the largest share seen.
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

    /// The reason in words if a straight line does not fit because the trend bends beyond chance.
    pub(super) fn bend(&self, rng: &mut Random) -> Option<String> {
        let line = WeightedTrend::line(self.data.steps(), &self.prepared.sigma)?;
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
        (p <= ALPHA / SEARCHES && observed > 0.5).then(|| {
            format!(
                "no period and no straight line: the curve bends (the bend explains {:.0} % of the residuals of the line)",
                observed * 100.0
            )
        })
    }

    /// Approximate depth of the smallest teeth that noise would not hide, ns, if noise alone explains the share
    /// `by_noise`.
    ///
    /// Teeth of depth a add a²/12 to the noise's variance v, so they explain the share s = a²/(a² + 12 v), which must be
    /// above `by_noise`.
    fn hidden_ns(&self, by_noise: f64) -> f64 {
        let n = self.residual.len().max(1) as f64;
        // Residuals are in units of σ; a mean σ converts the depth to a time.
        let variance = self.residual.iter().map(|r| r * r).sum::<f64>() / n;
        let sigma = self.prepared.sigma.iter().sum::<f64>() / n;
        (12.0 * variance * by_noise / (1.0 - by_noise).max(1e-9)).sqrt() * sigma
    }

    /// Whether noise would hide teeth as deep as the mean commit time.
    pub(super) fn is_too_noisy(&self, by_noise: f64) -> bool {
        let hidden = self.hidden_ns(by_noise);
        !hidden.is_finite() || hidden > self.prepared.mean()
    }

    /// The straight line; undecided if the scan is too noisy.
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
        if self.is_too_noisy(by_noise) {
            return undecided(format!(
                "the commit times scatter so much that they would hide teeth of {}, and the mean of the medians is \
                 {}: measure more commits per size, or use an otherwise idle machine",
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
            hidden_ns,
            quantile: self.quantile,
            r2: if all > 0.0 { (1.0 - left / all).clamp(0.0, 1.0) } else { 1.0 },
        }
    }
}

impl SignificantFit {
    /// Share of the residual that the teeth explain.
    pub(super) fn share(&self) -> f64 {
        self.best.share
    }
}

impl QuantileSearch<'_> {
    /// Period, depth and phase with intervals; `None` if the teeth are too low.
    pub(super) fn sawtooth(&self, found: SignificantFit, rng: &mut Random) -> Option<Shape> {
        let QuantileSearch { data, prepared, .. } = self;
        // A commit also waits for a flush that has begun, so each fall comes a little after its threshold. At size 0
        // no flush runs, so the first tooth may be longer than the others: the smallest sizes get no weight.
        let least = FIRST_TOOTH / found.best.frequency * data.step_bytes();
        let small = |x: f64| data.first_bytes() + x * data.step_bytes() < least;
        let weak = |(x, s): (&f64, &f64)| if small(*x) { s * 1e6 } else { *s };
        let sigma: Vec<f64> = data.steps().iter().zip(&prepared.sigma).map(weak).collect();
        let space = &WeightedTrend::new(data.steps(), &sigma)?;
        let local = FrequencyTables::around(space, data.steps(), found.best.frequency);
        let here = local.locate(space, &space.residual(&prepared.medians))?;
        let tooth = |l: &PeriodEstimate, values: &[f64]| {
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
            // Steps count from the first size, `first_fall_bytes` from size 0.
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
