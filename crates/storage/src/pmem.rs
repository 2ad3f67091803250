//! Persistent memory: a mapped file in which a store plus a cache-line write-back is durable.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::ptr::NonNull;

use crate::error::{DeviceError, Step};
use crate::file::preallocate;
use crate::flush::Flush;

loadline_model::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Backing {
        /// Persistent memory (DAX, `MAP_SYNC`): persisted data survives a power failure.
        Dax: "persistent memory (DAX)";
        /// Main memory of a tmpfs: a stand-in with the cost of stores and write-backs to memory. Survives nothing.
        TmpfsStandIn: "stand-in: main memory of a tmpfs, no persistent memory";
    }
    pub fn label;
}

/// A mapped file of fixed size. The file must not be shortened while it is mapped: an access beyond its end kills the
/// process with SIGBUS.
#[derive(Debug)]
pub struct PmemMap {
    start: NonNull<u8>,
    size: usize,
    pub backing: Backing,
    pub flush: Flush,
}

// SAFETY: the mapping belongs to this value alone; writing needs `&mut self`.
unsafe impl Send for PmemMap {}
// SAFETY: through a shared reference the memory is only read and written back.
unsafe impl Sync for PmemMap {}

impl PmemMap {
    /// Maps the first `size` bytes of `file` (open for reading and writing). Reserves the blocks first, because a store must
    /// not run out of space. Contents are kept. `path` is for messages.
    /// [`DeviceError::Unsupported`] if the file is neither on persistent memory nor on a tmpfs, or the CPU is not x86-64.
    pub fn map(file: &File, path: &Path, size: usize) -> Result<PmemMap, DeviceError> {
        let unsupported =
            |why: String| DeviceError::Unsupported { what: "mapped persistent memory", path: path.to_owned(), why };
        let flush = Flush::best().map_err(unsupported)?;
        if size == 0 {
            return Err(DeviceError::Range { what: "a mapping", offset: 0, bytes: 0, size: 0 });
        }
        preallocate(file, size as u64).map_err(|e| DeviceError::io(Step::Preallocate, path, e))?;
        // MAP_SYNC guarantees that a page's block is durable in the file before it can be stored to.
        let (start, backing) = match map(file, size, libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC) {
            Ok(start) => (start, Backing::Dax),
            Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL)) => {
                if !is_tmpfs(file) {
                    return Err(unsupported(
                        "there is no persistent memory under it, or it is not mounted with -o dax; \
                         use a log file with fdatasync instead, or a tmpfs as a stand-in"
                            .to_owned(),
                    ));
                }
                let start = map(file, size, libc::MAP_SHARED).map_err(|e| DeviceError::io(Step::Map, path, e))?;
                (start, Backing::TmpfsStandIn)
            }
            Err(e) => return Err(DeviceError::io(Step::Map, path, e)),
        };
        Ok(PmemMap { start, size, backing, flush })
    }

    /// Bytes mapped, never 0.
    pub fn size(&self) -> usize {
        self.size
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: `size` bytes are mapped and their blocks reserved until `self` is dropped.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.size) }
    }

    /// Copies `bytes` to `offset`. They are durable after [`PmemMap::persist`], or earlier, in any order.
    pub fn store(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let start = self.range(offset, bytes.len() as u64)?.start;
        // SAFETY: the range is within the mapping (see `bytes`), and `self` is borrowed exclusively.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(start), bytes.len()) }
        Ok(())
    }

    /// Writes the cache lines of `length` bytes at `offset` back and waits. On [`Backing::Dax`] they are then durable.
    pub fn persist(&self, offset: u64, length: u64) -> Result<(), DeviceError> {
        let range = self.range(offset, length)?;
        self.flush.write_back(self.bytes().get(range).unwrap_or_default());
        Ok(())
    }

    fn range(&self, offset: u64, bytes: u64) -> Result<std::ops::Range<usize>, DeviceError> {
        let size = self.size as u64;
        match offset.checked_add(bytes) {
            Some(end) if end <= size => Ok(offset as usize..end as usize),
            _ => Err(DeviceError::Range { what: "a mapped file", offset, bytes, size }),
        }
    }
}

impl Drop for PmemMap {
    fn drop(&mut self) {
        // SAFETY: mapped in `map` with this size; no reference to it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.size) };
    }
}

fn map(file: &File, size: usize, flags: libc::c_int) -> io::Result<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address chosen by the kernel affects no other memory.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), size, access, flags, file.as_raw_fd(), 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))
}

fn is_tmpfs(file: &File) -> bool {
    nix::sys::statfs::fstatfs(file).is_ok_and(|s| s.filesystem_type() == nix::sys::statfs::TMPFS_MAGIC)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::{Access, open_file};

    fn file(dir: &Path) -> (PathBuf, File) {
        let path = dir.join("pmem");
        let file = open_file(&path, Access { create_new: true, ..Access::default() }).unwrap();
        (path, file)
    }

    #[test]
    fn stores_reach_the_file_of_a_tmpfs_and_are_labelled() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let (path, file) = file(dir.path());
        let mut map = PmemMap::map(&file, &path, 10_000).unwrap();
        assert_eq!((map.size(), map.backing), (10_000, Backing::TmpfsStandIn));
        assert!(map.backing.label().contains("no persistent memory"));
        map.store(9_990, b"0123456789").unwrap();
        map.persist(9_990, 10).unwrap();
        assert_eq!(&std::fs::read(&path).unwrap()[9_990..], b"0123456789");
        for (offset, length) in [(9_991, 10), (u64::MAX, 10), (0, 10_001)] {
            assert!(matches!(map.persist(offset, length), Err(DeviceError::Range { .. })), "{offset} {length}");
        }
        assert!(map.store(9_991, b"0123456789").is_err());
        drop(map);
        let again = PmemMap::map(&file, &path, 10_000).unwrap();
        assert_eq!(&again.bytes()[9_990..], b"0123456789", "mapping a file keeps what it holds");
    }

    #[test]
    fn a_disk_is_not_persistent_memory() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (path, file) = file(dir.path());
        match PmemMap::map(&file, &path, 4096) {
            Err(error) => assert!(error.to_string().contains("no persistent memory under it"), "{error}"),
            // A developer's machine may have persistent memory.
            Ok(map) => assert_eq!(map.backing, Backing::Dax),
        }
        assert!(PmemMap::map(&file, &path, 0).is_err());
    }
}
