//! The queue of what happens next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens at a moment. The number is that of a job or a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A job's transaction is back from the network.
    Back(u32),
    /// A job has had its CPU time.
    Ran(u32),
    /// The device has written a group.
    Written(u32),
    /// The writer wakes the next job of a group.
    Wake(u32),
    /// The writer has waited long enough for others to commit.
    Patience(u32),
    /// The delay before a write is over for a writer.
    Delayed(u32),
    /// A group has reached the standby.
    AtStandby(u32),
    /// The standby's device has written what it had.
    StandbyWrote,
    /// The standby's answer for a group has arrived.
    Acknowledged(u32),
}

/// Events in the order of time; those of one moment in the order in which they were planned. Times are in ticks of 0.1 ns: the longest
/// simulation of the slowest platform fits into 64 bits.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    planned: u64,
    now: u64,
}

/// Ticks in a µs.
const TICKS: f64 = 1e4;

impl Events {
    /// The time of the last event taken, ticks.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Plans `event` in `us` µs.
    pub(crate) fn after(&mut self, us: f64, event: Event) {
        self.planned += 1;
        // The cast saturates.
        let at = self.now.saturating_add((us * TICKS).round() as u64);
        self.heap.push(Reverse((at, self.planned, event)));
    }

    /// Takes the next event.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let Reverse((at, _, event)) = self.heap.pop()?;
        self.now = at;
        Some(event)
    }
}

/// µs of `ticks`.
pub(crate) fn us(ticks: u64) -> f64 {
    ticks as f64 / TICKS
}
