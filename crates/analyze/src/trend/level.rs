//! The level of runs, and the ratio of two levels with its interval.
//!
//! Sources: Hodges and Lehmann, Annals of Mathematical Statistics 34 (1963) 598; Mann and Whitney, Annals of
//! Mathematical Statistics 18 (1947) 50; Hollander, Wolfe and Chicken, Nonparametric Statistical Methods (3rd ed., 2014),
//! sections 4.2 and 4.3.

use crate::stats::{Interval, median, normal_quantile};

/// Up to so many pairs of runs the distribution is computed exactly.
const EXACT_PAIRS: usize = 400;

/// The level of `logs`: the median of the means of all pairs, each value with itself as well. Up to 29 % of the runs may be
/// arbitrarily wrong before it is.
pub(super) fn level(logs: &[f64]) -> Option<f64> {
    let pairs = logs.iter().enumerate().flat_map(|(i, a)| logs.iter().skip(i).map(move |b| f64::midpoint(*a, *b)));
    median(&pairs.collect::<Vec<f64>>()).map(f64::exp)
}

/// The ratio of `after` to `before`: the median of the ratios of all pairs. Its interval holds all ratios that the rank-sum
/// test does not reject, and misses the true one in a share `error` of all cases if the place of the change is known;
/// `None` if there are too few runs for that.
pub(super) fn ratio(before: &[f64], after: &[f64], error: f64) -> Option<(f64, Option<Interval>)> {
    let mut shifts: Vec<f64> = before.iter().flat_map(|b| after.iter().map(move |a| a - b)).collect();
    shifts.sort_by(f64::total_cmp);
    let value = median(&shifts)?.exp();
    let outside = outside(before.len(), after.len(), error / 2.0);
    let end = |at: usize| shifts.get(at).map(|s| s.exp());
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
