//! A waiting job's slot: the signal that wakes it, and the times of its commit.

use crate::sync::thread::Thread;
use crate::sync::{Arc, AtomicU32, AtomicU64, Ordering};

/// A signal to a waiting job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Signal {
    Wait = 0,
    /// The job's records are durable; the times are in the slot.
    Durable = 1,
    /// The job writes the next group.
    Lead = 2,
    /// The job watches the deadline of a delayed write, and writes when it is over.
    KeepTime = 3,
    /// The buffer may have space.
    Space = 4,
    Stopped = 5,
}

/// A session's slot. On its own cache lines: another job writes to it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Slot {
    signal: AtomicU32,
    done_ns: AtomicU64,
    write_ns: AtomicU64,
    sync_ns: AtomicU64,
}

/// Times of a commit's group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) done_ns: u64,
    pub(crate) write_ns: u64,
    pub(crate) sync_ns: u64,
}

impl Slot {
    /// Reads the signal. [`Signal::KeepTime`] is reset by reading it.
    pub(crate) fn read(&self) -> Signal {
        let signal = match self.signal.load(Ordering::Acquire) {
            1 => Signal::Durable,
            2 => Signal::Lead,
            3 => Signal::KeepTime,
            4 => Signal::Space,
            5 => Signal::Stopped,
            _ => Signal::Wait,
        };
        if signal == Signal::KeepTime {
            // A newer signal stays.
            let _ = self.signal.compare_exchange(3, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        signal
    }

    /// Prepares to wait. Called by the slot's own session, before it queues.
    pub(crate) fn reset(&self) {
        self.signal.store(Signal::Wait as u32, Ordering::Relaxed);
    }

    /// The times that came with [`Signal::Durable`].
    pub(crate) fn served(&self) -> Served {
        Served {
            done_ns: self.done_ns.load(Ordering::Relaxed),
            write_ns: self.write_ns.load(Ordering::Relaxed),
            sync_ns: self.sync_ns.load(Ordering::Relaxed),
        }
    }
}

/// A job in a queue: its slot, and the thread to wake.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) slot: Arc<Slot>,
    pub(crate) thread: Thread,
}

impl Waiter {
    pub(crate) fn is(&self, slot: &Arc<Slot>) -> bool {
        Arc::ptr_eq(&self.slot, slot)
    }

    /// Signals a job that was removed from its queue, and wakes it.
    pub(crate) fn signal(&self, signal: Signal) {
        // Release: the reader of the signal also sees what it is about.
        self.slot.signal.store(signal as u32, Ordering::Release);
        self.thread.unpark();
    }

    /// Signals that the job's records are durable, and wakes it.
    pub(crate) fn durable(&self, served: Served) {
        self.slot.done_ns.store(served.done_ns, Ordering::Relaxed);
        self.slot.write_ns.store(served.write_ns, Ordering::Relaxed);
        self.slot.sync_ns.store(served.sync_ns, Ordering::Relaxed);
        self.signal(Signal::Durable);
    }

    /// Asks a job that stays in its queue to keep time, unless it has another signal.
    pub(crate) fn keep_time(&self) {
        let signal = Signal::KeepTime as u32;
        if self.slot.signal.compare_exchange(0, signal, Ordering::Release, Ordering::Relaxed).is_ok() {
            self.thread.unpark();
        }
    }
}
