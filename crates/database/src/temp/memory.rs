//! Memory of the machine.

use std::fs::read_to_string;
use std::path::Path;

const MIB: u64 = 1 << 20;

/// `MemTotal:       24598212 kB` of `/proc/meminfo`, in bytes.
pub(crate) fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Memory that this process may use, bytes: the machine's or the limit of its control group, whichever is less.
pub(crate) fn memory_bytes() -> u64 {
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| total(&text)).unwrap_or(1024 * MIB);
    loadline_storage::memory_limit(Path::new("/")).map_or(machine, |limit| limit.min(machine))
}
