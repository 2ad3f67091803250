//! The clock of all measurements.

use loadline_model::format::parse_duration_s;
use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`. Every point in time in loadline whose name ends in `_ns` is on this clock, so
/// times of different threads and crates can be compared.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    // CLOCK_MONOTONIC cannot fail on Linux.
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |t| (t.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec() as u64))
}

/// A pause of a URL, ns.
///
/// # Errors
/// It is no time of at most 1 s.
pub(crate) fn pause_ns(text: &str) -> Result<u64, String> {
    let seconds = parse_duration_s(text)?;
    if !(0.0..=1.0).contains(&seconds) {
        return Err(format!("'{text}' must be at most 1s"));
    }
    Ok((seconds * 1e9) as u64)
}

/// Passes `ns` on a CPU. Not a sleep, which is longer than asked for.
#[inline]
pub(crate) fn pause(ns: u64) {
    if ns > 0 {
        let end = now_ns() + ns;
        while now_ns() < end {
            std::hint::spin_loop();
        }
    }
}
