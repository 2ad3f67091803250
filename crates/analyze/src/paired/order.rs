//! The order in which the windows of two arms are measured.
//!
//! Source: Cox, Some systematic experimental designs, Biometrika 38 (1951) 312, for orders in which a trend cancels;
//! the random choice between two of them is Fisher's (see [`super::flips`]).

use loadline_model::{Letter as Arm, Random};

pub const BLOCK: usize = 2;

/// The order of the arms in `pairs` pairs: blocks ABBA or BAAB, each by its own coin; of a block that is cut off, the
/// first pair. The arms stand at the same mean time in each block, so a linear drift of the logarithm cancels. More
/// pairs never change those before them.
///
/// Each comparison of each run needs a seed of its own, drawn when the run is made and stored with it: an interval is
/// as valid as its coins are unforeseeable, and a disturbance may well come at the same time in every run.
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
        // The second pair of a block is the first one backwards: in ABBA and BAAB places 1 + 4 and 2 + 3 are one arm
        // each.
        assert!(blocks.iter().all(|[x, y]| x[0] == y[1] && x[1] == y[0]));
        let begin_with_a = blocks.iter().filter(|b| b[0][0] == Arm::A).count();
        // 500 fair coins: four standard deviations are 45.
        assert!((205..=295).contains(&begin_with_a), "{begin_with_a}");
        assert_ne!(order(8, 20), order(7, 20));
    }
}
