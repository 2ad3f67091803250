//! Control groups of this process, and the memory that they allow.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Memory that the control groups of this process allow, bytes, of the machine whose files are under `root`; `None` without a limit.
pub fn memory_limit(root: &Path) -> Option<u64> {
    let groups = control_groups(root, "memory").into_iter();
    // The files of version 2 and of version 1: a folder has one of them.
    let files = groups.flat_map(|group| ["memory.max", "memory.limit_in_bytes"].map(|file| group.join(file)));
    let limits = files.filter_map(|file| read_to_string(file).ok()?.trim().parse::<u64>().ok());
    // Version 1 has no word for 'unlimited', just a number near 2^63.
    limits.min().filter(|bytes| *bytes < 1 << 60)
}

/// Folders in which the limits of `controller` (`memory`, `pids`) for this process may stand: of its control groups and of those around
/// them, on the machine whose files are under `root`. `0::/a/b` in `/proc/self/cgroup` (version 2) is `a/b` in `/sys/fs/cgroup`,
/// `9:memory:/a/b` (version 1) is `memory/a/b` there. A group that is mounted as the root is found there. See cgroups(7).
pub fn control_groups(root: &Path, controller: &str) -> Vec<PathBuf> {
    // A process whose group cannot be read is in the one that is mounted as the root.
    let groups = read_to_string(root.join("proc/self/cgroup")).unwrap_or_else(|_| format!("0::/\n1:{controller}:/\n"));
    groups_in(&groups, root, controller)
}

/// Limit of a process whose groups are `groups`, as in `/proc/PID/cgroup`.
pub fn groups_in(groups: &str, root: &Path, controller: &str) -> Vec<PathBuf> {
    let root = root.join("sys/fs/cgroup");
    let of = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let mount = match controllers {
            "" => root.clone(),
            of if of.split(',').any(|c| c == controller) => root.join(controller),
            _ => return None,
        };
        let group = mount.join(group);
        Some(group.ancestors().take_while(|dir| dir.starts_with(&mount)).map(Path::to_owned).collect::<Vec<_>>())
    };
    groups.lines().filter_map(of).flatten().collect()
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
        let of = |groups: &str| {
            put("proc/self/cgroup", groups);
            memory_limit(root.path())
        };
        let group = |path: &str, text: &str| put(&format!("sys/fs/cgroup/{path}"), text);
        assert_eq!(of("0::/a/b\n9:memory:/c/d\n"), None);
        group("a/memory.max", "300\n");
        group("a/b/memory.max", "max\n");
        group("other/memory.max", "1\n");
        assert_eq!(of("0::/a/b\n"), Some(300), "of the group around it");
        group("memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(of("9:memory:/docker/elsewhere\n"), None, "no limit");
        group("memory/memory.limit_in_bytes", "400\n");
        group("memory/c/d/memory.limit_in_bytes", "200\n");
        assert_eq!(of("0::/a/b\n9:hugetlb,memory:/c/d\n4:cpu:/c\n"), Some(200));
        assert_eq!(of("9:memory:/docker/elsewhere\n"), Some(400), "mounted as the root");
    }
}
