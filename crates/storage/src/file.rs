//! Opens files (with `O_DIRECT` or `O_DSYNC`) and reserves their blocks.

#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::{FallocateFlags, FcntlArg, OFlag, fallocate, fcntl};

use crate::error::{DeviceError, Step};

/// How a file is opened. Reading and writing are always allowed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Access {
    /// `O_DIRECT`, without the page cache: buffers, offsets and lengths must be aligned.
    pub direct: bool,
    /// `O_DSYNC`: each write returns when it is durable.
    pub dsync: bool,
    /// Create the file, which must not exist (`O_CREAT | O_EXCL`, mode 0600).
    pub create_new: bool,
}

/// Opens `path`.
/// [`DeviceError::Unsupported`] if the filesystem has no `O_DIRECT` (tmpfs before Linux 6.6, some FUSE): no file is left behind.
pub fn open_file(path: &Path, access: Access) -> Result<File, DeviceError> {
    let mut flags = OFlag::O_CLOEXEC;
    flags.set(OFlag::O_DIRECT, access.direct);
    flags.set(OFlag::O_DSYNC, access.dsync);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(access.create_new).mode(0o600).custom_flags(flags.bits());
    options.open(path).map_err(|cause| {
        if access.direct && cause.raw_os_error() == Some(libc::EINVAL) {
            if access.create_new {
                // Linux creates the file before it finds that O_DIRECT is not supported.
                let _ = std::fs::remove_file(path);
            }
            return DeviceError::Unsupported {
                what: "O_DIRECT",
                path: path.to_owned(),
                why: "its filesystem does not support it; open the file without O_DIRECT".to_owned(),
            };
        }
        DeviceError::io(if access.create_new { Step::Create } else { Step::Open }, path, cause)
    })
}

/// Switches `O_DIRECT` of an open file on or off. `EINVAL` if the filesystem does not support it.
pub fn set_direct(file: &File, direct: bool) -> io::Result<()> {
    let mut flags = OFlag::from_bits_retain(fcntl(file, FcntlArg::F_GETFL)?);
    flags.set(OFlag::O_DIRECT, direct);
    fcntl(file, FcntlArg::F_SETFL(flags))?;
    Ok(())
}

/// Reserves the first `bytes` of `file`, so that writing them cannot run out of space. A shorter file grows; contents are
/// kept.
///
/// Most filesystems mark the blocks as unwritten, so the first write to each still changes metadata. For full speed,
/// write a log file once before use. `EOPNOTSUPP` if the filesystem cannot reserve space: write zeros then.
pub fn preallocate(file: &File, bytes: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    loop {
        match fallocate(file, FallocateFlags::empty(), 0, length) {
            Err(nix::errno::Errno::EINTR) => {}
            result => return Ok(result?),
        }
    }
}

/// Alignment that `O_DIRECT` needs for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectAlignment {
    /// Buffers start at a multiple of this, bytes.
    pub memory: u32,
    /// Offsets and lengths are multiples of this, bytes.
    pub offset: u32,
}

/// Alignment that `O_DIRECT` needs for `file`, from statx(2). `None` if the kernel (before 6.1) or the filesystem does not
/// state it, or has no `O_DIRECT`.
pub fn direct_alignment(file: &File) -> Option<DirectAlignment> {
    // SAFETY: a statx of zeros is a valid value of that plain C struct.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, the path is an empty C string as AT_EMPTY_PATH wants it, and
    // `found` lives for the call.
    let result = unsafe {
        libc::statx(file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, libc::STATX_DIOALIGN, &raw mut found)
    };
    let stated = result == 0 && found.stx_mask & libc::STATX_DIOALIGN != 0 && found.stx_dio_offset_align > 0;
    stated.then_some(DirectAlignment { memory: found.stx_dio_mem_align, offset: found.stx_dio_offset_align })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AlignedBuf, PAGE};
    use std::os::unix::fs::FileExt as _;

    #[test]
    fn a_direct_file_takes_aligned_blocks_only() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("log");
        let file = open_file(&path, Access { direct: true, dsync: true, create_new: true }).unwrap();
        preallocate(&file, 8 * PAGE as u64).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 8 * PAGE as u64);
        let buffer = AlignedBuf::new(2 * PAGE).unwrap();
        file.write_all_at(&buffer, PAGE as u64).unwrap();
        assert!(file.write_at(&buffer[1..PAGE + 1], 0).is_err(), "an unaligned block was taken");
        if let Some(alignment) = direct_alignment(&file) {
            assert!(alignment.offset.is_power_of_two() && alignment.memory > 0, "{alignment:?}");
        }
        set_direct(&file, false).unwrap();
        file.write_all_at(&buffer[1..PAGE + 1], 0).unwrap();
    }

    #[test]
    fn an_existing_file_is_not_opened_as_new() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let new = Access { create_new: true, ..Access::default() };
        drop(open_file(&path, new).unwrap());
        let error = open_file(&path, new).unwrap_err();
        assert!(matches!(&error, DeviceError::Io { cause, .. } if cause.kind() == io::ErrorKind::AlreadyExists));
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        let error = open_file(&dir.path().join("none"), Access::default()).unwrap_err().to_string();
        assert!(error.starts_with("cannot open '"), "{error}");
    }
}
