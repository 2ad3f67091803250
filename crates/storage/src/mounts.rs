//! Finds the mount of a path in `/proc/self/mountinfo` (proc_pid_mountinfo(5)).

use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// `major:minor` of files on it; for btrfs and overlay not the number of a device.
    pub(crate) device: (u64, u64),
    pub(crate) point: PathBuf,
    pub(crate) filesystem: String,
    /// Options of the mount and of the filesystem, each once.
    pub(crate) options: String,
    pub(crate) source: String,
}

/// All mounts in the text of mountinfo, in its order. Lines with an unknown format are skipped.
pub(crate) fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(mount).collect()
}

fn mount(line: &str) -> Option<Mount> {
    // id parent major:minor root point options [optional fields] - type source super-options
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let mut right = right.splitn(3, ' ');
    let (filesystem, source) = (right.next()?, right.next()?);
    let super_options = right.next().unwrap_or_default();
    let (major, minor) = left.get(2)?.split_once(':')?;
    let mut options: Vec<String> = Vec::new();
    for option in left.get(5)?.split(',').chain(super_options.split(',')) {
        let option = unescape(option).to_string_lossy().into_owned();
        // A read-only mount of a writable filesystem: the mount's option comes first and wins.
        let contradicts = option == "rw" && options.iter().any(|o| o == "ro");
        if !option.is_empty() && !contradicts && !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount {
        device: (major.parse().ok()?, minor.parse().ok()?),
        point: unescape(left.get(4)?),
        filesystem: filesystem.to_owned(),
        options: options.join(","),
        source: unescape(source).to_string_lossy().into_owned(),
    })
}

/// Decodes the kernel's octal escapes (`\040` is a blank).
fn unescape(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let octal = (byte == b'\\').then(|| text.get(at + 1..at + 4)).flatten();
        match octal.and_then(|o| u8::from_str_radix(o, 8).ok()) {
            Some(escaped) => {
                out.push(escaped);
                at += 4;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(out))
}

/// The mount of `path` (absolute, without symbolic links), whose files have `device`.
///
/// Of the mounts above the path, the deepest one with the path's device number wins; of two on the same mount point, the
/// later one. On btrfs and overlay, files have a different number than the mount: then the deepest mount wins.
pub(crate) fn holding<'a>(mounts: &'a [Mount], path: &Path, device: (u64, u64)) -> Option<&'a Mount> {
    let above = || mounts.iter().filter(|m| path.starts_with(&m.point));
    let depth = |m: &&Mount| m.point.components().count();
    let same_device = above().filter(|m| m.device == device).max_by_key(depth);
    same_device.or_else(|| above().max_by_key(depth))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = r"22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard
30 27 259:1 / /var/lib/my\040data ro,noatime - xfs /dev/nvme0n1p1 rw,noquota
31 27 0:45 /@data /data rw,relatime - btrfs /dev/sdb rw,subvol=/@data
32 27 0:50 / /over rw - overlay overlay rw,lowerdir=/l,upperdir=/u
33 27 0:51 / /data2 rw - tmpfs tmpfs rw,size=1k
34 27 8:1 / /data2 rw - ext4 /dev/sda1 rw
broken line
";

    #[test]
    fn the_deepest_mount_of_the_same_device_holds_a_path() {
        let mounts = parse(MOUNTINFO);
        assert_eq!(mounts.len(), 7);
        assert_eq!(mounts[2].point, Path::new("/var/lib/my data"));
        assert_eq!(mounts[2].options, "ro,noatime,noquota");
        assert_eq!(mounts[1].options, "rw,relatime,discard");
        let point = |path: &str, device: (u64, u64)| {
            let mount = holding(&mounts, Path::new(path), device).unwrap();
            format!("{} {}", mount.point.display(), mount.source)
        };
        assert_eq!(point("/var/lib/my data/pg/wal", (259, 1)), "/var/lib/my data /dev/nvme0n1p1");
        assert_eq!(point("/var/lib/my dataset", (254, 0)), "/ /dev/vda");
        assert_eq!(point("/data/wal", (0, 46)), "/data /dev/sdb", "btrfs: the subvolume's number is its own");
        assert_eq!(point("/over/x", (254, 0)), "/ /dev/vda", "something below was mounted over");
        assert_eq!(point("/data2/x", (8, 1)), "/data2 /dev/sda1", "the later of two mounts on one point");
        assert_eq!(point("/data2/x", (0, 99)), "/data2 /dev/sda1");
    }

    #[test]
    fn odd_escapes_are_kept() {
        for text in [r"\", r"a\04", r"a\999", "\\é", "é"] {
            assert_eq!(unescape(text), Path::new(text));
        }
    }
}
