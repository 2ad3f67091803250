//! A phase of the window, set by an instrument. Jobs count transactions that end in it separately.

use std::sync::atomic::{AtomicBool, Ordering};

use loadline_model::Latencies;

/// Whether the phase is active.
#[derive(Debug, Default)]
pub struct Phase(AtomicBool);

impl Phase {
    /// Starts or ends the phase.
    pub fn set(&self, active: bool) {
        self.0.store(active, Ordering::Relaxed);
    }

    /// Whether the phase is active now.
    #[inline]
    pub fn active(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Transaction times of the window, split by a phase.
#[derive(Debug, Clone, Default)]
pub struct Split {
    /// Transactions that ended in the phase.
    pub inside: Latencies,
    /// Transactions that ended outside the phase.
    pub outside: Latencies,
}

impl Split {
    /// Counts a transaction that ended with the phase `active` or not.
    #[inline]
    pub fn record(&mut self, active: bool, ns: u64) {
        if active { self.inside.record(ns) } else { self.outside.record(ns) }
    }

    /// Adds the times of another job.
    pub fn merge(&mut self, other: &Split) {
        self.inside.merge(&other.inside);
        self.outside.merge(&other.outside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_of_the_phase_are_counted_separately() {
        let (phase, mut split) = (Phase::default(), Split::default());
        for (active, ns) in [(false, 1000), (false, 1000), (true, 1001), (false, 1002)] {
            phase.set(active);
            split.record(phase.active(), ns);
        }
        assert_eq!((split.inside.count(), split.outside.count()), (1, 3));
        assert_eq!(split.inside.max_ns(), Some(1001));
    }
}
