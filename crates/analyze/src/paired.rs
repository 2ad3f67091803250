//! Two arms measured in turns: how much faster or slower is B than A? Start with [`judge`].
//!
//! - [`mod@order`]: which arm is measured when: blocks ABBA or BAAB by coin;
//! - [`ratio`]: the ratio B/A with its interval, and the difference B − A; what makes them valid is in [`flips`];
//! - [`verdict`]: what the interval shows, what could have been seen, and how many pairs that takes;
//! - [`looks`]: at which numbers of pairs a run with a wanted precision may stop;
//! - [`discovery`]: several comparisons at once.
//!
//! docs/statistics.md says it in plain words, with simulated coverage, power and price.

pub mod discovery;
pub mod flips;
pub mod looks;
pub mod order;
pub mod ratio;
pub mod simulated;
pub mod verdict;

pub use discovery::{Answer, Family, Question, judge};
pub use order::order;
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
    /// A pair of valid windows.
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
