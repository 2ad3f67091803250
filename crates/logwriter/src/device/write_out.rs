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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_out_early_reads_back_and_odd_ranges_are_no_error() {
        use std::io::Write;
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("file");
        let mut file = File::create(&path).unwrap();
        file.write_all(&[7; 8192]).unwrap();
        begin(&file, 0, 8192).unwrap();
        begin(&file, 4096, usize::MAX).unwrap();
        begin(&file, u64::MAX, 1).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [7; 8192]);
        assert_eq!(begin(&File::open("/dev/null").unwrap(), 0, 1).map_err(|e| e.raw_os_error()), Ok(()));
    }
}
