//! A simulated machine and planted series whose truth is known, to hold the statistics against.

use loadline_model::{Column, InPair, Letter as Arm, Random, TestRecord};

use super::{Pair, order};
use crate::steady::STEP_S;

/// How windows of equal work vary on a machine; all in logarithms, so 0.03 is 3 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Standard deviation of the lognormal noise of a window.
    pub noise: f64,
    /// How much of a window's noise the next one inherits, 0…1.
    pub correlation: f64,
    /// Whether the noise has the tails of Student's t with two degrees of freedom, which has no variance.
    pub heavy: bool,
    /// Linear drift from the first to the last window.
    pub drift: f64,
    /// Amplitude of a wave that comes back every four windows, as a block does.
    pub wave: f64,
    /// Share of windows that stall to a tenth.
    pub stalls: f64,
}

impl Machine {
    /// Nothing but lognormal noise of 3 %.
    pub const QUIET: Machine =
        Machine { noise: 0.03, correlation: 0.0, heavy: false, drift: 0.0, wave: 0.0, stalls: 0.0 };
    /// Noise with a drift of 50 % and 5 % of windows stalled.
    pub const ROUGH: Machine = Machine { drift: 0.405, stalls: 0.05, ..Machine::QUIET };

    /// One run: `pairs` pairs in random order, of which B is `ratio` times A.
    pub fn run(&self, random: &mut Random, pairs: usize, ratio: f64) -> Vec<Pair> {
        let start = self.start(random);
        let order = order(random.next(), pairs);
        let windows = self.windows(random, 2 * pairs, start);
        let figure = |arm: Arm, of: f64| of * if arm == Arm::B { ratio } else { 1.0 };
        let pair = |(arms, both): (&[Arm; 2], &[f64])| {
            let (first, second) = (figure(arms[0], both[0]), figure(arms[1], both[1]));
            if arms[0] == Arm::A { Pair::new(first, second) } else { Pair::new(second, first) }
        };
        order.iter().zip(windows.chunks_exact(2)).map(pair).collect()
    }

    /// The figures of `count` windows, or of as many runs.
    pub fn series(&self, random: &mut Random, count: usize) -> Vec<f64> {
        let start = self.start(random);
        self.windows(random, count, start)
    }

    fn start(&self, random: &mut Random) -> (f64, f64) {
        (std::f64::consts::TAU * unit(random), self.noise * normal(random))
    }

    fn windows(&self, random: &mut Random, count: usize, (phase, mut inherited): (f64, f64)) -> Vec<f64> {
        let window = |number: usize| {
            inherited =
                self.correlation * inherited + (1.0 - self.correlation.powi(2)).sqrt() * self.noise * normal(random);
            let tail = if self.heavy { (-unit(random).ln()).sqrt() } else { 1.0 };
            let time = number as f64;
            let wave = self.wave * (std::f64::consts::FRAC_PI_2 * time + phase).sin();
            let stalled = if unit(random) < self.stalls { -std::f64::consts::LN_10 } else { 0.0 };
            let log = inherited / tail + self.drift * (time + 1.0) / count as f64 + wave + stalled;
            1000.0 * log.exp()
        };
        (0..count).map(window).collect()
    }
}

/// A number above 0, up to 1.
pub fn unit(random: &mut Random) -> f64 {
    ((random.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// A standard normal number (Box and Muller 1958).
pub fn normal(random: &mut Random) -> f64 {
    (-2.0 * unit(random).ln()).sqrt() * (std::f64::consts::TAU * unit(random)).cos()
}

/// `n` values of 0.1 s, the same for the same seed. `truth` is throughput at a time, s, without noise; its plateau is 1. `noise` is the
/// standard deviation of a value, as a share, of which the next one inherits the share `correlation`: autoregressive of order 1.
pub fn series(truth: impl Fn(f64) -> f64, noise: f64, correlation: f64, seed: u64, n: usize) -> Vec<f64> {
    let mut random = Random::new(seed);
    let mut inherited = normal(&mut random);
    let value = |i: usize| {
        inherited = correlation * inherited + (1.0 - correlation.powi(2)).sqrt() * normal(&mut random);
        (truth(STEP_S * (i as f64 + 0.5)) * (1.0 + noise * inherited)).max(0.0)
    };
    (0..n).map(value).collect()
}

/// A throughput of 1 that is `level` from a time until another, s.
pub fn level(level: f64, from_s: f64, to_s: f64) -> impl Fn(f64) -> f64 + Copy {
    move |t| if (from_s..to_s).contains(&t) { level } else { 1.0 }
}

/// Tests of the log writer in `pairs` pairs, in blocks ABBA and numbered from 1, with the figures that `figures` gives a test of an arm.
pub fn windows(pairs: u32, figures: impl Fn(u32, Arm) -> Vec<(&'static Column, f64)>) -> Vec<TestRecord> {
    let window = |test: u32| {
        let arm = if test % 4 < 2 { Arm::A } else { Arm::B };
        let blank = TestRecord::blank("LGWR-LAT1");
        let mut r = TestRecord { test, repetition: test.div_ceil(2), variant: Some(InPair::of_two(arm)), ..blank };
        (r.group, r.run) = ("log-writer".to_owned(), "run-1".to_owned());
        figures(test, arm).into_iter().for_each(|(column, value)| r.set(column, value));
        r
    };
    (1..=2 * pairs).map(window).collect()
}
