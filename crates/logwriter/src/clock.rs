//! The engine's clock, injected so that tests are deterministic.

use std::time::Instant;

/// A clock that never goes back.
pub trait Clock: Send + Sync {
    /// Nanoseconds since some moment before the log was opened.
    fn now_ns(&self) -> u64;
}

/// `CLOCK_MONOTONIC`, counted from its creation.
#[derive(Clone, Copy, Debug)]
pub struct Monotonic(Instant);

impl Monotonic {
    /// A clock that starts now.
    pub fn new() -> Self {
        Self(Instant::now())
    }
}

impl Default for Monotonic {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for Monotonic {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
