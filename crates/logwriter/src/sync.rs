//! The few things that threads share, under one name.
//!
//! Every module takes locks, atomics and threads from here. The tests of the protocol
//! (`tests/scheduler.rs`) compile the same modules with a deterministic scheduler in this one's
//! place, so what they check is the code that runs.

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
pub(crate) use std::thread;

use std::time::Duration;

/// Parks the calling thread for at most `ns` nanoseconds.
pub(crate) fn park_for(ns: u64) {
    thread::park_timeout(Duration::from_nanos(ns));
}

/// Lets other threads run while this one waits for something that takes well under a microsecond
/// unless its owner lost the CPU: `round` counts the calls of one wait.
pub(crate) fn back_off(round: u32) {
    match round {
        0..64 => std::hint::spin_loop(),
        64..128 => thread::yield_now(),
        _ => thread::sleep(Duration::from_micros(20)),
    }
}

/// Where another thread may well come in between: nothing here, a switch under a deterministic
/// scheduler, which sees none in a copy of bytes.
pub(crate) fn switch_point() {}

/// Takes a lock. What it guards is whole even where a thread panicked with it: no step that
/// panics is taken between two that belong together.
pub(crate) fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
