//! Memory of the machine.

use std::path::Path;

const MIB: u64 = 1 << 20;

/// `MemTotal:       24598212 kB` of `/proc/meminfo`, in bytes.
pub(crate) fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Memory that this process may use, bytes: the machine's (`/proc/meminfo`) or the limit of its control group
/// (`memory.max`), whichever is less.
pub(crate) fn memory_bytes() -> u64 {
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let machine = total(&read(Path::new("/proc/meminfo"))).unwrap_or(1024 * MIB);
    let groups = read(Path::new("/proc/self/cgroup"));
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default().to_owned();
    let limits = Path::new("/sys/fs/cgroup").join(group);
    let limits =
        limits.ancestors().take_while(|dir| dir.starts_with("/sys/fs/cgroup")).map(|dir| dir.join("memory.max"));
    let old = std::iter::once("/sys/fs/cgroup/memory/memory.limit_in_bytes".into());
    limits.chain(old).filter_map(|path| read(&path).trim().parse().ok()).fold(machine, u64::min)
}
