//! Errors of storage access.

use std::io;
use std::path::{Path, PathBuf};

loadline_model::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Step {
        Read: "read";
        Create: "create";
        Open: "open";
        Preallocate: "reserve space in";
        Write: "write";
        Sync: "sync";
        Map: "map";
        Rename: "rename";
        Ring: "use an io_uring on";
    }
    pub fn verb;
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    #[error("cannot {} '{}': {cause}. {}", .step.verb(), .path.display(), advice(.cause))]
    Io { step: Step, path: PathBuf, cause: io::Error },
    #[error("{what} cannot be used on '{}': {why}", .path.display())]
    Unsupported { what: &'static str, path: PathBuf, why: String },
    #[error("no memory for a buffer of {bytes} bytes. Use smaller blocks or fewer at once")]
    NoMemory { bytes: usize },
    #[error("{what}: offset {offset} + {bytes} bytes is outside its {size} bytes")]
    Range { what: &'static str, offset: u64, bytes: u64, size: u64 },
}

impl DeviceError {
    pub fn io(step: Step, path: &Path, cause: impl Into<io::Error>) -> DeviceError {
        DeviceError::Io { step, path: path.to_owned(), cause: cause.into() }
    }
}

fn advice(cause: &io::Error) -> &'static str {
    use io::ErrorKind as K;
    match cause.kind() {
        K::NotFound => "Check that it exists",
        K::PermissionDenied => "Check the permissions of this user",
        K::NotADirectory => "Name a directory",
        K::ReadOnlyFilesystem => "Name a directory on a writable filesystem",
        K::StorageFull | K::QuotaExceeded => "Free some space, or use less",
        K::WriteZero => "Check the device and its free space",
        K::AlreadyExists => "Remove it if it is no longer needed",
        _ => "See the system's log (dmesg)",
    }
}
