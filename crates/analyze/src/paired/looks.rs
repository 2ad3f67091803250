//! When a run that measures "as many pairs as a precision takes" may look at its interval, and stop.
//!
//! The looks are numbers of pairs that are declared before the run, each half as many again as the one before. Each look takes
//! an equal share of the error: with k looks, an interval at a look misses in at most 5 % / k of all runs. So at most 5 % of runs have *any* look
//! whose interval misses, and whatever decides which one is reported, it holds the true ratio in 95 %. This is Bonferroni's
//! inequality and needs nothing else; boundaries that are less strict (Pocock; Lan and DeMets) need the joint distribution
//! of the looks, which is not known under drift and stalls. Its price against a run whose number of pairs was known before is in
//! docs/statistics.md.
//!
//! Sources: Bonferroni spending as in Jennison and Turnbull, Group Sequential Methods (2000), chapter 2; stopping by the
//! width of rank intervals: Geertsema, Annals of Mathematical Statistics 41 (1970) 1016.

use serde::{Deserialize, Serialize};

use super::order::BLOCK;
use super::ratio::{PairedRatio, least_pairs};

/// The looks of a run, declared before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looks {
    /// Numbers of planned pairs at which the run looks, rising; the last one ends it.
    pub pairs: Vec<usize>,
}

impl Looks {
    /// Declares the looks of a run of at most `most` pairs whose interval may miss in a share `error` of runs. The first look is the
    /// first one at which an interval can exist; if `most` is too few for that, `most` is the only look.
    #[must_use]
    pub fn declare(most: usize, error: f64) -> Looks {
        let most = most.max(1).next_multiple_of(BLOCK);
        let mut first = least_pairs(error).next_multiple_of(BLOCK);
        loop {
            let next = |at: &usize| Some((at + at / 2).next_multiple_of(BLOCK)).filter(|at| *at < most);
            let mut pairs: Vec<usize> = std::iter::successors(Some(first).filter(|at| *at < most), next).collect();
            pairs.push(most);
            if pairs.len() == 1 || least_pairs(error / pairs.len() as f64) <= first {
                return Looks { pairs };
            }
            first += BLOCK;
        }
    }

    /// The error that each look may have, of `error` in all.
    #[must_use]
    pub fn share(&self, error: f64) -> f64 {
        error / self.pairs.len().max(1) as f64
    }

    /// The look after `measured` pairs; `None` at the end.
    #[must_use]
    pub fn next(&self, measured: usize) -> Option<usize> {
        self.pairs.iter().copied().find(|at| *at > measured)
    }
}

/// Whether the interval is ±`precision` of the ratio or narrower. Ask at declared looks only, of a ratio with the error of
/// [`Looks::share`].
#[must_use]
pub fn precise_enough(ratio: &PairedRatio, precision: f64) -> bool {
    ratio.half_width().is_some_and(|half| half <= precision)
}
