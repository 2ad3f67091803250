//! Finds private servers whose owner process is dead, stops and removes them.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::geteuid;

use super::files;
use super::owner::{self, Owner, ignore_not_found};
use super::product::Product;

/// A directory without an owner file is left alone up to this age: a server may be starting in it.
const MAX_CREATION_TIME: Duration = Duration::from_secs(60);

/// Result of the removal of leftovers.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// One line per directory that was removed, or left alone with the reason.
    pub(crate) removed: Vec<String>,
    /// One line per directory that could not be removed.
    pub(crate) failed: Vec<String>,
}

/// Removes the leftovers in these directories.
pub(crate) fn remove(product: &Product, places: &[PathBuf]) -> Leftovers {
    let mut done = Leftovers::default();
    let mut seen: Vec<PathBuf> = Vec::new();
    for place in places.iter().filter_map(|place| std::fs::canonicalize(place).ok()) {
        if seen.contains(&place) {
            continue;
        }
        let entries = std::fs::read_dir(&place).into_iter().flatten().flatten();
        let mut dirs: Vec<PathBuf> = entries
            .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(product.prefix)))
            .map(|entry| entry.path())
            .collect();
        dirs.sort();
        for dir in dirs {
            match examine(product, &dir) {
                Ok(Some(line)) => done.removed.push(line),
                Ok(None) => {}
                // Another process removed it at the same time.
                Err(e) if e.kind() == io::ErrorKind::NotFound && !dir.exists() => {}
                Err(e) => done.failed.push(format!("'{}' could not be removed: {e}", dir.display())),
            }
        }
        seen.push(place);
    }
    done
}

/// Removes `dir` if it is loadline's and its owner is dead.
fn examine(product: &Product, dir: &Path) -> io::Result<Option<String>> {
    let metadata = std::fs::symlink_metadata(dir)?;
    if !metadata.is_dir() {
        return Ok(None);
    }
    let shown = dir.display();
    if metadata.uid() != geteuid().as_raw() {
        // Its owner file cannot be trusted: in a directory such as /var/tmp anybody can create one.
        return match Owner::read(dir) {
            Ok(Some(owner)) if !owner.process_lives() => Ok(Some(format!(
                "left '{shown}' alone: it belongs to the user with uid {}, who can remove it with `loadline clean`",
                metadata.uid()
            ))),
            _ => Ok(None),
        };
    }
    let owner = match Owner::read(dir) {
        Ok(Some(owner)) => owner,
        Ok(None) => return remove_unfinished(product, dir, &metadata),
        Err(e) => return Ok(Some(format!("left '{shown}' alone: its owner file cannot be read ({e})"))),
    };
    if owner.process_lives() {
        return Ok(None);
    }
    // Held until the directory is removed, so no other process cleans up here at the same time.
    let Some(_lock) = owner::try_lock(dir)? else { return Ok(None) };
    let ran = files::remove(product, dir, &owner)?;
    let stopped = if ran { " (the server was still running and was stopped)" } else { "" };
    Ok(Some(format!(
        "removed '{shown}', a private {} server whose owner (loadline, process {}) is dead{stopped}",
        product.name, owner.pid
    )))
}

/// Removes a directory with nothing but its lock, which an interrupted start or removal leaves.
fn remove_unfinished(product: &Product, dir: &Path, metadata: &std::fs::Metadata) -> io::Result<Option<String>> {
    let ours = [owner::LOCK, owner::DRAFT];
    let names = std::fs::read_dir(dir)?.map(|e| e.map(|e| e.file_name())).collect::<io::Result<Vec<_>>>()?;
    let only_ours = names.iter().all(|name| ours.iter().any(|ours| name == ours));
    let old = metadata.modified()?.elapsed().is_ok_and(|age| age > MAX_CREATION_TIME);
    if !only_ours || !old {
        return Ok(None);
    }
    let Some(_lock) = owner::try_lock(dir)? else { return Ok(None) };
    for name in ours {
        ignore_not_found(std::fs::remove_file(dir.join(name)))?;
    }
    std::fs::remove_dir(dir)?;
    Ok(Some(format!("removed '{}', an unfinished private {} server", dir.display(), product.name)))
}
