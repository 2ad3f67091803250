//! The clock of all measurements.

use loadline_model::format::parse_duration_s;
pub use loadline_multiplex::now_ns;

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
