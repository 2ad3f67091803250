//! The difference B − A of a figure with its interval, from pairs: as [`super::ratio`], but of differences. For times that are
//! added to others, such as a round trip to a commit.

use serde::Serialize;

use super::Pair;
use super::flips::Sample;
use super::ratio::{interval_of, least_pairs};
use crate::stats::{self, Interval};

/// The difference B − A of one figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairedDifference {
    /// The difference, in the figure's unit.
    pub value: f64,
    /// Where the true difference is with the confidence asked for; `None` with fewer pairs than `least_pairs`.
    pub interval: Option<Interval>,
    /// Pairs from which on such an interval exists.
    pub least_pairs: usize,
    /// Valid pairs.
    pub pairs: usize,
}

/// The difference B − A from `pairs` in planned order, with an interval that may miss the true difference in a share `error` of
/// all runs. `None` without a valid pair, or unless 0 < `error` < 1.
#[must_use]
pub fn paired_difference(pairs: &[Pair], error: f64) -> Option<PairedDifference> {
    let sample = Sample::of_differences(pairs);
    let walsh = sample.walsh();
    if !(error > 0.0 && error < 1.0) {
        return None;
    }
    Some(PairedDifference {
        value: stats::median(&walsh)?,
        interval: interval_of(&sample, &walsh, error),
        least_pairs: least_pairs(error, sample.by_pairs),
        pairs: sample.pairs(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_is_found_whatever_the_level_drifts() {
        let pairs: Vec<Pair> = (0..12).map(|n| Pair::of(f64::from(n), f64::from(n) + 2.5)).collect();
        let found = paired_difference(&pairs, 0.05).unwrap();
        assert!((found.value - 2.5).abs() < 1e-12 && found.interval.unwrap().contains(2.5), "{found:?}");
        assert_eq!(paired_difference(&pairs[..5], 0.05).unwrap().interval, None);
        assert_eq!(paired_difference(&[], 0.05), None);
        let odd = Pair { a: Some(f64::INFINITY), b: Some(1.0) };
        assert_eq!(paired_difference(&[odd], 0.05), None);
    }
}
