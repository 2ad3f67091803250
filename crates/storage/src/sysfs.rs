//! Facts about a block device and its underlying devices, from sysfs.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use loadline_model::format::bytes;
use nix::sys::stat::{major, minor};

use crate::mounts::{self, Mount};

/// Maximum depth of stacked devices (LVM on RAID on …).
const MAX_DEPTH: u32 = 4;

/// `major:minor` of the files at `path`.
pub(crate) fn device_of(path: &Path) -> std::io::Result<(u64, u64)> {
    let dev = std::fs::metadata(path)?.dev();
    Ok((major(dev), minor(dev)))
}

/// The block device of a mount whose files have `device`: the device with that number, otherwise the mount's source (each
/// btrfs subvolume has its own number).
pub(crate) fn block_device(sysfs: &Path, mount: &Mount, device: (u64, u64)) -> Option<PathBuf> {
    block(sysfs, device).or_else(|| {
        let source =
            if mount.source.starts_with("/dev/") { std::fs::metadata(&mount.source).ok()? } else { return None };
        block(sysfs, (major(source.rdev()), minor(source.rdev())))
    })
}

/// The device under an overlay's upper directory, where its writes go. Not visible inside a container.
pub(crate) fn overlay_device(sysfs: &Path, mounts: &[Mount], mount: &Mount) -> Option<PathBuf> {
    let upper = mount.options.split(',').find_map(|o| o.strip_prefix("upperdir="))?;
    let upper = if mount.filesystem == "overlay" { std::fs::canonicalize(upper).ok()? } else { return None };
    let device = device_of(&upper).ok()?;
    block_device(sysfs, mounts::holding(mounts, &upper, device)?, device)
}

/// Directory of the device with this number, under `/sys/devices`.
fn block(sysfs: &Path, (major, minor): (u64, u64)) -> Option<PathBuf> {
    std::fs::canonicalize(sysfs.join(format!("dev/block/{major}:{minor}"))).ok()
}

/// Name and facts of the device in directory `block`. No name for a filesystem on several devices, because one of them
/// would be a wrong answer.
pub(crate) fn describe(sysfs: &Path, block: &Path, filesystem: &str) -> (Option<String>, BTreeMap<String, String>) {
    let mut found = BTreeMap::new();
    let disks = if filesystem == "btrfs" { btrfs_disks(sysfs, &name(block)) } else { Vec::new() };
    if disks.len() > 1 {
        found.insert("filesystem_devices".to_owned(), disks.join(", "));
        return (None, found);
    }
    facts(block, "", &mut found, 0);
    (Some(name(block)), found)
}

fn btrfs_disks(sysfs: &Path, device: &str) -> Vec<String> {
    let filesystems = entries(&sysfs.join("fs/btrfs"));
    let names = |f: &PathBuf| entries(&f.join("devices")).iter().map(|p| name(p)).collect::<Vec<_>>();
    filesystems.iter().map(names).find(|d| d.iter().any(|n| n == device)).unwrap_or_default()
}

/// Adds the facts of the device in directory `block`, each key after `prefix`.
fn facts(block: &Path, prefix: &str, facts_found: &mut BTreeMap<String, String>, depth: u32) {
    let mut add = |key: &str, value: Option<String>| {
        if let Some(value) = value.filter(|v| !v.is_empty()) {
            facts_found.insert(format!("{prefix}{key}"), value);
        }
    };
    let text = |path: PathBuf| std::fs::read_to_string(path).ok().map(|t| t.trim().to_owned());
    // A partition uses the queue of its disk: the parent directory in sysfs.
    let disk = if block.join("partition").exists() { block.parent().unwrap_or(block) } else { block };
    if disk != block {
        add("disk", Some(name(disk)));
    }
    // SCSI and NVMe state a model; virtio disks do not.
    add("model", text(disk.join("device/model")));
    // sysfs counts in units of 512 bytes, independent of the device's block size.
    let sectors = text(block.join("size")).and_then(|s| s.parse::<u64>().ok());
    add("size", sectors.and_then(|s| s.checked_mul(512)).map(|s| bytes(s as f64)));
    add("scheduler", text(disk.join("queue/scheduler")).map(|s| selected(&s)));
    for key in ["rotational", "write_cache", "logical_block_size", "physical_block_size", "nr_requests", "fua", "dax"] {
        add(key, text(disk.join("queue").join(key)));
    }
    add("dm_name", text(block.join("dm/name")));
    // LVM-…, CRYPT-LUKS2-…: the first word is the kind.
    add("dm_kind", text(block.join("dm/uuid")).and_then(|u| u.split('-').next().map(str::to_owned)));
    add("md_level", text(block.join("md/level")));
    add("backing_file", text(block.join("loop/backing_file")));
    let slaves = entries(&block.join("slaves"));
    add("slaves", Some(slaves.iter().map(|s| name(s)).collect::<Vec<_>>().join(", ")));
    if depth < MAX_DEPTH {
        for slave in slaves {
            let Ok(real) = std::fs::canonicalize(&slave) else { continue };
            facts(&real, &format!("{}.", name(&real)), facts_found, depth + 1);
        }
    }
}

/// The scheduler in brackets of `none [mq-deadline] kyber`; a list without brackets has one word.
fn selected(schedulers: &str) -> String {
    let inside = schedulers.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(schedulers, |(selected, _)| selected).to_owned()
}

fn name(block: &Path) -> String {
    // sysfs writes '/' in device names as '!'.
    block.file_name().unwrap_or_default().to_string_lossy().replace('!', "/")
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(directory).into_iter().flatten().flatten().map(|e| e.path()).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// LVM on a partition of an NVMe disk, and a btrfs on two disks.
    fn fixture() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let link = |to: &str, at: &str| {
            std::fs::create_dir_all(root.join(at).parent().unwrap()).unwrap();
            symlink(root.join(to), root.join(at)).unwrap();
        };
        put("devices/pci/nvme0n1/device/model", "Fast Disk 9000   \n");
        put("devices/pci/nvme0n1/queue/scheduler", "[none] mq-deadline\n");
        put("devices/pci/nvme0n1/queue/write_cache", "write through\n");
        put("devices/pci/nvme0n1/queue/rotational", "0\n");
        put("devices/pci/nvme0n1/nvme0n1p3/partition", "3\n");
        put("devices/pci/nvme0n1/nvme0n1p3/size", "2097152\n");
        put("devices/virtual/dm-0/dm/name", "vg-pg_wal\n");
        put("devices/virtual/dm-0/dm/uuid", "LVM-abc\n");
        put("devices/virtual/dm-0/size", "2048\n");
        put("devices/virtual/dm-0/queue/rotational", "0\n");
        link("devices/pci/nvme0n1/nvme0n1p3", "devices/virtual/dm-0/slaves/nvme0n1p3");
        put("devices/pci/sdb/size", "2048\n");
        link("devices/pci/nvme0n1/nvme0n1p3", "dev/block/259:3");
        link("devices/virtual/dm-0", "dev/block/253:0");
        link("devices/pci/sdb", "dev/block/8:16");
        for disk in ["sdb", "sdc"] {
            put(&format!("fs/btrfs/5f3a/devices/{disk}/x"), "");
        }
        (dir, root)
    }

    fn described(sysfs: &Path, device: (u64, u64), filesystem: &str) -> (Option<String>, BTreeMap<String, String>) {
        describe(sysfs, &block(sysfs, device).unwrap(), filesystem)
    }

    #[test]
    fn a_partition_has_the_queue_of_its_disk() {
        let (_dir, sysfs) = fixture();
        let (device, facts) = described(&sysfs, (259, 3), "ext4");
        assert_eq!(device.as_deref(), Some("nvme0n1p3"));
        let expected = [
            ("disk", "nvme0n1"),
            ("model", "Fast Disk 9000"),
            ("rotational", "0"),
            ("scheduler", "none"),
            ("size", "1.0 GiB"),
            ("write_cache", "write through"),
        ];
        let found: Vec<(&str, &str)> = facts.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn stacked_devices_list_their_underlying_devices() {
        let (_dir, sysfs) = fixture();
        let (device, facts) = described(&sysfs, (253, 0), "xfs");
        let fact = |key: &str| facts.get(key).map(String::as_str);
        assert_eq!(device.as_deref(), Some("dm-0"));
        assert_eq!((fact("dm_name"), fact("dm_kind")), (Some("vg-pg_wal"), Some("LVM")));
        assert_eq!((fact("slaves"), fact("nvme0n1p3.model")), (Some("nvme0n1p3"), Some("Fast Disk 9000")));
        assert_eq!((fact("nvme0n1p3.write_cache"), fact("write_cache")), (Some("write through"), None));
        // A filesystem on several disks has no one device.
        let (device, facts) = described(&sysfs, (8, 16), "btrfs");
        assert_eq!((device, facts["filesystem_devices"].as_str()), (None, "sdb, sdc"));
        assert!(block(&sysfs, (0, 45)).is_none());
    }

    #[test]
    fn a_source_that_is_no_device_has_none() {
        let (_dir, sysfs) = fixture();
        let mount = |source: &str| Mount {
            device: (0, 45),
            point: PathBuf::from("/mnt"),
            filesystem: "nfs4".to_owned(),
            options: String::new(),
            source: source.to_owned(),
        };
        for source in ["server:/export", "tmpfs", "/etc", "/dev/no-such-device", "/dev/null"] {
            assert_eq!(block_device(&sysfs, &mount(source), (0, 45)), None, "{source}");
        }
        assert!(block_device(&sysfs, &mount("tmpfs"), (8, 16)).is_some());
    }

    #[test]
    fn the_selected_scheduler_is_named() {
        for (text, name) in [("none [mq-deadline] kyber bfq", "mq-deadline"), ("none", "none"), ("[none]", "none")] {
            assert_eq!(selected(text), name);
        }
    }
}
