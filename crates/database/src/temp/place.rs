//! Where the private server is put: next to the results, as the device there is what is measured.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use loadline_model::format::bytes;
use nix::sys::signal::Signal;
use nix::sys::statvfs::statvfs;

use super::product::Product;
use super::user::ServerUser;
use crate::error::TargetError;

/// Where it goes when the server's user cannot get to the results folder.
pub(crate) const FALLBACK: &str = "/var/tmp";

/// The directory under which the server is made.
#[derive(Debug)]
pub(crate) struct Location {
    /// Without symbolic links.
    pub(crate) parent: PathBuf,
    /// What and why, for the report.
    pub(crate) note: String,
    /// The results folder if it was made here: removed with the server unless it is used by then.
    pub(crate) made: Option<PathBuf>,
}

/// The least free space: the database itself takes about 60 MiB, and a server whose disk is full at
/// once would measure nothing.
const LEAST_FREE: u64 = 256 << 20;

/// What a place is wanted for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// The server's product.
    pub(crate) product: &'static Product,
    /// The URL's directory.
    pub(crate) dir: Option<&'a Path>,
    /// The results folder.
    pub(crate) scratch: &'a Path,
    /// Whom the server runs as.
    pub(crate) user: &'a ServerUser,
    /// The server's program.
    pub(crate) program: &'a Path,
}

/// Chooses the place: the URL's directory, else the results folder, else [`FALLBACK`].
pub(crate) fn choose(wanted: Wanted<'_>) -> Result<Location, TargetError> {
    let Product { scheme, log_setting, .. } = wanted.product;
    let place = choose_directory(wanted)?;
    match free_bytes(&place.parent) {
        Some(free) if free < LEAST_FREE => {
            if let Some(made) = &place.made {
                let _ = std::fs::remove_dir(made);
            }
            Err(TargetError::Local(format!(
                "the filesystem under «{}» is full: {} are free and a private server needs {} at least, and room for \
                 its log ({log_setting}). Free some GiB there, or name another directory with {scheme}:/dir",
                place.parent.display(),
                bytes(free as f64),
                bytes(LEAST_FREE as f64)
            )))
        }
        _ => Ok(place),
    }
}

/// What an ordinary user can still write there; `None` if the system does not say.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    statvfs(path).ok().map(|fs| fs.blocks_available() * fs.fragment_size())
}

fn choose_directory(wanted: Wanted<'_>) -> Result<Location, TargetError> {
    let Wanted { product, scratch, user, program, .. } = wanted;
    if let Some(dir) = wanted.dir {
        let parent = directory(dir, product)?;
        if !can_reach(user, &parent, program, product)? {
            return Err(TargetError::Usage(format!(
                "the server runs as the user «{}», which cannot get to «{}»: give it the right to pass (chmod o+x on \
                 the directory and those above it) or name another directory",
                user.name,
                dir.display()
            )));
        }
        let note = format!("its files were in {}, as the target's URL says", parent.display());
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
        // It stays if it is used by now, and is of no use to the server in either case.
        let _ = std::fs::remove_dir(made);
    }
    let fallback = directory(Path::new(FALLBACK), product)?;
    let device = |path: &Path| std::fs::metadata(path).map(|m| m.dev()).ok();
    // The results folder may be gone again; the directory above it then has the same device.
    let results = parent.ancestors().find_map(device);
    let device = match (results, device(&fallback)) {
        (Some(a), Some(b)) if a == b => "the same device as the results",
        _ => "ANOTHER device than the results: the figures are those of the device under it",
    };
    let note = format!(
        "its files were in {FALLBACK} and not next to the results, as the user «{}» that it runs as cannot get to {}; \
         that is {device}",
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

/// Tried by a process of that user, as mode bits alone do not tell (access lists, network mounts).
fn can_reach(user: &ServerUser, dir: &Path, program: &Path, product: &Product) -> Result<bool, TargetError> {
    let tried = user.command(program, Signal::SIGKILL).arg("--version").current_dir(dir).output();
    match tried {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == ErrorKind::PermissionDenied => Ok(false),
        Err(e) => Err(product.cannot_use(dir, &e)),
    }
}
