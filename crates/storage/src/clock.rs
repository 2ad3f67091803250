//! The only clock: all measurements of loadline are on it.

use nix::time::{ClockId, clock_gettime};

/// CPU time of this thread, ns. A system call, other than [`now_ns`].
pub fn thread_cpu_ns() -> u64 {
    ns(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of all threads of this process, including io_uring workers, ns.
pub fn process_cpu_ns() -> u64 {
    ns(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// Nanoseconds of `CLOCK_MONOTONIC`. Every point in time in loadline whose name ends in `_ns` is on this clock, so
/// times of different threads and crates can be compared.
#[inline]
pub fn now_ns() -> u64 {
    ns(ClockId::CLOCK_MONOTONIC)
}

/// These clocks cannot fail on Linux; 0 only satisfies the type.
#[inline]
fn ns(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |t| (t.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec() as u64))
}
