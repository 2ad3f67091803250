//! Planted series whose truth is known, to hold the methods against.

use loadline_model::Random;

use crate::paired::simulated::normal;
use crate::steady::STEP_S;

/// `n` values of 0.1 s, the same for the same seed. `truth` is throughput at a time, s, without noise; its plateau is 1. `noise` is the
/// standard deviation of a value, as a share, of which the next one inherits the share `correlation`: autoregressive of order 1.
#[must_use]
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
