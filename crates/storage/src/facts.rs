//! Facts about the storage under a directory: filesystem, mount, device.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use loadline_model::machine::Storage;
use nix::sys::statfs::{self, FsType};
use nix::sys::statvfs::{FsFlags, statvfs};

use crate::error::{DeviceError, Step};
use crate::mounts;
use crate::sysfs::{block_device, describe, device_of, overlay_device};

loadline_model::named! {
    /// Kind of filesystem, with respect to durability.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Kind {
        /// On a block device of this machine (also one of a storage array or of the virtual machine's host).
        Local: "local";
        /// In main memory, also that of a device: nothing is durable.
        Tmpfs: "tmpfs";
        /// A container's layer over another filesystem.
        Overlay: "overlay";
        /// On another machine.
        Network: "network";
        /// Served by a program (FUSE), which defines what a sync does.
        Fuse: "fuse";
    }
    pub fn name;
}

impl Kind {
    /// Meaning of a sync there, if it differs from a disk.
    pub fn caveat(self) -> Option<&'static str> {
        match self {
            Kind::Local => None,
            Kind::Tmpfs => {
                Some("no disk: it is main memory (tmpfs, a RAM disk, or a file there), and nothing in it is durable")
            }
            Kind::Overlay => Some(
                "overlay: files are written to the layer under it, and fsync works as on that filesystem, unless the \
                 overlay is mounted with the option volatile (then fsync does nothing)",
            ),
            Kind::Network => Some(
                "network filesystem: fsync returns when the server reports stable data, so its time includes a network \
                 round trip, and durability depends on that server (e.g. an NFS export with async: none)",
            ),
            Kind::Fuse => Some("FUSE: a program serves this filesystem, and fsync does what that program does"),
        }
    }
}

/// Facts about the storage under a directory, as the kernel states them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageFacts {
    /// The directory, absolute and without symbolic links, its filesystem and its device. What is unknown is empty; filesystems without
    /// exactly one block device (tmpfs, NFS, ZFS, btrfs on several disks) have none. Facts of the device: `model`, `rotational`,
    /// `scheduler`, `write_cache`, `size`, …; those of underlying devices after their name and a dot.
    pub storage: Storage,
    pub kind: Kind,
    /// Mounted for direct access to persistent memory: `dax` or `dax=always`.
    pub dax: bool,
    pub read_only: bool,
    /// Logical block size of the device, bytes: `O_DIRECT` needs multiples of it.
    pub logical_block_bytes: Option<u32>,
    /// `st_dev` of the directory: equal for directories on one filesystem.
    pub st_dev: u64,
}

impl StorageFacts {
    pub fn read(path: &Path) -> Result<StorageFacts, DeviceError> {
        let wrap = |cause| DeviceError::io(Step::Read, path, cause);
        let real = std::fs::canonicalize(path).map_err(wrap)?;
        let device = device_of(&real).map_err(wrap)?;
        let info = Path::new("/proc/self/mountinfo");
        let text = std::fs::read_to_string(info).map_err(|e| DeviceError::io(Step::Read, info, e))?;
        let mounts = mounts::parse(&text);
        let magic = statfs::statfs(&real).map_err(|e| DeviceError::io(Step::Read, path, e))?.filesystem_type();
        let mut facts = StorageFacts {
            storage: Storage {
                path: real.display().to_string(),
                filesystem: name_of(magic).unwrap_or_default().to_owned(),
                ..Storage::default()
            },
            kind: Kind::Local,
            dax: false,
            read_only: false,
            logical_block_bytes: None,
            st_dev: std::fs::metadata(&real).map_err(wrap)?.dev(),
        };
        let storage = &mut facts.storage;
        if let Ok(vfs) = statvfs(&real) {
            // Types differ between platforms.
            #[allow(clippy::useless_conversion)]
            let (blocks, size) = (u64::from(vfs.blocks_available()), u64::from(vfs.fragment_size()));
            storage.free_bytes = Some(blocks.saturating_mul(size));
            facts.read_only = vfs.flags().contains(FsFlags::ST_RDONLY);
        }
        if let Some(mount) = mounts::holding(&mounts, &real, device) {
            storage.mount_point = mount.point.display().to_string();
            storage.filesystem.clone_from(&mount.filesystem);
            storage.mount_options.clone_from(&mount.options);
            storage.source.clone_from(&mount.source);
            let sysfs = Path::new("/sys");
            let block = block_device(sysfs, mount, device).or_else(|| overlay_device(sysfs, &mounts, mount));
            if let Some(block) = block {
                (storage.device, storage.device_facts) = describe(sysfs, &block, &mount.filesystem);
            }
        }
        facts.dax = storage.mount_options.split(',').any(|o| o == "dax" || o == "dax=always");
        facts.logical_block_bytes = storage.device_facts.get("logical_block_size").and_then(|s| s.parse().ok());
        facts.kind = if device_in_memory(storage) { Kind::Tmpfs } else { kind_of(&storage.filesystem, magic) };
        Ok(facts)
    }
}

/// Whether the filesystem's device, or one under it, is main memory: a RAM disk, or a loop device over a file there.
fn device_in_memory(storage: &Storage) -> bool {
    let is_ram = |name: &str| name.starts_with("ram") || name.starts_with("zram");
    let file_in_memory = |file: &str| StorageFacts::read(Path::new(file)).is_ok_and(|under| under.kind == Kind::Tmpfs);
    storage.device.as_deref().is_some_and(is_ram)
        || storage.device_facts.iter().any(|(key, value)| match key.rsplit('.').next() {
            Some("slaves") => value.split(", ").any(is_ram),
            Some("backing_file") => file_in_memory(value),
            _ => false,
        })
}

/// Name of a filesystem by its magic number, if mountinfo lacks it (e.g. the root of a container).
fn name_of(magic: FsType) -> Option<&'static str> {
    let known = [
        (statfs::TMPFS_MAGIC, "tmpfs"),
        (statfs::OVERLAYFS_SUPER_MAGIC, "overlay"),
        (statfs::NFS_SUPER_MAGIC, "nfs"),
        (statfs::FUSE_SUPER_MAGIC, "fuse"),
        // XFS_SUPER_MAGIC of statfs(2), which nix lacks with musl.
        (FsType(0x5846_5342), "xfs"),
        (statfs::BTRFS_SUPER_MAGIC, "btrfs"),
        (statfs::EXT4_SUPER_MAGIC, "ext4"),
    ];
    known.iter().find(|(m, _)| *m == magic).map(|(_, name)| *name)
}

fn kind_of(filesystem: &str, magic: FsType) -> Kind {
    const NETWORK: [&str; 15] = [
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "9p", "afs", "lustre", "gfs2", "ocfs2", "beegfs", "gpfs",
        "ncpfs", "coda",
    ];
    match filesystem {
        "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" => Kind::Tmpfs,
        "overlay" => Kind::Overlay,
        // A network server, or a cluster filesystem on shared disks.
        name if NETWORK.contains(&name) => Kind::Network,
        "fuse.sshfs" | "fuse.glusterfs" | "fuse.s3fs" | "fuse.ceph" => Kind::Network,
        // virtiofs is served by the host's daemon.
        name if name == "fuse" || name.starts_with("fuse.") || name == "virtiofs" => Kind::Fuse,
        // fuseblk (ntfs-3g) is on a disk, but served by a program.
        "fuseblk" => Kind::Fuse,
        _ if magic == statfs::TMPFS_MAGIC => Kind::Tmpfs,
        _ => Kind::Local,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_of_this_machine_is_described() {
        for path in ["/", "/proc", "/dev", "/tmp", "."] {
            let Storage { path, mount_point, filesystem, mount_options, device, device_facts, .. } =
                StorageFacts::read(Path::new(path)).unwrap().storage;
            assert!(!filesystem.is_empty() && !mount_options.is_empty(), "{path}");
            assert!(Path::new(&path).starts_with(&mount_point), "{path} {mount_point}");
            assert_eq!(device.is_some(), device_facts.contains_key("size"), "{device_facts:?}");
        }
        let proc = StorageFacts::read(Path::new("/proc")).unwrap();
        assert_eq!((proc.storage.device, proc.logical_block_bytes), (None, None));
        assert!(StorageFacts::read(Path::new("/tmp")).unwrap().storage.free_bytes.is_some());
        let error = StorageFacts::read(Path::new("/no/such/dir")).unwrap_err().to_string();
        assert!(error.contains("'/no/such/dir'"), "{error}");
        // Main memory is no disk.
        let facts = StorageFacts::read(Path::new("/dev/shm")).unwrap();
        assert_eq!((facts.kind, facts.dax, facts.storage.device), (Kind::Tmpfs, false, None));
        assert!(facts.kind.caveat().unwrap().starts_with("no disk"));
        assert_ne!(facts.st_dev, StorageFacts::read(Path::new("/")).unwrap().st_dev);
    }

    #[test]
    fn a_device_of_main_memory_is_none() {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        let over = |key: &str, value: &str| Storage {
            device: Some("sda".to_owned()),
            device_facts: [(key.to_owned(), value.to_owned())].into(),
            ..Storage::default()
        };
        let in_memory = file.path().display().to_string();
        for (key, value, expected) in [
            ("backing_file", in_memory.as_str(), true),
            ("loop0.backing_file", in_memory.as_str(), true),
            ("backing_file", "/no/such/file", false),
            ("slaves", "sda, ram0", true),
            ("slaves", "sda, sdb", false),
        ] {
            assert_eq!(device_in_memory(&over(key, value)), expected, "{key} = {value}");
        }
        assert!(device_in_memory(&Storage { device: Some("zram0".into()), ..Storage::default() }));
    }

    #[test]
    fn kinds_follow_from_the_filesystem() {
        let kinds = [
            ("ext4", Kind::Local),
            ("zfs", Kind::Local),
            ("tmpfs", Kind::Tmpfs),
            ("overlay", Kind::Overlay),
            ("nfs4", Kind::Network),
            ("9p", Kind::Network),
            ("fuse.sshfs", Kind::Network),
            ("fuse.portal", Kind::Fuse),
            ("virtiofs", Kind::Fuse),
        ];
        for (filesystem, kind) in kinds {
            assert_eq!(kind_of(filesystem, statfs::EXT4_SUPER_MAGIC), kind, "{filesystem}");
            assert_eq!(kind.caveat().is_some(), kind != Kind::Local);
        }
    }
}
