//! Runs of levels of replication: the cost of synchronous replication for a commit, and how it grows with the distance.
//!
//! The time added to a commit is the difference of neighbouring windows of a level and the baseline ([`crate::paired`]), the share of
//! throughput that is left their ratio. Over distances the added time is a line of the round trip. Its slope is Theil's, the median
//! of the slopes between all points of different x; its interval is Sen's (Journal of the American Statistical Association 63 (1968)
//! 1379), from the distribution of Kendall's statistic with tied x. The intercept is the median of the means of all pairs of what the
//! slope leaves, with an interval that holds at both ends of the slope's.

use loadline_model::{CheckId, TestRecord, column};
use serde::Serialize;

use crate::paired::{Pair, PairedEstimate, paired_difference, paired_ratio};
use crate::stats::{self, Interval, normal_quantile};
use crate::variants::{Cell, ERROR, cells};

/// Cost of a level at a distance and a number of jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost<'a> {
    /// Windows, the baseline's being those of arm A.
    pub cell: Cell<'a>,
    pub level: &'a str,
    pub delay_ms: f64,
    /// Round trip, ms: median over the windows of the level.
    pub rtt_ms: Option<f64>,
    /// Mean commit latency of the baseline's and the level's windows in valid pairs, ms.
    pub latency_ms: Option<[f64; 2]>,
    /// 99th percentile of the time of a transaction in them, ms: median over the windows.
    pub p99_ms: Option<[f64; 2]>,
    /// Mean of their throughput, tps.
    pub tps: Option<[f64; 2]>,
    /// Time added to a commit, ms.
    pub added: Option<PairedEstimate>,
    /// Throughput as a share of the baseline's.
    pub share: Option<PairedEstimate>,
}

impl Cost<'_> {
    /// Pairs that were planned and are not valid, or not measured.
    pub fn dropped(&self) -> usize {
        self.cell.pairs.len() - self.added.map_or(0, |added| added.pairs)
    }

    /// Whether commits of the level wait for a replica: then each window was checked against the round trip.
    pub fn waits(&self) -> bool {
        self.cell.pairs.iter().flatten().any(|[_, b]| b.checks.iter().any(|check| check.id == CheckId::RoundTrip))
    }

    /// Throughput as a share of what one job would have if a round trip and nothing else were added to each commit:
    /// 1 / (baseline + round trip). `None` for several jobs, which share waits, and for a level that does not wait.
    pub fn share_of_law(&self) -> Option<f64> {
        let ([baseline_ms, latency_ms], rtt_ms) = (self.latency_ms?, self.rtt_ms?);
        (self.cell.jobs == 1 && self.waits() && latency_ms > 0.0).then(|| (baseline_ms + rtt_ms) / latency_ms)
    }
}

/// The costs of a run's records, in their order, with `planned` pairs each.
pub fn costs(records: &[TestRecord], planned: u32) -> Vec<Cost<'_>> {
    cells(records, planned).into_iter().filter_map(cost).collect()
}

fn cost(cell: Cell<'_>) -> Option<Cost<'_>> {
    let point = cell.level()?;
    let [latencies, tps, p99] =
        [column::COMMIT_LATENCY_MS, column::COMMIT_THROUGHPUT_TPS, column::TRANSACTION_TIME_NS_P99]
            .map(|column| cell.pairs_of(column));
    let round_trips: Vec<f64> = points(&cell).iter().map(|point| point.0).collect();
    Some(Cost {
        level: &point.level,
        delay_ms: point.delay_ms,
        rtt_ms: stats::median(&round_trips),
        latency_ms: of_both(&latencies, stats::mean),
        p99_ms: of_both(&p99, stats::median).map(|both| both.map(|ns| ns / 1e6)),
        tps: of_both(&tps, stats::mean),
        added: paired_difference(&latencies, ERROR),
        share: paired_ratio(&tps, ERROR),
        cell,
    })
}

/// Usable pairs as points of a line: round trip and added time, ms.
fn points(cell: &Cell<'_>) -> Vec<(f64, f64)> {
    let valid = cell.pairs.iter().flatten().filter(|[a, b]| a.is_usable() && b.is_usable());
    let point = |[a, b]: &[&TestRecord; 2]| {
        let latency = column::COMMIT_LATENCY_MS;
        Some((b.figure(column::RTT_MS)?, b.figure(latency)? - a.figure(latency)?))
    };
    valid.filter_map(point).collect()
}

/// A statistic of each side over the valid pairs.
fn of_both(pairs: &[Pair], statistic: impl Fn(&[f64]) -> Option<f64>) -> Option<[f64; 2]> {
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().filter_map(|p| p.a.zip(p.b)).unzip();
    Some([statistic(&a)?, statistic(&b)?])
}

/// The line of the costs of one level at its smallest number of jobs; `None` with one distance only.
pub fn line_of(costs: &[&Cost<'_>]) -> Option<(u32, Line)> {
    let jobs = costs.iter().map(|c| c.cell.jobs).min()?;
    let of_jobs = costs.iter().filter(|c| c.cell.jobs == jobs);
    let points: Vec<Vec<(f64, f64)>> = of_jobs.map(|c| points(&c.cell)).collect();
    let groups: Vec<usize> = points.iter().map(Vec::len).collect();
    Some((jobs, line(&points.concat(), &groups, ERROR)?))
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Line {
    /// The slope, and its interval if the points are enough for one.
    pub slope: (f64, Option<Interval>),
    /// Value at x = 0 with its interval, in the unit of y.
    pub intercept: (f64, Option<Interval>),
}

/// The line through `points` (x, y) with intervals that miss in a share `error` of all runs. `groups`: how many of the points,
/// in turn, belong together. `None` unless two groups have different x.
fn line(points: &[(f64, f64)], groups: &[usize], error: f64) -> Option<Line> {
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
    use loadline_model::{Check, InPair, Letter, LevelPoint, Outcome, Random};

    use super::*;
    use crate::paired::simulated::windows;

    /// Windows of a level that adds `0.5 ms + 1.1 × round trip` to 1 ms, with a wave over time.
    fn records(pairs: u32, delays_ms: &[f64]) -> Vec<TestRecord> {
        let of = |delay_ms: &f64| {
            let rtt_ms = 2.0 * delay_ms + 0.05;
            let level = Some(LevelPoint { level: "on".to_owned(), delay_ms: *delay_ms });
            let windows = windows(pairs, |test, arm| {
                let added_ms = if arm == Letter::A { 0.0 } else { 0.5 + 1.1 * rtt_ms };
                let ms = 1.0 + 0.1 * f64::from(test.div_ceil(2) % 3) + added_ms;
                let tps = 1000.0 / ms;
                vec![(column::RTT_MS, rtt_ms), (column::COMMIT_LATENCY_MS, ms), (column::COMMIT_THROUGHPUT_TPS, tps)]
            });
            windows.into_iter().map(move |r| {
                let variant = r.variant.clone().map(|window| InPair { level: level.clone(), ..window });
                TestRecord { variant, ..r }.with_checks(vec![Check::new(CheckId::RoundTrip, Outcome::Passed, "")])
            })
        };
        (1..).zip(delays_ms.iter().flat_map(of)).map(|(test, r)| TestRecord { test, ..r }).collect()
    }

    #[test]
    fn refused_windows_and_broken_pairs_are_left_out() {
        let mut records = records(8, &[1.0]);
        records[3].valid = false;
        records.pop();
        let costs = costs(&records, 8);
        assert_eq!((costs[0].added.unwrap().pairs, costs[0].dropped()), (6, 2));
        assert!(costs[0].share_of_law().is_some_and(|share| (0.8..0.85).contains(&share)), "{costs:?}");
        assert_eq!(line_of(&costs.iter().collect::<Vec<_>>()), None, "one distance makes no line");
    }

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
