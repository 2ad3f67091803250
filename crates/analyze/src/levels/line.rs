//! A line through points whose y vary with heavy tails: the time added to commits over the round trip.
//!
//! The slope is Theil's: the median of the slopes between all points of different x; its interval is Sen's, from the
//! distribution of Kendall's statistic with tied x. Up to 29 % of the points may be arbitrarily wrong. The intercept is the
//! median of the means of all pairs of what the slope leaves, with an interval that holds at both ends of the slope's.
//!
//! Sources: Theil, Proceedings of the Royal Netherlands Academy 53 (1950) 386; Sen, Journal of the American Statistical
//! Association 63 (1968) 1379; Hollander, Wolfe and Chicken, Nonparametric Statistical Methods (3rd ed., 2014), chapter 9.

use serde::Serialize;

use crate::paired::{Pair, PairedEstimate, paired_difference};
use crate::stats::{self, Interval, normal_quantile};

/// A line `y = intercept + slope × x`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Line {
    /// The slope, and its interval if the points are enough for one.
    pub slope: (f64, Option<Interval>),
    /// Value at x = 0 with its interval, in the unit of y.
    pub intercept: (f64, Option<Interval>),
}

/// The line through `points` (x, y) with intervals that miss in a share `error` of all runs. `groups`: how many of the points,
/// in turn, belong together. `None` unless two groups have different x.
pub fn line(points: &[(f64, f64)], groups: &[usize], error: f64) -> Option<Line> {
    // The x of a group vary by measurement, which makes no slope.
    let mut group_of = groups.iter().enumerate().flat_map(|(n, count)| std::iter::repeat_n(n, *count));
    let points: Vec<(usize, f64, f64)> =
        points.iter().map(|(x, y)| (group_of.next().unwrap_or(usize::MAX), *x, *y)).collect();
    let mut slopes: Vec<f64> = Vec::new();
    for (n, (group, x, y)) in points.iter().enumerate() {
        let later = points.iter().skip(n + 1).filter(|(other, at, _)| other != group && at != x);
        slopes.extend(later.map(|(_, at, value)| (value - y) / (at - x)));
    }
    slopes.sort_by(f64::total_cmp);
    let slope = stats::median(&slopes)?;
    let interval = slope_interval(&slopes, points.len(), groups, error);
    let at = |slope: f64| left_at(&points, slope, error);
    let intercept = at(slope)?;
    let ends = interval.and_then(|i| {
        let (steep, flat) = (at(i.high)?.interval?, at(i.low)?.interval?);
        Some(Interval { low: steep.low.min(flat.low), high: steep.high.max(flat.high) })
    });
    Some(Line { slope: (slope, interval), intercept: (intercept.value, ends) })
}

/// Rest of the points without `slope`.
fn left_at(points: &[(usize, f64, f64)], slope: f64, error: f64) -> Option<PairedEstimate> {
    let left: Vec<Pair> = points.iter().map(|(_, x, y)| Pair::new(0.0, y - slope * x)).collect();
    paired_difference(&left, error)
}

/// Sen's interval of the median of `slopes`, rising.
fn slope_interval(slopes: &[f64], points: usize, groups: &[usize], error: f64) -> Option<Interval> {
    let weight = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let ties: f64 = groups.iter().map(|t| weight(*t as f64)).sum();
    let variance = (weight(points as f64) - ties) / 18.0;
    let half = normal_quantile(error / 2.0) * variance.max(0.0).sqrt();
    let low = ((slopes.len() as f64 - half) / 2.0).floor();
    let high = ((slopes.len() as f64 + half) / 2.0).ceil();
    // Fewer points have no interval.
    let within = low >= 1.0 && (high as usize) < slopes.len();
    within.then(|| Interval { low: slopes[low as usize - 1], high: slopes[high as usize] })
}

#[cfg(test)]
mod tests {
    use loadline_model::Random;

    use super::*;

    #[test]
    fn a_textbook_example() {
        // Hollander and Wolfe, example 9.1 (cloud seeding, five years): the slope of Theil is −0.056 per year.
        let points: Vec<(f64, f64)> =
            [1.26, 1.27, 1.12, 1.16, 1.03].iter().enumerate().map(|(n, y)| (n as f64 + 1.0, *y)).collect();
        let found = line(&points, &[1; 5], 0.05).unwrap();
        assert!((found.slope.0 + 0.05625).abs() < 1e-9, "{found:?}");
        assert_eq!(line(&points[..1], &[1], 0.05), None);
        assert_eq!(line(&[(1.0, 1.0), (1.1, 5.0)], &[2], 0.05), None, "one distance, measured twice");
    }

    #[test]
    fn intervals_hold_a_known_line_in_most_runs() {
        let mut random = Random::new(3);
        let mut uniform = || random.next() as f64 / u64::MAX as f64;
        let (mut slopes, mut intercepts) = (0, 0);
        let runs = 300;
        for _ in 0..runs {
            let mut points = Vec::new();
            for x in [0.05, 0.45, 2.05, 10.05] {
                for _ in 0..8 {
                    // A stall in one of twelve.
                    let stall = if uniform() < 0.08 { 3.0 * uniform() } else { 0.0 };
                    points.push((x + 0.01 * uniform(), 0.4 + 1.05 * x + 0.2 * (uniform() - 0.5) + stall));
                }
            }
            let found = line(&points, &[8; 4], 0.05).unwrap();
            slopes += usize::from(!found.slope.1.unwrap().contains(1.05));
            intercepts += usize::from(!found.intercept.1.unwrap().contains(0.4));
        }
        // Three standard deviations above 5 %. The stalls move the middle of what is left by a little.
        assert!(slopes <= 27 && intercepts <= 45, "{slopes} and {intercepts} of {runs}");
    }
}
