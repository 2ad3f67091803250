//! One private server on disk: `PARENT/PREFIX-RANDOM/` with the owner file and the lock, the server's
//! log, `data/` and `socket/`. As root the directory itself stays root's, so that what is in the marks
//! can be trusted; only the last two are the server's.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use super::owner::{self, Owner, absent_is_fine};
use super::place::{Location, free_bytes};
use super::product::Product;
use super::user::ServerUser;
use crate::error::TargetError;

/// The longest path of a socket that every system takes, in bytes.
const LONGEST_SOCKET: usize = 103;
const LOG: &str = "server.log";
/// With less free space than this a server may not even be able to log that the disk is full.
const FULL: u64 = 16 << 20;

/// A socket directory outside, if the one inside has a path that is too long for a socket or that the
/// server cannot be told.
fn outside_sockets(product: &Product, dir: &Path) -> Option<PathBuf> {
    let inside = dir.join("socket");
    let fits = |path: &str| path.len() < LONGEST_SOCKET - product.socket.len() && !path.contains(product.unfit);
    if inside.to_str().is_some_and(fits) { None } else { outside(product, dir.file_name()?.to_str()?) }
}

fn outside(product: &Product, name: &str) -> Option<PathBuf> {
    name.starts_with(product.prefix).then(|| Path::new("/tmp").join(format!("{name}-socket")))
}

/// Ends what runs of the server in `dir` and removes it; returns whether anything still ran. The marks go
/// last, so that a removal which is cut off is taken up again.
///
/// # Errors
/// What could not be removed, and when `dir` is not one of this product's.
pub(super) fn remove(product: &Product, dir: &Path, owner: &Owner) -> io::Result<bool> {
    let name = dir.file_name().and_then(|name| name.to_str()).filter(|name| name.starts_with(product.prefix));
    let name = name.ok_or_else(|| io::Error::other("its name is not one that loadline gives"))?;
    let ran = (product.end)(dir, name, owner)?;
    let sockets = owner.sockets.as_deref().filter(|path| Some(*path) == outside(product, name).as_deref());
    let theirs = |path: &&Path| std::fs::symlink_metadata(path).is_ok_and(|m| m.is_dir() && m.uid() == owner.uid);
    if let Some(sockets) = sockets.filter(theirs) {
        std::fs::remove_dir_all(sockets)?;
    }
    for part in ["data", "socket"] {
        absent_is_fine(std::fs::remove_dir_all(dir.join(part)))?;
    }
    let marks = [owner::DRAFT, owner::FILE, owner::LOCK];
    for file in [LOG].iter().chain(product.besides).chain(&marks) {
        absent_is_fine(std::fs::remove_file(dir.join(file)))?;
    }
    // Fails if there is anything that loadline did not put there, which is then not its to remove.
    std::fs::remove_dir(dir)?;
    Ok(ran)
}

/// A server's files. Dropping them ends what runs of the server and removes all of it.
pub(crate) struct Files {
    product: &'static Product,
    /// The directory.
    pub(crate) dir: PathBuf,
    /// What the owner file says.
    pub(crate) owner: Owner,
    made: Option<PathBuf>,
    /// Says that the owner lives; goes after all else.
    _lock: File,
}

impl Files {
    /// Makes the directories and marks them as this process's.
    ///
    /// # Errors
    /// [`TargetError::Local`] with the directory that cannot be used.
    pub(crate) fn create(product: &'static Product, place: &Location, user: &ServerUser) -> Result<Files, TargetError> {
        let failed = |e: io::Error| product.cannot_use(&place.parent, &e);
        // Others must pass to their own parts, but need not read.
        let mode = if user.switch { 0o711 } else { 0o700 };
        let dir = tempfile::Builder::new()
            .prefix(product.prefix)
            .rand_bytes(10)
            .permissions(Permissions::from_mode(mode))
            .tempdir_in(&place.parent)
            .map_err(failed)?;
        // Removed by `TempDir` if one of these fails, by `Files` from then on.
        let lock = owner::try_lock(dir.path()).map_err(failed)?;
        let lock = lock.ok_or_else(|| failed(io::Error::other("its lock is held by another process")))?;
        let mut owner = Owner::this_process(dir.path(), user.uid, user.gid).map_err(failed)?;
        owner.sockets = outside_sockets(product, dir.path());
        owner.write(dir.path()).map_err(failed)?;
        let files = Files { product, dir: dir.keep(), owner, made: place.made.clone(), _lock: lock };
        // Modes do not depend on the umask of the shell.
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

    /// The directory's own name, which no other has.
    pub(crate) fn name(&self) -> &str {
        self.dir.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Brings a new database to disk: what is dirty now would be written back during the first tests.
    ///
    /// # Errors
    /// [`TargetError::Local`].
    pub(crate) fn bring_to_disk(&self) -> Result<(), TargetError> {
        File::open(self.data())
            .and_then(|dir| nix::unistd::syncfs(&dir).map_err(io::Error::from))
            .map_err(|e| self.failure("the new database could not be brought to disk", &e.to_string()))
    }

    /// Makes the server's log, for its standard output and its standard error.
    ///
    /// # Errors
    /// [`TargetError::Local`].
    pub(crate) fn make_log(&self) -> Result<(File, File), TargetError> {
        let path = self.dir.join(LOG);
        let made = OpenOptions::new().append(true).create(true).mode(0o640).open(&path);
        made.and_then(|log| Ok((log.try_clone()?, log))).map_err(|e| self.product.cannot_use(&path, &e))
    }

    /// What the log says by now.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.dir.join(LOG)).unwrap_or_default()).into_owned()
    }

    /// Notes the owner file's contents as they are now.
    ///
    /// # Errors
    /// [`TargetError::Local`].
    pub(crate) fn mark(&self) -> Result<(), TargetError> {
        self.owner.write(&self.dir).map_err(|e| self.failure("its owner file cannot be written", &e.to_string()))
    }

    /// The error for something that did not work, with what the server says and what to do next.
    pub(crate) fn failure(&self, what: &str, says: &str) -> TargetError {
        let parent = self.dir.parent().unwrap_or(&self.dir).display();
        let scheme = self.product.scheme;
        let next = if self.disk_is_full(says) {
            format!("The filesystem under «{parent}» is full: free some GiB there, or name another directory with")
        } else {
            "Put that right, or name another directory with".to_owned()
        };
        TargetError::Local(format!("{what} in «{parent}»: «{says}». {next} {scheme}:/dir"))
    }

    /// Whether the server complains of that: in the system's words, in its own when a write was cut
    /// short («wrote only 4096 of 8192 bytes», with a hint), or not at all as it cannot even log it.
    pub(crate) fn disk_is_full(&self, text: &str) -> bool {
        const WORDS: [&str; 4] =
            ["No space left on device", "Disk quota exceeded", "Check free disk space", "Disk full"];
        WORDS.iter().any(|part| text.contains(part)) || free_bytes(&self.dir).is_some_and(|free| free < FULL)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Err(e) = remove(self.product, &self.dir, &self.owner) {
            tracing::warn!(
                "the private server in {} could not be removed: {e}; try «loadline clean»",
                self.dir.display()
            );
        }
        if let Some(made) = &self.made {
            // Stays if it holds something by now, the results above all.
            let _ = std::fs::remove_dir(made);
        }
    }
}
