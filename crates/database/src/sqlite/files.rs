//! The files of an SQLite database, and who holds the lock of its writer.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use rusqlite::Connection;

use crate::embedded::files::FileNames;
use crate::error::TargetError;

pub(super) static NAMES: FileNames = FileNames { scheme: "sqlite", parameter: None, log: "-wal", others: &["-shm"] };

/// The error of a session that may not write, because another process writes to the database or keeps a transaction open.
pub(super) fn held_by_others(db: &Connection) -> TargetError {
    let path = db.path().unwrap_or_default();
    let who = holder(&[path.to_owned(), format!("{path}-shm")]).map_or(String::new(), |who| format!(" ({who})"));
    TargetError::Refused(format!(
        "another process{who} holds the lock of SQLite's writer in {path}: end its transaction, or that process"
    ))
}

/// The process that has locked a part of one of these files for writing, as the kernel lists it (proc_locks(5)).
fn holder(files: &[String]) -> Option<String> {
    let inodes: Vec<String> = files.iter().filter_map(|f| Some(fs::metadata(f).ok()?.ino().to_string())).collect();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let [_, _, _, kind, pid, file, ..] = line.split_whitespace().collect::<Vec<_>>()[..] else { return None };
        let held = kind == "WRITE" && inodes.iter().any(|inode| file.rsplit(':').next() == Some(inode));
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok().filter(|_| held)?;
        (pid != std::process::id().to_string()).then(|| format!("{}, process {pid}", name.trim()))
    })
}
