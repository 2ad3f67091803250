//! Two arms measured in turns: how much faster or slower is B than A? Start with [`judge`].
//!
//! - [`order()`]: which arm is measured when: blocks ABBA or BAAB by coin;
//! - [`ratio`]: the ratio B/A with its interval, and the difference B − A; what makes them valid is in [`flips`];
//! - [`verdict`]: what the interval shows, what could have been seen, how many pairs that takes, and at which numbers a run may stop;
//! - [`discovery`]: several comparisons at once.
//!
//! docs/statistics.md says it in plain words, with simulated coverage, power and price.

use loadline_model::{Letter as Arm, Random};

pub mod discovery;
pub mod flips;
pub mod ratio;
pub mod simulated;
pub mod verdict;

pub use discovery::{Answer, Family, Question, judge};
pub use ratio::{PairedEstimate, paired_difference, paired_ratio};
pub use verdict::Verdict;

/// One figure of a pair: a window of A and one of B, neighbours in time. Pairs are passed in the order in which they were
/// planned, also those that failed, because the place of a pair says to which block it belongs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// The figure of A's window; `None` if the window is refused or lacks the figure.
    pub a: Option<f64>,
    /// Figure of B's window; `None` as for A's.
    pub b: Option<f64>,
}

/// A confidence or a share in percent, with no more digits than it has: `95`, `97.5`.
pub fn percent(share: f64) -> String {
    let text = format!("{:.3}", 100.0 * share);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Pair {
    pub fn new(a: f64, b: f64) -> Pair {
        Pair { a: Some(a), b: Some(b) }
    }

    /// The logarithms; `None` unless both are positive and finite.
    fn logs(self) -> Option<(f64, f64)> {
        let log = |v: Option<f64>| v.filter(|v| v.is_finite() && *v > 0.0).map(f64::ln);
        log(self.a).zip(log(self.b))
    }

    /// `ln(b / a)`; `None` unless both are positive and finite.
    pub fn log_ratio(self) -> Option<f64> {
        self.logs().map(|(a, b)| b - a)
    }

    /// `ln √(a b)`, likewise.
    pub fn log_mean(self) -> Option<f64> {
        self.logs().map(|(a, b)| f64::midpoint(a, b))
    }

    /// `b − a`; `None` unless both are finite.
    pub fn difference(self) -> Option<f64> {
        Some(self.b? - self.a?).filter(|d| d.is_finite())
    }
}

/// Pairs of a block.
pub const BLOCK: usize = 2;

/// The order of the arms in `pairs` pairs: blocks ABBA or BAAB, each by its own coin (Fisher; see [`flips`]); of a block that is cut
/// off, the first pair. The arms stand at the same mean time in each block, so a linear drift of the logarithm cancels (Cox, Some
/// systematic experimental designs, Biometrika 38 (1951) 312). More pairs never change those before them.
///
/// Each comparison of each run needs a seed of its own, stored with it: an interval is as valid as its coins are unforeseeable.
pub fn order(seed: u64, pairs: usize) -> Vec<[Arm; 2]> {
    let mut random = Random::new(seed);
    let block = |_| match random.below(2) {
        0 => [[Arm::A, Arm::B], [Arm::B, Arm::A]],
        _ => [[Arm::B, Arm::A], [Arm::A, Arm::B]],
    };
    let mut order: Vec<[Arm; 2]> = (0..pairs.div_ceil(BLOCK)).flat_map(block).collect();
    order.truncate(pairs);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_balanced_random_and_kept_when_the_run_grows() {
        let long = order(7, 1001);
        assert_eq!(long.len(), 1001);
        assert!((0..40).all(|n| order(7, n) == long[..n]));
        for pair in &long {
            assert_ne!(pair[0], pair[1]);
        }
        let (blocks, rest) = long.as_chunks::<BLOCK>();
        assert_eq!(rest.len(), 1);
        // The second pair of a block is the first one backwards: in ABBA and BAAB places 1 + 4 and 2 + 3 are one arm each.
        assert!(blocks.iter().all(|[x, y]| x[0] == y[1] && x[1] == y[0]));
        let begin_with_a = blocks.iter().filter(|b| b[0][0] == Arm::A).count();
        // 500 fair coins: four standard deviations are 45.
        assert!((205..=295).contains(&begin_with_a), "{begin_with_a}");
        assert_ne!(order(8, 20), order(7, 20));
    }
}
