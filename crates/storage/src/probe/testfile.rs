//! The probe's test files, which are freed however the process ends.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::{Access, DeviceError, Step, direct_alignment, open_file};

pub(crate) const PREFIX: &str = "loadline-probe-";
pub(crate) const SUFFIX: &str = ".tmp";

/// A test file, opened twice: without and with `O_DSYNC`. Its name is removed as soon as both are open, so the kernel frees
/// it however the process ends.
#[derive(Debug)]
pub(crate) struct TestFile {
    pub(crate) plain: File,
    pub(crate) dsync: File,
    /// Whether both use `O_DIRECT`.
    pub(crate) direct: bool,
    /// Alignment of `O_DIRECT`, bytes.
    pub(crate) alignment: u64,
}

/// Removes a name when it is dropped.
struct Name(PathBuf);

impl Drop for Name {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl TestFile {
    /// A new file in `dir`; with `O_DIRECT` if `direct` and the filesystem supports it. `block` is the device's logical
    /// block, bytes, for filesystems that do not state their alignment.
    pub(crate) fn create(dir: &Path, direct: bool, block: Option<u32>) -> Result<TestFile, DeviceError> {
        let path = dir.join(new_name());
        let make = |direct| open_file(&path, Access { direct, create_new: true, ..Access::default() });
        let (plain, direct) = match make(direct) {
            Err(DeviceError::Unsupported { .. }) => (make(false)?, false),
            made => (made?, direct),
        };
        let name = Name(path);
        // Held while the file is open: shows others that the owner is alive.
        plain.lock().map_err(|cause| DeviceError::io(Step::Open, &name.0, cause))?;
        let dsync = open_file(&name.0, Access { direct, dsync: true, ..Access::default() })?;
        let alignment = direct_alignment(&plain).map_or(block.unwrap_or(4096), |a| a.offset);
        drop(name);
        Ok(TestFile { plain, dsync, direct, alignment: u64::from(alignment.max(1)) })
    }
}

fn new_name() -> String {
    // The standard library's hash keys are random in each process and differ in each call.
    let random = RandomState::new().build_hasher().finish();
    format!("{PREFIX}{}-{random:016x}{SUFFIX}", std::process::id())
}

/// The owner's process id, if `name` is a probe's.
pub(crate) fn owner(name: &str) -> Option<i32> {
    let (pid, random) = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let hex = random.len() == 16 && random.bytes().all(|b| b.is_ascii_hexdigit());
    pid.parse().ok().filter(|p| digits(pid) && hex && *p > 0)
}

/// Whether another process holds the lock of the file at `path`. Symbolic links are not followed. Fails if it is no regular file.
pub(crate) fn is_locked(path: &Path) -> io::Result<bool> {
    let file = OpenOptions::new().read(true).custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    match file.try_lock() {
        Ok(()) => Ok(false),
        Err(std::fs::TryLockError::WouldBlock) => Ok(true),
        Err(std::fs::TryLockError::Error(e)) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt as _;

    #[test]
    fn a_file_has_no_name_once_it_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let file = TestFile::create(dir.path(), true, None).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let page = crate::AlignedBuf::new(4096).unwrap();
        file.dsync.write_all_at(&page, 0).unwrap();
        assert_eq!(file.plain.metadata().unwrap().len(), 4096, "both are the same file");
    }

    #[test]
    fn only_our_names_are_ours() {
        assert_eq!(owner(&new_name()), Some(std::process::id() as i32));
        assert_ne!(new_name(), new_name());
        for name in [
            "loadline-probe-1.tmp",
            "loadline-probe-1-0123456789abcdef",
            "loadline-probe--1-0123456789abcdef.tmp",
            "loadline-probe-+1-0123456789abcdef.tmp",
            "loadline-probe-0-0123456789abcdef.tmp",
            "loadline-probe-x-0123456789abcdef.tmp",
            "loadline-probe-1-0123456789abcdeg.tmp",
            "loadline-probe-1-0123456789abcdef.tmp2",
            "my-loadline-probe-1-0123456789abcdef.tmp",
        ] {
            assert_eq!(owner(name), None, "{name}");
        }
    }
}
