//! Histories of a figure: where did its level change, by how much, and how sure is that? Start with [`judge`].
//!
//! **Where**, one rule: a series is split where its ranks before and after differ most, [`LEAST`] runs or more being on each side. The
//! split is a change if few random orders of the runs have as good a one anywhere, so the choice of the place is part of the test. Then
//! both sides are searched. Ranks make a single bad run no level, whatever its figure. **How much**: the ratio of Hodges and Lehmann with
//! the interval of the rank-sum test. **How sure**: a series has a change if its p value is among those that Benjamini and Hochberg find.
//! docs/statistics.md has the sources, and simulated false alarms and power.

use loadline_model::Random;

use crate::paired::discovery::discoveries;
use crate::stats::{Interval, median};

const LEAST: usize = 4;
/// Least runs of a series that is judged.
pub const LEAST_RUNS: usize = 2 * LEAST;
/// Random orders of a test: a p value is at least 1/5,000, which is small enough for one of 250 series to have changed.
const ORDERS: usize = 4_999;

#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Index of the first run at the new level.
    pub at: usize,
    /// Median of the level before, in the unit of the figure.
    pub before: f64,
    pub after: f64,
    /// Median of the ratios of all runs after to all before.
    pub ratio: f64,
    /// Interval; `None` if the runs are too few for one of that confidence.
    pub interval: Option<Interval>,
    /// 1 − R/m × the error of the family, if R of m series have a change.
    pub confidence: f64,
    /// Share of random orders of the runs with as large a change.
    pub p: f64,
}

/// Judges series of figures, each in the order of time, with an expected share `error` of false ones (0.05) among the series
/// that are said to have changed. The changes of each are in order; `None` if it is shorter than [`LEAST_RUNS`] or has a value that is
/// not positive and finite.
pub fn judge(series: &[Vec<f64>], error: f64) -> Vec<Option<Vec<Change>>> {
    let usable = |figures: &&[f64]| figures.len() >= LEAST_RUNS && figures.iter().all(|f| f.is_finite() && *f > 0.0);
    let usable: Vec<Option<&[f64]>> = series.iter().map(|figures| Some(&**figures).filter(usable)).collect();
    let p: Vec<f64> = usable.iter().flatten().map(|figures| split(figures).map_or(1.0, |(_, p)| p)).collect();
    let level = error * discoveries(&p, error).max(1) as f64 / p.len().max(1) as f64;
    usable.into_iter().map(|figures| Some(changes(figures?, level))).collect()
}

fn changes(figures: &[f64], level: f64) -> Vec<Change> {
    let places = places(figures, level);
    let starts = std::iter::once(0).chain(places.iter().map(|(at, _)| *at));
    let bounds: Vec<usize> = starts.chain([figures.len()]).collect();
    let change = |(bounds, (at, p)): (&[usize], &(usize, f64))| {
        let (before, after) = (figures.get(bounds[0]..*at)?, figures.get(*at..bounds[2])?);
        let (ratio, interval) = ratio(before, after, level)?;
        let (at, p, confidence) = (*at, *p, 1.0 - level);
        Some(Change { at, before: median(before)?, after: median(after)?, ratio, interval, confidence, p })
    };
    bounds.windows(3).zip(&places).filter_map(change).collect()
}

/// Indices at which a new level begins, in order, with their p values of at most `level`.
fn places(figures: &[f64], level: f64) -> Vec<(usize, f64)> {
    let Some((at, p)) = split(figures).filter(|(_, p)| *p <= level) else { return Vec::new() };
    let (before, after) = figures.split_at(at);
    let later = places(after, level).into_iter().map(|(place, p)| (at + place, p));
    places(before, level).into_iter().chain([(at, p)]).chain(later).collect()
}

/// The best split, and the share of random orders with as good a one, the real one included. `None` for too few runs, or equal ones.
fn split(figures: &[f64]) -> Option<(usize, f64)> {
    let below = |a: &f64| figures.iter().filter(|b| *b < a).count() as f64;
    let above = |a: &f64| figures.iter().filter(|b| *b > a).count() as f64;
    // Twice the ranks around their mean: whole numbers, so that sums in any order are the same.
    let mut ranks: Vec<f64> = figures.iter().map(|a| below(a) - above(a)).collect();
    let (at, gain) = best(&ranks)?;
    // A fixed seed: the same runs give the same answer.
    let mut random = Random::new(figures.len() as u64);
    let as_good = |_: &usize| {
        random.shuffle(&mut ranks);
        best(&ranks).is_some_and(|(_, other)| other >= gain)
    };
    Some((at, ((0..ORDERS).filter(as_good).count() + 1) as f64 / (ORDERS + 1) as f64))
}

/// The best split of `ranks` around their mean: index of the first after it, and what it explains in variances of what it leaves (F),
/// less if that is correlated. `None` for too few, or if all are equal.
fn best(ranks: &[f64]) -> Option<(usize, f64)> {
    let n = ranks.len();
    let sums: Vec<f64> = ranks.iter().scan(0.0, |sum, r| Some(std::mem::replace(sum, *sum + r))).collect();
    let explained = |at: usize| sums[at] * sums[at] * n as f64 / (at * (n - at)) as f64;
    let places = (LEAST..(n + 1).saturating_sub(LEAST)).map(|at| (at, explained(at)));
    let (at, explained) = places.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, explained)| *explained > 0.0)?;
    let means = [sums[at] / at as f64, -sums[at] / (n - at) as f64];
    let rest: Vec<f64> = ranks.iter().enumerate().map(|(i, r)| r - means[usize::from(i >= at)]).collect();
    let left = rest.iter().map(|r| r * r).sum::<f64>().max(explained * 1e-9);
    // How much of its distance from the level a run passes on to the next: the first autocorrelation of the rest.
    let inherited = (rest.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / left).clamp(0.0, 0.9);
    Some((at, explained / left * (1.0 - inherited) / (1.0 + inherited)))
}

/// The ratio of `after` to `before`: the median of the ratios of all pairs. Its interval holds all ratios that the rank-sum
/// test does not reject, and misses the true one in a share `error` of all cases if the place of the change is known;
/// `None` if there are too few runs for that.
fn ratio(before: &[f64], after: &[f64], error: f64) -> Option<(f64, Option<Interval>)> {
    let mut shifts: Vec<f64> = before.iter().flat_map(|b| after.iter().map(move |a| a.ln() - b.ln())).collect();
    shifts.sort_by(f64::total_cmp);
    let interval = |outside: usize| {
        let (low, high) = (shifts.get(outside)?.exp(), shifts.get(shifts.len().checked_sub(outside + 1)?)?.exp());
        Some(Interval { low, high })
    };
    Some((median(&shifts)?.exp(), outside(before.len(), after.len(), error / 2.0).and_then(interval)))
}

/// How many pairs may be on one side with a probability of at most `tail`; `None` if even no pair is too likely.
fn outside(m: usize, n: usize, tail: f64) -> Option<usize> {
    let (m, n) = (m.min(n), m.max(n));
    // Probability of each number of pairs: a Gaussian binomial coefficient over the number of ways, factor by factor.
    let mut share = vec![0.0; m * n / 2 + 1];
    share[0] = 1.0;
    for i in 1..=m {
        for pairs in (n + i..share.len()).rev() {
            share[pairs] -= share[pairs - n - i];
        }
        for pairs in i..share.len() {
            share[pairs] += share[pairs - i];
        }
        share.iter_mut().for_each(|share| *share *= i as f64 / (n + i) as f64);
    }
    let mut sum = 0.0;
    let unlikely = share.iter().take_while(|share| {
        sum += **share;
        sum <= tail
    });
    unlikely.count().checked_sub(1)
}

#[cfg(test)]
mod tests;
