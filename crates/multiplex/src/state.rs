//! What a loop and its fibers know of each other.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;

use crate::clock::now_ns;
use crate::inbox::Inbox;
use crate::poller::Poller;

/// How often a loop looks whether it should stop, ns.
const LOOK_NS: u64 = 20_000_000;

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
    /// Waits for a time only.
    pub(crate) sleeps: bool,
    /// Waits in `park`.
    pub(crate) parked: bool,
    /// Was woken before it parked.
    pub(crate) woken: bool,
    /// What came for it waited at most this long until it ran, ns; since the last question.
    pub(crate) late_ns: u64,
    /// Number of waits when it last gave way.
    pub(crate) gave_way: u32,
}

/// Something came for a fiber.
pub(crate) struct Came {
    pub(crate) fiber: u32,
    /// Number of its wait.
    wait: u32,
    /// When it came at the earliest, ns.
    since_ns: u64,
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
    /// What is ready now was not ready at this time, ns.
    pub(crate) since_ns: Cell<u64>,
}

impl Core {
    /// Tokens of all that is ready within `ns`.
    pub(crate) fn ready(&self, ns: u64) -> io::Result<Vec<u64>> {
        // And the inbox.
        let sockets = self.tokens.borrow().len() + 1;
        Ok(self.poller.borrow_mut().wait(ns, sockets)?.collect())
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
        Some(Came { fiber, wait: state.waits, since_ns: state.waits_since_ns.max(self.since_ns.get()) })
    }

    /// Somebody wants a fiber to run again. Returns it if it is parked; otherwise it will not park the next time.
    pub(crate) fn unpark(&self, fiber: u32, since_ns: u64) -> Option<Came> {
        let mut states = self.states.borrow_mut();
        let state = states.get_mut(fiber as usize)?;
        state.woken = !state.parked;
        std::mem::take(&mut state.parked).then_some(Came { fiber, wait: state.waits, since_ns })
    }

    /// Whether the fiber still waits for this, and has not gone on because its time was up. It is late by now.
    pub(crate) fn still_waits(&self, came: &Came) -> bool {
        let mut states = self.states.borrow_mut();
        let Some(state) = states.get_mut(came.fiber as usize).filter(|s| s.waits == came.wait) else { return false };
        state.late_ns += now_ns().saturating_sub(came.since_ns);
        true
    }

    /// Changes a token; `None` if there is none of this number.
    pub(crate) fn token<T>(&self, token: u32, change: impl FnOnce(&mut Token) -> T) -> Option<T> {
        self.tokens.borrow_mut().get_mut(token as usize).map(change)
    }
}
