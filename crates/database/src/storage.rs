//! Findings of a doctor about the storage under a folder of this machine.

use std::path::Path;

use loadline_model::format::bytes;
use loadline_model::{Finding, Severity};
use loadline_storage::{Kind, StorageFacts};

/// With less free space, tables and logs of a test hardly fit.
const SCARCE_BYTES: u64 = 256 << 20;

/// Whether what is in `path` is in main memory; `None` if unknown. Without access to a folder its parent does not help,
/// because the folder may be a link or a mount point.
pub(crate) fn in_memory(path: &Path) -> Option<bool> {
    StorageFacts::read(path).ok().map(|facts| facts.kind == Kind::Tmpfs)
}

/// The free space under `path`.
pub(crate) fn free_space(path: &Path) -> Finding {
    let (severity, value, advice) = match StorageFacts::read(path).map(|facts| facts.storage.free_bytes) {
        Ok(Some(free)) if free < SCARCE_BYTES => {
            (Severity::Warning, bytes(free as f64), "tables and logs of a test hardly fit: free some space")
        }
        Ok(Some(free)) => (Severity::Ok, bytes(free as f64), ""),
        Ok(None) => (Severity::Warning, "unknown".to_owned(), "check it by hand"),
        Err(e) => (Severity::Warning, format!("unknown: {e}"), "check it by hand"),
    };
    Finding::new("free-space", severity, "free space", value, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_in_memory_is_recognised() {
        assert_eq!(in_memory(Path::new("/dev/shm")), Some(true));
        assert_eq!(in_memory(Path::new("/no/such/folder")), None);
        assert_eq!(free_space(Path::new("/no/such/folder")).severity, Severity::Warning);
    }
}
