//! Who owns a private server's folder, and the end of servers whose owner is dead.
//!
//! The owner holds the owner file locked, which says who that is. If loadline runs as root, the folder belongs to root, so the file can
//! be trusted. It is removed last, so an interrupted removal can be repeated.
//!
//! Processes are recognised by `/proc/PID/cmdline` and its owner, which everybody may read: root in a container may have no access to
//! the other files of another user's processes. Helpers of initdb have no mark, but die with loadline (`GUARD` of [`super`]).

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid, getpid};
use serde::{Deserialize, Serialize};

use super::programs::User;
use super::settings::{Product, Stage};
use crate::folder::try_lock;
use crate::machine::boot_id;

pub(super) const OWNER: &str = "owner";
pub(super) const LOG: &str = "server.log";
/// A folder without an owner is left alone up to this age: a server may be starting in it.
const MAX_CREATION_TIME: Duration = Duration::from_secs(60);
/// Time for killed processes to detach from shared memory, which they do after they have lost their command line.
const DETACH: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Owner {
    /// Process id of the owner, as information for people: it lives as long as it holds the lock.
    pub(super) pid: i32,
    /// Process ids of another boot are invalid.
    boot_id: String,
    pub(super) uid: u32,
    gid: u32,
    /// Owner files of older builds lack it.
    #[serde(default)]
    program: PathBuf,
}

impl Owner {
    /// Makes this process the owner of `dir` as long as the returned file is open.
    pub(super) fn take(dir: &Path, user: &User, program: &Path) -> io::Result<(Owner, File)> {
        let locked = try_lock(&dir.join(OWNER))?;
        let mut file = locked.ok_or_else(|| io::Error::other("its lock is held by another process"))?;
        let (pid, program) = (getpid().as_raw(), program.to_owned());
        let owner = Owner { pid, boot_id: boot_id(), uid: user.uid, gid: user.gid, program };
        // Everybody may read whose it is.
        file.set_permissions(Permissions::from_mode(0o644))?;
        file.write_all(format!("{}\n", serde_json::to_string(&owner)?).as_bytes())?;
        file.sync_all()?;
        Ok((owner, file))
    }

    /// Reads the owner file; `None` if there is none, or an empty one, which an interrupted start leaves.
    pub(super) fn read(dir: &Path) -> io::Result<Option<Owner>> {
        match std::fs::read_to_string(dir.join(OWNER)) {
            Ok(text) => Ok(text.lines().next().map(serde_json::from_str).transpose()?),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Ends the processes of the server in `dir` and has its shared memory freed; returns whether anything still ran.
    pub(super) fn end(&self, product: &Product, dir: &Path) -> io::Result<bool> {
        let ran = !running(name(dir), self.uid).is_empty();
        match end_all(&product.end, Duration::from_millis(20), || running(name(dir), self.uid)) {
            0 => self.free_memory(product, dir),
            left => return Err(io::Error::other(format!("{left} of its processes do not end"))),
        }
        Ok(ran)
    }

    /// A PostgreSQL that was killed leaves its lock file, a System V segment and POSIX segments. One that takes the data folder again
    /// removes them.
    fn free_memory(&self, product: &Product, dir: &Path) {
        let (data, deadline) = (dir.join("data"), Instant::now() + DETACH);
        if product.free.is_empty() || self.boot_id != boot_id() || !data.join("postmaster.pid").exists() {
            return;
        }
        let user = User::of_ids(self.uid, self.gid);
        let frees = |first: &Vec<String>| {
            let mut command = user.command(&self.program, Signal::SIGKILL);
            command.args(first).arg("-D").arg(&data).args(["-c", "config_file=/dev/null"]);
            command.output().is_ok_and(|output| output.status.success())
        };
        while !product.free.iter().any(frees) {
            if Instant::now() >= deadline {
                let (data, program) = (data.display(), self.program.display());
                log::warn!(
                    "{program} cannot remove the shared memory of a killed private server in {data}: see `ipcs -m`"
                );
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the server in `dir` and removes the folder; returns whether anything still ran.
    pub(super) fn remove(&self, product: &Product, dir: &Path) -> io::Result<bool> {
        let ran = self.end(product, dir)?;
        let sockets = outside(dir);
        if std::fs::symlink_metadata(&sockets).is_ok_and(|m| m.is_dir() && m.uid() == self.uid) {
            std::fs::remove_dir_all(sockets)?;
        }
        for part in ["data", "socket"] {
            ignore_not_found(std::fs::remove_dir_all(dir.join(part)))?;
        }
        let files = product.files.iter().map(String::as_str);
        for file in files.chain([LOG, OWNER]) {
            ignore_not_found(std::fs::remove_file(dir.join(file)))?;
        }
        // Fails if the folder has files that loadline did not create: they must not be removed.
        std::fs::remove_dir(dir)?;
        Ok(ran)
    }
}

/// The unique name of a server's folder.
pub(super) fn name(dir: &Path) -> &str {
    dir.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// The folder of the socket in `/tmp`.
pub(super) fn outside(dir: &Path) -> PathBuf {
    Path::new("/tmp").join(format!("{}-socket", name(dir)))
}

fn ignore_not_found(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Removes the servers of dead owners in these places. Returns a line per folder that was removed, or left alone with the reason, and
/// whether all could be removed.
pub(super) fn remove_leftovers(product: &Product, places: &[PathBuf]) -> (Vec<String>, bool) {
    let (mut done, mut removed) = (Vec::new(), true);
    let mut places: Vec<PathBuf> = places.iter().filter_map(|place| std::fs::canonicalize(place).ok()).collect();
    places.sort();
    places.dedup();
    for place in places {
        let entries = std::fs::read_dir(&place).into_iter().flatten().flatten();
        let named = |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.starts_with(&product.prefix));
        let mut dirs: Vec<PathBuf> = entries.filter(|e| named(&e.file_name())).map(|e| e.path()).collect();
        dirs.sort();
        for dir in dirs {
            match examine(product, &dir) {
                Ok(line) => done.extend(line),
                // Another process removed it at the same time.
                Err(e) if e.kind() == io::ErrorKind::NotFound && !dir.exists() => {}
                Err(e) => {
                    done.push(format!("'{}' could not be removed: {e}", dir.display()));
                    removed = false;
                }
            }
        }
    }
    (done, removed)
}

/// Removes `dir` if it is loadline's and its owner is dead.
fn examine(product: &Product, dir: &Path) -> io::Result<Option<String>> {
    let metadata = std::fs::symlink_metadata(dir)?;
    if !metadata.is_dir() {
        return Ok(None);
    }
    let (shown, foreign) = (dir.display(), metadata.uid() != geteuid().as_raw());
    let owner = match Owner::read(dir) {
        // Its owner file cannot be trusted: in a folder such as /var/tmp anybody can create one.
        Ok(Some(owner)) if foreign && (owner.boot_id != boot_id() || !lives(owner.pid)) => {
            return Ok(Some(format!(
                "left '{shown}' alone: it belongs to the user with uid {}, who can remove it with `loadline clean`",
                metadata.uid()
            )));
        }
        _ if foreign => return Ok(None),
        Ok(Some(owner)) => owner,
        Ok(None) => return remove_unfinished(product, dir, &metadata),
        Err(e) => return Ok(Some(format!("left '{shown}' alone: its owner file cannot be read ({e})"))),
    };
    // Held by a living owner; from here on until the folder is removed, so no other process cleans up here at the same time.
    let Some(_lock) = try_lock(&dir.join(OWNER))? else { return Ok(None) };
    let ran = owner.remove(product, dir)?;
    let stopped = if ran { " (the server was still running and was stopped)" } else { "" };
    Ok(Some(format!(
        "removed '{shown}', a private {} server whose owner (loadline, process {}) is dead{stopped}",
        product.name, owner.pid
    )))
}

/// Removes a folder with nothing but an empty owner file, which an interrupted start or removal leaves.
fn remove_unfinished(product: &Product, dir: &Path, metadata: &std::fs::Metadata) -> io::Result<Option<String>> {
    let names = std::fs::read_dir(dir)?.map(|e| e.map(|e| e.file_name())).collect::<io::Result<Vec<_>>>()?;
    let old = metadata.modified()?.elapsed().is_ok_and(|age| age > MAX_CREATION_TIME);
    if !old || names.iter().any(|name| name != OWNER) {
        return Ok(None);
    }
    let Some(_lock) = try_lock(&dir.join(OWNER))? else { return Ok(None) };
    std::fs::remove_file(dir.join(OWNER))?;
    std::fs::remove_dir(dir)?;
    Ok(Some(format!("removed '{}', an unfinished private {} server", dir.display(), product.name)))
}

/// The processes of the user `uid` that are of the server in the folder of this unique name.
pub(super) fn running(name: &str, uid: u32) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let of_server = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let cmdline = std::fs::read(entry.path().join("cmdline")).ok()?;
        let is_its = belongs(&String::from_utf8_lossy(&cmdline), name) && entry.metadata().ok()?.uid() == uid;
        is_its.then_some(Pid::from_raw(pid))
    };
    entries.filter_map(of_server).collect()
}

/// Ends processes with the signals of `stages`, looking each `pause` which still run. Returns how many outlive all of them.
pub(super) fn end_all(stages: &[Stage], pause: Duration, mut running: impl FnMut() -> Vec<Pid>) -> usize {
    for stage in stages {
        let deadline = Instant::now() + stage.patience;
        for pid in running() {
            let _ = kill(pid, stage.signal);
        }
        while !running().is_empty() && Instant::now() < deadline {
            std::thread::sleep(pause);
        }
    }
    running().len()
}

/// Programs of which one is in each command line of a server's: the servers, and what makes their data or brings data to a node.
const PROGRAMS: [&str; 8] =
    ["postgres", "initdb", "mariadbd", "mysqld", "mariadb-install-db", "mysql_install_db", "wsrep_sst_", "rsync"];

/// Whether a process with this command line is of the server whose folder has this name: it has the title of PostgreSQL's processes,
/// because of the setting cluster_name, or one of [`PROGRAMS`] got the data folder.
fn belongs(cmdline: &str, name: &str) -> bool {
    let data = format!("/{name}/data");
    let is_data = |arg: &str| arg.ends_with(&data) || arg.contains(&format!("{data}/"));
    let is_program =
        |arg: &str| PROGRAMS.iter().any(|p| arg.rsplit('/').next().is_some_and(|file| file.starts_with(p)));
    let args = || cmdline.split('\0');
    cmdline.starts_with(&format!("postgres: {name}: "))
        || args().any(is_data) && args().any(|arg| is_program(arg) && !is_data(arg))
}

/// Whether a process runs: one that is gone or a zombie has no command line.
pub(super) fn lives(pid: i32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;

    #[test]
    fn only_its_own_processes_are_found() {
        for (cmdline, expected) in cases::<(String, bool)>("own-processes") {
            assert_eq!(belongs(&cmdline.replace(' ', "\0"), "loadline-abc"), expected, "{cmdline}");
        }
        assert!(belongs("postgres: loadline-abc: checkpointer \0", "loadline-abc"));
        assert!(!belongs("postgres: loadline-abcd: checkpointer \0", "loadline-abc"));
    }
}
