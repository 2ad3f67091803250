//! Commit time over redo since the last commit: a sawtooth, a straight line, or neither.
//!
//! If the log is flushed in the background at each crossing of a threshold, a commit only flushes the rest: its time
//! rises with the redo written before it and falls at each crossing.
//!
//! 1. Each size is represented by the median of its commit times, or by a lower quantile if that differs far less from size to size:
//!    on a shared device most commits may meet a stall. Those far off a robust line are clipped.
//! 2. For every period from 3 size steps to half the range, and every phase, the best sawtooth beside a smooth trend that may bend is
//!    fitted (`teeth`).
//! 3. A permutation test gives the probability of chance: the same search over the trend's residuals in random order
//!    (Freedman and Lane 1983). Sizes are measured in random order, so drift over time is noise as well.
//! 4. The period's interval holds all near periods that explain nearly as much. A fall is only known to lie between two sizes, so the
//!    period is the middle. The intervals of depth and slope are those of least squares.

mod teeth;

use loadline_model::Random;
use loadline_model::format::duration_ns;
use loadline_model::limits::SizePoint;
use serde::Serialize;

use crate::idle::{FlushByTime, flush_by_time};
use crate::linear::{Model, square};
use crate::stats::{Interval, mean, student_t_975};
use teeth::{Data, Search, usable};

const MIB: f64 = 1024.0 * 1024.0;
pub const MIN_POINTS: usize = 16;
/// Fewest commit times of a size; sizes with fewer are left out.
pub const MIN_SAMPLES: usize = 3;
/// Highest probability of chance for a sawtooth.
const ALPHA: f64 = 0.02;
/// Smallest depth of teeth, as a share of the mean commit time: rounding makes smaller ones.
const LEAST_AMPLITUDE: f64 = 0.01;
const PERMUTATIONS: u32 = 199;
/// Permutations that fit as well until the search stops: chance is likely then.
const ENOUGH: u32 = 6;
/// Share of the first tooth left out of the fit of the period.
const FIRST_TOOTH: f64 = 0.25;
/// Frequencies per 1/range: neighbours differ by a sixteenth of a tooth at the end of the range.
const COARSE: f64 = 16.0;
/// Frequencies per 1/range near the best one.
const FINE: f64 = 160.0;
const MOST_FREQUENCIES: f64 = 6000.0;
const SEED: u64 = 0x6c6f_6164_6c69_6e65;

/// Shape of commit time over redo since the last commit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "shape")]
pub enum Shape {
    /// It rises and falls sharply, periodically.
    Sawtooth {
        /// Redo from one fall to the next, bytes.
        period_bytes: f64,
        period_interval: Interval,
        amplitude_ns: f64,
        amplitude_interval: Interval,
        /// Redo at the first fall, bytes: between 0 and the period.
        first_fall_bytes: f64,
        /// Commit time right after a fall, on the trend at size 0, ns.
        floor_ns: f64,
        /// Slope of the trend under the teeth, ns per MiB of redo.
        trend_ns_per_mib: f64,
        /// Probability that noise around a smooth trend gives such a fit.
        p_value: f64,
        /// The quantile of each size's commit times that was fitted: 0.5, 0.25 or 0.1. Depth and floor refer to it.
        quantile: f64,
    },
    /// No period: a straight line fits.
    Straight {
        /// Commit time at size 0, ns.
        intercept_ns: f64,
        /// Rise, ns per MiB of redo.
        ns_per_mib: f64,
        interval: Interval,
        /// Share of the variance of the quantiles that the line explains, 0…1.
        r2: f64,
        /// Approximate depth of the smallest teeth that the scatter would not hide, ns.
        hidden_ns: f64,
        quantile: f64,
    },
    Undecided {
        reason: String,
    },
}

impl Shape {
    /// The fitted commit time at `redo_bytes`, ns; `None` if nothing was fitted.
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

/// The shape of commit time over redo. `points` in any order; those with fewer than [`MIN_SAMPLES`] commit times are left out.
pub fn shape(points: &[SizePoint]) -> Shape {
    if points.iter().any(|p| p.idle_s > 0.0) {
        let flushed = match flush_by_time(points) {
            Some(FlushByTime::Within(s)) => format!(": the log is flushed in the background within {s} s"),
            Some(FlushByTime::NotUpTo(s)) => format!(": the log is not flushed by time up to {s} s"),
            None => String::new(),
        };
        return undecided(format!(
            "its transactions are all of one size, and differ in the time since the last change{flushed}"
        ));
    }
    let usable = usable(points);
    if usable.len() < MIN_POINTS {
        return undecided(format!(
            "{} sizes have at least {MIN_SAMPLES} commit times, but {MIN_POINTS} are needed",
            usable.len()
        ));
    }
    let found = Data::new(&usable).and_then(|data| {
        let smooth = Model::of_degree(2, &data.steps)?;
        Some(Scan { residual: smooth.rest(&data.times), smooth, data }.shape())
    });
    found.unwrap_or_else(|| undecided("the sizes do not differ, or their figures are out of range"))
}

struct Scan {
    data: Data,
    smooth: Model,
    /// Times without their smooth trend.
    residual: Vec<f64>,
}

impl Scan {
    fn shape(&self) -> Shape {
        let range = self.data.steps.last().copied().unwrap_or(1.0);
        let (low, high) = (2.0 / range, 1.0 / 3.0);
        let n = ((high - low) * range * COARSE).floor().clamp(1.0, MOST_FREQUENCIES);
        let all = (0..=n as usize).map(|i| low + i as f64 * (high - low) / n);
        let search = Search::over(all, &self.smooth, &self.data.steps);
        let (Some(best), false) = (search.best(&self.residual), self.is_exact(&self.residual)) else {
            return self.straight(0.0);
        };
        let (p_value, by_noise) = self.chance(&search, best.share);
        if p_value > ALPHA {
            return self.straight(by_noise);
        }
        // A single step or kink is not a period. A sawtooth and a broken line have the same number of parameters.
        let (share, at) = self.one_break();
        if share >= best.share {
            return undecided(format!(
                "one step or kink near {:.2} MiB explains {:.0} % of the residuals of a smooth curve, and no sawtooth explains more; \
                 a period needs two falls: scan larger sizes",
                self.data.bytes(at) / MIB,
                share * 100.0
            ));
        }
        self.sawtooth(best.frequency, p_value).unwrap_or_else(|| self.straight(by_noise))
    }

    fn is_exact(&self, residual: &[f64]) -> bool {
        let left = square(residual);
        left.is_nan() || left <= 1e-18 * square(&self.data.times)
    }

    /// Probability that residuals in random order give a share of at least `observed`, and the largest share seen.
    fn chance(&self, search: &Search, observed: f64) -> (f64, f64) {
        let mut rng = Random::new(SEED);
        let mut shuffled = self.residual.clone();
        let (mut as_good, mut made, mut most) = (0, 0, 0.0);
        while made < PERMUTATIONS && as_good < ENOUGH {
            rng.shuffle(&mut shuffled);
            made += 1;
            let share = search.best(&self.smooth.rest(&shuffled)).map_or(0.0, |best| best.share);
            as_good += u32::from(share >= observed);
            most = share.max(most);
        }
        (f64::from(as_good + 1) / f64::from(made + 1), most)
    }

    /// Share of the residual that one break (a step, a kink, or both) explains at most, and where it is, in steps.
    fn one_break(&self) -> (f64, f64) {
        let (steps, all) = (&self.data.steps, square(&self.residual));
        let mut best = (0.0, 0.0);
        for pair in steps.windows(2) {
            let [before, from] = [pair.first(), pair.last()].map(|x| x.copied().unwrap_or_default());
            let mut broken = self.smooth.clone();
            broken.add(&steps.iter().map(|x| if *x >= from { 1.0 } else { 0.0 }).collect::<Vec<_>>());
            broken.add(&steps.iter().map(|x| (x - from).max(0.0)).collect::<Vec<_>>());
            let share = 1.0 - square(&broken.rest(&self.data.times)) / all;
            if share > best.0 {
                best = (share, (before + from) / 2.0);
            }
        }
        best
    }

    /// Period, depth and phase with intervals, near a `frequency` in teeth per step; `None` if the teeth are too low.
    fn sawtooth(&self, frequency: f64, p_value: f64) -> Option<Shape> {
        let Data { step_bytes, quantile, .. } = &self.data;
        // A commit also waits for a flush that has begun, so each fall comes a little after its threshold. At size 0
        // no flush runs, so the first tooth may be longer than the others: the smallest sizes do not count.
        let large = |(x, _): &(&f64, &f64)| self.data.bytes(**x) >= FIRST_TOOTH / frequency * step_bytes;
        let (steps, times): (Vec<f64>, Vec<f64>) = self.data.steps.iter().zip(&self.data.times).filter(large).unzip();
        let (steps, times) = (&steps, &times);
        let smooth = Model::of_degree(2, steps)?;
        let (half, range) = ((0.5 * FINE) as i32, steps.last()?);
        let near = (-half..=half).map(|i| frequency + f64::from(i) / (FINE * range)).filter(|f| *f * range >= 1.8);
        let (found, [shortest, longest]) = Search::over(near, &smooth, steps).possible(&smooth.rest(times))?;
        let teeth: Vec<f64> = steps.iter().map(|x| (x * found.frequency - found.phase).rem_euclid(1.0)).collect();
        let (depth, error) = Model::of_degree(1, steps)?.coefficient(&teeth, times)?;
        let floor: Vec<f64> = times.iter().zip(&teeth).map(|(t, tooth)| t - depth * tooth).collect();
        let [floor_ns, trend_ns_per_mib, _] = self.line(steps, &floor)?;
        let period_bytes = step_bytes / found.frequency;
        (depth >= LEAST_AMPLITUDE * mean(times)?).then(|| Shape::Sawtooth {
            period_bytes,
            period_interval: Interval { low: shortest * step_bytes, high: longest * step_bytes },
            amplitude_ns: depth,
            amplitude_interval: self.interval(depth, error),
            // Steps count from the first size, `first_fall_bytes` from size 0.
            first_fall_bytes: (found.phase * period_bytes + self.data.bytes(0.0)).rem_euclid(period_bytes),
            floor_ns,
            trend_ns_per_mib,
            p_value,
            quantile: *quantile,
        })
    }

    /// The 95 % interval of a coefficient with this standard error.
    fn interval(&self, coefficient: f64, error: f64) -> Interval {
        let half = student_t_975(self.residual.len() - 3).unwrap_or(f64::INFINITY) * error;
        Interval { low: coefficient - half, high: coefficient + half }
    }

    /// Approximate depth of the smallest teeth that noise would not hide, ns, if noise alone explains the share `by_noise`: teeth of
    /// depth a add a²/12 to the noise's variance v, so they explain the share a²/(a² + 12 v).
    fn hidden_ns(&self, by_noise: f64) -> f64 {
        let variance = square(&self.residual) / self.residual.len() as f64;
        (12.0 * variance * by_noise / (1.0 - by_noise).max(1e-9)).sqrt()
    }

    /// The straight line; undecided if the times bend, or scatter too much.
    fn straight(&self, by_noise: f64) -> Shape {
        let Data { steps, times, quantile, .. } = &self.data;
        let Some((model, [intercept_ns, ns_per_mib, error])) = Model::of_degree(1, steps).zip(self.line(steps, times))
        else {
            return undecided("a straight line could not be fitted");
        };
        let (hidden_ns, mean) = (self.hidden_ns(by_noise), mean(times).unwrap_or(0.0));
        if !hidden_ns.is_finite() || hidden_ns > mean {
            return undecided(format!(
                "the commit times scatter so much that they would hide teeth of {}, and their mean is {}: measure more commits per \
                 size, or use an otherwise idle machine",
                duration_ns(hidden_ns),
                duration_ns(mean)
            ));
        }
        let of_line = model.rest(times);
        // With 16 sizes or more, no chance makes half of it.
        let left = square(&of_line);
        let bend = 1.0 - square(&self.residual) / left;
        if !self.is_exact(&of_line) && bend > 0.5 {
            return undecided(format!(
                "no period and no straight line: the curve bends (the bend explains {:.0} % of the residuals of the line)",
                bend * 100.0
            ));
        }
        let all: f64 = times.iter().map(|y| (y - mean).powi(2)).sum();
        Shape::Straight {
            intercept_ns,
            ns_per_mib,
            interval: self.interval(ns_per_mib, error),
            hidden_ns,
            quantile: *quantile,
            r2: if all > 0.0 { (1.0 - left / all).clamp(0.0, 1.0) } else { 1.0 },
        }
    }

    /// The line through `values` at `steps` by least squares: intercept, ns, slope, ns per MiB, and the standard error of that.
    fn line(&self, steps: &[f64], values: &[f64]) -> Option<[f64; 3]> {
        let mib: Vec<f64> = steps.iter().map(|x| self.data.bytes(*x) / MIB).collect();
        let (ns_per_mib, error) = Model::of_degree(0, steps)?.coefficient(&mib, values)?;
        let intercept_ns = mean(values)? - ns_per_mib * mean(&mib)?;
        intercept_ns.is_finite().then_some([intercept_ns, ns_per_mib, error])
    }
}
