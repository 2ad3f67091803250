//! The folder of a private server, who owns it, and the removal of folders whose owner is dead.
//!
//! `PARENT/PREFIX-RANDOM/` has the owner file, which the owner holds locked, the ids of the server's processes, the server's log,
//! `data/` and `socket/`. If loadline runs as root, only `data/` and `socket/` belong to the server's user; the folder belongs to
//! root, so the owner file can be trusted. It is removed last, so an interrupted removal can be repeated.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::unistd::{geteuid, getpid};
use serde::{Deserialize, Serialize};

use super::place::{Location, free_bytes};
use super::process::{Marks, group};
use super::programs::User;
use super::settings::Product;
use super::shared_memory;
use crate::error::TargetError;
use crate::folder::try_lock;
use crate::machine::boot_id;

/// Who owns the server. Locked by the owner as long as it lives.
pub(super) const OWNER: &str = "owner";
/// The process ids, one a line.
const STARTED: &str = "started";
const LOG: &str = "server.log";
/// Maximum length of a socket's path on all systems, bytes.
const MAX_SOCKET_PATH: usize = 103;
/// What the system, `initdb` and InnoDB write into a server's log when the disk is full; a log has no codes.
const FULL: [&str; 5] =
    ["No space left on device", "Disk quota exceeded", "Check free disk space", "rror 28", "disk is full"];
/// With less free space, a server may not be able to log that the disk is full; bytes.
const DISK_FULL_BYTES: u64 = 16 << 20;
/// A folder without an owner file is left alone up to this age: a server may be starting in it.
const MAX_CREATION_TIME: Duration = Duration::from_secs(60);

/// Content of an owner file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Owner {
    /// Process id of the owner, as information for people: it lives as long as it holds the lock.
    pub(super) pid: i32,
    /// Process ids of another boot are invalid.
    boot_id: String,
    /// User and group that the server runs as.
    pub(super) uid: u32,
    gid: u32,
}

impl Owner {
    /// Makes this process the owner of `dir` as long as the returned file is open.
    fn take(dir: &Path, user: &User) -> io::Result<(Owner, File)> {
        let locked = try_lock(&dir.join(OWNER))?;
        let mut file = locked.ok_or_else(|| io::Error::other("its lock is held by another process"))?;
        let owner = Owner { pid: getpid().as_raw(), boot_id: boot_id(), uid: user.uid, gid: user.gid };
        // Everybody may read whose it is.
        file.set_permissions(Permissions::from_mode(0o644))?;
        file.write_all(&serde_json::to_vec_pretty(&owner)?)?;
        file.sync_all()?;
        Ok((owner, file))
    }

    /// Reads the owner file; `None` if there is none, or an empty one, which an interrupted start leaves.
    pub(super) fn read(dir: &Path) -> io::Result<Option<Owner>> {
        match std::fs::read(dir.join(OWNER)) {
            Ok(bytes) if !bytes.is_empty() => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(None),
        }
    }

    /// Processes that were started for the server in `dir`; none if they were of another boot.
    pub(super) fn started(&self, dir: &Path) -> Vec<i32> {
        let text = std::fs::read_to_string(dir.join(STARTED)).unwrap_or_default();
        if self.boot_id == boot_id() { text.lines().filter_map(|pid| pid.parse().ok()).collect() } else { Vec::new() }
    }

    /// Ends the processes of the server in `dir` and removes its shared memory; returns whether anything still ran.
    fn end(&self, product: &Product, dir: &Path) -> io::Result<bool> {
        let mut started = self.started(dir);
        let marks = Marks { name: name(dir), uid: self.uid, started: &started };
        let found: Vec<i32> = marks.running().iter().map(|pid| pid.as_raw()).collect();
        // A helper of initdb leaves shared memory if it is killed, and this process may be killed before it has removed it.
        if let Ok(mut file) = open_for_appending(&dir.join(STARTED), 0o600) {
            let _ = file.write_all(found.iter().map(|pid| format!("{pid}\n")).collect::<String>().as_bytes());
        }
        marks.end_all(&product.end)?;
        let ran = !found.is_empty();
        started.extend(found);
        shared_memory::remove(&started, &User::of_ids(self.uid, self.gid));
        Ok(ran)
    }

    /// Stops the server in `dir` and removes the folder; returns whether anything still ran.
    fn remove(&self, product: &Product, dir: &Path) -> io::Result<bool> {
        let ran = self.end(product, dir)?;
        let sockets = outside(dir);
        if std::fs::symlink_metadata(&sockets).is_ok_and(|m| m.is_dir() && m.uid() == self.uid) {
            std::fs::remove_dir_all(sockets)?;
        }
        for part in ["data", "socket"] {
            ignore_not_found(std::fs::remove_dir_all(dir.join(part)))?;
        }
        let files = product.files.iter().map(String::as_str);
        for file in files.chain([LOG, STARTED, OWNER]) {
            ignore_not_found(std::fs::remove_file(dir.join(file)))?;
        }
        // Fails if the folder has files that loadline did not create: they must not be removed.
        std::fs::remove_dir(dir)?;
        Ok(ran)
    }
}

/// The unique name of a server's folder.
fn name(dir: &Path) -> &str {
    dir.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// The folder of the socket: that in `/tmp`, if the path of the one inside is too long or has characters that the server's setting
/// cannot contain.
fn sockets(product: &Product, dir: &Path) -> PathBuf {
    let inside = dir.join("socket");
    let unfit = |c: char| product.unfit.contains(c) || c.is_control() || c.is_whitespace();
    let fits = |path: &str| {
        path.len() < MAX_SOCKET_PATH - product.socket.len() && (product.unfit.is_empty() || !path.contains(unfit))
    };
    if inside.to_str().is_some_and(fits) { inside } else { outside(dir) }
}

fn outside(dir: &Path) -> PathBuf {
    Path::new("/tmp").join(format!("{}-socket", name(dir)))
}

fn open_for_appending(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(mode).open(path)
}

fn ignore_not_found(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// A server's folder. Dropping it ends the server's processes and removes the folder.
pub(crate) struct Folder {
    pub(super) product: &'static Product,
    pub(crate) dir: PathBuf,
    owner: Owner,
    made: Option<PathBuf>,
    /// Shows that the owner lives; released last.
    _lock: File,
}

impl Folder {
    /// Creates it with its owner file.
    pub(super) fn create(product: &'static Product, place: &Location, user: &User) -> Result<Folder, TargetError> {
        let failed = |e: io::Error| product.cannot_use(&place.parent, &e);
        // The server's user must pass through, but need not read.
        let mode = if user.switch { 0o711 } else { 0o700 };
        let dir = tempfile::Builder::new()
            .prefix(&product.prefix)
            .rand_bytes(10)
            .permissions(Permissions::from_mode(mode))
            .tempdir_in(&place.parent)
            .map_err(failed)?;
        // If one of these fails, `TempDir` removes the folder; later `Folder` does.
        let (owner, lock) = Owner::take(dir.path(), user).map_err(failed)?;
        let folder = Folder { product, dir: dir.keep(), owner, made: place.made.clone(), _lock: lock };
        // Sets the mode again, because creation applied the umask.
        std::fs::set_permissions(&folder.dir, Permissions::from_mode(mode)).map_err(failed)?;
        for part in [folder.data(), folder.sockets()] {
            let made = DirBuilder::new().mode(0o700).create(&part);
            let owned = |()| if user.switch { chown(&part, Some(user.uid), Some(user.gid)) } else { Ok(()) };
            made.and_then(owned).map_err(|e| product.cannot_use(&part, &e))?;
        }
        Ok(folder)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The socket's folder.
    pub(crate) fn sockets(&self) -> PathBuf {
        sockets(self.product, &self.dir)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.sockets().join(&self.product.socket)
    }

    /// The unique name of the folder.
    pub(crate) fn name(&self) -> &str {
        name(&self.dir)
    }

    /// Has the process of `command` write its id into the folder before it becomes the program: whoever cleans up finds its process
    /// group and its shared memory, whenever it or loadline is killed. The ids need not be synced, because they are valid in this
    /// boot only.
    #[allow(unsafe_code)]
    pub(crate) fn note_process(&self, command: &mut Command) -> Result<(), TargetError> {
        let path = self.dir.join(STARTED);
        let mut started = open_for_appending(&path, 0o600).map_err(|e| self.product.cannot_use(&path, &e))?;
        // SAFETY: between fork and exec only system calls are made, and no memory is allocated: the line is on the stack.
        unsafe {
            command.pre_exec(move || {
                let mut line = [0_u8; 16];
                let mut rest = &mut line[..];
                writeln!(rest, "{}", getpid().as_raw())?;
                let unused = rest.len();
                started.write_all(&line[..line.len() - unused])
            });
        }
        Ok(())
    }

    /// Syncs a new database to disk; otherwise its dirty pages would be written during the first tests.
    pub(crate) fn bring_to_disk(&self) -> Result<(), TargetError> {
        File::open(self.data())
            .and_then(|dir| nix::unistd::syncfs(&dir).map_err(io::Error::from))
            .map_err(|e| self.failure("the new database could not be synced to disk", &e.to_string()))
    }

    /// Writes a file that the server's user can read, and no other but root.
    pub(crate) fn write(&self, path: &Path, text: &str, user: &User) -> Result<(), TargetError> {
        // One of that name is what a full disk left of the last attempt.
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o640).open(path);
        let owned = if user.switch { Some(user.gid) } else { None };
        file.and_then(|file| chown(path, None, owned).map(|()| file))
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|e| self.failure("its configuration cannot be written", &e.to_string()))
    }

    /// Opens the server's log for standard output and standard error.
    pub(super) fn open_log(&self) -> Result<(File, File), TargetError> {
        let path = self.dir.join(LOG);
        let opened = open_for_appending(&path, 0o640);
        opened.and_then(|log| Ok((log.try_clone()?, log))).map_err(|e| self.product.cannot_use(&path, &e))
    }

    /// The present content of the log.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.dir.join(LOG)).unwrap_or_default()).into_owned()
    }

    /// Ends what still runs of the server, so that it can be started again.
    pub(super) fn end(&self) -> Result<(), TargetError> {
        let ended = self.owner.end(self.product, &self.dir);
        ended.map(drop).map_err(|e| self.failure("its processes cannot be ended", &e.to_string()))
    }

    /// The error for a failed step (`what`), with the server's message and advice.
    pub(crate) fn failure(&self, what: &str, says: &str) -> TargetError {
        let parent = self.dir.parent().unwrap_or(&self.dir).display();
        let scheme = &self.product.scheme;
        let next = if self.disk_is_full(says) {
            format!("The filesystem under '{parent}' is full: free some GiB there, or name another directory with")
        } else {
            "Correct that, or name another directory with".to_owned()
        };
        TargetError::Local(format!("{what} in '{parent}': '{says}'. {next} {scheme}:/dir"))
    }

    /// Whether the disk is full: by the system's message, by the server's own (`wrote only 4096 of 8192 bytes`, with a hint), or by the
    /// free space, as the server may not be able to log it.
    pub(super) fn disk_is_full(&self, text: &str) -> bool {
        FULL.iter().any(|word| text.contains(word)) || free_bytes(&self.dir).is_some_and(|free| free < DISK_FULL_BYTES)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(e) = self.owner.remove(self.product, &self.dir) {
            log::warn!("the private server in {} could not be removed: {e}; try `loadline clean`", self.dir.display());
        }
        if let Some(made) = &self.made {
            // Fails, as it should, if the results are in it.
            let _ = std::fs::remove_dir(made);
        }
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
        Ok(Some(owner)) if foreign && (owner.boot_id != boot_id() || group(owner.pid).is_none()) => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_ids_are_those_of_a_boot() {
        let dir = tempfile::tempdir().unwrap();
        let (mut owner, _) = Owner::take(dir.path(), &User::of_ids(1, 2)).unwrap();
        std::fs::write(dir.path().join(STARTED), "12\n345\n").unwrap();
        assert_eq!(owner.started(dir.path()), [12, 345]);
        owner.boot_id.push('x');
        assert!(owner.started(dir.path()).is_empty());
    }
}
