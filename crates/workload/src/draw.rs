//! Random numbers that are the same in every language: integer arithmetic below 2⁶³, no bit operations.
//!
//! A procedure inside a database must draw the same numbers as the client, in its own arithmetic, and neither keeps a
//! state. So each number is a function of the sequence: a linear step modulo one prime, a square modulo a second, a
//! product modulo a third. All products stay below 2⁶³.

use loadline_model::Random;

/// Prime moduli below 2³¹ (the first is 2³¹ − 1).
pub const MODULI: [u64; 3] = [2_147_483_647, 2_147_483_629, 2_147_483_587];
/// Multipliers of the first and the last step.
pub const FACTORS: [u64; 2] = [1_103_515_245, 1_566_083_941];
/// Difference of the offsets of neighbouring salts.
const SALT_STEP: u64 = 715_225_739;

pub fn draw_offset(seed: u64, job: u32) -> u64 {
    let mut random = Random::new(seed ^ (u64::from(job) + 1).wrapping_mul(0x9fb2_1c65_1e98_df25));
    random.below(MODULI[0])
}

pub fn salt_offset(salt: u32) -> u64 {
    (u64::from(salt) * SALT_STEP) % MODULI[0]
}

/// The number for `sequence`, below `range`, of a job with `offset`. A range above 2³¹ uses two numbers, with the salts
/// `salt` and `salt` + [`SECOND`].
pub fn draw(sequence: u64, offset: u64, salt: u32, range: u64) -> u64 {
    let low = draw_31(sequence, offset, salt_offset(salt));
    if range <= MODULI[2] {
        return low % range.max(1);
    }
    (draw_31(sequence, offset, salt_offset(salt + SECOND)) * (1 << 31) + low) % range
}

/// Added to the salt for the upper half of a large number.
pub const SECOND: u32 = 1000;

/// A number below 2³¹; `more` is what its salt adds to the offset.
pub(crate) fn draw_31(sequence: u64, offset: u64, more: u64) -> u64 {
    let place = ((sequence % MODULI[0]) * FACTORS[0] + offset + more) % MODULI[0];
    ((place * place) % MODULI[1]) * FACTORS[1] % MODULI[2]
}

/// A number below `range` for a row's key, as in columns of scattered values.
pub fn scatter(key: i64, salt: u32, range: u64) -> i64 {
    let mut random = Random::new((key as u64) ^ (u64::from(salt) + 1).wrapping_mul(0xa076_1d64_78bd_642f));
    random.below(range) as i64
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// χ² of `counts` against their `weights`, in standard deviations from its mean. Cells with too few draws, which have no χ²
    /// distribution, are counted with the next.
    pub(crate) fn chi(counts: &[u64], weight: impl Fn(usize) -> f64) -> f64 {
        let per_weight = counts.iter().sum::<u64>() as f64 / (0..counts.len()).map(&weight).sum::<f64>();
        let (mut chi, mut cells, mut expected, mut counted) = (0.0, 0.0, 0.0, 0.0);
        for (at, count) in counts.iter().enumerate() {
            expected += per_weight * weight(at);
            counted += *count as f64;
            if expected >= 40.0 || at + 1 == counts.len() {
                chi += (counted - expected).powi(2) / expected;
                (cells, expected, counted) = (cells + 1.0, 0.0, 0.0);
            }
        }
        (chi - (cells - 1.0)) / (2.0_f64 * (cells - 1.0)).sqrt()
    }

    #[test]
    fn numbers_are_as_even_and_as_independent_as_random_ones() {
        for (job, salt) in [(0, 0), (1, 0), (7, 3), (500, 1)] {
            let offset = draw_offset(42, job);
            let numbers: Vec<u64> = (0..200_000).map(|s| draw(s, offset, salt, 100_000)).collect();
            let (mut single, mut pairs, mut apart) = (vec![0; 256], vec![0; 4096], vec![0; 4096]);
            for w in numbers.windows(3) {
                let cell = |n: u64| (n * 64 / 100_000) as usize;
                single[(w[0] * 256 / 100_000) as usize] += 1;
                pairs[cell(w[0]) * 64 + cell(w[1])] += 1;
                apart[cell(w[0]) * 64 + cell(w[2])] += 1;
            }
            for counts in [&single, &pairs, &apart] {
                let chi = chi(counts, |_| 1.0);
                assert!(chi.abs() < 5.0, "job {job}, salt {salt}: {chi}");
            }
            // As many keys are met more than once as by chance: 200,000 throws into 100,000 boxes
            // leave e⁻² of them empty.
            let mut seen = vec![false; 100_000];
            numbers.iter().for_each(|n| seen[*n as usize] = true);
            let empty = seen.iter().filter(|s| !**s).count() as f64 / 100_000.0;
            assert!((empty - (-2.0_f64).exp()).abs() < 0.005, "{empty}");
        }
    }

    #[test]
    fn salts_and_jobs_give_other_numbers() {
        let of = |job, salt| -> Vec<u64> { (0..50).map(|s| draw(s, draw_offset(1, job), salt, 1 << 30)).collect() };
        assert_ne!(of(0, 0), of(1, 0));
        assert_ne!(of(0, 0), of(0, 1));
        assert_eq!(of(3, 2), of(3, 2));
        let alike = |s: &u64| draw(*s, draw_offset(1, 0), 0, 2) == draw(*s, draw_offset(1, 0), 1, 2);
        let alike = (0..20_000).filter(alike).count();
        assert!((9_500..10_500).contains(&alike), "{alike}");
    }

    proptest! {
        #[test]
        fn numbers_stay_in_their_range(s: u64, offset in 0..MODULI[0], salt in 0..900_u32, range in 1..1_u64 << 62) {
            prop_assert!(draw(s, offset, salt, range) < range);
            prop_assert!((0..range as i64).contains(&scatter(s as i64, salt, range)));
        }
    }
}
