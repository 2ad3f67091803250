//! A directory of log files: names, creation, errors. Shared by the file, direct and mapped devices.
//!
//! A file is created as `….log.new`, filled with zeros, synced, and then renamed, and the directory is
//! synced. So a file with its final name is ready, and a later sync of it changes no metadata. Files with
//! other names are never touched.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::posix_fallocate;

use super::{DeviceError, FileMaker};

/// New files are filled in writes of this size, bytes. The page cache may keep what one write brings as one unit (a large
/// folio), and each later write of a block costs time in proportion to its unit: with 1 MiB a durable commit took 3 % longer.
const FILL: usize = 64 << 10;

#[derive(Clone, Debug)]
pub(super) struct LogDir(pub(super) PathBuf);

impl LogDir {
    pub(super) fn path(&self, file: u64) -> PathBuf {
        self.0.join(format!("redo-{file:010}.log"))
    }

    fn number(name: &str) -> Option<u64> {
        let digits = name.strip_prefix("redo-")?.strip_suffix(".log")?;
        let number = digits.parse().ok()?;
        (format!("{number:010}") == digits).then_some(number)
    }

    pub(super) fn files(&self) -> Result<Vec<u64>, DeviceError> {
        let failed = |cause| DeviceError::io("list", &self.0, cause);
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(failed)? {
            numbers.extend(entry.map_err(failed)?.file_name().to_str().and_then(LogDir::number));
        }
        Ok(numbers)
    }

    fn sync(&self) -> Result<(), DeviceError> {
        File::open(&self.0).and_then(|dir| dir.sync_all()).map_err(|cause| DeviceError::io("sync", &self.0, cause))
    }

    /// The error of a device that is used before `open_file`.
    pub(super) fn no_file(&self) -> DeviceError {
        DeviceError::Unsupported {
            what: self.0.display().to_string(),
            wish: "be written".to_owned(),
            why: "no log file is open".to_owned(),
            advice: "This is a defect of loadline: please report it".to_owned(),
        }
    }
}

/// Writes all of `blocks` at `offset`.
pub(super) fn write_all(file: &File, path: &Path, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
    let mut written = 0;
    while let Some(rest) = blocks.get(written..).filter(|rest| !rest.is_empty()) {
        match file.write_at(rest, offset + written as u64) {
            Ok(0) => {
                let what = path.display().to_string();
                return Err(DeviceError::Short { what, offset, asked: blocks.len(), written });
            }
            Ok(more) => written += more,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(DeviceError::io("write to", path, cause)),
        }
    }
    Ok(())
}

/// Reads once from `offset`: the number of bytes, 0 at the end of the file.
pub(super) fn read_at(file: &File, path: &Path, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError> {
    loop {
        match file.read_at(into, offset) {
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map_err(|cause| DeviceError::io("read", path, cause)),
        }
    }
}

/// Creates log files in a directory.
pub(super) struct DirMaker {
    pub(super) dir: LogDir,
    pub(super) file_bytes: u64,
}

impl FileMaker for DirMaker {
    fn make(&mut self, file: u64, recycle: Option<u64>) -> Result<(), DeviceError> {
        let path = self.dir.path(file);
        match fs::metadata(&path) {
            Ok(found) if found.len() == self.file_bytes => return Ok(()),
            Ok(found) => {
                return Err(DeviceError::Unsupported {
                    what: format!("'{}'", path.display()),
                    wish: format!("be a log file of {} bytes", self.file_bytes),
                    why: format!("it has {}", found.len()),
                    advice: "Move it away, or open the log with files of that size".into(),
                });
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => return Err(DeviceError::io("look at", &path, cause)),
        }
        match recycle {
            Some(old) => {
                let old = self.dir.path(old);
                fs::rename(&old, &path).map_err(|cause| DeviceError::io("rename", &old, cause))?;
            }
            None => self.make_new(&path)?,
        }
        self.dir.sync()
    }
}

impl DirMaker {
    fn make_new(&self, path: &Path) -> Result<(), DeviceError> {
        let new = path.with_extension("log.new");
        self.fill(&new).inspect_err(|_| {
            // Frees its space; the first error is the one to report.
            let _ = fs::remove_file(&new);
        })?;
        fs::rename(&new, path).map_err(|cause| DeviceError::io("rename", &new, cause))
    }

    fn fill(&self, path: &Path) -> Result<(), DeviceError> {
        let file = File::create(path).map_err(|cause| DeviceError::io("create", path, cause))?;
        let length = libc::off_t::try_from(self.file_bytes).unwrap_or(libc::off_t::MAX);
        match posix_fallocate(&file, 0, length) {
            // Where the filesystem cannot, the zeros below allocate the blocks.
            Ok(()) | Err(nix::errno::Errno::EOPNOTSUPP | nix::errno::Errno::EINVAL) => {}
            Err(cause) => return Err(DeviceError::io("preallocate", path, cause.into())),
        }
        let zeros = vec![0; FILL];
        let mut at = 0;
        while at < self.file_bytes {
            let more = usize::try_from(self.file_bytes - at).unwrap_or(zeros.len()).min(zeros.len());
            file.write_all_at(&zeros[..more], at).map_err(|cause| DeviceError::io("write to", path, cause))?;
            at += more as u64;
        }
        file.sync_all().map_err(|cause| DeviceError::io("sync", path, cause))
    }
}
