//! The files of a private server: `PARENT/PREFIX-RANDOM/` with the owner file, its lock, the server's log, `data/` and
//! `socket/`. If loadline runs as root, only `data/` and `socket/` belong to the server's user; the directory belongs
//! to root, so the owner file can be trusted.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use super::owner::{self, Owner, ignore_not_found};
use super::place::{Location, free_bytes};
use super::product::Product;
use super::user::ServerUser;
use crate::error::TargetError;

/// Maximum length of a socket's path on all systems, bytes.
const MAX_SOCKET_PATH: usize = 103;
const LOG: &str = "server.log";
/// What the system, `initdb` and InnoDB write into a server's log when the disk is full; a log has no codes.
const FULL: [&str; 5] =
    ["No space left on device", "Disk quota exceeded", "Check free disk space", "rror 28", "disk is full"];
/// With less free space, a server may not be able to log that the disk is full; bytes.
const DISK_FULL_BYTES: u64 = 16 << 20;

/// A socket directory in `/tmp`, if the path of the one inside is too long or has characters that the server's
/// setting cannot contain.
fn outside_sockets(product: &Product, dir: &Path) -> Option<PathBuf> {
    let inside = dir.join("socket");
    let fits = |path: &str| path.len() < MAX_SOCKET_PATH - product.socket.len() && !path.contains(product.unfit);
    if inside.to_str().is_some_and(fits) { None } else { outside(product, dir.file_name()?.to_str()?) }
}

fn outside(product: &Product, name: &str) -> Option<PathBuf> {
    name.starts_with(product.prefix).then(|| Path::new("/tmp").join(format!("{name}-socket")))
}

/// Stops the server in `dir` and removes the directory; returns whether anything still ran. Owner file and lock are
/// removed last, so an interrupted removal can be repeated.
///
/// # Errors
/// When something cannot be removed, or `dir` is not a directory of this product.
pub(super) fn remove(product: &Product, dir: &Path, owner: &Owner) -> io::Result<bool> {
    let name = dir.file_name().and_then(|name| name.to_str()).filter(|name| name.starts_with(product.prefix));
    let name = name.ok_or_else(|| io::Error::other("loadline does not give such names"))?;
    let ran = (product.end)(dir, name, owner)?;
    let sockets = owner.sockets.as_deref().filter(|path| Some(*path) == outside(product, name).as_deref());
    let theirs = |path: &&Path| std::fs::symlink_metadata(path).is_ok_and(|m| m.is_dir() && m.uid() == owner.uid);
    if let Some(sockets) = sockets.filter(theirs) {
        std::fs::remove_dir_all(sockets)?;
    }
    for part in ["data", "socket"] {
        ignore_not_found(std::fs::remove_dir_all(dir.join(part)))?;
    }
    let marks = [owner::DRAFT, owner::FILE, owner::LOCK];
    for file in [LOG].iter().chain(product.besides).chain(&marks) {
        ignore_not_found(std::fs::remove_file(dir.join(file)))?;
    }
    // Fails if the directory has files that loadline did not create: they must not be removed.
    std::fs::remove_dir(dir)?;
    Ok(ran)
}

/// A server's files. Dropping them stops the server and removes the files.
pub(crate) struct Files {
    product: &'static Product,
    /// The directory.
    pub(crate) dir: PathBuf,
    /// What the owner file says.
    pub(crate) owner: Owner,
    made: Option<PathBuf>,
    /// Shows that the owner lives; released last.
    _lock: File,
}

impl Files {
    /// Creates the directories and writes the owner file.
    ///
    /// # Errors
    /// [`TargetError::Local`] with the directory that cannot be used.
    pub(crate) fn create(product: &'static Product, place: &Location, user: &ServerUser) -> Result<Files, TargetError> {
        let failed = |e: io::Error| product.cannot_use(&place.parent, &e);
        // The server's user must pass through, but need not read.
        let mode = if user.switch { 0o711 } else { 0o700 };
        let dir = tempfile::Builder::new()
            .prefix(product.prefix)
            .rand_bytes(10)
            .permissions(Permissions::from_mode(mode))
            .tempdir_in(&place.parent)
            .map_err(failed)?;
        // If one of these fails, `TempDir` removes the directory; later `Files` does.
        let lock = owner::try_lock(dir.path()).map_err(failed)?;
        let lock = lock.ok_or_else(|| failed(io::Error::other("its lock is held by another process")))?;
        let mut owner = Owner::this_process(dir.path(), user.uid, user.gid).map_err(failed)?;
        owner.sockets = outside_sockets(product, dir.path());
        owner.write(dir.path()).map_err(failed)?;
        let files = Files { product, dir: dir.keep(), owner, made: place.made.clone(), _lock: lock };
        // Sets the mode again, because creation applied the umask.
        std::fs::set_permissions(&files.dir, Permissions::from_mode(mode)).map_err(failed)?;
        for part in [files.data(), files.sockets()] {
            let made = DirBuilder::new().mode(0o700).create(&part);
            let owned = |()| if user.switch { chown(&part, Some(user.uid), Some(user.gid)) } else { Ok(()) };
            made.and_then(owned).map_err(|e| product.cannot_use(&part, &e))?;
        }
        Ok(files)
    }

    /// The data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The socket's directory.
    pub(crate) fn sockets(&self) -> PathBuf {
        self.owner.sockets.clone().unwrap_or_else(|| self.dir.join("socket"))
    }

    /// Path of the socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.sockets().join(self.product.socket)
    }

    /// The unique name of the directory.
    pub(crate) fn name(&self) -> &str {
        self.dir.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Syncs a new database to disk; otherwise its dirty pages would be written during the first tests.
    ///
    /// # Errors
    /// [`TargetError::Local`].
    pub(crate) fn bring_to_disk(&self) -> Result<(), TargetError> {
        File::open(self.data())
            .and_then(|dir| nix::unistd::syncfs(&dir).map_err(io::Error::from))
            .map_err(|e| self.failure("the new database could not be synced to disk", &e.to_string()))
    }

    /// Creates the server's log and opens it for standard output and standard error.
    ///
    /// # Errors
    /// [`TargetError::Local`].
    pub(crate) fn make_log(&self) -> Result<(File, File), TargetError> {
        let path = self.dir.join(LOG);
        let made = OpenOptions::new().append(true).create(true).mode(0o640).open(&path);
        made.and_then(|log| Ok((log.try_clone()?, log))).map_err(|e| self.product.cannot_use(&path, &e))
    }

    /// The present content of the log.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.dir.join(LOG)).unwrap_or_default()).into_owned()
    }

    /// Writes the owner file again.
    ///
    /// # Errors
    /// [`TargetError::Local`].
    pub(crate) fn mark(&self) -> Result<(), TargetError> {
        self.owner.write(&self.dir).map_err(|e| self.failure("its owner file cannot be written", &e.to_string()))
    }

    /// The error for a failed step (`what`), with the server's message and advice.
    pub(crate) fn failure(&self, what: &str, says: &str) -> TargetError {
        let parent = self.dir.parent().unwrap_or(&self.dir).display();
        let scheme = self.product.scheme;
        let next = if self.disk_is_full(says) {
            format!("The filesystem under '{parent}' is full: free some GiB there, or name another directory with")
        } else {
            "Correct that, or name another directory with".to_owned()
        };
        TargetError::Local(format!("{what} in '{parent}': '{says}'. {next} {scheme}:/dir"))
    }

    /// Whether the disk is full: by the system's message, by the server's own (`wrote only 4096 of 8192 bytes`, with a
    /// hint), or by the free space, as the server may not be able to log it.
    pub(crate) fn disk_is_full(&self, text: &str) -> bool {
        FULL.iter().any(|word| text.contains(word)) || free_bytes(&self.dir).is_some_and(|free| free < DISK_FULL_BYTES)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Err(e) = remove(self.product, &self.dir, &self.owner) {
            log::warn!("the private server in {} could not be removed: {e}; try `loadline clean`", self.dir.display());
        }
        if let Some(made) = &self.made {
            // Fails, as it should, if the results are in it.
            let _ = std::fs::remove_dir(made);
        }
    }
}
