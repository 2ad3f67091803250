//! The loop: runs fibers until each waits, then waits for all.

#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use corosensei::{Coroutine, CoroutineResult};

use crate::fiber::{self, Here, Suspend};
use crate::inbox::Inbox;
use crate::poller::Poller;
use crate::stacks::{OneStack, Stacks};
use crate::state::{Came, Core, State};
use loadline_storage::now_ns;

/// Fibers that run between two looks at what has come.
const RUN_AT_ONCE: usize = 16;
/// Fibers whose memory is fetched before their turn: a fiber runs for longer than memory takes.
const WARM_AHEAD: usize = 2;
/// Token of the inbox; those of sockets count from 0.
const INBOX: u64 = u64::MAX;

type Fiber = Coroutine<(), (), (), OneStack>;

/// Runs fibers on the thread that it was made on.
pub struct Loop {
    core: Rc<Core>,
    stacks: Rc<Stacks>,
    fibers: Vec<Option<Fiber>>,
    /// For which fibers something came.
    came: VecDeque<Came>,
    /// Tokens of what came with the last look.
    ready: Vec<u64>,
    alive: usize,
}

impl Loop {
    /// For at most `most` fibers.
    ///
    /// # Errors
    /// When the kernel refuses their stacks, or epoll.
    pub fn new(most: usize) -> io::Result<Loop> {
        let (poller, inbox) = (Poller::new()?, Inbox::new()?);
        poller.add(inbox.fd(), INBOX)?;
        let core = Core {
            poller: RefCell::new(poller),
            tokens: RefCell::default(),
            states: RefCell::default(),
            runnable: RefCell::default(),
            timers: RefCell::default(),
            inbox,
            look: Cell::default(),
            cpu: Cell::default(),
        };
        Ok(Loop {
            core: Rc::new(core),
            stacks: Stacks::map(most)?,
            fibers: Vec::new(),
            came: VecDeque::new(),
            ready: Vec::new(),
            alive: 0,
        })
    }

    /// Adds a fiber; it begins to run with the next [`Self::run`]. Returns false if there are `most` already.
    pub fn spawn(&mut self, work: impl FnOnce() + 'static) -> bool {
        let number = self.fibers.len() as u32;
        // SAFETY: each number is used once, so no other fiber has this stack.
        let Some(stack) = (unsafe { self.stacks.get(self.fibers.len()) }) else { return false };
        let core = Rc::clone(&self.core);
        let fiber = Coroutine::with_stack(stack, move |suspend: &Suspend, ()| {
            let here = Here { suspend, core, fiber: number };
            // A fiber that panics ends; whoever waits for what it does must notice that.
            let _ = catch_unwind(AssertUnwindSafe(|| fiber::enter(here, work)));
        });
        self.fibers.push(Some(fiber));
        self.core.states.borrow_mut().push(State::default());
        self.core.runnable.borrow_mut().push_back(number);
        self.alive += 1;
        true
    }

    /// Wakes all fibers that are parked.
    pub fn unpark_all(&mut self) {
        let mut states = self.core.states.borrow_mut();
        let parked = states
            .iter_mut()
            .enumerate()
            .filter_map(|(fiber, state)| std::mem::take(&mut state.parked).then_some(fiber as u32));
        self.core.runnable.borrow_mut().extend(parked);
    }

    /// Runs fibers until all have ended or `enough` says so, which is asked again and again. As long as `hurry`, fibers do
    /// not sleep.
    ///
    /// # Errors
    /// When epoll fails.
    pub fn run(&mut self, mut enough: impl FnMut() -> bool, hurry: impl Fn() -> bool) -> io::Result<()> {
        while self.alive > 0 && !enough() {
            // Only those of now: one that gives way lets all others run, and what came.
            let now = self.core.runnable.borrow().len();
            for _ in 0..now {
                let Some(fiber) = self.core.runnable.borrow_mut().pop_front() else { break };
                self.resume(fiber);
            }
            if self.alive == 0 {
                break;
            }
            // Without a timer nobody sleeps.
            if hurry() && !self.core.timers.borrow().is_empty() {
                self.wake_sleepers();
            }
            self.poll()?;
            self.due();
        }
        Ok(())
    }

    fn resume(&mut self, number: u32) {
        let Some(place) = self.fibers.get_mut(number as usize) else { return };
        let Some(fiber) = place else { return };
        if let CoroutineResult::Return(()) = fiber.resume(()) {
            *place = None;
            self.alive -= 1;
        }
    }

    /// Looks what has come, or waits for it, and runs some of the fibers that waited for it. Only some, because the next look
    /// bounds how long ago what it finds has come.
    fn poll(&mut self) -> io::Result<()> {
        let core = Rc::clone(&self.core);
        let idle = core.runnable.borrow().is_empty() && self.came.is_empty();
        core.ready(0, &mut self.ready)?;
        let mut now = now_ns();
        if self.ready.is_empty() && idle {
            core.ready(core.next_ns(now), &mut self.ready)?;
            now = now_ns();
            // Nothing was ready before.
            core.looked(now);
        }
        for token in self.ready.drain(..) {
            if token == INBOX {
                let (fibers, woken_ns) = core.inbox.take();
                self.came.extend(fibers.into_iter().filter_map(|fiber| core.unpark(fiber, woken_ns)));
            } else {
                self.came.extend(core.came(token));
            }
        }
        // Nothing else was ready then.
        core.looked(now);
        self.came.iter().take(WARM_AHEAD).for_each(|came| core.warm(came));
        for _ in 0..RUN_AT_ONCE {
            let Some(came) = self.came.pop_front() else { break };
            if let Some(later) = self.came.get(WARM_AHEAD - 1) {
                core.warm(later);
            }
            if core.still_waits(&came) {
                self.resume(came.fiber);
            }
        }
        Ok(())
    }

    /// Runs fibers whose time has come.
    fn due(&mut self) {
        if self.core.timers.borrow().is_empty() {
            return;
        }
        let now = now_ns();
        loop {
            let next = self.core.timers.borrow().peek().map(|Reverse(timer)| *timer);
            let Some((at, fiber, wait)) = next.filter(|(at, _, _)| *at <= now) else { return };
            self.core.timers.borrow_mut().pop();
            if self.core.is_due(at, fiber, wait) {
                self.resume(fiber);
            }
        }
    }

    fn wake_sleepers(&mut self) {
        let mut states = self.core.states.borrow_mut();
        let woken = states.iter_mut().enumerate().filter_map(|(fiber, state)| {
            let sleeps = std::mem::take(&mut state.sleeps);
            // So that its timer does nothing.
            state.waits = state.waits.wrapping_add(u32::from(sleeps));
            sleeps.then_some(fiber as u32)
        });
        self.core.runnable.borrow_mut().extend(woken);
    }
}
