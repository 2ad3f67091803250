//! Starts the write-out of a file's cached pages (`sync_file_range`).
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Starts to write out `len` bytes at `offset` and does not wait. The device then works while the next bytes are
/// copied, and a later sync has less to do. Nothing becomes durable, and write errors still reach that sync.
///
/// # Errors
/// The kernel cannot start. `Ok` if the kernel or the filesystem has no such call.
pub(super) fn begin(file: &File, offset: u64, len: usize) -> io::Result<()> {
    let (Ok(offset), Ok(len)) = (libc::off64_t::try_from(offset), libc::off64_t::try_from(len)) else {
        return Ok(());
    };
    // SAFETY: passes no memory; the descriptor is open as long as `file` is borrowed.
    let done = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) };
    if done == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EINVAL | libc::EOPNOTSUPP | libc::ESPIPE) => Ok(()),
        _ => Err(error),
    }
}
