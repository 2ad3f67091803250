//! Where a waiting job is told how its commit went.

use crate::sync::thread::Thread;
use crate::sync::{Arc, AtomicU32, AtomicU64, Ordering};

/// What a waiting job is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Word {
    /// Nothing yet.
    Wait = 0,
    /// Its records are durable; the times are in the slot.
    Durable = 1,
    /// It writes the next group.
    Lead = 2,
    /// It looks at the clock for those that gather, and writes when time is up.
    KeepTime = 3,
    /// There may be room in the buffer.
    Room = 4,
    /// The log has stopped.
    Stopped = 5,
}

/// A session's place to wait. On cache lines of its own: another job writes to it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Slot {
    word: AtomicU32,
    done_ns: AtomicU64,
    write_ns: AtomicU64,
    sync_ns: AtomicU64,
}

/// How the group of a commit went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) done_ns: u64,
    pub(crate) write_ns: u64,
    pub(crate) sync_ns: u64,
}

impl Slot {
    /// The word, and [`Word::Wait`] from now on if it was one that asks for something to be done.
    pub(crate) fn read(&self) -> Word {
        let word = match self.word.load(Ordering::Acquire) {
            1 => Word::Durable,
            2 => Word::Lead,
            3 => Word::KeepTime,
            4 => Word::Room,
            5 => Word::Stopped,
            _ => Word::Wait,
        };
        if word == Word::KeepTime {
            // Another word may have come in between; it stays.
            let _ = self.word.compare_exchange(3, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        word
    }

    /// Gets ready to wait. Called by the slot's own session, before it queues.
    pub(crate) fn reset(&self) {
        self.word.store(Word::Wait as u32, Ordering::Relaxed);
    }

    /// What [`Word::Durable`] came with.
    pub(crate) fn served(&self) -> Served {
        Served {
            done_ns: self.done_ns.load(Ordering::Relaxed),
            write_ns: self.write_ns.load(Ordering::Relaxed),
            sync_ns: self.sync_ns.load(Ordering::Relaxed),
        }
    }
}

/// A job in a queue: where to tell it, and the thread to wake.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) slot: Arc<Slot>,
    pub(crate) thread: Thread,
}

impl Waiter {
    pub(crate) fn is(&self, slot: &Arc<Slot>) -> bool {
        Arc::ptr_eq(&self.slot, slot)
    }

    /// Tells a job that was taken out of its queue, and wakes it.
    pub(crate) fn tell(&self, word: Word) {
        // Release: what the word is about is seen by who reads it.
        self.slot.word.store(word as u32, Ordering::Release);
        self.thread.unpark();
    }

    /// Tells a job that its records are durable, and wakes it.
    pub(crate) fn durable(&self, served: Served) {
        self.slot.done_ns.store(served.done_ns, Ordering::Relaxed);
        self.slot.write_ns.store(served.write_ns, Ordering::Relaxed);
        self.slot.sync_ns.store(served.sync_ns, Ordering::Relaxed);
        self.tell(Word::Durable);
    }

    /// Asks a job that is still in its queue to keep time, unless it has been told something else
    /// since.
    pub(crate) fn keep_time(&self) {
        let word = Word::KeepTime as u32;
        if self.slot.word.compare_exchange(0, word, Ordering::Release, Ordering::Relaxed).is_ok() {
            self.thread.unpark();
        }
    }
}
