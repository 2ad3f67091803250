//! The probe's test files, which are freed however the process ends, and those that a killed probe left.
//!
//! A file remains only if the probe was killed between creating it and removing its name, or on a filesystem that keeps the
//! names of open files.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::{Pid, geteuid};

use crate::{Access, DeviceError, Step, direct_alignment, open_file};

const PREFIX: &str = "loadline-probe-";
const SUFFIX: &str = ".tmp";

/// A test file, opened twice: without and with `O_DSYNC`. Its name is removed as soon as both are open, so the kernel frees
/// it however the process ends.
#[derive(Debug)]
pub(crate) struct TestFile {
    pub(crate) plain: File,
    pub(crate) dsync: File,
    /// Whether both use `O_DIRECT`.
    pub(crate) direct: bool,
    pub(crate) alignment: u64,
}

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
fn owner(name: &str) -> Option<i32> {
    let (pid, random) = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let hex = random.len() == 16 && random.bytes().all(|b| b.is_ascii_hexdigit());
    pid.parse().ok().filter(|p| digits(pid) && hex && *p > 0)
}

/// Whether another process holds the lock of the file at `path`. Symbolic links are not followed. Fails if it is no regular file.
fn is_locked(path: &Path) -> io::Result<bool> {
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

/// Removes the files of dead probes in `dir`: regular files of this user (root: of any user) with a probe's name, whose lock
/// is free and whose process is gone. Returns all files with such a name, and why one was kept.
pub(crate) fn clean_leftovers(dir: &Path) -> Result<Vec<(PathBuf, io::Result<()>)>, DeviceError> {
    let entries = std::fs::read_dir(dir).map_err(|cause| DeviceError::io(Step::Read, dir, cause))?;
    let paths = entries.flatten().filter_map(|entry| Some((entry.path(), entry.file_name().to_str().and_then(owner)?)));
    let cleaned = paths.map(|(path, pid)| (remove(&path, pid), path));
    // Another probe may be faster.
    let found =
        cleaned.filter(|(removed, _)| removed.as_ref().err().map(io::Error::kind) != Some(io::ErrorKind::NotFound));
    Ok(found.map(|(removed, path)| (path, removed)).collect())
}

/// Removes the file of the probe `pid` at `path`, or says why not.
fn remove(path: &Path, pid: i32) -> io::Result<()> {
    let meta = std::fs::symlink_metadata(path)?;
    let user = geteuid();
    // Signal 0 only checks. EPERM: the process of another user is alive.
    let is_dead = || kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH);
    let why = if !meta.is_file() {
        "it is not a regular file"
    } else if meta.uid() != user.as_raw() && !user.is_root() {
        "it belongs to another user"
    } else if !is_dead() || is_locked(path)? {
        "that probe runs, perhaps in another container"
    } else {
        return std::fs::remove_file(path);
    };
    Err(io::Error::other(why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::process::Command;

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

    #[test]
    fn only_files_of_dead_probes_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: String| dir.path().join(name);
        let put = |name: String| {
            std::fs::write(at(name.clone()), "x").unwrap();
            at(name)
        };
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let of = |pid: u32, number: u32| format!("loadline-probe-{pid}-{number}123456789abcdef.tmp");
        let [gone, locked] = [0, 1].map(|number| put(of(child.id(), number)));
        let ours = put(of(std::process::id(), 0));
        let other = put("loadline-probe-notes.tmp".to_owned());
        let holder = std::fs::File::open(&locked).unwrap();
        holder.lock().unwrap();
        let [link, folder] = [2, 3].map(|number| at(of(child.id(), number)));
        std::os::unix::fs::symlink(&other, &link).unwrap();
        std::fs::create_dir(&folder).unwrap();
        let clean = || {
            let (removed, kept): (Vec<_>, Vec<_>) =
                clean_leftovers(dir.path()).unwrap().into_iter().partition(|(_, removed)| removed.is_ok());
            let kept = kept.into_iter().map(|(path, why)| (path, why.unwrap_err().to_string()));
            (removed.into_iter().map(|(path, _)| path).collect::<Vec<_>>(), kept.collect::<BTreeMap<_, _>>())
        };
        let (removed, kept) = clean();
        assert_eq!(removed, std::slice::from_ref(&gone));
        let is = |path: &PathBuf, why| kept.get(path).is_some_and(|text| text.contains(why));
        assert!(is(&ours, "runs") && is(&locked, "runs") && is(&link, "regular") && is(&folder, "regular"), "{kept:?}");
        assert!(!kept.contains_key(&other), "not a probe's name");
        assert!(!gone.exists() && [ours, locked.clone(), other, link, folder].iter().all(|p| p.exists()));
        drop(holder);
        assert_eq!(clean().0, [locked]);
        let error = clean_leftovers(Path::new("/no/such/dir")).unwrap_err().to_string();
        assert!(error.contains("'/no/such/dir'"), "{error}");
    }
}
