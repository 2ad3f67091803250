//! Locks, atomics and threads.
//!
//! Every module takes them from here. The protocol tests (`tests/scheduler.rs`) compile the same modules with a
//! deterministic scheduler in place of this one, so they test the code that runs.

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
pub(crate) use std::thread;

use std::time::Duration;

/// Parks the calling thread for at most `ns` nanoseconds.
pub(crate) fn park_for(ns: u64) {
    thread::park_timeout(Duration::from_nanos(ns));
}

/// Backs off while another thread finishes something that takes well under 1 µs, unless it lost the CPU. `round`
/// counts the calls of one wait.
pub(crate) fn back_off(round: u32) {
    match round {
        0..64 => std::hint::spin_loop(),
        64..128 => thread::yield_now(),
        _ => thread::sleep(Duration::from_micros(20)),
    }
}

/// A possible thread switch: does nothing here. The deterministic scheduler switches here, because it sees none in a
/// copy of bytes.
pub(crate) fn switch_point() {}

/// Takes a lock, also a poisoned one: nothing that can panic runs while the guarded state is inconsistent.
pub(crate) fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
