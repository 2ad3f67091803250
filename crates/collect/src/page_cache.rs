//! Keeps a database's files out of the operating system's page cache while its storage is measured.
//!
//! A database without direct I/O reads through the page cache, and a machine with more memory than data serves everything
//! from there. Anyone who can open a file for reading can make the kernel drop it from the cache (posix_fadvise(2)), without
//! privileges and for all processes. A keeper does so continuously: what is read is dropped a few milliseconds later. Only
//! clean pages can be dropped, so the kernel also starts to write dirty ones: with a keeper a database's writes reach the
//! device within milliseconds, too.

use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loadline_storage::{IdenticalBlocks, cached_bytes, drop_cached};
use nix::errno::Errno;

use crate::CollectError;

mod keeper;

pub use keeper::{Keep, Keeper, Kept};

/// Smallest file to look after, bytes. Smaller ones are catalogs, which the database caches itself; there are hundreds.
const SMALLEST: u64 = 64 << 10;
/// Most bytes of a file that are hashed, from its beginning: a log may be larger than all data.
const MOST_OF_A_FILE: u64 = 64 << 20;
/// Depth of the search under the data directory; links lead to tablespaces elsewhere.
const MAX_DEPTH: u32 = 6;

#[derive(Debug, Clone)]
pub enum DataFiles {
    /// All files under a directory that contains only a database.
    Below {
        directory: PathBuf,
        /// Excluded directory: the log.
        except: Option<PathBuf>,
    },
    These {
        /// Files that are already open. They are neither opened nor closed here: a process that closes any descriptor of a
        /// file loses all its locks on it (fcntl_locking(2)), including those of a database in this process.
        open: Vec<Arc<File>>,
        /// Files on which this process holds no locks; missing ones are skipped.
        named: Vec<PathBuf>,
    },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    pub files: u32,
    pub bytes: u64,
    /// Bytes that are still in the page cache; `None` where the kernel does not say.
    pub left: Option<u64>,
}

/// Files and directories that could not be looked after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missed {
    /// Those that this user may not read: nothing can be done about what is held of them.
    pub unreadable: u32,
    /// Those beyond the number of files that this process may have open (RLIMIT_NOFILE).
    pub beyond_limit: u32,
}

impl Missed {
    /// Counts a file that could not be opened, unless it no longer exists.
    fn count(&mut self, cause: &std::io::Error) {
        let is = |errors: &[Errno]| errors.iter().any(|e| cause.raw_os_error() == Some(*e as i32));
        if is(&[Errno::EMFILE, Errno::ENFILE]) {
            self.beyond_limit += 1;
        } else if !is(&[Errno::ENOENT]) {
            self.unreadable += 1;
        }
    }
}

#[derive(Debug)]
struct DataFile {
    path: PathBuf,
    inode: Inode,
    bytes: u64,
}

/// Device and inode number: the identity of a file.
type Inode = (u64, u64);

fn inode(of: &Metadata) -> Inode {
    (of.dev(), of.ino())
}

impl DataFiles {
    /// Writes dirty pages to the device and drops all files from the page cache.
    pub fn drop_all(&self) -> Result<Dropped, CollectError> {
        let (found, _) = self.find()?;
        let mut dropped = Dropped::default();
        match self {
            DataFiles::Below { directory, .. } => {
                let directory = open(directory)?;
                nix::unistd::syncfs(&directory).map_err(|cause| CollectError::Call { call: "syncfs", cause })?;
            }
            DataFiles::These { open, .. } => open.iter().for_each(|file| dropped.add(file)),
        }
        // The keeper counts those that cannot be opened.
        found.iter().flat_map(|file| File::open(&file.path)).for_each(|file| dropped.add(&file));
        Ok(dropped)
    }

    /// Blocks of at most `most` bytes, the log's included, of the files that were changed last first; and the size of all files, bytes.
    /// Fails if none can be read.
    pub fn identical_blocks(&self, most: u64) -> Result<(IdenticalBlocks, u64), CollectError> {
        let mut all = match self {
            DataFiles::Below { directory, .. } => below(directory, None)?.0,
            DataFiles::These { .. } => self.find()?.0,
        };
        let held = self.held();
        let held_bytes = held.iter().filter_map(|file| file.metadata().ok()).map(|m| m.len());
        let bytes = held_bytes.chain(all.iter().map(|file| file.bytes)).sum();
        let (mut blocks, mut failed) = (IdenticalBlocks::default(), None);
        // A file that is cut off meanwhile has no more blocks.
        let mut read = |file: &File| drop(blocks.add(file, MOST_OF_A_FILE.min(most - blocks.read_bytes)));
        held.iter().for_each(|file| read(file));
        all.sort_by_cached_key(|file| std::fs::metadata(&file.path).map_or(0, |m| -m.mtime()));
        for file in &all {
            match open(&file.path) {
                Ok(file) => read(&file),
                Err(why) => failed = failed.or(Some(why)),
            }
        }
        match failed {
            Some(why) if blocks.read_bytes == 0 => Err(why),
            _ => Ok((blocks, bytes)),
        }
    }

    fn held(&self) -> &[Arc<File>] {
        match self {
            DataFiles::Below { .. } => &[],
            DataFiles::These { open, .. } => open,
        }
    }

    fn error_path(&self) -> PathBuf {
        match self {
            DataFiles::Below { directory, .. } => directory.clone(),
            DataFiles::These { named, .. } => named.first().cloned().unwrap_or_default(),
        }
    }

    /// All other files to look after, each once. Opens none.
    fn find(&self) -> Result<(Vec<DataFile>, Missed), CollectError> {
        match self {
            DataFiles::Below { directory, except } => below(directory, except.as_deref()),
            DataFiles::These { open, named } => {
                let mut seen: BTreeSet<Inode> =
                    open.iter().filter_map(|f| f.metadata().ok()).map(|m| inode(&m)).collect();
                let there = named.iter().filter_map(|path| Some((path, std::fs::metadata(path).ok()?)));
                let files = there.filter(|(_, m)| m.is_file() && seen.insert(inode(m)));
                let found = files.map(|(path, m)| DataFile { path: path.clone(), inode: inode(&m), bytes: m.len() });
                Ok((found.collect(), Missed::default()))
            }
        }
    }
}

impl Dropped {
    /// Drops `file`. What could not be dropped is counted in `left`.
    fn add(&mut self, file: &File) {
        // Dirty pages cannot be dropped.
        let _ = file.sync_data();
        let _ = drop_cached(file);
        let left = if self.files == 0 { Some(0) } else { self.left };
        self.left = left.zip(cached_bytes(file)).map(|(sum, bytes)| sum + bytes);
        self.bytes += file.metadata().map_or(0, |m| m.len());
        self.files += 1;
    }
}

/// The files under `directory`, without those of `except`.
fn below(directory: &Path, except: Option<&Path>) -> Result<(Vec<DataFile>, Missed), CollectError> {
    let mut seen = BTreeSet::new();
    let (mut files, mut missed) = (Vec::new(), Missed::default());
    let except = except.filter(|log| *log != directory).and_then(|p| p.canonicalize().ok());
    let mut waiting = vec![(directory.to_owned(), 0)];
    while let Some((directory, depth)) = waiting.pop() {
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(cause) if depth == 0 => return Err(CollectError::Read { path: directory, cause }),
            Err(cause) => {
                missed.count(&cause);
                continue;
            }
        };
        for path in entries.flatten().map(|e| e.path()) {
            // Follows links. Skips files that no longer exist.
            let Ok(found) = std::fs::metadata(&path) else { continue };
            if !seen.insert(inode(&found)) {
                continue;
            }
            if found.is_dir() {
                let is_log = except.is_some() && path.canonicalize().ok() == except;
                if !is_log && depth < MAX_DEPTH {
                    waiting.push((path, depth + 1));
                }
            } else if found.is_file() && found.len() >= SMALLEST {
                files.push(DataFile { path, inode: inode(&found), bytes: found.len() });
            }
        }
    }
    Ok((files, missed))
}

fn open(path: &Path) -> Result<File, CollectError> {
    File::open(path).map_err(|cause| CollectError::Read { path: path.to_owned(), cause })
}

#[cfg(test)]
mod tests;
