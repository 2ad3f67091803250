//! A write and its fdatasync in one submission, with linked io_uring operations.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::Duration;

use io_uring::squeue::{Entry, Flags};
use io_uring::{IoUring, opcode, types};

use crate::error::{DeviceError, Step};
use crate::ring::outcome;

const WRITE: u64 = 0;
const SYNC: u64 = 1;
/// Most bytes of one write: whole pages within a 32-bit length.
const LARGEST: u32 = !0xfff;

/// An io_uring for a writer that waits for each write. Can move between threads and serve several files.
pub struct SyncRing {
    ring: IoUring,
}

impl std::fmt::Debug for SyncRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SyncRing")
    }
}

impl SyncRing {
    /// A ring of two entries. If the kernel refuses, [`crate::io_uring_available`] says why.
    pub fn new() -> io::Result<SyncRing> {
        let ring = match IoUring::builder().setup_coop_taskrun().build(2) {
            // Linux before 5.19.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => IoUring::new(2)?,
            result => result?,
        };
        Ok(SyncRing { ring })
    }

    /// Writes all of `bytes` at `offset` and makes the file's data durable: one system call, unless the kernel writes only a
    /// part.
    /// After a failed sync ([`Step::Sync`]) the kernel may have dropped the data: nothing written since the last successful
    /// one is safe, even if a later one succeeds.
    pub fn write_sync(&mut self, file: &File, path: &Path, bytes: &[u8], offset: u64) -> Result<(), DeviceError> {
        let sync = opcode::Fsync::new(types::Fd(file.as_raw_fd())).flags(types::FsyncFlags::DATASYNC);
        self.write_all(file, path, bytes, offset, Some(&sync.build().user_data(SYNC)))
    }

    /// Writes all of `bytes` at `offset`. Durable on return only if `file` was opened with `O_DSYNC`.
    pub fn write(&mut self, file: &File, path: &Path, bytes: &[u8], offset: u64) -> Result<(), DeviceError> {
        self.write_all(file, path, bytes, offset, None)
    }

    fn write_all(
        &mut self,
        file: &File,
        path: &Path,
        bytes: &[u8],
        offset: u64,
        sync: Option<&Entry>,
    ) -> Result<(), DeviceError> {
        let failed = |step, cause: io::Error| DeviceError::io(step, path, cause);
        let mut done = 0;
        loop {
            let rest = bytes.get(done..).unwrap_or_default();
            let length = u32::try_from(rest.len()).unwrap_or(LARGEST);
            let write = opcode::Write::new(types::Fd(file.as_raw_fd()), rest.as_ptr(), length)
                .offset(offset + done as u64)
                .build()
                .user_data(WRITE);
            let (written, synced) = match sync {
                Some(sync) => self.round(&[write.flags(Flags::IO_LINK), sync.clone()]),
                None => self.round(&[write]),
            }
            .map_err(|e| failed(Step::Ring, e))?;
            match outcome(written) {
                // A short write breaks the link, so there was no sync.
                Ok(moved) if moved < rest.len() => {
                    if moved == 0 {
                        return Err(failed(Step::Write, io::ErrorKind::WriteZero.into()));
                    }
                    done += moved;
                }
                Ok(_) => return outcome(synced).map(|_| ()).map_err(|e| failed(Step::Sync, e)),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(failed(Step::Write, e)),
            }
        }
    }

    /// Submits `entries` and waits until all have completed. Returns the results of write and sync. Afterwards the kernel
    /// no longer uses the memory they refer to.
    fn round(&mut self, entries: &[Entry]) -> io::Result<(i32, i32)> {
        // SAFETY: the caller's buffer and file are borrowed until this returns, which is after every submitted entry has
        // completed.
        unsafe { self.ring.submission().push_multiple(entries) }.map_err(io::Error::other)?;
        let mut results = [0, 0];
        let mut ended = 0;
        while ended < entries.len() {
            let left = self.ring.submission().len();
            if let Err(e) = self.ring.submit_and_wait(entries.len() - ended) {
                let passing = matches!(e.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY));
                if !passing && left == entries.len() && self.ring.submission().len() == left {
                    // Nothing was submitted, and the entries stay in the queue. A new ring replaces this one, so they never
                    // will be.
                    self.ring = IoUring::new(2)?;
                    return Err(e);
                }
                if !passing {
                    // Waiting fails, but the entries will complete.
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            for entry in self.ring.completion() {
                if let Some(result) = results.get_mut(entry.user_data() as usize) {
                    *result = entry.result();
                }
                ended += 1;
            }
        }
        Ok((results[WRITE as usize], results[SYNC as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, AlignedBuf, PAGE, open_file};

    #[test]
    fn what_is_written_and_synced_is_in_the_file() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("log");
        let access = Access { direct: true, create_new: true, ..Access::default() };
        let file = open_file(&path, access).unwrap();
        let mut ring = SyncRing::new().unwrap();
        let mut buffer = AlignedBuf::new(3 * PAGE).unwrap();
        for round in 0..20_u8 {
            buffer.fill(round + 1);
            ring.write_sync(&file, &path, &buffer[..PAGE], u64::from(round) * PAGE as u64).unwrap();
        }
        buffer.fill(99);
        ring.write(&file, &path, &buffer, 20 * PAGE as u64).unwrap();
        let found = std::fs::read(&path).unwrap();
        assert_eq!(found.len(), 23 * PAGE);
        for (block, bytes) in found.chunks(PAGE).enumerate() {
            let expected = if block < 20 { block as u8 + 1 } else { 99 };
            assert!(bytes.iter().all(|b| *b == expected), "block {block}");
        }
    }

    #[test]
    fn a_failure_says_whether_it_was_the_write_or_the_sync() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, []).unwrap();
        let mut ring = SyncRing::new().unwrap();
        let error = ring.write_sync(&File::open(&path).unwrap(), &path, b"x", 0).unwrap_err();
        assert!(matches!(error, DeviceError::Io { step: Step::Write, .. }), "{error}");
        // A pipe can be written but not synced.
        let (mut reader, writer) = std::io::pipe().unwrap();
        let writer = File::from(std::os::fd::OwnedFd::from(writer));
        let error = ring.write_sync(&writer, &path, b"x", 0).unwrap_err();
        assert!(matches!(error, DeviceError::Io { step: Step::Sync, .. }), "{error}");
        let mut taken = [0];
        std::io::Read::read_exact(&mut reader, &mut taken).unwrap();
        assert_eq!(taken, *b"x");
        // The ring still works.
        let file = open_file(&path, Access::default()).unwrap();
        ring.write_sync(&file, &path, b"later", 0).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"later");
    }
}
