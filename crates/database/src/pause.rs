//! A pause of a length that a URL states, for databases that only pretend to work.

use std::time::Duration;

use loadline_model::format::parse_duration_s;
use loadline_storage::now_ns;

/// A pause of a URL, ns.
pub(crate) fn pause_ns(text: &str) -> Result<u64, String> {
    let seconds = parse_duration_s(text)?;
    if !(0.0..=1.0).contains(&seconds) {
        return Err(format!("'{text}' must be at most 1s"));
    }
    Ok((seconds * 1e9) as u64)
}

/// End of a pause that is passed on a CPU, ns: a sleep is longer than asked for, by about 60 µs.
const SPUN_NS: u64 = 200_000;

/// Passes `ns`, neither less nor, if a CPU is free, more.
#[inline]
pub(crate) fn pause(ns: u64) {
    if ns > 0 {
        let end = now_ns() + ns;
        if ns > 2 * SPUN_NS {
            std::thread::sleep(Duration::from_nanos(ns - SPUN_NS));
        }
        while now_ns() < end {
            std::hint::spin_loop();
        }
    }
}
