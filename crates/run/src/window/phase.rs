//! A phase of the window that an instrument begins and ends. Jobs count the transactions that end in it apart
//! from the others.

use std::sync::atomic::{AtomicBool, Ordering};

use loadline_model::Latencies;

/// Whether the phase is under way.
#[derive(Debug, Default)]
pub struct Phase(AtomicBool);

impl Phase {
    /// Begins or ends it.
    pub(crate) fn set(&self, under_way: bool) {
        self.0.store(under_way, Ordering::Relaxed);
    }

    /// Whether it is under way now.
    #[inline]
    pub(crate) fn under_way(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Times of transactions of the window, split by a phase.
#[derive(Debug, Clone, Default)]
pub struct Split {
    /// Those that ended while the phase was under way.
    pub inside: Latencies,
    /// The others.
    pub outside: Latencies,
}

impl Split {
    /// Counts a transaction that ended with the phase `under_way` or not.
    #[inline]
    pub(crate) fn record(&mut self, under_way: bool, ns: u64) {
        if under_way { self.inside.record(ns) } else { self.outside.record(ns) }
    }

    /// Adds another job's.
    pub(crate) fn merge(&mut self, other: &Split) {
        self.inside.merge(&other.inside);
        self.outside.merge(&other.outside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_while_it_is_under_way_is_counted_apart() {
        let (phase, mut split) = (Phase::default(), Split::default());
        for (under_way, ns) in [(false, 1000), (false, 1000), (true, 1001), (false, 1002)] {
            phase.set(under_way);
            split.record(phase.under_way(), ns);
        }
        assert_eq!((split.inside.count(), split.outside.count()), (1, 3));
        assert_eq!(split.inside.max_ns(), Some(1001));
    }
}
