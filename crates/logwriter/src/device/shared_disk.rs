//! Finds members of a replica set that share a filesystem or a disk, and so would be lost together.

use std::path::Path;

use loadline_storage::StorageFacts;

/// The filesystem and the disk under a directory.
pub(super) struct Storage {
    /// `st_dev`: one filesystem, one number.
    filesystem: u64,
    /// The whole disk, not its partition. `None` without a block device (tmpfs, network filesystems).
    disk: Option<String>,
}

impl Storage {
    /// The storage under `dir`, or `None` if it cannot be read.
    pub(super) fn under(dir: &Path) -> Option<Storage> {
        let mut facts = StorageFacts::read(dir).ok()?;
        let disk = facts.storage.device_facts.remove("disk").or(facts.storage.device);
        Some(Storage { filesystem: facts.st_dev, disk })
    }
}

/// A sentence for every two of `members` (name, storage) that share a filesystem or a disk.
pub(super) fn warnings(members: &[(&str, Option<&Storage>)]) -> Vec<String> {
    let mut found = Vec::new();
    for (i, (a, a_storage)) in members.iter().enumerate() {
        for (b, b_storage) in members.iter().skip(i + 1) {
            let (Some(one), Some(other)) = (a_storage, b_storage) else { continue };
            let shared = if one.filesystem == other.filesystem {
                "filesystem"
            } else if one.disk.is_some() && one.disk == other.disk {
                "disk"
            } else {
                continue;
            };
            let on = one.disk.as_ref().map_or_else(String::new, |disk| format!(" ({disk})"));
            found
                .push(format!("{a} and {b} are on one {shared}{on}: one failure loses both, and they share its speed"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_directories_of_one_filesystem_are_named() {
        let here = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (a, b) = (here.path().join("a"), here.path().join("b"));
        std::fs::create_dir(&a).unwrap();
        std::fs::create_dir(&b).unwrap();
        let shm = tempfile::tempdir_in("/dev/shm").unwrap();
        let storage = [&*a, shm.path(), &*b].map(|dir| Storage::under(dir).unwrap());
        let members: Vec<_> = ["/a", "/shm", "/b"].into_iter().zip(storage.iter().map(Some)).collect();
        let found = warnings(&members);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("/a and /b are on one filesystem"), "{found:?}");
    }

    #[test]
    fn two_filesystems_of_one_disk_are_named() {
        let on = |filesystem, disk: &str| Storage { filesystem, disk: Some(disk.to_owned()) };
        let (a, b, c) = (on(1, "sda"), on(2, "sda"), on(3, "sdb"));
        let found = warnings(&[("/a", Some(&a)), ("/b", Some(&b)), ("/c", Some(&c)), ("/d", None)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("/a and /b are on one disk (sda)"), "{found:?}");
    }
}
