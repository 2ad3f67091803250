//! Chooses the directory of a private server: next to the results, because the device there is what is measured.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use loadline_model::format::bytes;
use nix::sys::signal::Signal;
use nix::sys::statvfs::statvfs;

use super::product::Product;
use super::programs;
use super::user::ServerUser;
use crate::error::TargetError;

/// Used if the server's user has no access to the results folder.
pub(crate) const FALLBACK: &str = "/var/tmp";

/// The directory under which the server is created.
#[derive(Debug)]
pub(crate) struct Location {
    /// Without symbolic links.
    pub(crate) parent: PathBuf,
    /// The directory and why it was chosen, for the report.
    pub(crate) note: String,
    /// The results folder if it was created here: removed with the server if it is still empty.
    pub(crate) made: Option<PathBuf>,
}

/// Minimum free space of a server, bytes. The empty database takes about 60 MiB, and the tests need space too.
const MIN_FREE_BYTES: u64 = 256 << 20;

/// The server to place.
#[derive(Clone, Copy)]
pub(crate) struct ServerToPlace<'a> {
    /// The server's product.
    pub(crate) product: &'static Product,
    /// The URL's directory.
    pub(crate) dir: Option<&'a Path>,
    /// The results folder.
    pub(crate) scratch: &'a Path,
    /// The user of the server process.
    pub(crate) user: &'a ServerUser,
    /// The server's program.
    pub(crate) program: &'a Path,
    /// Servers that are created there.
    pub(crate) servers: u32,
}

/// Chooses the URL's directory, else the results folder, else [`FALLBACK`].
pub(crate) fn choose(server: ServerToPlace<'_>) -> Result<Location, TargetError> {
    let Product { scheme, log_setting, .. } = server.product;
    let least = MIN_FREE_BYTES * u64::from(server.servers);
    let what = if server.servers > 1 {
        format!("{} private servers need", server.servers)
    } else {
        "a private server needs".to_owned()
    };
    let place = choose_directory(server)?;
    match free_bytes(&place.parent) {
        Some(free) if free < least => {
            if let Some(made) = &place.made {
                let _ = std::fs::remove_dir(made);
            }
            Err(TargetError::Local(format!(
                "the filesystem under '{}' is full: {} are free, and {what} at least {} and space for \
                 the log ({log_setting}). Free some GiB there, or name another directory with {scheme}:/dir",
                place.parent.display(),
                bytes(free as f64),
                bytes(least as f64)
            )))
        }
        _ => Ok(place),
    }
}

/// Free space for an ordinary user, bytes; `None` if unknown.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    statvfs(path).ok().map(|fs| fs.blocks_available() * fs.fragment_size())
}

fn choose_directory(server: ServerToPlace<'_>) -> Result<Location, TargetError> {
    let ServerToPlace { product, scratch, user, program, .. } = server;
    if let Some(dir) = server.dir {
        let parent = directory(dir, product)?;
        if !can_reach(user, &parent, program, product)? {
            return Err(TargetError::Usage(format!(
                "the server runs as the user '{}', who has no access to '{}': run chmod o+x on the directory and its \
                 parents, or name another directory",
                user.name,
                dir.display()
            )));
        }
        let note = format!("its files were in {}, given in the target's URL", parent.display());
        return Ok(Location { parent, note, made: None });
    }
    let made = (!scratch.exists()).then(|| scratch.to_owned());
    if made.is_some() {
        std::fs::create_dir_all(scratch).map_err(|e| product.cannot_use(scratch, &e))?;
    }
    let parent = directory(scratch, product)?;
    if can_reach(user, &parent, program, product)? {
        let note = format!("its files were in {}, next to the results", parent.display());
        return Ok(Location { parent, note, made });
    }
    if let Some(made) = made {
        // Fails, as it should, if it is in use by now.
        let _ = std::fs::remove_dir(made);
    }
    let fallback = directory(Path::new(FALLBACK), product)?;
    let device = |path: &Path| std::fs::metadata(path).map(|m| m.dev()).ok();
    // The results folder may be removed again; its parent is on the same device.
    let results = parent.ancestors().find_map(device);
    let device = match (results, device(&fallback)) {
        (Some(a), Some(b)) if a == b => "the same device as the results",
        _ => "ANOTHER device than the results: the figures are those of that device",
    };
    let note = format!(
        "its files were in {FALLBACK} and not next to the results, because its user '{}' has no access to {}; \
         {FALLBACK} is on {device}",
        user.name,
        parent.display()
    );
    Ok(Location { parent: fallback, note, made: None })
}

fn directory(path: &Path, product: &Product) -> Result<PathBuf, TargetError> {
    let real = std::fs::canonicalize(path).map_err(|e| product.cannot_use(path, &e))?;
    if !real.is_dir() {
        return Err(product.cannot_use(path, &ErrorKind::NotADirectory.into()));
    }
    Ok(real)
}

/// Tries access with a process of that user, because mode bits are not enough (access lists, network mounts).
fn can_reach(user: &ServerUser, dir: &Path, program: &Path, product: &Product) -> Result<bool, TargetError> {
    let mut command = user.command(program, Signal::SIGKILL);
    command.current_dir(dir);
    match programs::version(command) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == ErrorKind::PermissionDenied => Ok(false),
        Err(e) => Err(product.cannot_use(dir, &e)),
    }
}
