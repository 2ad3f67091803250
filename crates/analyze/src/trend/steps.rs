//! Where the level of a series changes: E-divisive's hierarchy of splits with their permutation test.
//!
//! The best split is where the squared difference of the means, weighted by k (n − k) / n, is largest; that is E-divisive's statistic
//! with its exponent α = 2. The published α = 1 also finds changes of the spread alone, which are no change of level. It is tested
//! against the best splits of the same values in random order, and kept if few orders have as good a one anywhere. So the choice of
//! the place is part of the test. Then it begins anew on both sides, until a test keeps nothing.
//!
//! In each order, values far from the median of their neighbours are first brought nearer to it: single bad runs then
//! neither make a level nor hide one, and levels keep their edges. A split explains less if what it leaves is correlated:
//! runs that inherit from those before are fewer than they seem. As both are done in all orders alike, the test stays exact
//! for any noise whose order means nothing.
//!
//! Sources: Matteson and James, A nonparametric approach for multiple change point analysis of multivariate data,
//! Journal of the American Statistical Association 109 (2014) 334; Phipson and Smyth, Permutation p-values should never
//! be zero, Statistical Applications in Genetics and Molecular Biology 9 (2010) 39; Bai, Estimating multiple breaks one
//! at a time, Econometric Theory 13 (1997) 315 (each place is looked for again once its neighbours are known);
//! Hampel, Journal of the American Statistical Association 69 (1974) 383 (outliers by
//! the median absolute deviation); Bartlett, Journal of the Royal Statistical Society 98 (1935) 536 (the variance of a mean of
//! correlated values).

use std::ops::Range;

use loadline_model::Random;

/// Least runs of a level.
pub(super) const LEAST: usize = 4;
/// Random orders of a test: a p value is at least 1/5,000, which is small enough for one of 250 series to have changed.
const ORDERS: usize = 4_999;
/// Values farther from the median of five neighbours than so many standard deviations are brought there.
const FAR: f64 = 3.0;
/// Standard deviation of normal noise whose median absolute deviation is 1.
const SD_PER_MAD: f64 = 1.4826;

/// The best split of a series, and how it compares with random orders.
#[derive(Debug, Clone, Copy)]
pub(super) struct Test {
    at: usize,
    /// Share of random orders with as good a split, the real one included.
    pub(super) p: f64,
}

/// Leaves out runs at the ends of a series, if the best split is there and has a p value of at most `level`: they are too few
/// for a level, and would hide others.
pub(super) fn settled(logs: &[f64], level: f64) -> (Range<usize>, Option<Test>) {
    let mut range = 0..logs.len();
    loop {
        let part = logs.get(range.clone()).unwrap_or_default();
        let test = test(part);
        let place = explained(&near(part)).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at);
        match place.filter(|_| test.as_ref().is_some_and(|t| t.p <= level)) {
            Some(at) if at < LEAST => range.start += at,
            Some(at) if at + LEAST > part.len() => range.end = range.start + at,
            _ => return (range, test),
        }
    }
}

/// Places and p values, of at most `level`, of all changes of level, in order. `first`: the test of the whole. Each place is looked for
/// again between its neighbours.
pub(super) fn steps(logs: &[f64], first: Option<Test>, level: f64) -> Vec<(usize, f64)> {
    let mut found: Vec<(usize, f64)> = Vec::new();
    let mut open = vec![(0..logs.len(), first)];
    while let Some((range, tested)) = open.pop() {
        let Some(Test { at, p, .. }) = tested.filter(|t| t.p <= level) else { continue };
        let at = range.start + at;
        found.push((at, p));
        let sides = [range.start..at, at..range.end];
        open.extend(sides.map(|side| (side.clone(), test(logs.get(side).unwrap_or_default()))));
    }
    found.sort_by_key(|(at, _)| *at);
    for n in 0..found.len() {
        let start = n.checked_sub(1).map_or(0, |before| found[before].0);
        let end = found.get(n + 1).map_or(logs.len(), |next| next.0);
        if let Some((place, _)) = best(&near(logs.get(start..end).unwrap_or_default())) {
            found[n].0 = start + place;
        }
    }
    found
}

/// Tests the best split. `None` if there are too few values for two levels, or if all are equal.
fn test(logs: &[f64]) -> Option<Test> {
    let (at, gain) = best(&near(logs))?;
    // A fixed seed: the same runs give the same answer.
    let mut random = Random::new(logs.len() as u64);
    let mut shuffled = logs.to_vec();
    let mut as_good = 1;
    for _ in 0..ORDERS {
        random.shuffle(&mut shuffled);
        let other = best(&near(&shuffled)).map_or(0.0, |(_, gain)| gain);
        // Sums in another order differ in their last digits.
        as_good += usize::from(other >= gain * (1.0 - 1e-9));
    }
    Some(Test { at, p: f64::from(as_good as u32) / f64::from(ORDERS as u32 + 1) })
}

/// `values` around their mean, those far from their neighbours brought nearer to them.
fn near(values: &[f64]) -> Vec<f64> {
    let neighbours = |at: usize| values.get(at.saturating_sub(2)..(at + 3).min(values.len())).map_or(0.0, middle);
    let around: Vec<f64> = (0..values.len()).map(neighbours).collect();
    let mut off: Vec<f64> = values.iter().zip(&around).map(|(v, around)| (v - around).abs()).collect();
    let half = off.len() / 2;
    let spread = if off.is_empty() { 0.0 } else { SD_PER_MAD * *off.select_nth_unstable_by(half, f64::total_cmp).1 };
    let reach = if spread > 0.0 { FAR * spread } else { f64::INFINITY };
    let mut near: Vec<f64> = values.iter().zip(&around).map(|(v, a)| a + (v - a).clamp(-reach, reach)).collect();
    let mean = near.iter().sum::<f64>() / near.len().max(1) as f64;
    near.iter_mut().for_each(|v| *v -= mean);
    near
}

/// The median of up to five values.
fn middle(values: &[f64]) -> f64 {
    let mut sorted = [f64::INFINITY; 5];
    let sorted = sorted.get_mut(..values.len()).unwrap_or_default();
    sorted.copy_from_slice(values);
    sorted.sort_unstable_by(f64::total_cmp);
    let at = |n: usize| sorted.get(n).copied().unwrap_or(0.0);
    f64::midpoint(at(sorted.len() / 2), at(sorted.len().saturating_sub(1) / 2))
}

/// The best split of values around their mean: index of the first value after it, and what it explains in variances of what
/// it leaves (F with 1 and n − 2 degrees of freedom). `None` for too few values, or if all are equal.
fn best(values: &[f64]) -> Option<(usize, f64)> {
    let total: f64 = values.iter().map(|v| v * v).sum();
    let places = explained(values).filter(|(k, _)| *k >= LEAST && k + LEAST <= values.len());
    let (at, explained) = places.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let rest = (total - explained).max(total * 1e-12);
    let inherited = inherited(values, at);
    let independent = (1.0 - inherited) / (1.0 + inherited);
    (total > 1e-24).then(|| (at, explained * independent * (values.len() - 2) as f64 / rest))
}

/// How much of its distance from the level a value passes on to the next, 0 to 0.9: the first autocorrelation of what a
/// split at `at` leaves.
fn inherited(values: &[f64], at: usize) -> f64 {
    let (before, after) = values.split_at(at);
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len().max(1) as f64;
    let (first, second) = (mean(before), mean(after));
    let (mut last, mut products, mut squares) = (0.0, 0.0, 0.0);
    for (index, v) in values.iter().enumerate() {
        let rest = v - if index < at { first } else { second };
        products += rest * last;
        squares += rest * rest;
        last = rest;
    }
    if squares > 0.0 { (products / squares).clamp(0.0, 0.9) } else { 0.0 }
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
