//! The one clock that all of loadline counts on.

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`. Every time in loadline that ends in `_ns` and names a moment
/// is on this clock, so that moments of different threads and crates can be compared.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    // CLOCK_MONOTONIC with a valid pointer cannot fail on Linux; 0 would show at once as an
    // impossible window.
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |t| (t.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec() as u64))
}
