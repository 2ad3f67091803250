//! Log files written through the page cache and synced with `fdatasync` or `O_DSYNC`.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use loadline_storage::drop_cached;

use super::directory::{DirMaker, LogDir, read_at, write_all};
use super::{DeviceError, DeviceTimes, FileMaker, LogDevice, write_out, write_then_sync};

/// How a write becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSync {
    /// `pwrite`, then `fdatasync`.
    Fdatasync,
    /// `pwrite` to a file opened with `O_DSYNC`. Writes whose sync comes later, and those of 1 MiB and more, go to a
    /// second descriptor without `O_DSYNC` and are synced with `fdatasync`: with it each would wait for the device
    /// before the next is copied.
    Dsync,
}

/// Settings of a [`FileDevice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileConfig {
    /// Size of a log file, bytes: a multiple of the block.
    pub file_bytes: u64,
    /// Size of a block, bytes: a power of two from 512 to 65536. If it is smaller than a page (4 KiB), the
    /// kernel must read the page before it changes a part of it, unless the page is cached.
    pub block_bytes: usize,
    /// How a write becomes durable.
    pub sync: FileSync,
}

impl Default for FileConfig {
    fn default() -> Self {
        Self { file_bytes: 64 << 20, block_bytes: 4096, sync: FileSync::Fdatasync }
    }
}

struct Current {
    path: PathBuf,
    file: File,
    /// Handle of this file with `O_DSYNC`, if that is how writes become durable.
    dsync: Option<File>,
    /// Bytes were written to `file` that are not synced.
    unsynced: bool,
}

/// A log in a directory, written through the page cache.
pub struct FileDevice {
    dir: LogDir,
    config: FileConfig,
    current: Option<Current>,
    reading: RefCell<Option<(u64, File)>>,
}

impl FileDevice {
    /// A log in the existing directory `dir`. Writes nothing yet.
    ///
    /// # Errors
    /// `dir` is not a directory or cannot be read.
    pub fn open(dir: &Path, config: &FileConfig) -> Result<Self, DeviceError> {
        fs::read_dir(dir).map_err(|cause| DeviceError::io("open", dir, cause))?;
        Ok(Self { dir: LogDir(dir.to_owned()), config: *config, current: None, reading: RefCell::new(None) })
    }

    fn current(&mut self) -> Result<&mut Current, DeviceError> {
        self.current.as_mut().ok_or_else(|| self.dir.no_file())
    }
}

/// Large writes are split into pieces of this size, bytes. The device writes one piece while the next is
/// copied to the page cache.
const WRITE_OUT: usize = 1 << 20;

impl LogDevice for FileDevice {
    fn block_bytes(&self) -> usize {
        self.config.block_bytes
    }

    fn file_bytes(&self) -> u64 {
        self.config.file_bytes
    }

    fn file_maker(&self) -> Box<dyn FileMaker> {
        Box::new(DirMaker { dir: self.dir.clone(), file_bytes: self.config.file_bytes })
    }

    fn open_file(&mut self, file: u64) -> Result<(), DeviceError> {
        self.file_maker().make(file, None)?;
        let path = self.dir.path(file);
        let open = |flags| {
            let opened = OpenOptions::new().write(true).custom_flags(flags).open(&path);
            opened.map_err(|cause| DeviceError::io("open", &path, cause))
        };
        let dsync = if self.config.sync == FileSync::Dsync { Some(open(libc::O_DSYNC)?) } else { None };
        self.current = Some(Current { file: open(0)?, dsync, unsynced: false, path });
        Ok(())
    }

    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
        let Current { path, file, unsynced, .. } = self.current()?;
        *unsynced = true;
        for (number, piece) in blocks.chunks(WRITE_OUT).enumerate() {
            let at = offset + (number * WRITE_OUT) as u64;
            write_all(file, path, at, piece)?;
            // Not for small groups: their sync follows at once.
            if piece.len() == WRITE_OUT {
                write_out::begin(file, at, piece.len()).map_err(|cause| DeviceError::io("write out", path, cause))?;
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), DeviceError> {
        let Current { path, file, unsynced, .. } = self.current()?;
        if *unsynced {
            file.sync_data().map_err(|cause| DeviceError::io("sync", path, cause))?;
            *unsynced = false;
        }
        Ok(())
    }

    fn write_and_sync(
        &mut self,
        offset: u64,
        blocks: &[u8],
        now: &dyn Fn() -> u64,
    ) -> Result<DeviceTimes, DeviceError> {
        match self.current()? {
            Current { path, dsync: Some(dsync), unsynced: false, .. } if blocks.len() < WRITE_OUT => {
                let begun = now();
                write_all(dsync, path, offset, blocks)?;
                Ok(DeviceTimes { write_ns: 0, sync_ns: now().saturating_sub(begun) })
            }
            _ => write_then_sync(self, offset, blocks, now),
        }
    }

    fn files(&self) -> Result<Vec<u64>, DeviceError> {
        self.dir.files()
    }

    /// Syncs the file and drops it from the page cache before the first read: after a failed sync the cache
    /// holds pages that never reached the device.
    fn read(&self, file: u64, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError> {
        let mut reading = self.reading.borrow_mut();
        let path = self.dir.path(file);
        if reading.as_ref().is_none_or(|(number, _)| *number != file) {
            let opened = File::open(&path).map_err(|cause| DeviceError::io("open", &path, cause))?;
            opened.sync_data().map_err(|cause| DeviceError::io("sync", &path, cause))?;
            drop_cached(&opened).map_err(|cause| DeviceError::io("drop the cache of", &path, cause))?;
            *reading = Some((file, opened));
        }
        match reading.as_ref() {
            Some((_, opened)) => read_at(opened, &path, offset, into),
            None => Ok(0),
        }
    }

    fn describe(&self) -> String {
        let sync = match self.config.sync {
            FileSync::Fdatasync => "fdatasync",
            FileSync::Dsync => "O_DSYNC (fdatasync from 1 MiB on)",
        };
        format!("file log in '{}', {sync}, blocks of {} bytes", self.dir.0.display(), self.config.block_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_write_is_synced_once_and_only_small_ones_at_once() {
        let blocks: Vec<u8> = (0..WRITE_OUT * 2).map(|at| (at / 4096) as u8).collect();
        for sync in [FileSync::Fdatasync, FileSync::Dsync] {
            let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
            let config = FileConfig { file_bytes: 4 << 20, sync, ..FileConfig::default() };
            let mut device = FileDevice::open(dir.path(), &config).unwrap();
            device.open_file(0).unwrap();
            let now = || 0;
            let unsynced = |device: &mut FileDevice| device.current().unwrap().unsynced;
            // Small, nothing before it; small after a write without a sync; large.
            device.write_and_sync(0, &blocks[..4096], &now).unwrap();
            assert!(!unsynced(&mut device));
            device.write(4096, &blocks[4096..WRITE_OUT + 8192]).unwrap();
            assert!(unsynced(&mut device), "{sync:?}: a write alone is not durable");
            device.write_and_sync((WRITE_OUT + 8192) as u64, &blocks[WRITE_OUT + 8192..], &now).unwrap();
            assert!(!unsynced(&mut device), "{sync:?}: the sync covers the write before");
            device.write(2 << 20, &blocks[..WRITE_OUT]).unwrap();
            device.sync().unwrap();
            assert!(!unsynced(&mut device));
            let mut found = vec![0; blocks.len()];
            let mut at = 0;
            while at < found.len() {
                at += device.read(0, at as u64, &mut found[at..]).unwrap();
            }
            assert!(found == blocks, "{sync:?}");
        }
        // What cannot be written out early is no error.
        let null = File::open("/dev/null").unwrap();
        for (offset, length) in [(0, 1), (4096, usize::MAX), (u64::MAX, 1)] {
            write_out::begin(&null, offset, length).unwrap();
        }
    }
}
