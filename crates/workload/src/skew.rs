//! Keys that are not drawn alike: Zipf's law, and hot keys. Exact, and the same in every language: integers below 2⁶³ only, no logarithm
//! and no power, which languages round differently.
//!
//! Hot keys are two pieces of the ranks. Zipf's law by rejection: the ranks are in octaves 1, 2 to 3, 4 to 7, … A candidate is any rank r
//! of an octave, which is drawn as often as its ranks times b^−s, where b is its first rank. It is taken with the probability (b/r)^s, else
//! another candidate is drawn. This
//! power is a game of coins that show heads with the probability b/r. Its whole part: so many coins in a row must show heads. The rest c
//! of the exponent: the first coin that shows heads wins, and after tail number i the game is lost with the probability c/i (Mendo, An
//! asymptotically optimal Bernoulli factory for certain functions that can be expressed as power series, 2019, section 2).

use loadline_model::Keys;
use loadline_model::load::MILLION;
use serde::Serialize;

use crate::draw::{draw_31, salt_offset};

/// Sum of the shares of all pieces.
pub const SHARES: u64 = 1 << 48;

/// How often each key is drawn: candidates from pieces of the ranks, which are taken with a probability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skew {
    /// Pieces of the ranks, from 1: octaves, or hot ranks and the others.
    pub pieces: Vec<RankRange>,
    /// Whole part of the exponent s of Zipf's law; 0: each candidate is taken.
    pub whole: u64,
    /// The rest of s, millionths.
    pub rest: u64,
}

/// Ranks that are candidates equally often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RankRange {
    pub base: u64,
    pub size: u64,
    /// Upper bound (exclusive) of the numbers below [`SHARES`] that choose it.
    pub below: u64,
}

impl Skew {
    /// The law `keys` for `rows` keys, at least one. Shares are rounded to 2⁻⁴⁸; the numbers are part of procedures' text, so all languages
    /// have the same.
    pub fn new(keys: Keys, rows: u64) -> Skew {
        let rows = rows.max(1);
        let (exponent, mut weighted): (u64, Vec<(u64, u64, f64)>) = match keys {
            Keys::Zipf { exponent } => {
                let octave = |base: u64| {
                    let size = base.min(rows + 1 - base);
                    (base, size, size as f64 * (base as f64).powf(-(exponent as f64) / MILLION as f64))
                };
                (exponent, (0..=rows.ilog2()).map(|n| octave(1 << n)).collect())
            }
            Keys::Hot { keys, draws } => {
                let hot = ((u128::from(rows) * u128::from(keys) / u128::from(MILLION)) as u64).max(1);
                (0, vec![(1, hot, draws as f64), (hot + 1, rows - hot, (MILLION - draws) as f64)])
            }
        };
        // There are no others of one key.
        weighted.retain(|(_, size, _)| *size > 0);
        let all: f64 = weighted.iter().map(|(.., weight)| weight).sum();
        let mut sum = 0.0;
        let piece = |(base, size, weight): (u64, u64, f64)| {
            sum += weight;
            RankRange { base, size, below: (sum / all * SHARES as f64).round() as u64 }
        };
        Skew { pieces: weighted.into_iter().map(piece).collect(), whole: exponent / MILLION, rest: exponent % MILLION }
    }

    /// The key for `sequence`, from 0, of a job with `offset`: see [`crate::draw`].
    pub fn draw(&self, sequence: u64, offset: u64, salt: u32) -> u64 {
        let mut chain = Chain { sequence, offset, last: salt_offset(salt), number: 0 };
        loop {
            let share = chain.below(SHARES);
            let Some(piece) = self.pieces.iter().find(|piece| share < piece.below) else { return 0 };
            let rank = piece.base + chain.below(piece.size);
            if chain.wins(piece.base, rank, self.whole, self.rest) {
                return rank - 1;
            }
        }
    }
}

/// Random numbers for one key, as many as it needs: each follows from the one before, and from its own number, so that none comes back to an
/// earlier one.
struct Chain {
    sequence: u64,
    offset: u64,
    last: u64,
    number: u64,
}

impl Chain {
    /// A number below `end`, of 62 random bits.
    fn below(&mut self, end: u64) -> u64 {
        self.number += 1;
        let low = draw_31(self.sequence, self.offset, self.last + self.number);
        self.last = draw_31(self.sequence, self.offset, low);
        ((self.last << 31) + low) % end.max(1)
    }

    /// The game that is won with the probability (base/rank)^s.
    fn wins(&mut self, base: u64, rank: u64, whole: u64, rest: u64) -> bool {
        if (0..whole).any(|_| self.below(rank) >= base) {
            return false;
        }
        (1..).find_map(|tail| {
            if rest == 0 || self.below(rank) < base {
                return Some(true);
            }
            (self.below(tail * MILLION) < rest).then_some(false)
        }) == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::tests::chi as chi_squared;
    use crate::draw_offset;

    fn chi(keys: &str, rows: u64, draws: u64, probability: impl Fn(f64) -> f64) -> f64 {
        let skew = Skew::new(keys.parse().unwrap(), rows);
        let mut counts = vec![0_u64; rows as usize];
        (0..draws).for_each(|sequence| counts[skew.draw(sequence, draw_offset(42, 3), 7) as usize] += 1);
        chi_squared(&counts, |key| probability((key + 1) as f64))
    }

    #[test]
    fn zipf_and_hot_keys_are_exact() {
        for (s, rows, millions) in [(1.1, 1000, 10), (0.5, 100, 1), (1.0, 3, 1), (3.0, 1000, 1), (4.9, 50, 1)] {
            let z = chi(&format!("zipf:{s}"), rows, millions * 1_000_000, |rank| rank.powf(-s));
            assert!(z.abs() < 5.0, "{s}: {z}");
        }
        let z = chi("hot:10%:90%", 1000, 1_000_000, |rank| if rank <= 100.0 { 0.9 / 100.0 } else { 0.1 / 900.0 });
        assert!(z.abs() < 5.0, "hot: {z}");
        // An exponent that is off by two hundredths is seen.
        assert!(chi("zipf:1.12", 1000, 1_000_000, |rank| rank.powf(-1.1)) > 20.0);
    }

    #[test]
    fn all_numbers_of_keys_have_their_pieces() {
        for rows in [0, 1, 2, 3, 4, 100_000, 1 << 40, (1 << 40) + 1] {
            for keys in ["zipf:0.000001", "zipf:1", "zipf:4.999999", "hot:0.0001%:50%", "hot:99%:1%"] {
                let skew = Skew::new(keys.parse().unwrap(), rows);
                assert_eq!(skew.pieces.last().map(|piece| piece.below), Some(SHARES), "{keys} of {rows}");
                assert!((0..1000).all(|sequence| skew.draw(sequence, 5, 1) < rows.max(1)), "{keys} of {rows}");
            }
        }
    }
}
