//! Whether throughput is steady: when the window may open after a warm-up ([`is_warm`]), and whether it stayed so in the window
//! ([`departure`]). Pure functions of evenly spaced values of [`STEP_S`].
//!
//! Both follow one rule: fit a shape to the values, a straight line or a stretch at another level ([`beside`]), and divide its size by
//! its standard error ([`errors`]). That holds for autocorrelated values: an autoregressive model of order 1 of what the shape leaves,
//! with Kendall's (1954) correction of bias. The limits are simulated: docs/steady.md.

use std::ops::Range;

use crate::linear::{beside, centred, dot};
use crate::stats::{averaged, long_run, mean, median};

pub const STEP_S: f64 = 0.1;
/// A time without work that is an outage, s.
pub const OUTAGE_S: f64 = 0.5;
pub const LOOK_EVERY: usize = 5;
/// Looks without a trend, one after the other, after which throughput is steady.
pub const LOOKS: usize = 5;
pub const FIRST_LOOK: usize = 50;
/// Standard errors of a trend of a look: 40 %, two-sided. One look sees much that is none, and all of [`LOOKS`] rarely miss one.
const TREND_Z: f64 = 0.842;
/// Fewest and most values of a look: with fewer a trend is not seen, more are averaged.
const VALUES: (usize, usize) = (20, 60);
const LEAST_TRANSACTIONS: u32 = 4;

/// Findings of a look at the last half of a warm-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Look {
    /// Too few values. Holds the time needed, s; infinite if nothing completed.
    TooShort(f64),
    /// The trend, as a share of the mean per second, and whether it is one.
    Trend(f64, bool),
}

/// Number of values of `step_s` to average if `jobs` busy jobs complete `rate` transactions per second: at least as long as a
/// transaction takes, and as four take together. Shorter ones would only show when transactions end.
pub fn steps(rate: f64, jobs: u32, step_s: f64) -> usize {
    // The cast saturates.
    (f64::from(jobs.max(LEAST_TRANSACTIONS)) / rate / step_s).ceil().max(1.0) as usize
}

/// Looks at `values`, all since the load began, in means of `least` or more.
pub fn look(values: &[f64], least: usize) -> Look {
    let half = values.get(values.len() / 2..).unwrap_or_default();
    let needed = least.saturating_mul(2 * VALUES.0).max(FIRST_LOOK);
    if values.len() < needed {
        return Look::TooShort(needed.saturating_add((LOOKS - 1) * LOOK_EVERY) as f64 * STEP_S);
    }
    let each = least.max(half.len().div_ceil(VALUES.1));
    let level = mean(half).filter(|level| *level > 0.0);
    match level.zip(trend(&averaged(half, each))) {
        Some((level, (slope, errors))) => Look::Trend(slope / level / (each as f64 * STEP_S), errors.abs() >= TREND_Z),
        None => Look::TooShort(f64::INFINITY),
    }
}

/// Whether a warm-up is over: none of the last looks at `values`, all since the load began, saw a trend in means of `least` or more.
pub fn is_warm(values: &[f64], least: usize) -> bool {
    let looked = (0..LOOKS).map(|back| values.len().saturating_sub(back * LOOK_EVERY));
    looked.filter_map(|n| values.get(..n)).all(|values| matches!(look(values, least), Look::Trend(_, false)))
}

/// Slope per value of the line through `values`, also in standard errors; `None` for too few, or if one is not finite.
fn trend(values: &[f64]) -> Option<(f64, f64)> {
    /// Changes over all values below this share of their mean are rounding.
    const ROUNDING: f64 = 1e-9;
    let level = if values.len() >= LEAST_VALUES { mean(values)? } else { return None };
    let line = line(values.len());
    let (slope, left) = beside(values, &line);
    let is_rounding = (slope * values.len() as f64).abs() <= ROUNDING * level.abs();
    Some(if is_rounding { (0.0, 0.0) } else { (slope, errors(slope, &line, &left)) })
}

/// A trend over a whole window, which says whether a database grows old.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Change from the first to the last value by the straight line through all, as a share of the mean.
    pub change: f64,
    /// Change in standard errors, which hold for autocorrelated values.
    pub errors: f64,
}

impl Drift {
    /// From so many standard errors on it is a trend. Of 60 values without one, autocorrelated by up to 0.95, less than 5 % seem to fall
    /// by that (2,000 simulated series each; 0.2 % without autocorrelation).
    pub const LIMIT: f64 = 3.0;
    /// Limit for the last half of a window: of 30 values without a trend, 0 % seem to fall by that without autocorrelation, 1.1 % at
    /// 0.8, 3.7 % at 0.95.
    pub const LIMIT_OF_HALF: f64 = 4.0;

    /// The least change that would have been called one, as a share; `None` if the values do not scatter.
    pub fn least(&self) -> Option<f64> {
        (self.errors != 0.0).then(|| (self.change / self.errors * Drift::LIMIT).abs()).filter(|least| least.is_finite())
    }
}

/// The trend of `values` over a window; `None` for fewer than [`LEAST_VALUES`], or if all are nothing.
pub fn drift(values: &[f64]) -> Option<Drift> {
    let level = mean(values).filter(|level| *level > 0.0)?;
    let (slope, errors) = trend(values)?;
    Some(Drift { change: slope * (values.len() - 1) as f64 / level, errors })
}

fn line(n: usize) -> Vec<f64> {
    (0..n).map(|i| i as f64).collect()
}

/// The `size` of `shape` in standard errors, if values scatter as `left`.
fn errors(size: f64, shape: &[f64], left: &[f64]) -> f64 {
    let shape = centred(shape);
    size * (dot(&shape, &shape) / long_run(left).variance).sqrt()
}

/// Fewest values in which a trend or a change can be seen.
pub const LEAST_VALUES: usize = 10;
const MOST_VALUES: usize = 100;
/// Changes below this share of the mean, or for a smaller share of the window, are not worth a mark.
pub const LEAST_CHANGE: f64 = 0.1;
/// From so many standard errors on it is a change, with 100 values or more. Fewer need more: the stretch is chosen, and
/// autocorrelation is estimated too low.
const LIMIT: f64 = 6.2;
const LIMIT_POWER: f64 = 0.25;
/// An outage is at most this share of the median, however noisy the other values are, and whatever it cost.
const OUTAGE: f64 = 0.02;

/// A stretch of a window in which throughput was unlike the rest.
#[derive(Debug, Clone, PartialEq)]
pub struct Departure {
    pub values: Range<usize>,
    /// Mean over that of the rest; infinite if that was nothing.
    pub level: f64,
}

/// Fewest values of `each_s` without work that are an outage. If transactions are `sparse`, one may be chance.
pub fn outage(each_s: f64, sparse: bool) -> usize {
    // The cast saturates.
    ((OUTAGE_S / each_s - 1e-9).ceil() as usize).max(if sparse { 2 } else { 1 })
}

/// The stretch of `values` that is unlike the rest, if any. `outage`: fewest values in a row without work that cannot be chance.
pub fn departure(values: &[f64], outage: usize) -> Option<Departure> {
    if values.len() < LEAST_VALUES || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let found = stopped(values, outage.max(1)).or_else(|| stretch(values))?;
    let sum = |of: &[f64]| of.iter().sum::<f64>();
    let inside = sum(values.get(found.clone())?);
    let (long, rest) = (found.len() as f64, (values.len() - found.len()) as f64);
    Some(Departure { values: found, level: inside / long / ((sum(values) - inside) / rest) })
}

/// The longest time without work, the first of equally long ones.
fn stopped(values: &[f64], least: usize) -> Option<Range<usize>> {
    let usual = median(values).filter(|usual| *usual > 0.0).or_else(|| mean(values))?;
    let (mut longest, mut from) = (0..0, 0);
    for (at, value) in values.iter().enumerate() {
        if *value > OUTAGE * usual {
            from = at + 1;
        } else if at + 1 - from > longest.len() {
            longest = from..at + 1;
        }
    }
    (least..values.len()).contains(&longest.len()).then_some(longest)
}

/// The stretch of at most half of the values with which two levels leave the smallest squares, if it is beyond noise.
fn stretch(values: &[f64]) -> Option<Range<usize>> {
    let each = values.len().div_ceil(MOST_VALUES);
    let skipped = values.len() % each;
    let v = averaged(values, each);
    let (n, middle) = (v.len(), mean(&v)?);
    let mut sums = vec![0.0];
    sums.extend(v.iter().scan(0.0, |sum, v| {
        *sum += v - middle;
        Some(*sum)
    }));
    let least = ((n as f64 * LEAST_CHANGE) as usize).max(2);
    let places = (0..n).flat_map(|from| (from + least..=(from + n / 2).min(n)).map(move |to| (from, to)));
    let gain = |(from, to): (usize, usize)| {
        let (sum, long) = (sums.get(to).zip(sums.get(from)).map_or(0.0, |(b, a)| b - a), (to - from) as f64);
        sum * sum * n as f64 / (long * (n as f64 - long))
    };
    let best = places.max_by(|a, b| gain(*a).total_cmp(&gain(*b)))?;
    let shape: Vec<f64> = (0..n).map(|i| if (best.0..best.1).contains(&i) { 1.0 } else { 0.0 }).collect();
    let size = beside(&v, &shape).0;
    // Noise is what stretch and line leave together: a straight rise is no noise around two levels.
    let without_line = |values: &[f64]| beside(values, &line(n)).1;
    let (_, left) = beside(&without_line(&v), &without_line(&shape));
    let limit = LIMIT * (MOST_VALUES as f64 / values.len() as f64).max(1.0).powf(LIMIT_POWER);
    let seen = errors(size, &shape, &left).abs() > limit && size.abs() >= LEAST_CHANGE * middle;
    let start = if best.0 == 0 { 0 } else { skipped + best.0 * each };
    seen.then_some(start..skipped + best.1 * each)
}

#[cfg(test)]
mod tests;
