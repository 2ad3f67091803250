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
    /// Tokens of what is ready within `ns`, and whether there may be more.
    pub(crate) fn ready(&self, ns: u64) -> io::Result<(Vec<u64>, bool)> {
        let mut poller = self.poller.borrow_mut();
        let (tokens, more) = poller.wait(ns)?;
        Ok((tokens.collect(), more))
    }

    /// How long to wait at most, ns.
    pub(crate) fn next_ns(&self, now: u64) -> u64 {
        let timers = self.timers.borrow();
        timers.peek().map_or(LOOK_NS, |Reverse((at, _, _))| at.saturating_sub(now).min(LOOK_NS))
    }

    /// Something came for a socket. Returns the fiber that waits for it.
    pub(crate) fn came(&self, token: u64) -> Option<u32> {
        let mut tokens = self.tokens.borrow_mut();
        let token = tokens.get_mut(usize::try_from(token).ok()?)?;
        token.ready = token.waiting.is_none();
        let fiber = token.waiting.take()?;
        if let Some(state) = self.states.borrow_mut().get_mut(fiber as usize) {
            state.late_ns += now_ns().saturating_sub(self.since_ns.get());
        }
        Some(fiber)
    }

    /// Wakes a fiber, which somebody wanted at `woken_ns` at the earliest. Whether it was parked; otherwise it will not park the next time.
    pub(crate) fn unpark(&self, fiber: u32, woken_ns: u64) -> bool {
        let mut states = self.states.borrow_mut();
        let Some(state) = states.get_mut(fiber as usize) else { return false };
        state.woken = !state.parked;
        state.late_ns += now_ns().saturating_sub(woken_ns);
        std::mem::take(&mut state.parked)
    }

    /// Changes a token; `None` if there is none of this number.
    pub(crate) fn token<T>(&self, token: u32, change: impl FnOnce(&mut Token) -> T) -> Option<T> {
        self.tokens.borrow_mut().get_mut(token as usize).map(change)
    }
}
