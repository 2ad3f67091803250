//! The ratio B/A of a figure with its interval, from pairs; and the difference B − A, for times that are added to others, such as a round
//! trip to a commit.
//!
//! The estimate is Hodges' and Lehmann's: the median of the means of all pairs of log ratios. The interval holds each ratio that the
//! test of [`super::flips`] does not reject. Up to 29 % of the pairs may be arbitrarily wrong before the estimate is.
//!
//! Sources: Hodges and Lehmann, Annals of Mathematical Statistics 34 (1963) 598; Lehmann, the same, 1507; Hollander, Wolfe and Chicken,
//! Nonparametric Statistical Methods (3rd ed., 2014), section 3.3; Hampel et al., Robust Statistics (1986).

use serde::Serialize;

use super::flips::Sample;
use super::{BLOCK, Pair};
use crate::stats::{self, Interval, normal_tail};

/// The ratio B/A of one figure, or the difference B − A.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairedEstimate {
    /// The ratio, or the difference in the figure's unit.
    pub value: f64,
    /// Where the true value is with `confidence`; `None` if the pairs are too few for that confidence, see `least_pairs`.
    pub interval: Option<Interval>,
    /// Confidence of the interval: in at least this share of runs it holds the true value.
    pub confidence: f64,
    /// Pairs from which on such an interval exists. An interval from k blocks can have a confidence of 1 − 2^(1 − k).
    pub least_pairs: usize,
    /// Whether each pair was taken for a block because there are few ([`Sample::by_pairs`]).
    pub by_pairs: bool,
    pub pairs: usize,
    /// Pairs left out: a window was refused, or a figure absent, not finite or, of a ratio, not positive.
    pub dropped: usize,
    /// Standard error of ln(ratio), or of the difference; `None` for fewer than three blocks.
    pub error: Option<f64>,
}

/// The ratio B/A from `pairs` in planned order, with an interval that may miss the true ratio in a share `error` of
/// all runs (0.05 for 95 %). `None` without a valid pair, or unless 0 < `error` < 1.
pub fn paired_ratio(pairs: &[Pair], error: f64) -> Option<PairedEstimate> {
    estimate(&Sample::from_pairs(pairs, Pair::log_ratio), pairs.len(), error, f64::exp)
}

/// The difference B − A, likewise.
pub fn paired_difference(pairs: &[Pair], error: f64) -> Option<PairedEstimate> {
    estimate(&Sample::from_pairs(pairs, Pair::difference), pairs.len(), error, |difference| difference)
}

/// An estimate from `planned` pairs. `value`: what the contrasts of the sample mean.
fn estimate(sample: &Sample, planned: usize, error: f64, value: fn(f64) -> f64) -> Option<PairedEstimate> {
    let walsh = sample.walsh();
    if !(error > 0.0 && error < 1.0) {
        return None;
    }
    // From the 68 % interval, because that is as long as two standard errors and needs few blocks (Lehmann 1963).
    let standard = interval_of(sample, &walsh, 2.0 * normal_tail(1.0)).map(|i| (i.high - i.low) / 2.0);
    let interval = interval_of(sample, &walsh, error).map(|i| Interval { low: value(i.low), high: value(i.high) });
    Some(PairedEstimate {
        value: value(stats::median(&walsh)?),
        interval,
        confidence: 1.0 - error,
        least_pairs: least_pairs(error, sample.by_pairs),
        by_pairs: sample.by_pairs,
        pairs: sample.pairs(),
        dropped: planned - sample.pairs(),
        error: standard,
    })
}

/// Typical levels of A and B: c / √r and c × √r, with the ratio r = B/A of [`paired_ratio`] and the typical level c of both, the
/// estimate of Hodges and Lehmann of the geometric means of the pairs. So they give the ratio, which means of A and of B do not.
/// `None` without a valid pair.
pub fn levels(pairs: &[Pair]) -> Option<(f64, f64)> {
    let half = stats::median(&Sample::from_pairs(pairs, Pair::log_ratio).walsh())? / 2.0;
    let both = stats::median(&Sample::from_pairs(pairs, Pair::log_mean).walsh())?;
    Some(((both - half).exp(), (both + half).exp()))
}

/// Pairs from which on an interval exists that misses in a share `error` of all runs: k coins all fall alike with
/// probability 2^(1 − k), and a cut-off block has a coin as well. `by_pairs`: each pair is a block.
pub fn least_pairs(error: f64, by_pairs: bool) -> usize {
    let blocks = (1.0 - error.log2()).ceil().max(1.0) as usize;
    if by_pairs { blocks } else { (blocks - 1) * BLOCK + 1 }
}

impl PairedEstimate {
    /// Half the width of the interval of a ratio as a share of the ratio, 0.02 for ±2 %: √(high / low) − 1.
    pub fn half_width(&self) -> Option<f64> {
        self.interval.map(|i| (i.high / i.low).sqrt() - 1.0)
    }

    pub fn why_no_interval(&self) -> Option<String> {
        let needs = format!("an interval of {} %", crate::paired::percent(self.confidence));
        self.interval.is_none().then(|| {
            let dropped = if self.dropped > 0 { format!(", {} left out", self.dropped) } else { String::new() };
            format!("{needs} needs {} pairs; there are {}{dropped}", self.least_pairs, self.pairs)
        })
    }
}

/// The interval of the contrasts of `sample`: all values that neither side's test rejects at `error` / 2, and those between. It ends
/// where ranks change, so the test is done between the values of `walsh`.
fn interval_of(sample: &Sample, walsh: &[f64], error: f64) -> Option<Interval> {
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
    let low = stretches.partition_point(|theta| sample.above(*theta) <= error / 2.0);
    let high = stretches.partition_point(|theta| sample.below(*theta) > error / 2.0);
    // The first stretch that is kept begins at the end before it; one before all ends has no beginning.
    Some(Interval { low: *ends.get(low.checked_sub(1)?)?, high: *ends.get(high.checked_sub(1)?)? })
}

#[cfg(test)]
mod tests {
    use super::super::simulated::Machine;
    use super::*;
    use loadline_model::Random;
    use proptest::prelude::*;

    const ABSENT: Pair = Pair { a: None, b: None };

    #[test]
    #[expect(clippy::approx_constant, reason = "3.14 is a patient's score")]
    fn a_textbook_example() {
        // Hollander and Wolfe, example 3.1 (depression scores of nine patients, in R's help of wilcox.test): one-sided
        // p = 0.01953, estimate 0.46, interval 0.010 … 0.786. Each block has one pair, so its coins are the patients.
        let before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
        let pair = |(x, y): (&f64, &f64)| [Pair::new(f64::exp(*y), f64::exp(*x)), ABSENT];
        let pairs: Vec<Pair> = before.iter().zip(&after).flat_map(pair).collect();
        assert!((Sample::from_pairs(&pairs, Pair::log_ratio).above(0.0) - 10.0 / 512.0).abs() < 1e-12);
        let ratio = paired_ratio(&pairs, 0.05).unwrap();
        assert!((ratio.value.ln() - 0.46).abs() < 1e-9, "{ratio:?}");
        let interval = ratio.interval.unwrap();
        assert!((interval.low.ln() - 0.010).abs() < 1e-9 && (interval.high.ln() - 0.786).abs() < 1e-9, "{interval:?}");
        assert_eq!((ratio.pairs, ratio.dropped), (9, 9));
    }

    #[test]
    fn a_constant_is_found_whatever_the_level_drifts() {
        let pairs: Vec<Pair> = (0..12).map(|n| Pair::new(f64::from(n), f64::from(n) + 2.5)).collect();
        let found = paired_difference(&pairs, 0.05).unwrap();
        assert!((found.value - 2.5).abs() < 1e-12 && found.interval.unwrap().contains(2.5), "{found:?}");
        assert_eq!(paired_difference(&pairs[..5], 0.05).unwrap().interval, None);
        assert_eq!(paired_difference(&[], 0.05), None);
        let odd = Pair { a: Some(f64::INFINITY), b: Some(1.0) };
        assert_eq!(paired_difference(&[odd], 0.05), None);
    }

    #[test]
    fn fewer_than_six_blocks_count_by_pairs_and_need_six_of_them() {
        let pairs = Machine::QUIET.run(&mut Random::new(1), 12, 1.0);
        assert_eq!(least_pairs(0.05, false), 11);
        assert_eq!(least_pairs(0.01, false), 15);
        let ratio = paired_ratio(&pairs[..5], 0.05).unwrap();
        assert_eq!(ratio.interval, None);
        assert!(ratio.why_no_interval().unwrap().contains("of 95 % needs 6 pairs; there are 5"), "{ratio:?}");
        let few = paired_ratio(&pairs[..6], 0.05).unwrap();
        let all = pairs[..6].iter().filter_map(|p| p.log_ratio()).collect::<Vec<f64>>();
        let (least, most) =
            (all.iter().copied().fold(f64::MAX, f64::min), all.iter().copied().fold(f64::MIN, f64::max));
        let interval = few.interval.unwrap();
        assert!(few.by_pairs && interval == Interval { low: least.exp(), high: most.exp() }, "{few:?}");
        let blocks = paired_ratio(&pairs[..11], 0.05).unwrap();
        assert!(!blocks.by_pairs && blocks.interval.is_some());
        assert!(paired_ratio(&pairs, 0.03).unwrap().interval.is_none());
        assert_eq!(paired_ratio(&[], 0.05), None);
        assert_eq!(paired_ratio(&pairs, 0.0), None);
    }

    #[test]
    fn a_steady_drift_and_figures_without_noise_leave_the_ratio_exact() {
        let still = Machine { noise: 0.0, ..Machine::QUIET };
        let drifting = Machine { drift: 0.405, ..still };
        for (machine, width) in [(still, 1e-12), (drifting, 0.02)] {
            let ratio = paired_ratio(&machine.run(&mut Random::new(5), 16, 1.25), 0.05).unwrap();
            assert!((ratio.value - 1.25).abs() < 1e-9 && ratio.half_width().unwrap() < width, "{ratio:?}");
        }
    }

    #[test]
    fn windows_without_a_usable_figure_are_left_out_and_counted() {
        let mut pairs = Machine::QUIET.run(&mut Random::new(2), 24, 1.1);
        let ends = paired_ratio(&pairs[..20], 0.05).unwrap();
        pairs[20].a = Some(0.0);
        pairs[21].b = Some(f64::NAN);
        pairs[22] = Pair::new(f64::INFINITY, -1.0);
        pairs[23].b = None;
        let ratio = paired_ratio(&pairs, 0.05).unwrap();
        assert_eq!(ratio, PairedEstimate { dropped: 4, ..ends });
    }

    /// Misses of the true ratio in `runs` runs, and at most as many as three standard deviations above 5 % allow.
    fn misses(machine: Machine, pairs: usize, runs: usize) -> (usize, usize) {
        let mut random = Random::new(pairs as u64);
        let missed = |ratio: &PairedEstimate| ratio.interval.is_none_or(|i| i.low > 1.07 || i.high < 1.07);
        let run = |_: &usize| missed(&paired_ratio(&machine.run(&mut random, pairs, 1.07), 0.05).unwrap());
        let n = runs as f64;
        ((0..runs).filter(run).count(), (0.05 * n + 3.0 * (0.05 * 0.95 * n).sqrt()) as usize)
    }

    #[test]
    fn intervals_hold_the_true_ratio_whatever_the_machine_does() {
        let wave = Machine { wave: 0.1, ..Machine::QUIET };
        let all = Machine { heavy: true, correlation: 0.7, wave: 0.05, ..Machine::ROUGH };
        for machine in [Machine::QUIET, Machine::ROUGH, wave, all] {
            for pairs in [11, 12, 16, 21] {
                let (missed, allowed) = misses(machine, pairs, 500);
                assert!(missed <= allowed, "{machine:?}, {pairs} pairs: {missed} of 500, {allowed} allowed");
                // Not so wide either that it says nothing: below 1 % would be another confidence.
                assert!(pairs < 16 || missed >= 5, "{machine:?}, {pairs} pairs: {missed}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_figures_give_an_interval_around_the_ratio_that_inverts(
            figures in prop::collection::vec((any::<Option<f64>>(), any::<Option<f64>>()), 0..30)
        ) {
            let pairs: Vec<Pair> = figures.iter().map(|(a, b)| Pair { a: *a, b: *b }).collect();
            let swapped: Vec<Pair> = pairs.iter().map(|p| Pair { a: p.b, b: p.a }).collect();
            let (ratio, inverse) = (paired_ratio(&pairs, 0.05), paired_ratio(&swapped, 0.05));
            prop_assert_eq!(ratio.is_some(), inverse.is_some());
            if let (Some(r), Some(s)) = (ratio, inverse) {
                prop_assert_eq!(r.pairs + r.dropped, pairs.len());
                if let (Some(i), Some(j)) = (r.interval, s.interval) {
                    prop_assert!(i.low <= r.value && r.value <= i.high);
                    prop_assert!((i.low.ln() + j.high.ln()).abs() < 1e-6 || !i.low.is_normal() || !j.high.is_normal());
                }
            }
        }
    }
}
