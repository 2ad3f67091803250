//! This machine and this process's place on it.

use std::fs::read_to_string;
use std::path::Path;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Id of this boot: what another machine, or this one started anew, does not have. Empty if the kernel does not say.
pub fn boot_id() -> String {
    kernel("random/boot_id")
}

/// Name of this machine. Empty if the kernel does not say.
pub fn host_name() -> String {
    kernel("hostname")
}

fn kernel(name: &str) -> String {
    read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default().trim().to_owned()
}

/// `MemTotal:       24598212 kB` of `/proc/meminfo`, in bytes.
pub fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Memory that this process may use, bytes: the machine's or the limit of its control group, whichever is less.
pub(crate) fn memory_bytes() -> u64 {
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| total_memory(&text)).unwrap_or(1 << 30);
    loadline_storage::memory_limit(Path::new("/")).map_or(machine, |limit| limit.min(machine))
}

/// Whether the command line of the task `id` of this machine holds one of `commands`.
pub fn runs_command(id: u32, commands: &[&str]) -> bool {
    let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line);
    commands.iter().any(|command| line.contains(command))
}

/// Time of the task `id` of this machine on a CPU, and ready to run and waiting for one, ns. `None` if it has ended, or the kernel keeps
/// no such statistics (kernel: Documentation/scheduler/sched-stats.rst).
pub fn task_times_ns(id: u32) -> Option<[u64; 2]> {
    times_in(&read_to_string(format!("/proc/{id}/schedstat")).ok()?)
}

fn times_in(schedstat: &str) -> Option<[u64; 2]> {
    let fields: Vec<u64> = schedstat.split_whitespace().map_while(|f| f.parse().ok()).collect();
    // The third is how often it was given a CPU. Without its statistics the kernel prints zeros.
    let [run_ns, wait_ns, 1..=u64::MAX] = fields[..] else { return None };
    Some([run_ns, wait_ns])
}

/// Raises the number of files that this process may have open to `need`, or as near as it may. Returns what it may have
/// then; `None` if the limit is unknown.
pub fn allow_open_files(need: u64) -> Option<u64> {
    let (now, most) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let aim = need.min(most);
    let raised = now < aim && setrlimit(Resource::RLIMIT_NOFILE, aim, most).is_ok();
    Some(if raised { aim } else { now })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_need_the_kernels_statistics() {
        assert_eq!(times_in("5000 70 3\n"), Some([5000, 70]));
        assert_eq!(times_in("0 70 1\n"), Some([0, 70]), "a young task");
        for none in ["0 0 0\n", "", "5", "5 6", "a b c"] {
            assert_eq!(times_in(none), None, "{none}");
        }
    }

    #[test]
    fn the_limit_of_open_files_is_raised_and_never_lowered() {
        let now = allow_open_files(0);
        let raised = allow_open_files(u64::MAX);
        assert!(raised >= now);
        assert_eq!(allow_open_files(0), raised);
    }
}
