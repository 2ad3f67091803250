//! A directory of log files: names, creation, errors. Shared by the file and mapped devices.
//!
//! A file is created as `….log.new`, filled with zeros, synced, and then renamed, and the directory is
//! synced. So a file with its final name is ready, and a later sync of it changes no metadata. Files with
//! other names are never touched.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use loadline_storage::{Step, preallocate};

use super::{DeviceError, FileMaker};

/// New files are filled in writes of this size, bytes. The page cache may keep what one write brings as one unit (a large
/// folio), and each later write of a block costs time in proportion to its unit: with 1 MiB a durable commit took 3 % longer.
const FILL: usize = 64 << 10;

#[derive(Clone, Debug)]
pub(super) struct LogDir {
    pub(super) path: PathBuf,
    /// Size of each log file, bytes.
    pub(super) file_bytes: u64,
}

impl LogDir {
    /// Path of the log file of this number.
    pub(super) fn file(&self, number: u64) -> PathBuf {
        self.path.join(format!("redo-{number:010}.log"))
    }

    fn number(name: &str) -> Option<u64> {
        let digits = name.strip_prefix("redo-")?.strip_suffix(".log")?;
        let number = digits.parse().ok()?;
        (format!("{number:010}") == digits).then_some(number)
    }

    pub(super) fn files(&self) -> Result<Vec<u64>, DeviceError> {
        let failed = |cause| DeviceError::io(Step::Read, &self.path, cause);
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            numbers.extend(entry.map_err(failed)?.file_name().to_str().and_then(LogDir::number));
        }
        Ok(numbers)
    }

    /// The error of a device that is used before `open_file`.
    pub(super) fn no_file(&self) -> DeviceError {
        DeviceError::Unsupported {
            what: self.path.display().to_string(),
            wish: "be written".to_owned(),
            why: "no log file is open".to_owned(),
            advice: "This is an internal error: please report it".to_owned(),
        }
    }

    fn make_new(&self, path: &Path) -> Result<(), DeviceError> {
        let new = path.with_extension("log.new");
        self.fill(&new).inspect_err(|_| {
            // Frees its space; the first error is the one to report.
            let _ = fs::remove_file(&new);
        })?;
        fs::rename(&new, path).map_err(|cause| DeviceError::io(Step::Rename, &new, cause))
    }

    fn fill(&self, path: &Path) -> Result<(), DeviceError> {
        let failed = |step, cause: io::Error| DeviceError::io(step, path, cause);
        let file = File::create(path).map_err(|cause| failed(Step::Create, cause))?;
        match preallocate(&file, self.file_bytes) {
            // Where the filesystem cannot, the zeros below allocate the blocks.
            Err(cause) if !matches!(cause.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL)) => {
                return Err(failed(Step::Preallocate, cause));
            }
            _ => {}
        }
        let zeros = vec![0; FILL];
        for at in (0..self.file_bytes).step_by(FILL) {
            let more = usize::try_from(self.file_bytes - at).unwrap_or(FILL).min(FILL);
            file.write_all_at(&zeros[..more], at).map_err(|cause| failed(Step::Write, cause))?;
        }
        file.sync_all().map_err(|cause| failed(Step::Sync, cause))
    }
}

/// Opens a log file for reading only.
pub(super) fn open_to_read(path: &Path) -> Result<File, DeviceError> {
    File::open(path).map_err(|cause| DeviceError::io(Step::Open, path, cause))
}

/// Reads once from `offset`: the number of bytes, 0 at the end of the file.
pub(super) fn read_at(file: &File, path: &Path, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError> {
    loop {
        match file.read_at(into, offset) {
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map_err(|cause| DeviceError::io(Step::Read, path, cause)),
        }
    }
}

impl FileMaker for LogDir {
    fn make(&mut self, file: u64, recycle: Option<u64>) -> Result<(), DeviceError> {
        let path = self.file(file);
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
            Err(cause) => return Err(DeviceError::io(Step::Read, &path, cause)),
        }
        match recycle.map(|old| self.file(old)) {
            Some(old) => fs::rename(&old, &path).map_err(|cause| DeviceError::io(Step::Rename, &old, cause))?,
            None => self.make_new(&path)?,
        }
        let synced = File::open(&self.path).and_then(|dir| dir.sync_all());
        synced.map_err(|cause| DeviceError::io(Step::Sync, &self.path, cause))
    }
}
