//! Folders in which references are measured.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use loadline_model::format::bytes;
use loadline_model::manifest::TargetInfo;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Log,
    Data,
}

/// A writable folder on the filesystem of the database's log or data: the run's `scratch` folder if it is there, else
/// the nearest writable parent of the database's directory. Never inside the database's directories.
pub fn writable_dir(info: &TargetInfo, role: Role, scratch: &Path) -> Result<PathBuf, String> {
    let (dir, what) = match role {
        Role::Log => (&info.log_dir, "log"),
        Role::Data => (&info.data_dir, "data"),
    };
    let dir = if info.local { dir.as_deref() } else { None };
    let Some(log_dir) = dir.map(Path::new) else {
        return Err(not_here(what));
    };
    let device = |path: &Path| fs::metadata(path).map(|m| m.dev()).ok();
    let Some(wanted) = device(log_dir) else {
        return Err(format!(
            "{} cannot be read by this user: run `loadline probe` as a user who can read it and pass its figures with \
            --limits FILE",
            log_dir.display()
        ));
    };
    if device(scratch) == Some(wanted) {
        return Ok(scratch.to_owned());
    }
    let dirs = [&info.log_dir, &info.data_dir];
    let own = |path: &Path| dirs.iter().filter_map(|d| d.as_deref()).any(|d| path.starts_with(d));
    let above = log_dir.ancestors().skip(1).take_while(|p| device(p) == Some(wanted)).filter(|p| !own(p));
    let mut writable = above.filter(|p| tempfile::tempdir_in(p).is_ok());
    match writable.next() {
        Some(path) => Ok(path.to_owned()),
        None => Err(format!(
            "no writable folder found on the filesystem of {}: put --results there, or pass the figures of `loadline \
            probe` with --limits FILE",
            log_dir.display()
        )),
    }
}

/// Why there is no reference of the filesystem of the database's `what` on another machine.
pub(super) fn not_here(what: &str) -> String {
    format!(
        "the filesystem of the database's {what} is not accessible from here: run `loadline probe` on the database's machine \
        and pass its figures with --limits FILE"
    )
}

pub(super) fn check_free_space(dir: &Path, what: &str, needed: u64) -> Result<(), String> {
    // A filesystem that does not tell its free space is tried.
    let free =
        nix::sys::statvfs::statvfs(dir).map_or(u64::MAX, |s| s.blocks_available().saturating_mul(s.fragment_size()));
    if free >= needed {
        return Ok(());
    }
    let [needed, free] = [needed, free].map(|n| bytes(n as f64));
    Err(format!("{what} needs {needed} of free space in {}, but only {free} are free", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(log_dir: &Path) -> TargetInfo {
        TargetInfo { local: true, log_dir: Some(log_dir.display().to_string()), ..TargetInfo::default() }
    }

    #[test]
    fn a_folder_is_beside_the_log_and_never_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("db/log");
        fs::create_dir_all(&log).unwrap();
        let folder = |scratch: &Path| writable_dir(&info(&log), Role::Log, scratch).unwrap();
        assert_eq!(folder(dir.path()), dir.path(), "the run's own folder is on the same filesystem");
        assert_eq!(folder(Path::new("/proc")), dir.path().join("db"));
        assert_eq!(fs::read_dir(dir.path().join("db")).unwrap().count(), 1, "trying leaves nothing");
    }

    #[test]
    fn without_a_folder_there_is_a_reason() {
        let why = |info: &TargetInfo| writable_dir(info, Role::Log, &std::env::temp_dir()).unwrap_err();
        // Not even root can write there.
        let said = why(&info(Path::new("/proc/self")));
        assert!(said.contains("no writable folder") && said.contains("/proc/self"), "{said}");
        let said = why(&info(Path::new("/no/such/folder")));
        assert!(said.contains("cannot be read by this user"), "{said}");
        let remote = TargetInfo { local: false, ..info(Path::new("/tmp")) };
        assert!(why(&remote).contains("not accessible from here"), "{}", why(&remote));
    }
}
