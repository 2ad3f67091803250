//! Private servers whose owner is dead: found by their marks, ended and removed.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::geteuid;

use super::files;
use super::owner::{self, Owner, absent_is_fine};
use super::product::Product;

/// A directory without an owner file may just be in the making for this long.
const IN_THE_MAKING: Duration = Duration::from_secs(60);

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// What was removed, and what was left alone with why; one line each.
    pub(crate) removed: Vec<String>,
    /// What could not be removed; one line each.
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
                // Somebody else cleans up at the same time.
                Err(e) if e.kind() == io::ErrorKind::NotFound && !dir.exists() => {}
                Err(e) => done.failed.push(format!("«{}» could not be removed: {e}", dir.display())),
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
        // Its marks cannot be trusted: in a directory such as /var/tmp anybody could have made them.
        return match Owner::read(dir) {
            Ok(Some(owner)) if !owner.process_lives() => Ok(Some(format!(
                "left alone «{shown}»: it belongs to the user with the number {}, who can clean it up",
                metadata.uid()
            ))),
            _ => Ok(None),
        };
    }
    let owner = match Owner::read(dir) {
        Ok(Some(owner)) => owner,
        Ok(None) => return remove_unfinished(product, dir, &metadata),
        Err(e) => return Ok(Some(format!("left alone «{shown}»: its owner file cannot be read ({e})"))),
    };
    if owner.process_lives() {
        return Ok(None);
    }
    // Held until the directory is gone, so that nobody else cleans up here at the same time.
    let Some(_lock) = owner::try_lock(dir)? else { return Ok(None) };
    let ran = files::remove(product, dir, &owner)?;
    let stopped = if ran { " (the server still ran and was stopped)" } else { "" };
    Ok(Some(format!(
        "removed «{shown}», a private {} server whose owner, loadline as process {}, is gone{stopped}",
        product.name, owner.pid
    )))
}

/// A start or a removal that was cut off leaves a directory with nothing but its lock.
fn remove_unfinished(product: &Product, dir: &Path, metadata: &std::fs::Metadata) -> io::Result<Option<String>> {
    let ours = [owner::LOCK, owner::DRAFT];
    let names = std::fs::read_dir(dir)?.map(|e| e.map(|e| e.file_name())).collect::<io::Result<Vec<_>>>()?;
    let only_ours = names.iter().all(|name| ours.iter().any(|ours| name == ours));
    let old = metadata.modified()?.elapsed().is_ok_and(|age| age > IN_THE_MAKING);
    if !only_ours || !old {
        return Ok(None);
    }
    let Some(_lock) = owner::try_lock(dir)? else { return Ok(None) };
    for name in ours {
        absent_is_fine(std::fs::remove_file(dir.join(name)))?;
    }
    std::fs::remove_dir(dir)?;
    Ok(Some(format!("removed «{}», an unfinished private {} server", dir.display(), product.name)))
}
