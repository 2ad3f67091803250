//! Whether two directories are on one disk, so that what is written to both is lost with one.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::replicas::Member;

/// The filesystem's device number under `dir`, and the disk it lies on, as far as it can be told.
pub(crate) fn disk_of(dir: &Path) -> Option<(u64, String)> {
    let device = fs::metadata(dir).ok()?.dev();
    Some((device, disk(device).unwrap_or_default()))
}

/// The whole disk of a block device's number: a partition's parent. None for what is no block
/// device (tmpfs, network filesystems).
fn disk(device: u64) -> Option<String> {
    let link = PathBuf::from(format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device)));
    let place = fs::canonicalize(link).ok()?;
    let whole = if place.join("partition").exists() { place.parent()?.to_owned() } else { place };
    Some(whole.file_name()?.to_string_lossy().into_owned())
}

/// A sentence for every two members that share a filesystem or a disk.
pub(super) fn warnings(members: &[Member]) -> Vec<String> {
    let mut found = Vec::new();
    for (i, a) in members.iter().enumerate() {
        for b in members.iter().skip(i + 1) {
            let (Some((a_device, a_disk)), Some((b_device, b_disk))) = (&a.disk, &b.disk) else { continue };
            let shared = if a_device == b_device {
                "one filesystem"
            } else if !a_disk.is_empty() && a_disk == b_disk {
                "one disk"
            } else {
                continue;
            };
            let on = if a_disk.is_empty() { String::new() } else { format!(" ({a_disk})") };
            found.push(format!(
                "{} and {} are on {shared}{on}: what takes one away takes both, and they share its speed",
                a.name, b.name
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceError;
    use crate::device::testing::Disk;

    fn member(dir: &Path) -> Member {
        Member::new(dir, Ok::<_, DeviceError>(Disk::new(512, 4096).device()))
    }

    #[test]
    fn two_directories_of_one_filesystem_are_told() {
        let here = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (a, b) = (here.path().join("a"), here.path().join("b"));
        fs::create_dir(&a).unwrap();
        fs::create_dir(&b).unwrap();
        let shm = tempfile::tempdir_in("/dev/shm").unwrap();
        let found = warnings(&[member(&a), member(shm.path()), member(&b)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(&*a.to_string_lossy()) && found[0].contains(&*b.to_string_lossy()), "{found:?}");
        assert!(found[0].contains("one filesystem"), "{found:?}");
    }

    #[test]
    fn a_partition_is_on_its_disk() {
        for entry in fs::read_dir("/sys/dev/block").into_iter().flatten().flatten() {
            let place = fs::canonicalize(entry.path()).unwrap();
            let number = entry.file_name().into_string().unwrap();
            let (major, minor) = number.split_once(':').unwrap();
            let found = disk(libc::makedev(major.parse().unwrap(), minor.parse().unwrap())).unwrap();
            assert!(place.to_string_lossy().contains(&format!("/{found}")), "{place:?} {found}");
            assert!(!Path::new("/sys/class/block").join(&found).join("partition").exists(), "{found} is a partition");
        }
    }
}
