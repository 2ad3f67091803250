//! Wakes fibers from other threads.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

use loadline_storage::now_ns;
use nix::sys::eventfd::{EfdFlags, EventFd};

/// Fibers that other threads want to run again.
#[derive(Debug)]
pub(crate) struct Inbox {
    event: EventFd,
    /// And when the first of them was woken, ns.
    fibers: Mutex<(Vec<u32>, u64)>,
    /// Tokens of sockets that are gone; they may have ended on another thread.
    freed: Mutex<Vec<u32>>,
}

impl Inbox {
    pub(crate) fn new() -> io::Result<Arc<Inbox>> {
        let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        Ok(Arc::new(Inbox { event, fibers: Mutex::default(), freed: Mutex::default() }))
    }

    /// Readable when there are some.
    pub(crate) fn fd(&self) -> impl AsFd {
        &self.event
    }

    pub(crate) fn take(&self) -> (Vec<u32>, u64) {
        // Before the list is taken: what comes later makes it readable again.
        let _ = self.event.read();
        std::mem::take(&mut self.fibers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn free_token(&self, token: u32) {
        self.freed.lock().unwrap_or_else(PoisonError::into_inner).push(token);
    }

    pub(crate) fn freed_token(&self) -> Option<u32> {
        self.freed.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn add(&self, some: impl IntoIterator<Item = u32>) {
        let mut fibers = self.fibers.lock().unwrap_or_else(PoisonError::into_inner);
        let first = fibers.0.is_empty();
        fibers.0.extend(some);
        if first && !fibers.0.is_empty() {
            fibers.1 = now_ns();
            drop(fibers);
            // It cannot overflow: the loop reads it.
            let _ = self.event.write(1);
        }
    }
}

/// Wakes a fiber that waits in [`crate::park`], from any thread. One that does not wait yet will not wait the next time.
#[derive(Debug, Clone)]
pub struct Waker {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) fiber: u32,
}

impl Waker {
    /// Wakes it.
    pub fn wake(&self) {
        self.inbox.add([self.fiber]);
    }

    /// Wakes many. Those of one loop are woken by one write, if they follow each other.
    pub fn wake_all(wakers: &[Waker]) {
        for same in wakers.chunk_by(|a, b| Arc::ptr_eq(&a.inbox, &b.inbox)) {
            if let Some(first) = same.first() {
                first.inbox.add(same.iter().map(|w| w.fiber));
            }
        }
    }
}
