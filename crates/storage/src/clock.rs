//! The clock of all measurements.

use nix::time::{ClockId, clock_gettime};

/// CPU time of this thread, ns. A system call, other than [`now_ns`].
#[must_use]
pub(crate) fn cpu_ns() -> u64 {
    // It cannot fail for the calling thread.
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .map_or(0, |t| (t.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec() as u64))
}

/// Nanoseconds of `CLOCK_MONOTONIC`. Every point in time in loadline whose name ends in `_ns` is on this clock, so
/// times of different threads and crates can be compared.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    // CLOCK_MONOTONIC cannot fail on Linux.
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |t| (t.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec() as u64))
}
