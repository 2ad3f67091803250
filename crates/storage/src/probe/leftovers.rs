//! Removes files of killed probes.
//!
//! A file remains only if the probe was killed between creating it and removing its name, or on a filesystem that keeps the
//! names of open files (NFS).

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::{DeviceError, Step};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::{Pid, geteuid};

use crate::probe::testfile::{is_locked, owner};

/// Files of earlier probes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leftovers {
    pub removed: Vec<PathBuf>,
    /// Files kept, with the reason.
    pub kept: Vec<(PathBuf, String)>,
}

/// Removes the files of dead probes in `dir`: regular files of this user (root: of any user) with a probe's name, whose
/// lock is free and whose process is gone. Touches nothing else.
///
/// # Errors
/// `dir` cannot be read.
pub fn clean_leftovers(dir: &Path) -> Result<Leftovers, DeviceError> {
    let failed = |cause| DeviceError::Io { step: Step::Read, path: dir.to_owned(), cause };
    let mut found = Leftovers::default();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let Ok(entry) = entry else { continue };
        let Some(pid) = entry.file_name().to_str().and_then(owner) else { continue };
        let path = entry.path();
        match why_kept(&path, pid) {
            Some(reason) => found.kept.push((path, reason)),
            None => match fs::remove_file(&path) {
                Ok(()) => found.removed.push(path),
                // Another probe was faster.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => found.kept.push((path, format!("it cannot be removed: {e}"))),
            },
        }
    }
    Ok(found)
}

fn why_kept(path: &Path, pid: i32) -> Option<String> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(e) => return Some(format!("its attributes cannot be read: {e}")),
    };
    if !meta.is_file() {
        return Some("it is not a regular file".to_owned());
    }
    if meta.uid() != geteuid().as_raw() && !geteuid().is_root() {
        return Some("it belongs to another user".to_owned());
    }
    // Signal 0 only checks. EPERM: the process of another user is alive.
    if kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH) {
        return Some(format!("process {pid} is running"));
    }
    match is_locked(path) {
        Ok(false) => None,
        Ok(true) => Some("a probe (perhaps in another container) holds its lock".to_owned()),
        Err(e) => Some(format!("it cannot be opened: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn dead_pid() -> u32 {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn only_files_of_dead_probes_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: String| {
            let path = dir.path().join(name);
            fs::write(&path, "x").unwrap();
            path
        };
        let dead = dead_pid();
        let gone = put(format!("loadline-probe-{dead}-0123456789abcdef.tmp"));
        let ours = put(format!("loadline-probe-{}-0123456789abcdef.tmp", std::process::id()));
        let locked = put(format!("loadline-probe-{dead}-1123456789abcdef.tmp"));
        let other = put("loadline-probe-notes.tmp".to_owned());
        let holder = fs::File::open(&locked).unwrap();
        holder.lock().unwrap();
        let link = dir.path().join(format!("loadline-probe-{dead}-2123456789abcdef.tmp"));
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let folder = dir.path().join(format!("loadline-probe-{dead}-3123456789abcdef.tmp"));
        fs::create_dir(&folder).unwrap();

        let found = clean_leftovers(dir.path()).unwrap();
        assert_eq!(found.removed, std::slice::from_ref(&gone));
        let reason = |path: &Path| found.kept.iter().find(|(p, _)| p == path).map(|(_, why)| why.as_str());
        assert!(reason(&ours).unwrap().contains("is running"));
        assert!(reason(&locked).unwrap().contains("holds its lock"));
        assert_eq!(reason(&link), Some("it is not a regular file"));
        assert_eq!(reason(&folder), Some("it is not a regular file"));
        assert_eq!(reason(&other), None, "a file that is not ours is not even mentioned");
        assert!(!gone.exists() && [ours, locked.clone(), other, link, folder].iter().all(|p| p.exists()));
        drop(holder);
        assert_eq!(clean_leftovers(dir.path()).unwrap().removed, [locked]);
        let error = clean_leftovers(Path::new("/no/such/dir")).unwrap_err().to_string();
        assert!(error.contains("'/no/such/dir'"), "{error}");
    }
}
