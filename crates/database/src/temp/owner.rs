//! The owner file and lock in loadline's directories: who created a directory, and whether that process still lives.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::machine::boot_id;

pub(crate) const FILE: &str = "owner.json";
/// Draft of [`FILE`], renamed when it is on disk.
pub(crate) const DRAFT: &str = "owner.json.new";
/// Locked by the owner as long as it lives.
pub(crate) const LOCK: &str = "lock";

/// Content of an owner file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// Version of loadline.
    pub(crate) loadline: String,
    /// Process id of the owner.
    pub(crate) pid: i32,
    /// Start of the owner, clock ticks since boot (`/proc/PID/stat`, field 22). Distinguishes it from a later process
    /// with the same id.
    pub(crate) start_ticks: u64,
    /// `/proc/sys/kernel/random/boot_id`: process ids of another boot are invalid.
    pub(crate) boot_id: String,
    /// The directory, as information for people.
    pub(crate) directory: String,
    /// The socket's directory, if it is outside.
    pub(crate) sockets: Option<PathBuf>,
    /// User and group that the server runs as.
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Process id of the server, if it was started.
    #[serde(default)]
    pub(crate) postmaster: Option<i32>,
    /// Shared memory files of the server: they remain when it is killed.
    #[serde(default)]
    pub(crate) shared_memory: Vec<PathBuf>,
}

impl Owner {
    /// This process as owner of `directory`.
    pub(crate) fn this_process(directory: &Path, uid: u32, gid: u32) -> io::Result<Owner> {
        let pid = nix::unistd::getpid().as_raw();
        let start_ticks = start_ticks(pid).ok_or_else(|| io::Error::other("/proc/self/stat cannot be read"))?;
        Ok(Owner {
            loadline: env!("CARGO_PKG_VERSION").to_owned(),
            pid,
            start_ticks,
            boot_id: boot_id(),
            directory: directory.to_string_lossy().into_owned(),
            sockets: None,
            uid,
            gid,
            postmaster: None,
            shared_memory: Vec::new(),
        })
    }

    /// Writes the owner file atomically, also if the machine crashes.
    pub(crate) fn write(&self, dir: &Path) -> io::Result<()> {
        let draft = dir.join(DRAFT);
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&draft)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.sync_all()?;
        std::fs::rename(draft, dir.join(FILE))
    }

    /// Reads the owner file; `None` if there is none.
    pub(crate) fn read(dir: &Path) -> io::Result<Option<Owner>> {
        match std::fs::read(dir.join(FILE)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Whether its process ids and shared memory belong to the present boot.
    pub(crate) fn is_of_this_boot(&self) -> bool {
        self.boot_id == boot_id()
    }

    /// Whether the owner process still runs.
    pub(crate) fn process_lives(&self) -> bool {
        self.is_of_this_boot() && start_ticks(self.pid) == Some(self.start_ticks)
    }
}

/// Takes the lock of `dir`; `None` if another process holds it. The system releases it when its holder dies.
pub(crate) fn try_lock(dir: &Path) -> io::Result<Option<File>> {
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(dir.join(LOCK))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(e)) => Err(e),
    }
}

/// Treats "not found" as success of a removal.
pub(crate) fn ignore_not_found(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Start time of the process; `None` if there is no such process or it is a zombie.
fn start_ticks(pid: i32) -> Option<u64> {
    parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(stat: &str) -> Option<u64> {
    // The name (field 2) may contain spaces and parentheses: it ends at the last one.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recycled_process_id_is_not_the_owner() {
        let dir = tempfile::tempdir().unwrap();
        let mut owner = Owner::this_process(dir.path(), 1, 2).unwrap();
        owner.write(dir.path()).unwrap();
        assert!(Owner::read(dir.path()).unwrap().unwrap().process_lives());
        owner.start_ticks += 1;
        assert!(!owner.process_lives());
        owner.start_ticks -= 1;
        owner.boot_id.push('x');
        assert!(!owner.process_lives());
    }

    #[test]
    fn stat_of_a_process_with_spaces_in_its_name() {
        let fields: Vec<String> = (4..=30).map(|n| n.to_string()).collect();
        let line = |state: &str| format!("7 (a b) c) {state} {}", fields.join(" "));
        assert_eq!(parse_stat(&line("S")), Some(22));
        assert_eq!(parse_stat(&line("Z")), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn a_lock_is_held_once() {
        let dir = tempfile::tempdir().unwrap();
        let held = try_lock(dir.path()).unwrap();
        assert!(held.is_some());
        assert!(try_lock(dir.path()).unwrap().is_none());
        drop(held);
        assert!(try_lock(dir.path()).unwrap().is_some());
    }
}
