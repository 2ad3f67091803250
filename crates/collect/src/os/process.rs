//! CPU time of this process.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::error::CollectError;

/// CPU time of all threads of this process in user mode and in the kernel, ns (resolution 1 µs): getrusage(2), `RUSAGE_SELF`.
///
/// # Errors
/// The system call failed.
pub fn own_cpu_ns() -> Result<u64, CollectError> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)
        .map_err(|cause| CollectError::Call { call: "getrusage(RUSAGE_SELF)", cause })?;
    Ok(ns(usage.user_time()).saturating_add(ns(usage.system_time())))
}

fn ns(time: TimeVal) -> u64 {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec()).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(micros.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_loop_uses_cpu_time() {
        let before = own_cpu_ns().unwrap();
        let start = std::time::Instant::now();
        let mut used = 0;
        while used < 20_000_000 && start.elapsed().as_secs() < 30 {
            used = own_cpu_ns().unwrap() - before;
        }
        assert!(used >= 20_000_000, "{used} ns in {:?}", start.elapsed());
    }
}
