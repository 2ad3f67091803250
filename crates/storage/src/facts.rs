//! Facts about the storage under a directory: filesystem, mount, device.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::sys::statfs::{self, FsType};
use nix::sys::statvfs::{FsFlags, statvfs};

use crate::error::{DeviceError, Step};
use crate::mounts;
use crate::sysfs::{Sysfs, block_device, device_of, overlay_device};

/// Kind of filesystem, with respect to durability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// On a block device of this machine (also one of a storage array or of the virtual machine's host).
    Local,
    /// In main memory, also that of a device: nothing is durable.
    Tmpfs,
    /// A container's layer over another filesystem.
    Overlay,
    /// On another machine.
    Network,
    /// Served by a program (FUSE), which defines what a sync does.
    Fuse,
}

impl Kind {
    /// What a sync means there, if it differs from a disk.
    #[must_use]
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

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Local => "local",
            Kind::Tmpfs => "tmpfs",
            Kind::Overlay => "overlay",
            Kind::Network => "network",
            Kind::Fuse => "fuse",
        })
    }
}

/// Facts about the storage under a directory, as the kernel states them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageFacts {
    /// The directory, absolute and without symbolic links.
    pub path: PathBuf,
    /// Kind of filesystem.
    pub kind: Kind,
    /// Filesystem type, e.g. `ext4`; empty if unknown.
    pub filesystem: String,
    /// Mount point; empty if unknown.
    pub mount_point: PathBuf,
    /// Options of mount and filesystem, separated by commas.
    pub mount_options: String,
    /// Mounted device or source, e.g. `/dev/vda`.
    pub source: String,
    /// Mounted for direct access to persistent memory: `dax` or `dax=always`.
    pub dax: bool,
    /// Mounted read-only.
    pub read_only: bool,
    /// Free space for this user, bytes.
    pub free_bytes: Option<u64>,
    /// Logical block size of the device, bytes: `O_DIRECT` needs multiples of it.
    pub logical_block_bytes: Option<u32>,
    /// `st_dev` of the directory: equal for directories on one filesystem.
    pub st_dev: u64,
    /// Name of the block device in `/proc/diskstats`; `None` unless the filesystem has exactly one.
    pub device: Option<String>,
    /// Its facts from sysfs: `model`, `rotational`, `scheduler`, `write_cache`, `size_bytes`, …; those of underlying
    /// devices after their name and a dot.
    pub device_facts: BTreeMap<String, String>,
}

impl StorageFacts {
    /// Facts for the existing `path`.
    ///
    /// # Errors
    /// `path` or `/proc/self/mountinfo` cannot be read.
    pub fn of(path: &Path) -> Result<StorageFacts, DeviceError> {
        let wrap = |cause| DeviceError::io(Step::Read, path, cause);
        let real = std::fs::canonicalize(path).map_err(wrap)?;
        let device = device_of(&real).map_err(wrap)?;
        let info = Path::new("/proc/self/mountinfo");
        let text = std::fs::read_to_string(info).map_err(|e| DeviceError::io(Step::Read, info, e))?;
        let mounts = mounts::parse(&text);
        let magic = statfs::statfs(&real).map_err(|e| DeviceError::io(Step::Read, path, e))?.filesystem_type();
        let mut facts = StorageFacts {
            kind: Kind::Local,
            filesystem: name_of(magic).unwrap_or_default().to_owned(),
            mount_point: PathBuf::new(),
            mount_options: String::new(),
            source: String::new(),
            dax: false,
            read_only: false,
            free_bytes: None,
            logical_block_bytes: None,
            st_dev: std::fs::metadata(&real).map_err(wrap)?.dev(),
            device: None,
            device_facts: BTreeMap::new(),
            path: real,
        };
        if let Ok(vfs) = statvfs(&facts.path) {
            // Types differ between platforms.
            #[allow(clippy::useless_conversion)]
            let (blocks, size) = (u64::from(vfs.blocks_available()), u64::from(vfs.fragment_size()));
            facts.free_bytes = Some(blocks.saturating_mul(size));
            facts.read_only = vfs.flags().contains(FsFlags::ST_RDONLY);
        }
        if let Some(mount) = mounts::holding(&mounts, &facts.path, device) {
            facts.mount_point.clone_from(&mount.point);
            facts.filesystem.clone_from(&mount.filesystem);
            facts.mount_options.clone_from(&mount.options);
            facts.source.clone_from(&mount.source);
            let sysfs = Sysfs::of_kernel();
            let block = block_device(&sysfs, mount, device).or_else(|| overlay_device(&sysfs, &mounts, mount));
            if let Some(block) = block {
                (facts.device, facts.device_facts) = sysfs.describe(&block, &mount.filesystem);
            }
        }
        facts.kind = if facts.device_in_memory() { Kind::Tmpfs } else { kind_of(&facts.filesystem, magic) };
        facts.dax = facts.mount_options.split(',').any(|o| o == "dax" || o == "dax=always");
        facts.logical_block_bytes = facts.device_facts.get("logical_block_size").and_then(|s| s.parse().ok());
        Ok(facts)
    }
}

impl StorageFacts {
    /// Whether the filesystem's device, or one under it, is main memory: a RAM disk, or a loop device over a file there.
    fn device_in_memory(&self) -> bool {
        let is_ram = |name: &str| name.starts_with("ram") || name.starts_with("zram");
        let file_in_memory =
            |file: &str| StorageFacts::of(Path::new(file)).is_ok_and(|under| under.kind == Kind::Tmpfs);
        self.device.as_deref().is_some_and(is_ram)
            || self.device_facts.iter().any(|(key, value)| match key.rsplit('.').next() {
                Some("slaves") => value.split(", ").any(is_ram),
                Some("backing_file") => file_in_memory(value),
                _ => false,
            })
    }
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
            let facts = StorageFacts::of(Path::new(path)).unwrap();
            assert!(!facts.filesystem.is_empty() && !facts.mount_options.is_empty(), "{facts:?}");
            assert!(facts.path.starts_with(&facts.mount_point), "{facts:?}");
            assert_eq!(facts.device.is_some(), facts.device_facts.contains_key("size_bytes"), "{facts:?}");
        }
        let proc = StorageFacts::of(Path::new("/proc")).unwrap();
        assert_eq!((proc.device, proc.logical_block_bytes), (None, None));
        assert!(StorageFacts::of(Path::new("/tmp")).unwrap().free_bytes.is_some());
        let error = StorageFacts::of(Path::new("/no/such/dir")).unwrap_err().to_string();
        assert!(error.contains("'/no/such/dir'"), "{error}");
    }

    #[test]
    fn main_memory_is_no_disk() {
        let facts = StorageFacts::of(Path::new("/dev/shm")).unwrap();
        assert_eq!((facts.kind, facts.dax, facts.device), (Kind::Tmpfs, false, None));
        assert!(facts.kind.caveat().unwrap().starts_with("no disk"));
        assert_ne!(facts.st_dev, StorageFacts::of(Path::new("/")).unwrap().st_dev);
    }

    #[test]
    fn a_device_of_main_memory_is_none() {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        let root = StorageFacts { device: Some("sda".into()), ..StorageFacts::of(Path::new("/")).unwrap() };
        let over = |key: &str, value: &str| StorageFacts {
            device_facts: [(key.to_owned(), value.to_owned())].into(),
            ..root.clone()
        };
        let in_memory = file.path().display().to_string();
        for (key, value, expected) in [
            ("backing_file", in_memory.as_str(), true),
            ("loop0.backing_file", in_memory.as_str(), true),
            ("backing_file", "/no/such/file", false),
            ("slaves", "sda, ram0", true),
            ("slaves", "sda, sdb", false),
        ] {
            assert_eq!(over(key, value).device_in_memory(), expected, "{key} = {value}");
        }
        assert!(StorageFacts { device: Some("zram0".into()), ..root.clone() }.device_in_memory());
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

    #[test]
    fn a_filesystem_mounted_read_only_is_known() {
        let Ok(text) = std::fs::read_to_string("/proc/self/mountinfo") else { panic!("no mountinfo") };
        let sysfs_or_ro = mounts::parse(&text).into_iter().find(|m| m.options.split(',').any(|o| o == "ro"));
        // If nothing is mounted read-only, only the opposite can be checked.
        if let Some(mount) = sysfs_or_ro.filter(|m| m.point.is_dir()) {
            assert!(StorageFacts::of(&mount.point).unwrap().read_only, "{mount:?}");
        }
        assert!(!StorageFacts::of(&std::env::temp_dir()).unwrap().read_only);
    }
}
