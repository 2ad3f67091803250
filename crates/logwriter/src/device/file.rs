//! Log files written through the page cache and synced with `fdatasync` or `O_DSYNC`.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use loadline_device::drop_cached;

use super::directory::{DirMaker, LogDir, read_at, write_all};
use super::{DeviceError, DeviceTimes, FileMaker, LogDevice, write_out, write_then_sync};

/// How a write becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSync {
    /// `pwrite`, then `fdatasync`.
    Fdatasync,
    /// `pwrite` to a file opened with `O_DSYNC`.
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

/// A log in a directory, written through the page cache.
pub struct FileDevice {
    dir: LogDir,
    config: FileConfig,
    current: Option<(File, PathBuf)>,
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

    fn current(&self) -> Result<&(File, PathBuf), DeviceError> {
        self.current.as_ref().ok_or_else(|| self.dir.no_file())
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
        let mut options = OpenOptions::new();
        options.write(true);
        if self.config.sync == FileSync::Dsync {
            options.custom_flags(libc::O_DSYNC);
        }
        let opened = options.open(&path).map_err(|cause| DeviceError::io("open", &path, cause))?;
        self.current = Some((opened, path));
        Ok(())
    }

    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
        let (file, path) = self.current()?;
        for (number, piece) in blocks.chunks(WRITE_OUT).enumerate() {
            let at = offset + (number * WRITE_OUT) as u64;
            write_all(file, path, at, piece)?;
            // Not for small groups: their sync follows at once.
            if piece.len() == WRITE_OUT && self.config.sync == FileSync::Fdatasync {
                write_out::begin(file, at, piece.len()).map_err(|cause| DeviceError::io("write out", path, cause))?;
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), DeviceError> {
        if self.config.sync == FileSync::Dsync {
            return Ok(());
        }
        let (file, path) = self.current()?;
        file.sync_data().map_err(|cause| DeviceError::io("sync", path, cause))
    }

    fn write_and_sync(
        &mut self,
        offset: u64,
        blocks: &[u8],
        now: &dyn Fn() -> u64,
    ) -> Result<DeviceTimes, DeviceError> {
        let DeviceTimes { write_ns, sync_ns } = write_then_sync(self, offset, blocks, now)?;
        Ok(match self.config.sync {
            FileSync::Fdatasync => DeviceTimes { write_ns, sync_ns },
            FileSync::Dsync => DeviceTimes { write_ns: 0, sync_ns: write_ns },
        })
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
            FileSync::Dsync => "O_DSYNC",
        };
        format!("file log in '{}', {sync}, blocks of {} bytes", self.dir.0.display(), self.config.block_bytes)
    }
}
