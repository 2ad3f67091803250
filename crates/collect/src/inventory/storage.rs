//! Filesystem and block device under a path, for a run's manifest.

use std::path::Path;

use loadline_model::format;
use loadline_model::machine::Storage;
use loadline_storage::StorageFacts;

use crate::error::CollectError;

/// Filesystem and device under the existing `path`. Unknown facts are left out. Filesystems without exactly one block device
/// (tmpfs, NFS, ZFS, btrfs on several disks) have none.
///
/// # Errors
/// `path` or `/proc/self/mountinfo` cannot be read.
pub fn storage(path: &Path) -> Result<Storage, CollectError> {
    Ok(recorded(StorageFacts::of(path)?))
}

/// `facts` with readable sizes.
fn recorded(facts: StorageFacts) -> Storage {
    let readable = |(key, value): (String, String)| match (key.strip_suffix("size_bytes"), value.parse::<u64>()) {
        (Some(prefix), Ok(bytes)) => (format!("{prefix}size"), format::bytes(bytes as f64)),
        _ => (key, value),
    };
    Storage {
        path: facts.path.display().to_string(),
        mount_point: facts.mount_point.display().to_string(),
        filesystem: facts.filesystem,
        mount_options: facts.mount_options,
        source: facts.source,
        device: facts.device,
        device_facts: facts.device_facts.into_iter().map(readable).collect(),
        free_bytes: facts.free_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::DiskCounters;

    #[test]
    fn sizes_are_readable() {
        let mut facts = StorageFacts::of(Path::new("/")).unwrap();
        facts.device_facts = [("size_bytes", "1073741824"), ("sda.size_bytes", "2048"), ("logical_block_size", "512")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into();
        let expected = [("logical_block_size", "512"), ("sda.size", "2.0 KiB"), ("size", "1.0 GiB")];
        let found = recorded(facts).device_facts;
        assert_eq!(found.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn storage_of_this_machine_is_described() {
        for path in ["/", "/proc", "/dev", "/tmp", "."] {
            let s = storage(Path::new(path)).unwrap();
            assert!(!s.filesystem.is_empty() && !s.mount_options.is_empty(), "{s:?}");
            assert!(Path::new(&s.path).starts_with(&s.mount_point), "{s:?}");
            if let Some(device) = &s.device {
                DiskCounters::local(device).unwrap();
                assert!(s.device_facts.contains_key("size"), "{s:?}");
            }
        }
        assert_eq!(storage(Path::new("/proc")).unwrap().device, None);
        let error = storage(Path::new("/no/such/dir")).unwrap_err().to_string();
        assert!(error.contains("'/no/such/dir'"), "{error}");
    }
}
