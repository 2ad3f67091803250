//! pgbench's random numbers: xoroshiro128** seeded by splitmix64, and the distributions drawn from it.
//! Sources: PostgreSQL 15, `src/common/pg_prng.c` and `src/bin/pgbench/pgbench.c`; Blackman and Vigna, "Scrambled
//! linear pseudorandom number generators", 2018.

use std::f64::consts::PI;

use loadline_model::random::{self, Random as SplitMix};

/// A generator. The same seed gives the same numbers as in pgbench.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    s0: u64,
    s1: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut seeds = SplitMix::new(seed);
        Self { s0: seeds.next(), s1: seeds.next() }
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        let s0 = self.s0;
        let sx = self.s1 ^ s0;
        let value = s0.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.s0 = s0.rotate_left(24) ^ sx ^ (sx << 16);
        self.s1 = sx.rotate_left(37);
        value
    }

    /// Uniform in `[0, 1)`, with 52 bits.
    #[allow(clippy::cast_precision_loss)] // 52 bits fit.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next_u64() >> 12) as f64 / (1_u64 << 52) as f64
    }

    /// Uniform in `min..=max`; `min` if the range is empty. Draws nothing for a range of one.
    pub(crate) fn uniform(&mut self, min: i64, max: i64) -> i64 {
        if max <= min {
            return min;
        }
        let range = max.wrapping_sub(min).cast_unsigned();
        let shift = range.leading_zeros();
        loop {
            let value = self.next_u64() >> shift;
            if value <= range {
                return min.wrapping_add(value.cast_signed());
            }
        }
    }

    /// Exponential with `parameter > 0`, cut at 1 and scaled to `min..=max`.
    pub(crate) fn exponential(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.unit();
        let share = -(cut + (1.0 - cut) * uniform).ln() / parameter;
        scaled(min, max, share)
    }

    /// Normal, drawn again until within `±parameter` standard deviations, scaled to `min..=max`.
    pub(crate) fn gaussian(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        loop {
            let (u1, u2) = (1.0 - self.unit(), 1.0 - self.unit());
            let deviation = (-2.0 * u1.ln()).sqrt() * (2.0 * PI * u2).sin();
            if (-parameter..parameter).contains(&deviation) {
                return scaled(min, max, (deviation + parameter) / (parameter * 2.0));
            }
        }
    }

    /// Zipfian with exponent `s > 1` over `min..=max`, by rejection. Source: Devroye, "Non-Uniform Random Variate
    /// Generation", 1986, p. 550-551.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    pub(crate) fn zipfian(&mut self, min: i64, max: i64, s: f64) -> i64 {
        let n = max.wrapping_sub(min).wrapping_add(1);
        if n <= 1 {
            return min;
        }
        let b = 2.0_f64.powf(s - 1.0);
        loop {
            let (u, v) = (self.unit(), self.unit());
            let x = u.powf(-1.0 / (s - 1.0)).floor();
            let t = (1.0 + 1.0 / x).powf(s - 1.0);
            if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= n as f64 {
                return min.wrapping_sub(1).wrapping_add(x as i64);
            }
        }
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn scaled(min: i64, max: i64, share: f64) -> i64 {
    let count = max.wrapping_sub(min).wrapping_add(1) as f64;
    min.wrapping_add((count * share) as i64)
}

/// The place of `value` in the pseudorandom permutation of `0..size` that `seed` selects; 0 for a size below 2.
pub(crate) fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut random = Random::new(seed.cast_unsigned());
    let size = size.cast_unsigned();
    let bits = 63 - size.leading_zeros();
    let mask = (1_u64 << bits) - 1;
    let mut v = value.cast_unsigned() % size;
    let turned = |v: u64, m: u64, r: u64| {
        let v = (v.wrapping_mul(m) ^ r) & mask;
        ((v << 1) & mask) | (v >> (bits - 1))
    };
    for _ in 0..6 {
        let (m, r) = ((random.next_u64() & mask) | 1, random.next_u64() & mask);
        if v <= mask {
            v = turned(v, m, r);
        }
        let (m, r) = ((random.next_u64() & mask) | 1, random.next_u64() & mask);
        let t = size - 1 - v;
        if t <= mask {
            v = size - 1 - turned(t, m, r);
        }
        let offset = random.uniform(0, (size - 1).cast_signed()).cast_unsigned();
        v = (v + offset) % size;
    }
    v.cast_signed()
}

/// FNV-1a of the eight bytes of `value`, low byte first.
pub(crate) fn fnv1a(value: i64, seed: i64) -> i64 {
    random::fnv1a(random::FNV_START ^ seed.cast_unsigned(), &value.to_le_bytes()).cast_signed()
}

/// MurmurHash2 of the eight bytes of `value`.
pub(crate) fn murmur2(value: i64, seed: i64) -> i64 {
    const MUL: u64 = 0xc6a4_a793_5bd1_e995;
    let mut k = value.cast_unsigned().wrapping_mul(MUL);
    k = (k ^ (k >> 47)).wrapping_mul(MUL);
    let mut hash = seed.cast_unsigned() ^ MUL.wrapping_mul(8);
    hash = (hash ^ k).wrapping_mul(MUL);
    hash = (hash ^ (hash >> 47)).wrapping_mul(MUL);
    (hash ^ (hash >> 47)).cast_signed()
}
