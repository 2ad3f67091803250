//! The randomisation test behind every interval and p value here: if B is θ times A, each block's coin could as well have fallen the
//! other way.
//!
//! Swapping the arms of a block (ABBA for BAAB) only changes the signs of the log ratios of its pairs, minus ln θ. So their absolute
//! values are fixed by the machine, and the signs, one coin a block, by [`super::order()`]. The statistic is Wilcoxon's, the sum of
//! the signed ranks; its distribution is computed exactly over all falls of the coins. This needs nothing of the noise: drift, waves
//! and stalls that hit the times and not an arm leave it exact. Coins per pair, the plain signed-rank test, would be too sure: a
//! disturbance that comes back every four windows moves both pairs of a block the same way.
//!
//! Sources: Fisher, The Design of Experiments (1935), section 21; Wilcoxon, Biometrics Bulletin 1 (1945) 80; Ernst, Permutation
//! methods: a basis for exact inference, Statistical Science 19 (2004) 676.

use super::{BLOCK, Pair};
use crate::stats::normal_tail;

/// From so many blocks on the distribution is taken as normal; the exact one has lighter tails.
const EXACT_BLOCKS: usize = 200;

/// With fewer blocks no interval of 95 % exists, and a pair counts as a block of its own.
pub const FEW_BLOCKS: usize = 6;

/// A contrast of the valid pairs of a figure, by block: their log ratios, mostly.
#[derive(Debug, Clone)]
pub struct Sample {
    blocks: Vec<Vec<f64>>,
    /// Whether each pair is taken for a block, because there are fewer than [`FEW_BLOCKS`]: the plain signed-rank test. Then
    /// neighbouring pairs must vary independently, which the coins alone do not ensure; a steady drift makes the test only
    /// more careful.
    pub by_pairs: bool,
}

impl Sample {
    /// Reads a contrast of pairs in planned order, such as [`Pair::log_ratio`]; those without it are left out.
    pub fn from_pairs(pairs: &[Pair], contrast: fn(Pair) -> Option<f64>) -> Sample {
        let valid = |block: &[Pair]| block.iter().filter_map(|p| contrast(*p)).collect::<Vec<f64>>();
        let of = |size| pairs.chunks(size).map(valid).filter(|b| !b.is_empty()).collect::<Vec<_>>();
        let blocks = of(BLOCK);
        let by_pairs = blocks.len() < FEW_BLOCKS;
        Sample { blocks: if by_pairs { of(1) } else { blocks }, by_pairs }
    }

    pub fn pairs(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }

    /// Means of all pairs of log ratios, each with itself as well, sorted: the values of θ at which ranks change.
    pub fn walsh(&self) -> Vec<f64> {
        let x: Vec<f64> = self.blocks.iter().flatten().copied().collect();
        let mut means: Vec<f64> =
            x.iter().enumerate().flat_map(|(i, a)| x.iter().skip(i).map(move |b| (a + b) / 2.0)).collect();
        means.sort_by(f64::total_cmp);
        means
    }

    /// Evidence that the ratio is above e^`theta`: how often the coins alone give at least this sum of ranks.
    pub fn above(&self, theta: f64) -> f64 {
        let sums = self.rank_sums(theta);
        heads_at_most(&sums, sums.iter().filter(|s| **s < 0).map(|s| s.unsigned_abs()).sum())
    }

    /// Evidence that the ratio is below e^`theta`.
    pub fn below(&self, theta: f64) -> f64 {
        let sums = self.rank_sums(theta);
        heads_at_most(&sums, sums.iter().filter(|s| **s > 0).map(|s| s.unsigned_abs()).sum())
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

/// Probability that those `sums` whose coins fall on heads add up to `most` or less, without their signs.
fn heads_at_most(sums: &[i64], most: u64) -> f64 {
    if sums.len() > EXACT_BLOCKS {
        let (sum, squares) = sums.iter().fold((0, 0), |(sum, squares), s| (sum + s.unsigned_abs(), squares + s * s));
        let excess = sum as f64 - 2.0 * most as f64;
        return if squares > 0 { normal_tail(excess / (squares as f64).sqrt()) } else { 1.0 };
    }
    // Without shared ranks all sums are even: half the steps.
    let unit = if sums.iter().all(|s| s % 2 == 0) { 2 } else { 1 };
    let most = (most / unit) as usize;
    let mut probability = vec![0.0; most + 1];
    probability[0] = 1.0;
    let mut reached = 0;
    for sum in sums {
        let step = (sum.unsigned_abs() / unit) as usize;
        reached = (reached + step).min(most);
        for at in (0..=reached).rev() {
            let before = at.checked_sub(step).map_or(0.0, |before| probability[before]);
            probability[at] = 0.5 * (probability[at] + before);
        }
    }
    probability.iter().sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_model::Random;

    #[test]
    fn blocks_of_one_pair_have_the_tabulated_distribution_of_wilcoxon() {
        // Largest sums of negative ranks with a one-sided probability of at most 0.025, in every table of the
        // signed-rank test (such as Hollander, Wolfe and Chicken, table A.4).
        let table =
            [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (11, 10), (12, 13), (13, 17), (14, 21), (15, 25), (16, 29)];
        for (n, critical) in table.into_iter().chain([(17, 34), (18, 40), (19, 46), (20, 52), (25, 89), (30, 137)]) {
            let ranks: Vec<i64> = (1..=n).collect();
            assert!(heads_at_most(&ranks, critical) <= 0.025, "{n}");
            assert!(heads_at_most(&ranks, critical + 1) > 0.025, "{n}");
        }
        // R: psignrank(8, 10) = 0.02441406.
        assert!((heads_at_most(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 8) - 25.0 / 1024.0).abs() < 1e-15);
    }

    /// Interval by hand: all falls of the coins on the values themselves.
    fn by_hand(sample: &Sample, theta: f64) -> (f64, f64) {
        let centred: Vec<Vec<f64>> = sample.blocks.iter().map(|b| b.iter().map(|x| x - theta).collect()).collect();
        let all: Vec<f64> = centred.iter().flatten().map(|z: &f64| z.abs()).collect();
        let rank = |z: f64| {
            let below = all.iter().filter(|y| **y < z.abs()).count() as f64;
            below + (all.iter().filter(|y| **y == z.abs()).count() as f64 + 1.0) / 2.0
        };
        let sign = |z: f64| if z == 0.0 { 0.0 } else { z.signum() };
        let sum = |coins: u32| -> f64 {
            let coin = |n: usize| if coins >> n & 1 == 1 { -1.0 } else { 1.0 };
            centred.iter().enumerate().flat_map(|(n, b)| b.iter().map(move |z| coin(n) * sign(*z) * rank(*z))).sum()
        };
        let (seen, falls) = (sum(0), 1u32 << centred.len());
        let share = |count: usize| count as f64 / f64::from(falls);
        let above = (0..falls).filter(|c| sum(*c) >= seen).count();
        (share(above), share((0..falls).filter(|c| sum(*c) <= seen).count()))
    }

    #[test]
    fn tails_are_those_of_all_falls_of_the_coins() {
        let mut random = Random::new(3);
        for _ in 0..200 {
            // Small whole numbers: many ties and zeros. Some blocks lost a pair.
            let mut value = || random.below(9) as f64 - 4.0;
            let blocks: Vec<Vec<f64>> =
                (0..8).map(|n| (0..if n % 3 == 0 { 1 } else { 2 }).map(|_| value()).collect()).collect();
            let sample = Sample { blocks, by_pairs: false };
            for theta in [0.0, 0.5, -1.0] {
                let (above, below) = by_hand(&sample, theta);
                assert!((sample.above(theta) - above).abs() < 1e-12, "{sample:?} {theta}");
                assert!((sample.below(theta) - below).abs() < 1e-12, "{sample:?} {theta}");
            }
        }
    }

    #[test]
    fn many_blocks_are_as_good_as_exact() {
        let ranks: Vec<i64> = (1..=EXACT_BLOCKS as i64 + 1).collect();
        let most = 8_600;
        let half = heads_at_most(&ranks[1..], most) * 0.5 + heads_at_most(&ranks[1..], most - 1) * 0.5;
        assert!((heads_at_most(&ranks, most) / half - 1.0).abs() < 0.05, "{half}");
        assert_eq!(heads_at_most(&vec![0; 300], 0), 1.0);
        assert_eq!(Sample { blocks: Vec::new(), by_pairs: false }.above(0.0), 1.0);
    }
}
