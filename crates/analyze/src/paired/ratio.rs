//! The ratio B/A of a figure with its interval, from pairs.
//!
//! The estimate is Hodges' and Lehmann's: the median of the means of all pairs of log ratios. The interval holds each ratio that the
//! test of [`super::flips`] does not reject, so it is as exact as that test. Up to 29 % of the pairs may be arbitrarily wrong
//! before the estimate is (Hampel et al., Robust Statistics, 1986): single stalls widen the interval, they do not move it far.
//!
//! Sources: Hodges and Lehmann, Annals of Mathematical Statistics 34 (1963) 598; Hollander, Wolfe and Chicken, Nonparametric
//! Statistical Methods (3rd ed., 2014), section 3.3; Bartels, The rank version of von Neumann's ratio test for randomness,
//! Journal of the American Statistical Association 77 (1982) 40.

use serde::Serialize;

use super::Pair;
use super::flips::Sample;
use super::order::BLOCK;
use crate::stats::{self, Interval, normal_tail};

/// The ratio B/A of one figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairedRatio {
    /// The ratio.
    pub value: f64,
    /// Where the true ratio is with `confidence`; `None` if the pairs are too few for that confidence, see `least_pairs`.
    pub interval: Option<Interval>,
    /// Confidence of the interval: in at least this share of runs it holds the true ratio.
    pub confidence: f64,
    /// Pairs from which on such an interval exists. An interval from k blocks can have a confidence of 1 − 2^(1 − k).
    pub least_pairs: usize,
    /// Valid pairs.
    pub pairs: usize,
    /// Pairs left out: a window was invalid, or a figure absent, not finite or not positive.
    pub dropped: usize,
    /// Standard error of ln(ratio); `None` for fewer than four blocks.
    pub log_error: Option<f64>,
    /// Whether the ratio itself changed in the course of the run; `None` for fewer than ten blocks. Then there is no
    /// single ratio, and the interval is that of a typical time.
    pub changing: Option<bool>,
}

/// The ratio B/A from `pairs` in planned order, with an interval that may miss the true ratio in a share `error` of all runs (0.05 for
/// 95 %). `None` without a valid pair, or unless 0 < `error` < 1.
#[must_use]
pub fn paired_ratio(pairs: &[Pair], error: f64) -> Option<PairedRatio> {
    let sample = Sample::of(pairs);
    let walsh = sample.walsh();
    if !(error > 0.0 && error < 1.0) {
        return None;
    }
    // From the 68 % interval, because that is as long as two standard errors and needs few blocks (Lehmann 1963).
    let log_error = log_interval(&sample, &walsh, 2.0 * normal_tail(1.0)).map(|i| (i.high - i.low) / 2.0);
    let interval = log_interval(&sample, &walsh, error).map(|i| Interval { low: i.low.exp(), high: i.high.exp() });
    Some(PairedRatio {
        value: stats::median(&walsh)?.exp(),
        interval,
        confidence: 1.0 - error,
        least_pairs: least_pairs(error),
        pairs: sample.pairs(),
        dropped: pairs.len() - sample.pairs(),
        log_error,
        changing: changing(&sample.contrasts()),
    })
}

/// Pairs from which on an interval exists that misses in a share `error` of all runs: k coins all fall alike with probability
/// 2^(1 − k), and a cut-off block has a coin as well.
#[must_use]
pub fn least_pairs(error: f64) -> usize {
    let blocks = (1.0 - error.log2()).ceil().max(1.0) as usize;
    (blocks - 1) * BLOCK + 1
}

impl PairedRatio {
    /// Half the width of the interval as a share of the ratio, 0.02 for ±2 %: √(high / low) − 1.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        self.interval.map(|i| (i.high / i.low).sqrt() - 1.0)
    }

    /// Why there is no interval.
    #[must_use]
    pub fn why_no_interval(&self) -> Option<String> {
        let needs = format!("a {:.4} % interval", 100.0 * self.confidence);
        self.interval.is_none().then(|| {
            let dropped = if self.dropped > 0 { format!(", {} left out", self.dropped) } else { String::new() };
            format!("{needs} needs {} pairs; there are {}{dropped}", self.least_pairs, self.pairs)
        })
    }
}

/// The interval of ln(ratio): all values that neither side's test rejects at `error` / 2, and those between. It ends where ranks change, so
/// the test is done between the values of `walsh`.
fn log_interval(sample: &Sample, walsh: &[f64], error: f64) -> Option<Interval> {
    let mut ends = walsh.to_vec();
    ends.dedup();
    let (first, last) = (*ends.first()?, *ends.last()?);
    // Stretch n lies between ends n − 1 and n.
    let middle = |n: usize| match (n.checked_sub(1).and_then(|n| ends.get(n)), ends.get(n)) {
        (Some(low), Some(high)) => f64::midpoint(*low, *high),
        (None, _) => first - 1.0,
        (_, None) => last + 1.0,
    };
    let stretches: Vec<f64> = (0..=ends.len()).map(middle).collect();
    let low = stretches.partition_point(|theta| sample.tails(*theta).above <= error / 2.0);
    let high = stretches.partition_point(|theta| sample.tails(*theta).below > error / 2.0);
    // The first stretch that is kept begins at the end before it; one before all ends has no beginning.
    Some(Interval { low: *ends.get(low.checked_sub(1)?)?, high: *ends.get(high.checked_sub(1)?)? })
}

/// Whether neighbours in time are more alike than chance has it, at 5 %: von Neumann's ratio of the ranks (Bartels 1982).
fn changing(contrasts: &[f64]) -> Option<bool> {
    if contrasts.len() < 10 {
        return None;
    }
    let rank = |x: &f64| {
        let below = contrasts.iter().filter(|y| *y < x).count();
        let equal = contrasts.iter().filter(|y| *y == x).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    let ranks: Vec<f64> = contrasts.iter().map(rank).collect();
    let n = ranks.len() as f64;
    let spread: f64 = ranks.iter().map(|r| (r - (n + 1.0) / 2.0).powi(2)).sum();
    let steps: f64 = ranks.windows(2).map(|w| (w[1] - w[0]).powi(2)).sum();
    let sd = (4.0 * (n - 2.0) * (5.0 * n * n - 2.0 * n - 9.0) / (5.0 * n * (n + 1.0) * (n - 1.0).powi(2))).sqrt();
    Some(spread > 0.0 && normal_tail((2.0 - steps / spread) / sd) < 0.05)
}
