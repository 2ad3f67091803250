//! What an interval shows: faster, slower, equivalent, or nothing.
//!
//! One interval decides all, so a reader can check the verdict by eye. It is *equivalent* if the whole interval is within the margin.
//! That is the test of two one-sided hypotheses (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15 (1987) 657) with half
//! the error of the usual one, because it takes the 95 % interval where 90 % would do. The margin is ±x % of the logarithm, 1/(1 + x) to
//! 1 + x, so exchanging the arms changes no verdict but its direction. A difference that is certain, but smaller than the margin, is
//! equivalent: the margin is what the user calls no difference.

use serde::Serialize;

use super::order::BLOCK;
use super::ratio::PairedRatio;
use crate::stats::normal_quantile;

/// Probability with which a difference is seen, in all that is said about what could have been seen.
pub const POWER: f64 = 0.8;

/// What the pairs show of B against A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// B is better.
    Faster,
    /// B is worse.
    Slower,
    /// The difference is within the margin.
    Equivalent,
    /// None of these is shown. It does not mean equal.
    NotShown,
}

/// What it would have taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NotShown {
    /// The smallest difference that these pairs would have shown with [`POWER`], 0.03 for 3 %; `None` without an interval.
    pub detectable: Option<f64>,
    /// How many more pairs would show a difference as large as the margin with [`POWER`]; `None` without an estimate of
    /// the noise or without a margin.
    pub more_pairs: Option<usize>,
}

/// The verdict of `ratio` with a margin of ±`margin` (0.02 for 2 %; 0: nothing is equivalent).
#[must_use]
pub fn verdict(ratio: &PairedRatio, higher_is_better: bool, margin: f64) -> Verdict {
    let Some(interval) = ratio.interval else { return Verdict::NotShown };
    let end = 1.0 + margin;
    if margin > 0.0 && interval.low >= 1.0 / end && interval.high <= end {
        Verdict::Equivalent
    } else if interval.low > 1.0 {
        if higher_is_better { Verdict::Faster } else { Verdict::Slower }
    } else if interval.high < 1.0 {
        if higher_is_better { Verdict::Slower } else { Verdict::Faster }
    } else {
        Verdict::NotShown
    }
}

/// What it takes to see more than `ratio` shows.
#[must_use]
pub fn not_shown(ratio: &PairedRatio, margin: f64) -> NotShown {
    NotShown { detectable: detectable(ratio), more_pairs: more_pairs(ratio, margin) }
}

/// The smallest difference that as many pairs with the same noise show with [`POWER`]: 0.03 for 3 %. The interval's half
/// width h is z standard errors; a ratio that is h plus 0.84 of them away from 1 has an interval without 1 in four of five
/// runs (Lehr, Statistics in Medicine 11 (1992) 1099, with the spread from the interval).
#[must_use]
pub fn detectable(ratio: &PairedRatio) -> Option<f64> {
    let log_half = ratio.half_width()?.ln_1p();
    let z = normal_quantile((1.0 - ratio.confidence) / 2.0);
    Some((log_half * (1.0 + normal_quantile(1.0 - POWER) / z)).exp_m1())
}

/// How many more pairs show a difference of `difference` (0.02 for 2 %) with [`POWER`], at the confidence of `ratio`; whole
/// blocks. `None` without an estimate of the noise, or unless the difference is above 0.
#[must_use]
pub fn more_pairs(ratio: &PairedRatio, difference: f64) -> Option<usize> {
    let wanted = Some(difference.ln_1p()).filter(|d| *d > 0.0)?;
    let z = normal_quantile((1.0 - ratio.confidence) / 2.0) + normal_quantile(1.0 - POWER);
    let pairs = ratio.pairs as f64 * (z * ratio.log_error? / wanted).powi(2);
    // The cast saturates.
    let more = (pairs.ceil() as usize).max(ratio.least_pairs).saturating_sub(ratio.pairs);
    Some(more.div_ceil(BLOCK).saturating_mul(BLOCK))
}
