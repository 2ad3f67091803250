//! Histories of a figure: where did its level change, by how much, and how sure is that? Start with [`judge`].
//!
//! **Where**: the best split is where the squared difference of the means, weighted by k (n − k) / n, is largest (E-divisive with its
//! exponent α = 2: α = 1 also finds changes of the spread alone). It is kept if few random orders of the values have as good a one
//! anywhere, so the choice of the place is part of the test; then both sides are searched. In each order, values far from the median of
//! their neighbours are first brought nearer to it: single bad runs neither make a level nor hide one, and levels keep their edges. A
//! split explains less if what it leaves is correlated. As both are done in all orders alike, the test stays exact for any noise whose
//! order means nothing. **How much**: the ratio of Hodges and Lehmann with the interval of the rank-sum test. **How sure**: a series
//! has a change if its p value is among those that Benjamini and Hochberg find.
//!
//! Sources: Matteson and James, Journal of the American Statistical Association 109 (2014) 334; Phipson and Smyth, Statistical
//! Applications in Genetics and Molecular Biology 9 (2010) 39; Bai, Econometric Theory 13 (1997) 315; Hampel, Journal of the American
//! Statistical Association 69 (1974) 383; Bartlett, Journal of the Royal Statistical Society 98 (1935) 536; Hollander, Wolfe and
//! Chicken, Nonparametric Statistical Methods (3rd ed., 2014), sections 4.2 and 4.3; Benjamini and Bogomolov, Journal of the Royal
//! Statistical Society B 76 (2014) 297. docs/statistics.md says it in plain words, with simulated false alarms and power.

use loadline_model::Random;

use crate::paired::discovery::discoveries;
use crate::stats::{Interval, mean, median, normal_quantile};

/// Least runs of a level.
const LEAST: usize = 4;
/// Least runs of a series that is judged.
pub const LEAST_RUNS: usize = 2 * LEAST;
/// Random orders of a test: a p value is at least 1/5,000, which is small enough for one of 250 series to have changed.
const ORDERS: usize = 4_999;
/// Values farther from the median of five neighbours than so many standard deviations are brought there.
const FAR: f64 = 3.0;
/// Standard deviation of normal noise whose median absolute deviation is 1.
const SD_PER_MAD: f64 = 1.4826;
/// Up to so many pairs of runs the distribution of the rank sum is computed exactly.
const EXACT_PAIRS: usize = 400;

/// A change of the level.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Index of the first run at the new level.
    pub at: usize,
    /// Level before, in the unit of the figure.
    pub before: f64,
    /// Level after.
    pub after: f64,
    /// `after / before`.
    pub ratio: f64,
    /// Its interval; `None` if the runs are too few for one at the confidence of the family.
    pub interval: Option<Interval>,
    /// Share of random orders of the runs with as large a change.
    pub p: f64,
}

/// Series that were judged together.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The changes of each, in order; `None` if it is shorter than [`LEAST_RUNS`] or has a value that is not positive and finite.
    pub changes: Vec<Option<Vec<Change>>>,
    /// Number of series that could be judged.
    pub judged: usize,
    /// Error of each test and interval: R/m × the error of the family, if R of m series have a change.
    pub level: f64,
}

/// Judges series of figures, each in the order of time, with an expected share `error` of false ones (0.05) among the series
/// that are said to have changed.
#[must_use]
pub fn judge(series: &[Vec<f64>], error: f64) -> Judged {
    let logs = |figures: &Vec<f64>| -> Option<Vec<f64>> {
        let usable = figures.len() >= LEAST_RUNS && figures.iter().all(|f| f.is_finite() && *f > 0.0);
        usable.then(|| figures.iter().map(|f| f.ln()).collect())
    };
    let logs: Vec<Option<Vec<f64>>> = series.iter().map(logs).collect();
    let parts: Vec<Option<Part<'_>>> = logs.iter().map(|logs| Some(Part::settled(logs.as_ref()?, error))).collect();
    let p: Vec<f64> = parts.iter().flatten().map(|part| part.split.map_or(1.0, |split| split.p)).collect();
    let level = error * discoveries(&p, error).max(1) as f64 / p.len().max(1) as f64;
    let changes = parts.iter().map(|part| part.as_ref().map(|part| part.changes(level))).collect();
    Judged { changes, judged: p.len(), level }
}

/// The best split of a part, and how it compares with random orders.
#[derive(Clone, Copy)]
struct Split {
    at: usize,
    /// Share of random orders with as good a split, the real one included.
    p: f64,
}

/// Neighbouring values of a series.
#[derive(Clone, Copy)]
struct Part<'a> {
    /// Place of the first one.
    start: usize,
    logs: &'a [f64],
    /// `None` if there are too few values for two levels, or if all are equal.
    split: Option<Split>,
}

impl<'a> Part<'a> {
    fn of(start: usize, logs: &'a [f64]) -> Part<'a> {
        Part { start, logs, split: tested(logs) }
    }

    /// Leaves out values at the ends of a series, if the best split is there and has a p value of at most `error`: they are too few
    /// for a level, and would hide others.
    fn settled(logs: &'a [f64], error: f64) -> Part<'a> {
        let mut part = Part::of(0, logs);
        while part.split.is_some_and(|split| split.p <= error) {
            let Some((at, _)) = explained(&near(part.logs)).max_by(|a, b| a.1.total_cmp(&b.1)) else { break };
            let (before, after) = part.logs.split_at(at);
            if after.len() >= LEAST && before.len() >= LEAST {
                break;
            }
            part = if before.len() < LEAST {
                Part::of(part.start + before.len(), after)
            } else {
                Part::of(part.start, before)
            };
        }
        part
    }

    /// All changes of level with a p value of at most `level`, in order.
    fn changes(&self, level: f64) -> Vec<Change> {
        let (mut found, mut open) = (Vec::new(), vec![Part { start: 0, ..*self }]);
        while let Some(Part { start, logs, split }) = open.pop() {
            let Some(Split { at, p }) = split.filter(|split| split.p <= level) else { continue };
            found.push((start + at, p));
            let (before, after) = logs.split_at(at);
            open.extend([Part::of(start, before), Part::of(start + at, after)]);
        }
        found.sort_by_key(|(at, _)| *at);
        let places = found.iter().map(|(at, _)| *at);
        let mut ends: Vec<usize> = std::iter::once(0).chain(places).chain([self.logs.len()]).collect();
        let between = |from: usize, to: usize| self.logs.get(from..to).unwrap_or_default();
        // Each place is looked for again once its neighbours are known.
        for n in 1..=found.len() {
            if let Some((place, _)) = best(&near(between(ends[n - 1], ends[n + 1]))) {
                ends[n] = ends[n - 1] + place;
            }
        }
        let change = |(ends, (_, p)): (&[usize], &(usize, f64))| {
            let (before, after) = (between(ends[0], ends[1]), between(ends[1], ends[2]));
            let (ratio, interval) = ratio(before, after, level)?;
            let at = self.start + ends[1];
            Some(Change { at, before: centre(before)?, after: centre(after)?, ratio, interval, p: *p })
        };
        ends.windows(3).zip(&found).filter_map(change).collect()
    }
}

fn tested(logs: &[f64]) -> Option<Split> {
    let (at, gain) = best(&near(logs))?;
    // A fixed seed: the same runs give the same answer.
    let mut random = Random::new(logs.len() as u64);
    let mut shuffled = logs.to_vec();
    let mut as_good = 1;
    for _ in 0..ORDERS {
        random.shuffle(&mut shuffled);
        let other = best(&near(&shuffled)).map_or(0.0, |(_, gain)| gain);
        // Sums in another order differ in their last digits.
        as_good += u32::from(other >= gain * (1.0 - 1e-9));
    }
    Some(Split { at, p: f64::from(as_good) / (ORDERS + 1) as f64 })
}

/// `values` around their mean, those far from their neighbours brought nearer to them.
fn near(values: &[f64]) -> Vec<f64> {
    let neighbours = |at: usize| {
        let five = values.get(at.saturating_sub(2)..(at + 3).min(values.len())).unwrap_or_default();
        let mut sorted = [f64::INFINITY; 5];
        sorted.iter_mut().zip(five).for_each(|(to, from)| *to = *from);
        sorted.sort_unstable_by(f64::total_cmp);
        f64::midpoint(sorted[five.len() / 2], sorted[five.len().saturating_sub(1) / 2])
    };
    let around: Vec<f64> = (0..values.len()).map(neighbours).collect();
    let mut off: Vec<f64> = values.iter().zip(&around).map(|(v, around)| (v - around).abs()).collect();
    let half = off.len() / 2;
    let spread = if off.is_empty() { 0.0 } else { SD_PER_MAD * *off.select_nth_unstable_by(half, f64::total_cmp).1 };
    let reach = if spread > 0.0 { FAR * spread } else { f64::INFINITY };
    let mut near: Vec<f64> = values.iter().zip(&around).map(|(v, a)| a + (v - a).clamp(-reach, reach)).collect();
    let mean = mean(&near).unwrap_or(0.0);
    near.iter_mut().for_each(|v| *v -= mean);
    near
}

/// The best split of values around their mean: index of the first value after it, and what it explains in variances of what
/// it leaves (F with 1 and n − 2 degrees of freedom). `None` for too few values, or if all are equal.
fn best(values: &[f64]) -> Option<(usize, f64)> {
    let total: f64 = values.iter().map(|v| v * v).sum();
    let places = explained(values).filter(|(k, _)| *k >= LEAST && k + LEAST <= values.len());
    let (at, explained) = places.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let means = values.split_at(at);
    let means = [mean(means.0)?, mean(means.1)?];
    let (mut last, mut products, mut squares) = (0.0, 0.0, 0.0);
    for (index, v) in values.iter().enumerate() {
        let rest = v - means[usize::from(index >= at)];
        products += rest * last;
        squares += rest * rest;
        last = rest;
    }
    // How much of its distance from the level a value passes on to the next: the first autocorrelation of the rest.
    let inherited = if squares > 0.0 { f64::clamp(products / squares, 0.0, 0.9) } else { 0.0 };
    let independent = (1.0 - inherited) / (1.0 + inherited);
    let rest = (total - explained).max(total * 1e-12);
    (total > 1e-24).then(|| (at, explained * independent * (values.len() - 2) as f64 / rest))
}

/// What each split of values around their mean explains of their sum of squares.
fn explained(values: &[f64]) -> impl Iterator<Item = (usize, f64)> {
    let n = values.len();
    let mut sum = 0.0;
    values.iter().enumerate().take(n.saturating_sub(1)).map(move |(index, v)| {
        sum += v;
        let k = index + 1;
        (k, sum * sum * n as f64 / (k * (n - k)) as f64)
    })
}

/// The level of `logs`: the median of the means of all pairs, each value with itself as well. Up to 29 % of the runs may be
/// arbitrarily wrong before it is.
fn centre(logs: &[f64]) -> Option<f64> {
    let pairs = logs.iter().enumerate().flat_map(|(i, a)| logs.iter().skip(i).map(move |b| f64::midpoint(*a, *b)));
    median(&pairs.collect::<Vec<f64>>()).map(f64::exp)
}

/// The ratio of `after` to `before`: the median of the ratios of all pairs. Its interval holds all ratios that the rank-sum
/// test does not reject, and misses the true one in a share `error` of all cases if the place of the change is known;
/// `None` if there are too few runs for that.
fn ratio(before: &[f64], after: &[f64], error: f64) -> Option<(f64, Option<Interval>)> {
    let mut shifts: Vec<f64> = before.iter().flat_map(|b| after.iter().map(move |a| a - b)).collect();
    shifts.sort_by(f64::total_cmp);
    let value = median(&shifts)?.exp();
    let end = |at: usize| shifts.get(at).map(|s| s.exp());
    let outside = outside(before.len(), after.len(), error / 2.0);
    let ends = outside.and_then(|n| Some(Interval { low: end(n)?, high: end(shifts.len().checked_sub(n + 1)?)? }));
    Some((value, ends.filter(|i| i.low <= i.high)))
}

/// How many pairs may be on one side at most so that this has a probability of at most `tail`; `None` if even no pair is
/// too likely.
fn outside(m: usize, n: usize, tail: f64) -> Option<usize> {
    let pairs = m * n;
    if pairs > EXACT_PAIRS {
        let sd = (pairs as f64 * (m + n + 1) as f64 / 12.0).sqrt();
        let below = pairs as f64 / 2.0 - normal_quantile(tail) * sd;
        // The cast saturates.
        return (below >= 0.0).then_some(below as usize);
    }
    // ways[k][u]: choices of k of the ranks so far of which u pairs are in order.
    let mut ways = vec![vec![0.0; pairs + 1]; m + 1];
    ways[0][0] = 1.0;
    for seen in 0..m + n {
        for k in (0..m.min(seen + 1)).rev() {
            // The next rank is the (k + 1)-th chosen one: seen − k of those not chosen are below it.
            let passed = seen - k;
            for u in (passed..=pairs).rev() {
                ways[k + 1][u] += ways[k][u - passed];
            }
        }
    }
    let all: f64 = ways[m].iter().sum();
    let mut sum = 0.0;
    let unlikely = ways[m].iter().take_while(|w| {
        sum += *w / all;
        sum <= tail
    });
    unlikely.count().checked_sub(1)
}

#[cfg(test)]
mod tests;
