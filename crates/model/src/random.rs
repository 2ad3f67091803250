//! Random numbers: the same seed gives the same sequence in every version.

/// Step of the state of [`Random`] with each number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The seed with which jobs draw in window number `window`, from 1, of a run with `seed`: that of the run in the first one,
/// later a number of SplitMix64 that `seed` starts. It has 53 bits, which every reader of JSON keeps.
pub fn seed_of_window(seed: u64, window: u32) -> u64 {
    if window <= 1 {
        return seed;
    }
    Random(seed.wrapping_add(u64::from(window).wrapping_mul(STEP))).next() >> 11
}

pub const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a of 64 bits: `hash`, and then `bytes`. It finds differences, it does not resist an adversary.
pub fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// SplitMix64 (Steele, Lea, Flood 2014): small and stable, unlike a library's default generator.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it never ends: there is no Option to return")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if `end` is 0. Its bias of `end` / 2⁶⁴ is negligible here.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// Puts `values` in random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for i in (1..values.len()).rev() {
            values.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // The reference implementation (https://prng.di.unimi.it/splitmix64.c) with seed 1234567.
        let mut random = Random::new(1_234_567);
        let first = [(); 3].map(|()| random.next());
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn each_window_of_each_run_has_a_seed_of_its_own() {
        // Neighbouring seeds as well: users count them up from run to run.
        let all: Vec<u64> = (0..100).flat_map(|seed| (1..=100).map(move |n| seed_of_window(seed, n))).collect();
        let different: std::collections::BTreeSet<u64> = all.iter().copied().collect();
        assert_eq!(different.len(), all.len());
        assert!(all.iter().all(|seed| *seed < 1 << 53));
        assert_eq!(seed_of_window(42, 1), 42);
        assert_eq!(seed_of_window(42, 7), seed_of_window(42, 7));
    }

    #[test]
    fn shuffles_keep_every_value_in_another_order() {
        let (mut random, sorted) = (Random::new(42), (0..97).collect::<Vec<usize>>());
        let mut order = sorted.clone();
        random.shuffle(&mut order);
        assert_ne!(order, sorted);
        order.sort_unstable();
        assert_eq!(order, sorted);
        let below: std::collections::BTreeSet<u64> = (0..1000).map(|_| random.below(7)).collect();
        assert!(below.into_iter().eq(0..7) && random.below(0) == 0);
    }
}
