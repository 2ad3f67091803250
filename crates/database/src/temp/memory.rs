//! Memory of the machine.

use std::path::Path;

const MIB: u64 = 1 << 20;

/// Memory that this process may use, bytes: the machine's (`/proc/meminfo`) or the limit of its control group
/// (`memory.max`), whichever is less.
pub(crate) fn memory_bytes() -> u64 {
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let meminfo = read(Path::new("/proc/meminfo"));
    let kib = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok());
    let machine = kib.map_or(1024 * MIB, |kib: u64| kib * 1024);
    let groups = read(Path::new("/proc/self/cgroup"));
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default().to_owned();
    let limits = Path::new("/sys/fs/cgroup").join(group);
    let limits =
        limits.ancestors().take_while(|dir| dir.starts_with("/sys/fs/cgroup")).map(|dir| dir.join("memory.max"));
    let old = std::iter::once("/sys/fs/cgroup/memory/memory.limit_in_bytes".into());
    limits.chain(old).filter_map(|path| read(&path).trim().parse().ok()).fold(machine, u64::min)
}
