//! The memory that control groups allow.

use std::fs::read_to_string;
use std::path::Path;

/// Memory that the control groups of this process allow, bytes, of the machine whose files are under `root`; `None` without a limit.
#[must_use]
pub fn memory_limit(root: &Path) -> Option<u64> {
    // A process whose group cannot be read is in the one that is mounted as the root.
    let groups = read_to_string(root.join("proc/self/cgroup")).unwrap_or_else(|_| "0::/\n1:memory:/\n".to_owned());
    // Version 1 has no word for 'unlimited', just a number near 2^63.
    limit(&groups, &root.join("sys/fs/cgroup")).filter(|bytes| *bytes < 1 << 60)
}

/// The least limit of the control groups of `groups` (`/proc/self/cgroup`) and of those around them, whose files are under `root`:
/// `0::/a/b` (version 2) in `a/b/memory.max`, `9:memory:/a/b` (version 1) in `memory/a/b/memory.limit_in_bytes`. A group that is
/// mounted as the root is found there.
fn limit(groups: &str, root: &Path) -> Option<u64> {
    let of = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let (mount, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            of if of.split(',').any(|c| c == "memory") => (root.join("memory"), "memory.limit_in_bytes"),
            _ => return None,
        };
        let around = mount.join(group);
        let around = around.ancestors().take_while(|dir| dir.starts_with(&mount));
        around.filter_map(|dir| read_to_string(dir.join(file)).ok()?.trim().parse::<u64>().ok()).min()
    };
    groups.lines().filter_map(of).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_around_the_own_group_counts() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let of = |groups: &str| limit(groups, root.path());
        assert_eq!(of("0::/a/b\n9:memory:/c/d\n"), None);
        put("a/memory.max", "300\n");
        put("a/b/memory.max", "max\n");
        put("other/memory.max", "1\n");
        assert_eq!(of("0::/a/b\n"), Some(300), "of the group around it");
        put("memory/memory.limit_in_bytes", "9223372036854771712\n");
        put("memory/c/d/memory.limit_in_bytes", "200\n");
        assert_eq!(of("0::/a/b\n9:hugetlb,memory:/c/d\n4:cpu:/c\n"), Some(200));
        assert_eq!(of("9:memory:/docker/elsewhere\n"), Some(9_223_372_036_854_771_712), "mounted as the root");
    }
}
