//! Measures how much of a file is in the page cache, and drops it.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

/// System call number of cachestat(2), the same on every architecture (Linux 6.5).
const SYS_CACHESTAT: libc::c_long = 451;

/// As in linux/mman.h.
#[repr(C)]
struct Range {
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
#[must_use]
pub fn cached_bytes(file: &File) -> Option<u64> {
    // Length 0: to the end of the file.
    let (range, mut stat) = (Range { offset: 0, length: 0 }, Stat::default());
    let flags: libc::c_uint = 0;
    // SAFETY: the kernel reads one structure and writes the other; both have its layout and outlive the call.
    let code = unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut stat, flags) };
    (code == 0).then(|| stat.cached.saturating_mul(crate::PAGE as u64))
}

/// Drops `file` from the page cache (posix_fadvise(2), `POSIX_FADV_DONTNEED`). Dirty pages stay, but their write-out
/// starts. Needs no privilege and affects all users of the file.
///
/// # Errors
/// As posix_fadvise(2).
pub fn drop_cached(file: &File) -> io::Result<()> {
    Ok(posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_is_written_leaves_the_cache_only_when_it_is_on_the_device() {
        // Not in /tmp, which may be a tmpfs: nothing can be dropped there.
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.write_all(&[7; 1 << 20]).unwrap();
        let Some(cached) = cached_bytes(&file) else { return };
        assert!(cached >= 1 << 20, "{cached} bytes");
        file.sync_all().unwrap();
        drop_cached(&file).unwrap();
        let left = cached_bytes(&file).unwrap();
        assert!(left < 1 << 18, "{left} bytes are left");
    }
}
