//! Monotonic time, and CPU time of this process.

use std::sync::OnceLock;
use std::time::Instant;

use nix::time::{ClockId, clock_gettime};

/// Monotonic time, ns since the first call.
#[inline]
pub(crate) fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// CPU time of all threads of this process, including io_uring workers, ns.
pub(crate) fn cpu_ns() -> u64 {
    // The clock exists on every Linux; 0 only satisfies the type.
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)
        .map_or(0, |t| (t.tv_sec() as u64).saturating_mul(1_000_000_000).saturating_add(t.tv_nsec() as u64))
}
