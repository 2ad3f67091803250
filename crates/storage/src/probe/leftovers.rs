//! Removes files of killed probes.
//!
//! A file remains only if the probe was killed between creating it and removing its name, or on a filesystem that keeps the
//! names of open files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{DeviceError, Step};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use crate::probe::testfile::{is_locked, owner};

/// Removes the files of dead probes in `dir`, which it returns: regular files with a probe's name, whose lock is free and whose
/// process is gone. Touches nothing else.
///
/// # Errors
/// `dir` cannot be read.
pub(crate) fn clean_leftovers(dir: &Path) -> Result<Vec<PathBuf>, DeviceError> {
    let entries = fs::read_dir(dir).map_err(|cause| DeviceError::io(Step::Read, dir, cause))?;
    let mut removed = Vec::new();
    for entry in entries.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        // Signal 0 only checks. EPERM: the process of another user is alive.
        let is_dead = |pid| kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH);
        // A probe in another container has its lock.
        let is_left = name.to_str().and_then(owner).is_some_and(is_dead) && is_locked(&path).is_ok_and(|is| !is);
        // Another probe may be faster.
        if is_left && fs::remove_file(&path).is_ok() {
            removed.push(path);
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_files_of_dead_probes_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: String| dir.path().join(name);
        let put = |name: String| {
            fs::write(at(name.clone()), "x").unwrap();
            at(name)
        };
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let of = |pid: u32, number: u32| format!("loadline-probe-{pid}-{number}123456789abcdef.tmp");
        let [gone, locked] = [0, 1].map(|number| put(of(child.id(), number)));
        let ours = put(of(std::process::id(), 0));
        let other = put("loadline-probe-notes.tmp".to_owned());
        let holder = fs::File::open(&locked).unwrap();
        holder.lock().unwrap();
        let [link, folder] = [2, 3].map(|number| at(of(child.id(), number)));
        std::os::unix::fs::symlink(&other, &link).unwrap();
        fs::create_dir(&folder).unwrap();
        assert_eq!(clean_leftovers(dir.path()).unwrap(), std::slice::from_ref(&gone));
        assert!(!gone.exists() && [ours, locked.clone(), other, link, folder].iter().all(|p| p.exists()));
        drop(holder);
        assert_eq!(clean_leftovers(dir.path()).unwrap(), [locked]);
        let error = clean_leftovers(Path::new("/no/such/dir")).unwrap_err().to_string();
        assert!(error.contains("'/no/such/dir'"), "{error}");
    }
}
