//! Verdict of an interval: faster, slower, equivalent, or nothing; how many pairs that takes, and when a run may look at its
//! interval, and stop.
//!
//! One interval decides all, so a reader can check the verdict by eye. It is *equivalent* if the whole interval is within the margin:
//! the test of two one-sided hypotheses (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15 (1987) 657) with the 95 %
//! interval, not that of 90 %. The margin is 1/(1 + x) to 1 + x, so exchanging the arms changes no verdict but its direction.
//!
//! The looks are numbers of pairs that are declared before the run. With k of them, an interval at a look misses in at most 5 % / k
//! of all runs, so at most 5 % of runs have *any* look whose interval misses (Bonferroni). Less strict boundaries need the joint
//! distribution of the looks, which is not known under drift and stalls. docs/statistics.md has the price. Sources: Dunn, Journal of
//! the American Statistical Association 56 (1961) 52; Geertsema, Annals of Mathematical Statistics 41 (1970) 1016.

use serde::Serialize;

use super::BLOCK;
use super::ratio::{PairedEstimate, least_pairs};
use crate::stats::{Interval, normal_quantile};

/// Probability with which a difference is seen, in all that is said about what could have been seen.
pub const POWER: f64 = 0.8;

/// Verdict on B against A by the pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Faster,
    Slower,
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

/// More pairs, whole blocks, that show a `difference` (0.02 for 2 %) with [`POWER`]. `None` without an estimate of the noise.
pub fn more_pairs(ratio: &PairedEstimate, difference: f64) -> Option<usize> {
    let wanted = Some(difference.ln_1p()).filter(|d| *d > 0.0)?;
    let z = normal_quantile((1.0 - ratio.confidence) / 2.0) + normal_quantile(1.0 - POWER);
    let pairs = ratio.pairs as f64 * (z * ratio.error? / wanted).powi(2);
    // The cast saturates.
    let more = (pairs.ceil() as usize).max(ratio.least_pairs).saturating_sub(ratio.pairs);
    Some(more.div_ceil(BLOCK).saturating_mul(BLOCK))
}

/// The looks of a run of at most `most` pairs whose interval may miss in a share `error` of runs: numbers of planned pairs, rising; the
/// last one ends it. Each has an equal share of the error. The first look is the first one at which an interval can exist; if `most` is too
/// few for that, `most` is the only look.
pub fn declare(most: usize, error: f64) -> Vec<usize> {
    let most = most.max(1).next_multiple_of(BLOCK);
    let mut first = least_pairs(error, false).next_multiple_of(BLOCK);
    loop {
        let next = |at: &usize| Some((at + at / 2).next_multiple_of(BLOCK)).filter(|at| *at < most);
        let mut looks: Vec<usize> = std::iter::successors(Some(first).filter(|at| *at < most), next).collect();
        looks.push(most);
        if looks.len() == 1 || least_pairs(error / looks.len() as f64, false) <= first {
            return looks;
        }
        first += BLOCK;
    }
}

/// Whether the interval is ±`precision` of the ratio or narrower. Ask at declared looks only, of a ratio with the error of a look.
pub fn precise_enough(ratio: &PairedEstimate, precision: f64) -> bool {
    ratio.half_width().is_some_and(|half| half <= precision)
}

/// How many more pairs make the interval of `ratio` as narrow as ±`precision`, about, in whole blocks: it narrows with the root of
/// their number. 0 if it is; `None` without an interval.
pub fn pairs_to(ratio: &PairedEstimate, precision: f64) -> Option<usize> {
    let times = (ratio.half_width()?.ln_1p() / precision.ln_1p()).powi(2);
    // The cast saturates.
    let more = ((ratio.pairs as f64 * times).ceil() as usize).saturating_sub(ratio.pairs);
    Some(if precise_enough(ratio, precision) { 0 } else { more.div_ceil(BLOCK).max(1).saturating_mul(BLOCK) })
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

    #[test]
    fn looks_rise_to_the_last_and_each_can_have_an_interval() {
        assert_eq!(declare(100, 0.05), [16, 24, 36, 54, 82, 100]);
        assert_eq!(declare(5, 0.05), [6]);
        for most in 1..400 {
            let looks = declare(most, 0.05);
            assert!(looks.is_sorted() && *looks.last().unwrap() == most.next_multiple_of(BLOCK));
            assert!(looks.len() == 1 || looks[0] >= least_pairs(0.05 / looks.len() as f64, false), "{looks:?}");
        }
    }

    #[test]
    fn as_many_more_pairs_as_said_are_precise_enough() {
        let mut random = Random::new(5);
        let ratio =
            |pairs: usize, random: &mut Random| paired_ratio(&Machine::QUIET.run(random, pairs, 1.0), 0.05).unwrap();
        let at_24: Vec<PairedEstimate> = (0..100).map(|_| ratio(24, &mut random)).collect();
        let more: Vec<f64> = at_24.iter().map(|r| pairs_to(r, 0.01).unwrap() as f64).collect();
        let typical = crate::stats::median(&more).unwrap() as usize;
        let half = |_| ratio(24 + typical, &mut random).half_width().unwrap();
        let half = crate::stats::median(&(0..40).map(half).collect::<Vec<f64>>()).unwrap();
        assert!((0.008..0.012).contains(&half), "{typical} more pairs: ±{half}");
        assert!(at_24.iter().all(|r| pairs_to(r, 0.5) == Some(0)));
        assert_eq!(pairs_to(&ratio(4, &mut random), 0.01), None);
    }
}
