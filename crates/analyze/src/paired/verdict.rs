//! Verdict of an interval: faster, slower, equivalent, or nothing.
//!
//! One interval decides all, so a reader can check the verdict by eye. It is *equivalent* if the whole interval is
//! within the margin. That is the test of two one-sided hypotheses (Schuirmann, Journal of Pharmacokinetics and
//! Biopharmaceutics 15 (1987) 657) with half the usual error: it takes the 95 % interval, not that of 90 %. The
//! margin is ±x % of the logarithm, 1/(1 + x) to 1 + x, so exchanging the arms changes no verdict but
//! its direction. A difference that is certain, but smaller than the margin, is equivalent: the margin is what the
//! user calls no difference.

use serde::Serialize;

use super::order::BLOCK;
use super::ratio::PairedEstimate;
use crate::stats::{Interval, normal_quantile};

/// Probability with which a difference is seen, in all that is said about what could have been seen.
pub const POWER: f64 = 0.8;

/// Verdict on B against A by the pairs.
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

/// The verdict of an interval of a ratio B/A with a margin of ±`margin` (0.02 for 2 %; 0: nothing is equivalent).
pub fn verdict_of(interval: Option<Interval>, higher_is_better: bool, margin: f64) -> Verdict {
    let Some(interval) = interval else { return Verdict::NotShown };
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

/// The smallest difference that as many pairs with the same noise show with [`POWER`]: 0.03 for 3 %. The interval's
/// half width h is z standard errors; a ratio that is h plus 0.84 of them away from 1 has an interval without 1 in
/// four of five runs (Lehr, Statistics in Medicine 11 (1992) 1099, with the spread from the interval).
pub fn detectable(ratio: &PairedEstimate) -> Option<f64> {
    ratio.interval.map(|interval| detectable_of(interval, ratio.confidence))
}

/// Verdict of any interval of a ratio with this confidence.
pub fn detectable_of(interval: Interval, confidence: f64) -> f64 {
    let log_half = (interval.high / interval.low).ln() / 2.0;
    let z = normal_quantile((1.0 - confidence) / 2.0);
    (log_half * (1.0 + normal_quantile(1.0 - POWER) / z)).exp_m1()
}

/// How many more pairs show a difference of `difference` (0.02 for 2 %) with [`POWER`], at the confidence of `ratio`;
/// whole blocks. `None` without an estimate of the noise, or unless the difference is above 0.
pub fn more_pairs(ratio: &PairedEstimate, difference: f64) -> Option<usize> {
    let wanted = Some(difference.ln_1p()).filter(|d| *d > 0.0)?;
    let z = normal_quantile((1.0 - ratio.confidence) / 2.0) + normal_quantile(1.0 - POWER);
    let pairs = ratio.pairs as f64 * (z * ratio.error? / wanted).powi(2);
    // The cast saturates.
    let more = (pairs.ceil() as usize).max(ratio.least_pairs).saturating_sub(ratio.pairs);
    Some(more.div_ceil(BLOCK).saturating_mul(BLOCK))
}

#[cfg(test)]
mod tests {
    use super::super::ratio::paired_ratio;
    use super::super::simulated::Machine;
    use super::*;
    use loadline_model::Random;

    fn with(low: f64, high: f64) -> PairedEstimate {
        let run = Machine::QUIET.run(&mut Random::new(1), 12, 1.0);
        PairedEstimate { interval: Some(Interval { low, high }), ..paired_ratio(&run, 0.05).unwrap() }
    }

    #[test]
    fn verdicts_follow_from_the_interval() {
        use Verdict::{Equivalent, Faster, NotShown, Slower};
        for (low, high, more_is_better, less_is_better) in [
            (1.03, 1.05, Faster, Slower),
            (0.90, 0.97, Slower, Faster),
            (1.001, 1.03, Faster, Slower),
            (0.99, 1.01, Equivalent, Equivalent),
            (1.001, 1.019, Equivalent, Equivalent),
            (0.99, 1.03, NotShown, NotShown),
            (1.0, 1.03, NotShown, NotShown),
            // 1 − 2 % is further from 1 than 1 + 2 %.
            (0.9801, 1.0, NotShown, NotShown),
            (1.0 / 1.02, 1.02, Equivalent, Equivalent),
        ] {
            let interval = Some(Interval { low, high });
            assert_eq!(verdict_of(interval, true, 0.02), more_is_better, "{low} … {high}");
            assert_eq!(verdict_of(interval, false, 0.02), less_is_better, "{low} … {high}");
        }
        assert_eq!(verdict_of(Some(Interval { low: 1.0, high: 1.0 }), true, 0.0), NotShown);
        assert_eq!(verdict_of(None, true, 0.02), NotShown);
    }

    /// Verdicts `wanted` in 300 runs of `pairs` pairs.
    fn count(machine: Machine, pairs: usize, ratio: f64, wanted: &[Verdict]) -> usize {
        let mut random = Random::new(11);
        let run = |_: &usize| {
            let ratio = paired_ratio(&machine.run(&mut random, pairs, ratio), 0.05).unwrap();
            wanted.contains(&verdict_of(ratio.interval, true, 0.01))
        };
        (0..300).filter(run).count()
    }

    #[test]
    fn what_is_called_detectable_is_seen_in_four_of_five_runs() {
        for (machine, pairs) in [(Machine::QUIET, 12), (Machine::QUIET, 24), (Machine::ROUGH, 24), (Machine::ROUGH, 40)]
        {
            let mut random = Random::new(12);
            let mut seen = |_| detectable(&paired_ratio(&machine.run(&mut random, pairs, 1.0), 0.05).unwrap()).unwrap();
            let typical = crate::stats::median(&(0..100).map(&mut seen).collect::<Vec<f64>>()).unwrap();
            let found = count(machine, pairs, 1.0 + typical, &[Verdict::Faster]);
            assert!((210..=282).contains(&found), "{machine:?}, {pairs} pairs: {typical}, {found} of 300");
        }
    }

    #[test]
    fn as_many_more_pairs_as_said_show_the_difference() {
        for (machine, difference) in [(Machine::QUIET, 0.02), (Machine::ROUGH, 0.02), (Machine::ROUGH, 0.05)] {
            let mut random = Random::new(13);
            let mut more = |_| {
                let ratio = paired_ratio(&machine.run(&mut random, 16, 1.0), 0.05).unwrap();
                (16 + more_pairs(&ratio, difference).unwrap()) as f64
            };
            let typical = crate::stats::median(&(0..100).map(&mut more).collect::<Vec<f64>>()).unwrap();
            let found = count(machine, typical as usize, 1.0 + difference, &[Verdict::Faster]);
            assert!((210..=300).contains(&found), "{machine:?}, {difference}: {typical} pairs, {found} of 300");
        }
        assert_eq!(more_pairs(&with(0.9, 1.1), 0.0), None);
        assert_eq!(more_pairs(&with(0.9, 1.1), 10.0), Some(0));
        assert!(more_pairs(&with(0.9, 1.1), 0.001).unwrap() > 1000);
    }
}
