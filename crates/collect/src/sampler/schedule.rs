//! Schedule of the readings: arithmetic on ns.

use std::time::Duration;

use loadline_storage::now_ns;

/// In this time before an announced reading nothing else is read: a query on a loaded database may take that long and would
/// delay that reading.
pub(super) const GUARD_NS: u64 = 50_000_000;
pub(super) const SECOND_NS: u64 = 1_000_000_000;

/// Time until `at_ns`; zero if it is past.
pub(super) fn until(at_ns: u64) -> Duration {
    Duration::from_nanos(at_ns.saturating_sub(now_ns()))
}

/// First time after `now_ns` that is a whole number of steps from `origin_ns` (past or future).
pub(super) fn next_step(origin_ns: u64, now_ns: u64, step_ns: u64) -> u64 {
    let since = i128::from(now_ns) - i128::from(origin_ns);
    let step = i128::from(step_ns.max(1));
    let next = i128::from(origin_ns) + (since.div_euclid(step) + 1) * step;
    u64::try_from(next).unwrap_or(u64::MAX)
}

/// One wait sample per slot of `1/hz`, each at a different place in its slot. Databases do much at fixed intervals (a WAL
/// writer every 200 ms), and synchronous samples would always see the same. The places are the golden-ratio sequence, which
/// is even and needs no random numbers.
#[derive(Debug)]
pub(super) struct WaitSlots {
    start_ns: u64,
    slot_ns: f64,
    next: u64,
}

impl WaitSlots {
    /// Slots from `start_ns` on; `None` unless `hz` is above 0.
    pub(super) fn new(start_ns: u64, hz: f64) -> Option<WaitSlots> {
        (hz > 0.0).then(|| WaitSlots { start_ns, slot_ns: 1e9 / hz, next: 0 })
    }

    pub(super) fn due_ns(&self) -> u64 {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let place = (self.next as f64 * GOLDEN).fract();
        self.start_ns.saturating_add(((self.next as f64 + place) * self.slot_ns) as u64)
    }

    /// Advances to the next slot, at least to the one of `now_ns`: missed slots are skipped, not made up in a burst.
    pub(super) fn advance(&mut self, now_ns: u64) {
        let current = (now_ns.saturating_sub(self.start_ns) as f64 / self.slot_ns) as u64;
        self.next = (self.next + 1).max(current);
        if self.due_ns() <= now_ns {
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn seconds_are_counted_from_an_origin_past_or_to_come() {
        assert_eq!(until(now_ns()), Duration::ZERO);
        assert_eq!(next_step(5 * S + 7, 5 * S + 7, S), 6 * S + 7);
        assert_eq!(next_step(5 * S + 7, 5 * S + 6, S), 5 * S + 7);
        assert_eq!(next_step(5 * S + 7, 9 * S, S), 9 * S + 7);
        assert_eq!(next_step(5 * S + 7, 1, S), 7);
        assert_eq!(next_step(5 * S + 7, 7, S), S + 7);
        assert_eq!(next_step(u64::MAX, u64::MAX, S), u64::MAX);
        assert_eq!(next_step(5 * S + 7, 9 * S, S / 10), 9 * S + 7);
        assert_eq!(next_step(5 * S + 7, 9 * S + 7, S / 10), 9 * S + S / 10 + 7);
    }

    #[test]
    fn each_slot_has_one_sample_in_another_place() {
        let mut slots = WaitSlots::new(3 * S, 10.0).unwrap();
        let mut places = Vec::new();
        for n in 0..100u64 {
            let due = slots.due_ns();
            let slot = 3 * S + n * S / 10;
            assert!((slot..slot + S / 10).contains(&due), "sample {n} at {due}");
            places.push((due - slot) / (S / 100));
            slots.advance(due);
        }
        let mut counts = [0; 10];
        places.iter().for_each(|p| counts[*p as usize] += 1);
        assert!(counts.iter().all(|c| (8..=12).contains(c)), "{counts:?}");
        // Missed slots are left out.
        let mut slots = WaitSlots::new(0, 10.0).unwrap();
        slots.advance(5 * S + 42);
        assert!(slots.due_ns() > 5 * S + 42 && slots.due_ns() < 5 * S + 2 * S / 10 + 42);
        assert!(WaitSlots::new(0, 0.0).is_none());
    }
}
