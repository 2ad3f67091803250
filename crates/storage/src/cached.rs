//! Measures how much of a file is in the page cache, drops it, or starts to write it.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd as _;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

/// System call number of cachestat(2), the same on every architecture (Linux 6.5).
const SYS_CACHESTAT: libc::c_long = 451;

/// As in linux/mman.h.
#[repr(C)]
struct StatRange {
    offset: u64,
    length: u64,
}

/// As in linux/mman.h; all in pages.
#[repr(C)]
#[derive(Default)]
struct Stat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Bytes of `file` in the page cache; `None` if the kernel does not say (before Linux 6.5, or in a sandbox).
pub fn cached_bytes(file: &File) -> Option<u64> {
    // Length 0: to the end of the file.
    cached_in(file, &(0..0))
}

/// Bytes of a range of `file` in the page cache; `None` as in [`cached_bytes`].
pub fn cached_in(file: &File, bytes: &Range<u64>) -> Option<u64> {
    let range = StatRange { offset: bytes.start, length: bytes.end.saturating_sub(bytes.start) };
    let mut stat = Stat::default();
    let flags: libc::c_uint = 0;
    // SAFETY: the kernel reads one structure and writes the other; both have its layout and outlive the call.
    let code = unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut stat, flags) };
    (code == 0).then(|| stat.cached.saturating_mul(crate::PAGE as u64))
}

/// Drops `file` from the page cache (posix_fadvise(2), `POSIX_FADV_DONTNEED`). Dirty pages stay, but their write-out
/// starts. Needs no privilege and affects all users of the file.
pub fn drop_cached(file: &File) -> io::Result<()> {
    // Length 0: to the end of the file.
    drop_range(file, &(0..0))
}

/// Evicts a range of `file`. Folios (of up to 2 MiB) that are only partly in it stay.
pub fn drop_range(file: &File, bytes: &Range<u64>) -> io::Result<()> {
    let (offset, length) = (bytes.start as i64, bytes.end.saturating_sub(bytes.start) as i64);
    Ok(posix_fadvise(file, offset, length, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?)
}

/// Starts to write the dirty pages of a range of `file` (`0..0`: all) and keeps them in the page cache (sync_file_range(2),
/// `SYNC_FILE_RANGE_WRITE`). Waits while the device's queue is full. Works with a descriptor for reading.
/// Errors of the writes themselves still reach a later sync.
pub fn start_writing(file: &File, bytes: &Range<u64>) -> io::Result<()> {
    let (offset, length) = (bytes.start as i64, bytes.end.saturating_sub(bytes.start) as i64);
    // SAFETY: the descriptor is open; the call has no memory.
    let code = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_range_or_all_is_dropped_and_what_is_written_stays_cached() {
        // Not in /tmp, which may be a tmpfs: nothing can be dropped there.
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        // A folio that is only partly in a range stays; folios have up to 2 MiB.
        file.write_all(&vec![7; 8 << 20]).unwrap();
        start_writing(&file, &(0..0)).unwrap();
        let Some(cached) = cached_bytes(&file) else { return };
        assert!(cached >= 8 << 20, "{cached} bytes");
        file.sync_all().unwrap();
        let (first, second) = (0..4 << 20, 4 << 20..8 << 20);
        drop_range(&file, &first).unwrap();
        let left = |range| cached_in(&file, range).unwrap();
        assert!(left(&first) < 1 << 18 && left(&second) == 4 << 20, "{} {}", left(&first), left(&second));
        drop_cached(&file).unwrap();
        let left = cached_bytes(&file).unwrap();
        assert!(left < 1 << 18, "{left} bytes are left");
    }
}
