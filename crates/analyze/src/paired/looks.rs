//! When a run that measures "as many pairs as a precision takes" may look at its interval, and stop.
//!
//! The looks are numbers of pairs that are declared before the run, each half as many again as the one before. Each
//! look takes an equal share of the error: with k looks, an interval at a look misses in at most 5 % / k of all runs.
//! So at most 5 % of runs have *any* look whose interval misses, and whatever decides which one is reported, it holds
//! the true ratio in 95 %. This is Bonferroni's inequality and needs nothing else; boundaries that are less strict
//! (Pocock; Lan and DeMets) need the joint distribution of the looks, which is not known under drift and stalls. Its
//! price against a run whose number of pairs was known before is in docs/statistics.md.
//!
//! Sources: Dunn, Multiple comparisons among means, Journal of the American Statistical Association 56 (1961) 52;
//! Jennison and Turnbull, Group Sequential Methods (2000); stopping by the width of rank intervals: Geertsema, Annals
//! of Mathematical Statistics 41 (1970) 1016.

use super::order::BLOCK;
use super::ratio::{PairedEstimate, least_pairs};

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
    use super::super::paired_ratio;
    use super::super::simulated::Machine;
    use super::*;
    use loadline_model::Random;

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
