//! The randomisation test behind every interval and p value here: if B is θ times A, each block's coin could as well
//! have fallen the other way.
//!
//! Take the log ratios of the pairs, minus ln θ. If B really is θ times A whatever the time, then swapping the arms of a block
//! (ABBA for BAAB) only changes the signs of its log ratios. So their absolute values are fixed by the machine, and the
//! signs, one coin a block, by [`super::order`]. The statistic is Wilcoxon's: the sum of the signed ranks. Its distribution is
//! computed exactly over all falls of the coins.
//!
//! This needs nothing of the noise: no normal distribution, no independence of neighbouring windows, no steady machine.
//! Drift, waves and stalls of any form that hit the times and not an arm leave it exact. With independent coins per pair it
//! would be the plain signed-rank test; that test is too sure here, because a disturbance that comes back every four windows
//! moves both pairs of a block the same way.
//!
//! Sources: Fisher, The Design of Experiments (1935), section 21; Wilcoxon, Biometrics Bulletin 1 (1945) 80; Ernst,
//! Permutation methods: a basis for exact inference, Statistical Science 19 (2004) 676.

use super::Pair;
use super::order::BLOCK;
use crate::stats::{self, normal_tail};

/// From so many blocks on the distribution is taken as normal; the exact one has lighter tails.
const EXACT_BLOCKS: usize = 200;

/// The log ratios of the valid pairs of a figure, by block.
#[derive(Debug, Clone)]
pub struct Sample {
    blocks: Vec<Vec<f64>>,
}

/// How often coins alone would do at least as much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tails {
    /// Evidence that the ratio is above θ: probability of at least this sum of ranks if it is not.
    pub above: f64,
    /// Evidence that it is below.
    pub below: f64,
}

impl Sample {
    /// Reads pairs in planned order; those without two positive, finite figures are left out.
    #[must_use]
    pub fn of(pairs: &[Pair]) -> Sample {
        let valid = |block: &[Pair]| block.iter().filter_map(|p| p.log_ratio()).collect::<Vec<f64>>();
        Sample { blocks: pairs.chunks(BLOCK).map(valid).filter(|b| !b.is_empty()).collect() }
    }

    /// Valid pairs.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }

    /// Blocks with a valid pair: as many coins.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Mean log ratio of each block, in order.
    #[must_use]
    pub fn contrasts(&self) -> Vec<f64> {
        self.blocks.iter().filter_map(|b| stats::mean(b)).collect()
    }

    /// Means of all pairs of log ratios, each with itself as well, sorted: the values of θ at which ranks change.
    #[must_use]
    pub fn walsh(&self) -> Vec<f64> {
        let x: Vec<f64> = self.blocks.iter().flatten().copied().collect();
        let mut means: Vec<f64> =
            x.iter().enumerate().flat_map(|(i, a)| x.iter().skip(i).map(move |b| (a + b) / 2.0)).collect();
        means.sort_by(f64::total_cmp);
        means
    }

    /// The test of ratio = e^`theta` against both sides.
    #[must_use]
    pub fn tails(&self, theta: f64) -> Tails {
        let sums = self.rank_sums(theta);
        let (above, below): (Vec<i64>, Vec<i64>) = sums.iter().filter(|s| **s != 0).partition(|s| **s > 0);
        let (above, below) = (above.iter().sum::<i64>(), -below.iter().sum::<i64>());
        let steps: Vec<usize> = sums.iter().map(|s| s.unsigned_abs() as usize).collect();
        Tails { above: at_most(&steps, below as usize), below: at_most(&steps, above as usize) }
    }

    /// The sum of the signed ranks of each block, in half ranks, because equal values share the mean of their ranks.
    fn rank_sums(&self, theta: f64) -> Vec<i64> {
        let mut values: Vec<(f64, usize)> =
            self.blocks.iter().enumerate().flat_map(|(n, b)| b.iter().map(move |x| (x - theta, n))).collect();
        values.sort_by(|(x, _), (y, _)| x.abs().total_cmp(&y.abs()));
        let mut sums = vec![0; self.blocks.len()];
        let mut below = 0;
        for equal in values.chunk_by(|(x, _), (y, _)| x.abs() == y.abs()) {
            let rank = (2 * below + 1 + equal.len()) as i64;
            for (x, block) in equal.iter().filter(|(x, _)| *x != 0.0) {
                if let Some(sum) = sums.get_mut(*block) {
                    *sum += if *x > 0.0 { rank } else { -rank };
                }
            }
            below += equal.len();
        }
        sums
    }
}

/// Probability that those of `steps` whose coin falls on heads sum up to `most` or less.
fn at_most(steps: &[usize], most: usize) -> f64 {
    if steps.len() > EXACT_BLOCKS {
        let (sum, squares) = steps.iter().fold((0.0, 0.0), |(s, q), x| (s + *x as f64, q + (*x as f64).powi(2)));
        return if squares > 0.0 { normal_tail((sum - 2.0 * most as f64) / squares.sqrt()) } else { 1.0 };
    }
    let mut probability = vec![0.0; most + 1];
    probability[0] = 1.0;
    let mut reached = 0;
    for step in steps {
        reached = (reached + step).min(most);
        for at in (0..=reached).rev() {
            let from = at.checked_sub(*step).map_or(0.0, |from| probability[from]);
            probability[at] = 0.5 * (probability[at] + from);
        }
    }
    probability.iter().sum::<f64>().min(1.0)
}
