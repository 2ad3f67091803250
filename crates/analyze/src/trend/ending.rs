//! The end of a series: too few runs for a level, but unlike those before.

use super::steps::{LEAST, deviation, settled};
use crate::stats::median;

/// Most runs at the end that are looked at.
const LAST: usize = 2 * LEAST - 1;
/// From so many standard errors on, each of the last runs is unlike those before; more if those are few, whose spread is not
/// well known. Then 1 to 3 % of flat series end so.
const UNLIKE: f64 = 3.0;
/// Most further runs that are imagined.
const MOST: usize = 3 * LEAST;

/// The last runs may be the begin of a new level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Perhaps {
    /// Index of the first of them.
    pub since: usize,
    /// How many more runs like them would show it; `None` if more than twelve.
    pub more: Option<usize>,
}

/// Whether the end of `logs`, of which the last level began at `from`, is unlike what went before; `level` is the error of
/// the test that more runs would have to pass.
pub(super) fn perhaps(logs: &[f64], from: usize, level: f64) -> Option<Perhaps> {
    let last = logs.get(from..)?;
    let longest = LAST.min(last.len().checked_sub(LEAST)?);
    let unlike = |k: &usize| {
        let (rest, tail) = last.split_at(last.len() - k);
        let middle = median(rest)?;
        let way = (median(tail)? - middle).signum();
        // All of them must be, or a single one would make its neighbours unlike.
        let least = tail.iter().map(|v| (v - middle) * way).fold(f64::INFINITY, f64::min);
        // The variance of a median is π/2 times that of a mean.
        let error = deviation(rest)? * (1.0 / *k as f64 + std::f64::consts::FRAC_PI_2 / rest.len() as f64).sqrt();
        Some(least > 0.0 && least > UNLIKE * (1.0 + 6.0 / rest.len() as f64) * error)
    };
    let since = logs.len() - (1..=longest).rev().find(|k| unlike(k) == Some(true))?;
    let tail = logs.get(since..)?;
    let shown = |more: &usize| {
        let imagined: Vec<f64> = last.iter().chain(tail.iter().cycle().take(*more)).copied().collect();
        let (range, test) = settled(&imagined, level);
        range.len() == imagined.len() && test.is_some_and(|t| t.p <= level)
    };
    Some(Perhaps { since, more: (1..=MOST).find(shown) })
}
