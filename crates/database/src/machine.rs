//! This machine and this process's place on it.

use std::fs::read_to_string;
use std::path::Path;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Id of this boot: what another machine, or this one started anew, does not have. Empty if the kernel does not say.
#[must_use]
pub fn boot_id() -> String {
    kernel("random/boot_id")
}

/// Name of this machine. Empty if the kernel does not say.
#[must_use]
pub fn host_name() -> String {
    kernel("hostname")
}

fn kernel(name: &str) -> String {
    read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default().trim().to_owned()
}

/// `MemTotal:       24598212 kB` of `/proc/meminfo`, in bytes.
pub(crate) fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Memory that this process may use, bytes: the machine's or the limit of its control group, whichever is less.
pub(crate) fn memory_bytes() -> u64 {
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| total_memory(&text)).unwrap_or(1 << 30);
    loadline_storage::memory_limit(Path::new("/")).map_or(machine, |limit| limit.min(machine))
}

/// Raises the number of files that this process may have open to `need`, or as near as it may. Returns what it may have
/// then; `None` if the limit is unknown.
#[must_use]
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
    fn the_limit_of_open_files_is_raised_and_never_lowered() {
        let now = allow_open_files(0);
        let raised = allow_open_files(u64::MAX);
        assert!(raised >= now);
        assert_eq!(allow_open_files(0), raised);
    }
}
