//! CPU time of this process.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::error::CollectError;

/// CPU time of all threads of this process, ns (resolution 1 µs).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessCpu {
    /// In user mode.
    pub user_ns: u64,
    /// In the kernel.
    pub sys_ns: u64,
}

impl ProcessCpu {
    /// The current value: getrusage(2), `RUSAGE_SELF`.
    ///
    /// # Errors
    /// The system call failed.
    pub fn own() -> Result<ProcessCpu, CollectError> {
        let usage = getrusage(UsageWho::RUSAGE_SELF)
            .map_err(|cause| CollectError::Call { call: "getrusage(RUSAGE_SELF)", cause })?;
        Ok(ProcessCpu { user_ns: ns(usage.user_time()), sys_ns: ns(usage.system_time()) })
    }

    /// User and kernel together, ns.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.sys_ns)
    }
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
        let before = ProcessCpu::own().unwrap().total_ns();
        let start = std::time::Instant::now();
        let mut used = 0;
        while used < 20_000_000 && start.elapsed().as_secs() < 30 {
            used = ProcessCpu::own().unwrap().total_ns() - before;
        }
        assert!(used >= 20_000_000, "{used} ns in {:?}", start.elapsed());
    }
}
