//! Planted series whose truth is known, to hold the methods against.

use loadline_model::Random;

use crate::paired::simulated::normal;
use crate::steady::STEP_S;

/// How throughput comes to its plateau of 1, or leaves it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Course {
    /// It is there from the beginning.
    Flat,
    /// It lacks a share at first, which decays with a time constant, s.
    Approach(f64, f64),
    /// It rises in a straight line from a level for a time, s.
    Ramp(f64, f64),
    /// It has a level from a time until another, s.
    Level(f64, f64, f64),
}

/// A planted series: a course and noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plant {
    /// The course.
    pub course: Course,
    /// Standard deviation of a value of 0.1 s, as a share.
    pub noise: f64,
    /// How much of a value's noise the next one inherits, 0…1: autoregressive of order 1.
    pub correlation: f64,
}

impl Plant {
    /// Always the same.
    pub const FLAT: Plant = Plant { course: Course::Flat, noise: 0.0, correlation: 0.0 };

    /// Throughput at `t` s without noise.
    #[must_use]
    pub fn truth(&self, t: f64) -> f64 {
        match self.course {
            Course::Flat => 1.0,
            Course::Approach(lack, tau) => 1.0 - lack * (-t / tau).exp(),
            Course::Ramp(level, long) => level + (1.0 - level) * (t / long).min(1.0),
            Course::Level(level, from, to) => {
                if (from..to).contains(&t) {
                    level
                } else {
                    1.0
                }
            }
        }
    }

    /// `n` values of 0.1 s, the same for the same seed.
    #[must_use]
    pub fn series(&self, seed: u64, n: usize) -> Vec<f64> {
        let mut random = Random::new(seed);
        let mut noise = normal(&mut random);
        let value = |i: usize| {
            noise = self.correlation * noise + (1.0 - self.correlation.powi(2)).sqrt() * normal(&mut random);
            (self.truth(STEP_S * (i as f64 + 0.5)) * (1.0 + self.noise * noise)).max(0.0)
        };
        (0..n).map(value).collect()
    }
}
