//! Removes files of killed probes.
//!
//! A file remains only if the probe was killed between creating it and removing its name, or on a filesystem that keeps the
//! names of open files.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::{DeviceError, Step};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::{Pid, geteuid};

use crate::probe::testfile::{is_locked, owner};

/// Removes the files of dead probes in `dir`: regular files of this user (root: of any user) with a probe's name, whose lock
/// is free and whose process is gone. Returns all files with such a name, and why one was kept.
pub(crate) fn clean_leftovers(dir: &Path) -> Result<Vec<(PathBuf, io::Result<()>)>, DeviceError> {
    let entries = fs::read_dir(dir).map_err(|cause| DeviceError::io(Step::Read, dir, cause))?;
    let paths = entries.flatten().filter_map(|entry| Some((entry.path(), entry.file_name().to_str().and_then(owner)?)));
    let cleaned = paths.map(|(path, pid)| (remove(&path, pid), path));
    // Another probe may be faster.
    let found =
        cleaned.filter(|(removed, _)| removed.as_ref().err().map(io::Error::kind) != Some(io::ErrorKind::NotFound));
    Ok(found.map(|(removed, path)| (path, removed)).collect())
}

/// Removes the file of the probe `pid` at `path`, or says why not.
fn remove(path: &Path, pid: i32) -> io::Result<()> {
    let meta = fs::symlink_metadata(path)?;
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
        return fs::remove_file(path);
    };
    Err(io::Error::other(why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
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
