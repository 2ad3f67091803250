//! What a fiber can wait for.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use corosensei::Yielder;

use crate::inbox::{Inbox, Waker};
use crate::state::{Core, Late, State, Token};
use crate::warm::Warm;
use loadline_storage::now_ns;

pub(crate) type Suspend = Yielder<(), ()>;

/// Where a fiber runs.
pub(crate) struct Here<'a> {
    pub(crate) suspend: &'a Suspend,
    pub(crate) core: Rc<Core>,
    pub(crate) fiber: u32,
}

thread_local! {
    /// The fiber that this thread runs now, or null.
    static CURRENT: Cell<*const Here<'static>> = const { Cell::new(ptr::null()) };
}

/// Runs the work of a fiber.
pub(crate) fn enter(here: Here<'_>, work: impl FnOnce()) {
    /// Also after a panic.
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            CURRENT.set(ptr::null());
        }
    }
    CURRENT.set((&raw const here).cast());
    let _leave = Leave;
    work();
}

/// Calls `f` with the fiber that runs now.
#[inline]
fn with<T>(f: impl FnOnce(&Here<'_>) -> T) -> Option<T> {
    let here = CURRENT.get();
    // SAFETY: not null only while `enter` of the fiber that runs on this thread is on its stack, where `here` lives:
    // it is cleared when the fiber suspends or ends and set again when it goes on.
    unsafe { here.as_ref() }.map(f)
}

impl Here<'_> {
    fn state<T>(&self, change: impl FnOnce(&mut State) -> T) -> Option<T> {
        self.core.states.borrow_mut().get_mut(self.fiber as usize).map(change)
    }

    /// Lets others run until the fiber is resumed.
    fn wait(&self) {
        CURRENT.set(ptr::null());
        self.suspend.suspend(());
        CURRENT.set(ptr::from_ref(self).cast());
        self.state(|state| {
            state.waits = state.waits.wrapping_add(1);
            state.sleeps = false;
        });
    }

    fn timer(&self, at_ns: u64) {
        if let Some(waits) = self.state(|state| state.waits) {
            self.core.timers.borrow_mut().push(std::cmp::Reverse((at_ns, self.fiber, waits)));
        }
    }
}

/// Whether a fiber runs on this thread now.
#[inline]
#[must_use]
pub fn active() -> bool {
    !CURRENT.get().is_null()
}

/// Lets the other fibers run if this one has not waited since it last gave way.
#[inline]
pub fn give_way() {
    with(|here| {
        let waited = here.state(|state| std::mem::replace(&mut state.gave_way, state.waits) != state.waits);
        if waited == Some(false) {
            here.core.runnable.borrow_mut().push_back(here.fiber);
            here.wait();
            here.state(|state| state.gave_way = state.waits);
        }
    });
}

/// Waits until `ns` on the clock, or until the loop is in a hurry. Returns false outside a fiber, at once.
pub fn sleep_until(ns: u64) -> bool {
    let slept = with(|here| {
        here.timer(ns);
        here.state(|state| state.sleeps = true);
        here.wait();
    });
    slept.is_some()
}

/// Waits until somebody wakes the fiber by its [`waker`] or all by [`crate::Loop::unpark_all`]. Outside a fiber returns at
/// once.
pub fn park() {
    with(|here| {
        let woken = here.state(|state| {
            state.parked = !state.woken;
            std::mem::take(&mut state.woken)
        });
        if woken == Some(false) {
            here.wait();
        }
    });
}

/// Wakes this fiber from another thread; `None` outside a fiber.
#[must_use]
pub fn waker() -> Option<Waker> {
    with(|here| Waker { inbox: Arc::clone(&here.core.inbox), fiber: here.fiber })
}

/// How long at most what came for this fiber's sockets has waited until it ran, since the last call. `None` outside a fiber.
#[inline]
#[must_use]
pub fn take_late() -> Option<Late> {
    with(|here| here.state(|state| std::mem::take(&mut state.late))).flatten()
}

/// A socket of which a loop knows.
#[derive(Debug)]
pub struct Ready {
    inbox: Arc<Inbox>,
    token: u32,
}

impl Ready {
    /// Makes the loop of the fiber that runs now watch `socket`, which must not block; `None` outside a fiber.
    pub fn watch(socket: impl AsFd) -> Option<io::Result<Ready>> {
        with(|here| {
            let token = here.core.inbox.freed_token().unwrap_or_else(|| {
                let mut tokens = here.core.tokens.borrow_mut();
                tokens.push(Token::default());
                (tokens.len() - 1) as u32
            });
            here.core.token(token, |t| *t = Token::default());
            here.core.poller.borrow().add(socket, token.into())?;
            Ok(Ready { inbox: Arc::clone(&here.core.inbox), token })
        })
    }

    /// To be called before something is sent: its answer comes later. A server on this machine that is woken by what is sent may take
    /// the thread's CPU, and has answered when the thread goes on.
    #[inline]
    pub fn sends(&self) {
        with(|here| here.state(|state| state.sent_ns = now_ns()));
    }

    /// Waits until something comes for the socket or it is closed, or `limit` has passed: then false. Something that came
    /// since the last call counts.
    ///
    /// # Errors
    /// Outside a fiber of its loop.
    pub fn readable(&self, limit: Option<Duration>) -> io::Result<bool> {
        self.readable_to(&[], limit)
    }

    /// As [`Self::readable`], for an answer that will be read to `answer`.
    ///
    /// # Errors
    /// Outside a fiber of its loop.
    pub fn readable_to(&self, answer: &[u8], limit: Option<Duration>) -> io::Result<bool> {
        self.at_home(|here| {
            if here.core.token(self.token, |t| std::mem::take(&mut t.ready)) == Some(true) {
                return Ok(true);
            }
            here.core.token(self.token, |t| t.waiting = Some(here.fiber));
            here.state(|state| {
                state.warm = Warm::new(answer, self);
                // Also while it was sent, the thread may have lost its CPU to the one who answers.
                state.waits_since_ns = match std::mem::take(&mut state.sent_ns) {
                    0 => now_ns(),
                    sent_ns => sent_ns,
                };
            });
            if let Some(limit) = limit {
                here.timer(now_ns().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)));
            }
            here.wait();
            // Still there if the time has run out.
            Ok(here.core.token(self.token, |t| t.waiting.take().is_none()) == Some(true))
        })
    }

    /// Waits until `socket` can be written to, or `limit` has passed: then false.
    ///
    /// # Errors
    /// When epoll fails; outside a fiber of its loop.
    pub fn writable(&self, socket: BorrowedFd<'_>, limit: Option<Duration>) -> io::Result<bool> {
        let with_writes =
            |on| self.at_home(|here| here.core.poller.borrow().with_writes(socket, self.token.into(), on));
        // What is ready already says nothing of writes.
        self.at_home(|here| Ok(here.core.token(self.token, |t| t.ready = false)))?;
        with_writes(true)?;
        let ready = self.readable(limit)?;
        with_writes(false)?;
        // Something to read may have come as well.
        self.at_home(|here| Ok(here.core.token(self.token, |t| t.ready = true)))?;
        Ok(ready)
    }

    fn at_home<T>(&self, f: impl FnOnce(&Here<'_>) -> io::Result<T>) -> io::Result<T> {
        let away = || Err(io::Error::other("a session is used outside the loop that opened it"));
        with(|here| if Arc::ptr_eq(&self.inbox, &here.core.inbox) { f(here) } else { away() }).unwrap_or_else(away)
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        self.inbox.free_token(self.token);
    }
}
