//! What a loop and its fibers know of each other.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;

use crate::inbox::Inbox;
use crate::poller::Poller;
use crate::warm::Warm;
use loadline_storage::{now_ns, thread_cpu_ns};

/// How often a loop looks whether it should stop, ns.
const LOOK_NS: u64 = 20_000_000;

/// The thread's CPU time is read this often at most, ns: reading it takes a hundredth of that.
const CPU_EVERY_NS: u64 = 20_000;

/// A look at what has come.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Look {
    /// When, ns.
    pub(crate) at_ns: u64,
    /// The last reading before.
    cpu: CpuReading,
}

/// The CPU time of the thread.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuReading {
    /// Not later than this on the clock, ns.
    at_ns: u64,
    cpu_ns: u64,
    /// How long reading it took, ns.
    took_ns: u64,
}

impl CpuReading {
    /// This one, or one of `now` if it is too old.
    fn at(self, now: u64) -> CpuReading {
        if now.saturating_sub(self.at_ns) < CPU_EVERY_NS {
            return self;
        }
        let cpu_ns = thread_cpu_ns();
        CpuReading { at_ns: now, cpu_ns, took_ns: now_ns().saturating_sub(now) }
    }

    /// How long the thread has had a CPU from the look after `earlier` until `now`, at most, ns. This is the last reading.
    fn had_cpu_since(&self, earlier: &CpuReading, now: u64) -> u64 {
        let read = self.cpu_ns.saturating_sub(earlier.cpu_ns);
        // While it was read, and since then, the thread may have run all the time.
        read + earlier.took_ns + now.saturating_sub(self.at_ns)
    }
}

/// How long what came for a fiber waited until it ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Late {
    /// At most, ns.
    pub ns: u64,
    /// The part of it in which the thread had a CPU, for other fibers, at most, ns. In the rest it waited for one.
    pub cpu_ns: u64,
}

impl Late {
    /// Another wait of `ns`, in which the thread had a CPU for `cpu_ns` at most.
    fn add(&mut self, ns: u64, cpu_ns: u64) {
        self.ns += ns;
        self.cpu_ns += cpu_ns.min(ns);
    }
}

/// What a socket has to say.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Token {
    /// Something came that nobody waited for.
    pub(crate) ready: bool,
    /// The fiber that waits for it.
    pub(crate) waiting: Option<u32>,
}

/// What a fiber does.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct State {
    /// How many times it has waited.
    pub(crate) waits: u32,
    /// When it began to wait for a socket, ns.
    pub(crate) waits_since_ns: u64,
    /// When it began to send what it has not waited for yet, ns; 0 for nothing.
    pub(crate) sent_ns: u64,
    /// Waits for a time only.
    pub(crate) sleeps: bool,
    /// Waits in `park`.
    pub(crate) parked: bool,
    /// Was woken before it parked.
    pub(crate) woken: bool,
    /// How long what came for it has waited since the last question.
    pub(crate) late: Late,
    /// Number of waits when it last gave way.
    pub(crate) gave_way: u32,
    /// Memory that it will use first when it goes on.
    pub(crate) warm: Warm,
}

/// Something came for a fiber.
pub(crate) struct Came {
    pub(crate) fiber: u32,
    /// Number of its wait.
    wait: u32,
    /// When it came at the earliest, ns.
    since_ns: u64,
    /// The last look before that.
    look: Look,
}

/// What a loop and its fibers share.
pub(crate) struct Core {
    pub(crate) poller: RefCell<Poller>,
    pub(crate) tokens: RefCell<Vec<Token>>,
    pub(crate) states: RefCell<Vec<State>>,
    /// Fibers that can go on.
    pub(crate) runnable: RefCell<VecDeque<u32>>,
    /// When, which fiber, and the number of its wait.
    pub(crate) timers: RefCell<BinaryHeap<Reverse<(u64, u32, u32)>>>,
    pub(crate) inbox: Arc<Inbox>,
    /// What is ready now was not ready at this look.
    pub(crate) look: Cell<Look>,
    /// The last reading.
    pub(crate) cpu: Cell<CpuReading>,
}

impl Core {
    /// Puts the tokens of all that is ready within `ns` into `into`.
    pub(crate) fn ready(&self, ns: u64, into: &mut Vec<u64>) -> io::Result<()> {
        // And the inbox.
        let sockets = self.tokens.borrow().len() + 1;
        into.clear();
        into.extend(self.poller.borrow_mut().wait(ns, sockets)?);
        Ok(())
    }

    /// Fetches what the fiber will use into the CPU's caches.
    #[inline]
    pub(crate) fn warm(&self, came: &Came) {
        if let Some(state) = self.states.borrow().get(came.fiber as usize) {
            state.warm.fetch();
        }
    }

    /// What is not ready now has not come before `now`.
    pub(crate) fn looked(&self, now: u64) {
        self.look.set(Look { at_ns: now, cpu: self.read_cpu(now) });
    }

    fn read_cpu(&self, now: u64) -> CpuReading {
        let cpu = self.cpu.get().at(now);
        self.cpu.set(cpu);
        cpu
    }

    /// How long to wait at most, ns.
    pub(crate) fn next_ns(&self, now: u64) -> u64 {
        let timers = self.timers.borrow();
        timers.peek().map_or(LOOK_NS, |Reverse((at, _, _))| at.saturating_sub(now).min(LOOK_NS))
    }

    /// Something came for a socket. Returns for which fiber, if one waits for it.
    pub(crate) fn came(&self, token: u64) -> Option<Came> {
        let mut tokens = self.tokens.borrow_mut();
        let token = tokens.get_mut(usize::try_from(token).ok()?)?;
        token.ready = token.waiting.is_none();
        let fiber = token.waiting.take()?;
        let state = *self.states.borrow().get(fiber as usize)?;
        let look = self.look.get();
        Some(Came { fiber, wait: state.waits, since_ns: state.waits_since_ns.max(look.at_ns), look })
    }

    /// Somebody wants a fiber to run again. Returns it if it is parked; otherwise it will not park the next time.
    pub(crate) fn unpark(&self, fiber: u32, since_ns: u64) -> Option<Came> {
        let mut states = self.states.borrow_mut();
        let state = states.get_mut(fiber as usize)?;
        state.woken = !state.parked;
        std::mem::take(&mut state.parked).then_some(Came { fiber, wait: state.waits, since_ns, look: self.look.get() })
    }

    /// Whether the fiber still waits for this, and has not gone on because its time was up. It is late by now.
    pub(crate) fn still_waits(&self, came: &Came) -> bool {
        let mut states = self.states.borrow_mut();
        let Some(state) = states.get_mut(came.fiber as usize).filter(|s| s.waits == came.wait) else { return false };
        let now = now_ns();
        // Read again before a fiber, not only at a look: a thread loses its CPU to those whom its fibers wake.
        let had_cpu_ns = self.read_cpu(now).had_cpu_since(&came.look.cpu, now);
        state.late.add(now.saturating_sub(came.since_ns), had_cpu_ns);
        true
    }

    /// Whether the fiber still is in this wait, whose time `at_ns` has come. One that slept is late by now; who had the CPU meanwhile
    /// is not known.
    pub(crate) fn is_due(&self, at_ns: u64, fiber: u32, wait: u32) -> bool {
        let mut states = self.states.borrow_mut();
        let Some(state) = states.get_mut(fiber as usize).filter(|s| s.waits == wait) else { return false };
        if state.sleeps {
            let ns = now_ns().saturating_sub(at_ns);
            state.late.add(ns, ns);
        }
        true
    }

    /// Changes a token; `None` if there is none of this number.
    pub(crate) fn token<T>(&self, token: u32, change: impl FnOnce(&mut Token) -> T) -> Option<T> {
        self.tokens.borrow_mut().get_mut(token as usize).map(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_between_looks_is_never_less_than_it_was() {
        // Looks 5 µs apart, of which some read the CPU time; between them the thread runs or waits.
        let (mut looks, mut truth) = (Vec::new(), Vec::new());
        let mut reading = CpuReading::default().at(now_ns());
        for round in 0..300_u32 {
            if round % 50 == 0 {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            let until = now_ns() + 5_000;
            while now_ns() < until {}
            let now = now_ns();
            reading = reading.at(now);
            looks.push((now, reading));
            truth.push(thread_cpu_ns());
        }
        // Between the look and the end, so not more than the truth.
        let (last, cpu, now) = (looks[299].1, thread_cpu_ns(), now_ns());
        for ((at_ns, earlier), at) in looks.iter().zip(&truth) {
            let (said, wall) = (last.had_cpu_since(earlier, now), now - at_ns);
            let measured = cpu.saturating_sub(*at);
            assert!(said >= measured, "{said} of {measured} ns in {wall} ns");
        }
        let (said, wall) = (last.had_cpu_since(&looks[0].1, now), now - looks[0].0);
        assert!(said < wall / 2, "sleeping counts as well: {said} of {wall} ns");
    }
}
