//! One direction of a link: when a piece is due that was received now.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use loadline_model::random::Random;

/// Most bytes of a read.
pub(super) const READ: usize = 256 << 10;
/// Bytes per second for which the queue of a link without a limit suffices.
const FAST: u64 = 1 << 30;
/// Bytes that may wait besides those under way: on a link without a limit, and at least on one with a limit.
const BESIDES: (usize, usize) = (8 << 20, 256 << 10);
/// Most bytes that are under way, however long the link is.
const MOST: usize = 1 << 30;
/// A limited link holds what it sends in this time, as a router does.
const BUFFERED: Duration = Duration::from_millis(50);

/// The network between a database and a replica.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Link {
    /// One-way delay, counted from the moment of receipt.
    pub delay: Duration,
    /// Most that a delay is longer by, drawn for each piece that is received; the order is kept.
    pub jitter: Duration,
    /// Most bytes per second in each direction; `None`: no limit.
    pub bytes_per_s: Option<u64>,
}

pub(super) struct Way(Mutex<State>);

struct State {
    link: Link,
    /// When a limited link has sent what it received so far, ns.
    free_ns: u64,
    random: Random,
}

impl Way {
    /// A direction without delay.
    pub(super) fn new(seed: u64) -> Way {
        Way(Mutex::new(State { link: Link::default(), free_ns: 0, random: Random::new(seed) }))
    }

    pub(super) fn set(&self, link: Link) {
        self.with(|state| state.link = link);
    }

    /// Whether it neither delays nor limits.
    pub(super) fn is_plain(&self) -> bool {
        self.with(|state| state.link == Link::default())
    }

    /// When a piece of `bytes` is due that was received at `received_ns`: it is sent behind those before it, at the link's
    /// rate, and then takes its delay.
    pub(super) fn due(&self, received_ns: u64, bytes: usize) -> u64 {
        self.with(|state| {
            let Link { delay, jitter, bytes_per_s } = state.link;
            let sent = bytes_per_s.map_or(received_ns, |rate| {
                let takes = (bytes as f64 * 1e9 / rate.max(1) as f64) as u64;
                state.free_ns = state.free_ns.max(received_ns).saturating_add(takes);
                state.free_ns
            });
            let part = (state.random.next() >> 11) as f64 / (1_u64 << 53) as f64;
            let takes = delay.as_nanos() as f64 + jitter.as_nanos() as f64 * part;
            sent.saturating_add(takes as u64)
        })
    }

    /// Most bytes of a read: a limited link sends in pieces of at most 5 ms.
    pub(super) fn read_bytes(&self) -> usize {
        let rate = self.with(|state| state.link.bytes_per_s);
        rate.map_or(READ, |rate| usize::try_from(rate / 200).unwrap_or(READ).clamp(1024, READ))
    }

    /// Most bytes of memory that what is under way takes.
    pub(super) fn capacity(&self) -> usize {
        let Link { delay, jitter, bytes_per_s } = self.with(|state| state.link);
        let rate = bytes_per_s.unwrap_or(FAST).min(FAST) as f64;
        let in_time = |time: Duration| (time.as_secs_f64() * rate) as usize;
        let besides = if bytes_per_s.is_some() { in_time(BUFFERED).clamp(BESIDES.1, BESIDES.0) } else { BESIDES.0 };
        // A read need not fill its buffer.
        in_time(delay.saturating_add(jitter)).saturating_mul(2).saturating_add(besides).min(MOST)
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
