//! Log files in a directory, written through the page cache and synced with `fdatasync` or
//! `O_DSYNC`.
//!
//! A file is made under a name of its own (`….new`), written full of zeros, synced, and only then
//! given its name, which is made durable by syncing the directory. So a file that has its name is
//! ready, and a sync of it later changes no metadata. Files with other names are never touched.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise, posix_fallocate};

use super::{DeviceError, DeviceTimes, FileMaker, LogDevice, write_out};

/// How a write becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSync {
    /// `pwrite`, then `fdatasync`.
    Fdatasync,
    /// `pwrite` to a file opened with `O_DSYNC`.
    Dsync,
}

/// The settings of a [`FileDevice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileConfig {
    /// Bytes of a log file: a multiple of the block.
    pub file_bytes: u64,
    /// Bytes of a block: a power of two from 512 to 65536. Below the page size (4 KiB) the kernel
    /// reads a page from the device before it writes into a part of it, unless it is cached.
    pub block_bytes: usize,
    /// How a write becomes durable.
    pub sync: FileSync,
}

impl Default for FileConfig {
    fn default() -> Self {
        Self { file_bytes: 64 << 20, block_bytes: 4096, sync: FileSync::Fdatasync }
    }
}

/// Log files in a directory.
pub struct FileDevice {
    place: Place,
    config: FileConfig,
    current: Option<(File, String)>,
    reading: RefCell<Option<(u64, File)>>,
}

/// A directory and the names in it.
#[derive(Clone, Debug)]
pub(super) struct Place(pub(super) PathBuf);

impl Place {
    pub(super) fn path(&self, file: u64) -> PathBuf {
        self.0.join(format!("redo-{file:010}.log"))
    }

    fn number(name: &str) -> Option<u64> {
        let digits = name.strip_prefix("redo-")?.strip_suffix(".log")?;
        let number = digits.parse().ok()?;
        (format!("{number:010}") == digits).then_some(number)
    }

    /// The numbers of the log files there are.
    pub(super) fn files(&self) -> Result<Vec<u64>, DeviceError> {
        let entries = fs::read_dir(&self.0).map_err(|cause| failed("list", &self.0, cause))?;
        let mut numbers = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|cause| failed("list", &self.0, cause))?;
            numbers.extend(entry.file_name().to_str().and_then(Place::number));
        }
        Ok(numbers)
    }

    fn sync(&self) -> Result<(), DeviceError> {
        File::open(&self.0).and_then(|dir| dir.sync_all()).map_err(|cause| failed("sync", &self.0, cause))
    }
}

/// An error of the system, with advice on what to do.
pub(super) fn failed(action: &'static str, path: &Path, source: io::Error) -> DeviceError {
    failed_named(action, path.display().to_string(), source)
}

fn failed_named(action: &'static str, what: String, source: io::Error) -> DeviceError {
    let advice = match source.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => "Free some space there, or take smaller or fewer log files",
        Some(libc::EROFS) => "The filesystem is read-only: take another directory, or mount it for writing",
        Some(libc::EACCES | libc::EPERM) => "Take a directory that you may write to",
        Some(libc::ENOENT | libc::ENOTDIR) => "Name a directory that is there",
        Some(libc::EIO) => "The device has failed: look at the kernel's messages (dmesg)",
        _ => "Look at the directory, its device and the kernel's messages (dmesg)",
    };
    DeviceError::Io { action, what: format!("«{what}»"), source, advice: advice.into() }
}

impl FileDevice {
    /// A log in the directory `dir`, which must be there. Nothing is written before the log is
    /// opened.
    ///
    /// # Errors
    /// If `dir` is no directory or cannot be read.
    pub fn open(dir: &Path, config: &FileConfig) -> Result<Self, DeviceError> {
        fs::read_dir(dir).map_err(|cause| failed("open", dir, cause))?;
        Ok(Self { place: Place(dir.to_owned()), config: *config, current: None, reading: RefCell::new(None) })
    }

    fn current(&self) -> Result<&(File, String), DeviceError> {
        self.current.as_ref().ok_or_else(|| DeviceError::Unsupported {
            what: self.describe(),
            wish: "write".into(),
            why: "no log file is open".into(),
            advice: "This is a defect of loadline: please report it".into(),
        })
    }
}

/// Large writes go to the page cache in pieces of this many bytes, each of which is on its way to
/// the device while the next is copied.
const WRITE_OUT: usize = 1 << 20;

/// Writes a piece in full.
fn write_piece(file: &File, path: &str, offset: u64, piece: &[u8]) -> Result<(), DeviceError> {
    let mut written = 0;
    while written < piece.len() {
        match file.write_at(&piece[written..], offset + written as u64) {
            Ok(0) => return Err(DeviceError::Short { what: path.to_owned(), offset, asked: piece.len(), written }),
            Ok(more) => written += more,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(failed_named("write to", path.to_owned(), cause)),
        }
    }
    Ok(())
}

impl LogDevice for FileDevice {
    fn block_bytes(&self) -> usize {
        self.config.block_bytes
    }

    fn file_bytes(&self) -> u64 {
        self.config.file_bytes
    }

    fn file_maker(&self) -> Box<dyn FileMaker> {
        Box::new(Maker { place: self.place.clone(), file_bytes: self.config.file_bytes })
    }

    fn open_file(&mut self, file: u64) -> Result<(), DeviceError> {
        self.file_maker().make(file, None)?;
        let path = self.place.path(file);
        let mut options = OpenOptions::new();
        options.write(true);
        if self.config.sync == FileSync::Dsync {
            options.custom_flags(libc::O_DSYNC);
        }
        let opened = options.open(&path).map_err(|cause| failed("open", &path, cause))?;
        self.current = Some((opened, path.display().to_string()));
        Ok(())
    }

    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
        let (file, path) = self.current()?;
        for (number, piece) in blocks.chunks(WRITE_OUT).enumerate() {
            let at = offset + (number * WRITE_OUT) as u64;
            write_piece(file, path, at, piece)?;
            // Not for the small groups of commits: their sync follows at once.
            if piece.len() == WRITE_OUT && self.config.sync == FileSync::Fdatasync {
                write_out::begin(file, at, piece.len())
                    .map_err(|cause| failed_named("write out", path.clone(), cause))?;
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), DeviceError> {
        if self.config.sync == FileSync::Dsync {
            return Ok(());
        }
        let (file, path) = self.current()?;
        file.sync_data().map_err(|cause| failed_named("sync", path.clone(), cause))
    }

    fn write_and_sync(
        &mut self,
        offset: u64,
        blocks: &[u8],
        now: &dyn Fn() -> u64,
    ) -> Result<DeviceTimes, DeviceError> {
        let begun = now();
        self.write(offset, blocks)?;
        let written = now().saturating_sub(begun);
        if self.config.sync == FileSync::Dsync {
            return Ok(DeviceTimes { write_ns: 0, sync_ns: written });
        }
        self.sync()?;
        Ok(DeviceTimes { write_ns: written, sync_ns: now().saturating_sub(begun + written) })
    }

    fn files(&self) -> Result<Vec<u64>, DeviceError> {
        self.place.files()
    }

    /// Syncs the file and drops what the page cache holds of it before the first read: after a
    /// failed sync the cache holds pages that the device never got.
    fn read(&self, file: u64, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError> {
        let mut reading = self.reading.borrow_mut();
        let path = self.place.path(file);
        if reading.as_ref().is_none_or(|(number, _)| *number != file) {
            let opened = File::open(&path).map_err(|cause| failed("open", &path, cause))?;
            opened.sync_data().map_err(|cause| failed("sync", &path, cause))?;
            posix_fadvise(&opened, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
                .map_err(|cause| failed("drop the cache of", &path, cause.into()))?;
            *reading = Some((file, opened));
        }
        let Some((_, opened)) = reading.as_ref() else { return Ok(0) };
        loop {
            match opened.read_at(into, offset) {
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                other => return other.map_err(|cause| failed("read", &path, cause)),
            }
        }
    }

    fn describe(&self) -> String {
        let sync = match self.config.sync {
            FileSync::Fdatasync => "fdatasync",
            FileSync::Dsync => "O_DSYNC",
        };
        format!("file log in «{}», {sync}, blocks of {} bytes", self.place.0.display(), self.config.block_bytes)
    }
}

/// Makes files in a directory.
pub(super) struct Maker {
    pub(super) place: Place,
    pub(super) file_bytes: u64,
}

impl FileMaker for Maker {
    fn make(&mut self, file: u64, recycle: Option<u64>) -> Result<(), DeviceError> {
        let path = self.place.path(file);
        match fs::metadata(&path) {
            Ok(there) if there.len() == self.file_bytes => return Ok(()),
            Ok(there) => {
                return Err(DeviceError::Unsupported {
                    what: format!("«{}»", path.display()),
                    wish: format!("be a log file of {} bytes", self.file_bytes),
                    why: format!("it has {}", there.len()),
                    advice: "Move it away, or open the log with files of that size".into(),
                });
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => return Err(failed("look at", &path, cause)),
        }
        match recycle {
            Some(old) => {
                let old = self.place.path(old);
                fs::rename(&old, &path).map_err(|cause| failed("rename", &old, cause))?;
            }
            None => self.make_new(&path)?,
        }
        self.place.sync()
    }
}

impl Maker {
    fn make_new(&self, path: &Path) -> Result<(), DeviceError> {
        let new = path.with_extension("log.new");
        let made = self.fill(&new);
        if made.is_err() {
            // Its space is given back; that it could not be made is what is told.
            let _ = fs::remove_file(&new);
        }
        made?;
        fs::rename(&new, path).map_err(|cause| failed("rename", &new, cause))
    }

    fn fill(&self, path: &Path) -> Result<(), DeviceError> {
        let file = File::create(path).map_err(|cause| failed("create", path, cause))?;
        let length = libc::off_t::try_from(self.file_bytes).unwrap_or(libc::off_t::MAX);
        match posix_fallocate(&file, 0, length) {
            // Not every filesystem can; the zeros below do the same, less well.
            Ok(()) | Err(nix::errno::Errno::EOPNOTSUPP | nix::errno::Errno::EINVAL) => {}
            Err(cause) => return Err(failed("preallocate", path, cause.into())),
        }
        let zeros = vec![0; 1 << 20];
        let mut at = 0;
        while at < self.file_bytes {
            let more = usize::try_from(self.file_bytes - at).unwrap_or(zeros.len()).min(zeros.len());
            file.write_all_at(&zeros[..more], at).map_err(|cause| failed("write to", path, cause))?;
            at += more as u64;
        }
        file.sync_all().map_err(|cause| failed("sync", path, cause))
    }
}
