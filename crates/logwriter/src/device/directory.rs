//! A directory of log files of one size: their names, and making them ready.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loadline_device::{Access, AlignedBuf, open_file, preallocate};

use crate::device::{DeviceError, FileMaker};

const CHUNK: usize = 1 << 20;
const PREFIX: &str = "redo-";
const UNFINISHED: &str = "unfinished";

/// A directory that this process alone writes a log to.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    file_bytes: u64,
    /// Held for as long as anyone uses the directory.
    _lock: Arc<File>,
}

/// Tells what went wrong with what, and what to do about it.
pub(crate) fn failed(action: &'static str, what: &Path, source: io::Error) -> DeviceError {
    use io::ErrorKind as K;
    let advice = match source.kind() {
        K::NotFound => "Check that it is there",
        K::PermissionDenied => "Check that this user may do so",
        K::StorageFull | K::QuotaExceeded | K::FileTooLarge => {
            "Free some space, or make the log files smaller or fewer"
        }
        K::ReadOnlyFilesystem => "Name a directory on a filesystem that can be written",
        _ => "See the system's log for what the storage says of it",
    };
    DeviceError::Io { action, what: what.display().to_string(), source, advice: advice.to_owned() }
}

impl From<loadline_device::DeviceError> for DeviceError {
    fn from(error: loadline_device::DeviceError) -> Self {
        use loadline_device::{DeviceError as E, Step};
        match error {
            E::Io { step, path, cause } => {
                let action = match step {
                    Step::Read => "read",
                    Step::Create => "make",
                    Step::Open => "open",
                    Step::Preallocate => "preallocate",
                    Step::Write => "write",
                    Step::Sync => "sync",
                    Step::Map => "map",
                    _ => "use io_uring on",
                };
                failed(action, &path, cause)
            }
            E::Unsupported { what, path, why } => DeviceError::Unsupported {
                what: path.display().to_string(),
                wish: format!("be used with {what}"),
                why,
                advice: "Choose another log device or another directory".to_owned(),
            },
            other => DeviceError::Unsupported {
                what: "the log device".to_owned(),
                wish: "do what it was asked".to_owned(),
                why: other.to_string(),
                advice: "Use smaller log files or a smaller buffer".to_owned(),
            },
        }
    }
}

impl Directory {
    /// Takes `path` for a log whose files have `file_bytes` each.
    ///
    /// # Errors
    /// It is not there or cannot be written, another process uses it, or its files have another size.
    pub(crate) fn open(path: &Path, file_bytes: u64) -> Result<Directory, DeviceError> {
        let refuse = |why: String, advice: &str| DeviceError::Unsupported {
            what: path.display().to_string(),
            wish: "hold this log".to_owned(),
            why,
            advice: advice.to_owned(),
        };
        let place = path.join("lock");
        let lock = File::options().create(true).append(true).open(&place).map_err(|e| failed("make", &place, e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(refuse(
                    "a log in it is open already".into(),
                    "Close that first, or name another directory",
                ));
            }
            Err(fs::TryLockError::Error(e)) => return Err(failed("lock", &place, e)),
        }
        let directory = Directory { path: path.to_owned(), file_bytes, _lock: Arc::new(lock) };
        for file in directory.files()? {
            let place = directory.place(file);
            let size = fs::metadata(&place).map_err(|e| failed("look at", &place, e))?.len();
            if size != file_bytes {
                let why = format!("its files have {size} bytes, not {file_bytes}");
                return Err(refuse(why, "Open it with the size it was made with, or name an empty directory"));
            }
        }
        Ok(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The path of log file `file`.
    pub(crate) fn place(&self, file: u64) -> PathBuf {
        self.path.join(format!("{PREFIX}{file:012}"))
    }

    /// The numbers of the log files there are.
    pub(crate) fn files(&self) -> Result<Vec<u64>, DeviceError> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(|e| failed("list", &self.path, e))? {
            let name = entry.map_err(|e| failed("list", &self.path, e))?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).map(str::parse);
            if let Some(Ok(number)) = number {
                found.push(number);
            }
        }
        Ok(found)
    }

    /// Opens a log file, which is made first if it is not there.
    pub(crate) fn open_log_file(&self, file: u64, access: Access) -> Result<File, DeviceError> {
        let mut maker = self.maker();
        maker.make(file, None)?;
        Ok(open_file(&self.place(file), access)?)
    }

    pub(crate) fn maker(&self) -> Maker {
        Maker { directory: self.clone() }
    }

    fn sync(&self) -> Result<(), DeviceError> {
        File::open(&self.path).and_then(|dir| dir.sync_all()).map_err(|e| failed("sync", &self.path, e))
    }
}

/// Makes log files ready in a directory.
#[derive(Debug)]
pub(crate) struct Maker {
    directory: Directory,
}

impl FileMaker for Maker {
    fn make(&mut self, file: u64, recycle: Option<u64>) -> Result<(), DeviceError> {
        let place = self.directory.place(file);
        if place.exists() {
            return Ok(());
        }
        if let Some(old) = recycle.map(|old| self.directory.place(old)).filter(|old| old.exists()) {
            fs::rename(&old, &place).map_err(|e| failed("rename", &old, e))?;
            return self.directory.sync();
        }
        // Under another name until it is ready: a file with the right name is always a whole one.
        let unfinished = self.directory.path.join(UNFINISHED);
        match fs::remove_file(&unfinished) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed("remove", &unfinished, e)),
            _ => {}
        }
        let made = self.fill(&unfinished);
        if made.is_err() {
            // It may have filled up the disk.
            let _ = fs::remove_file(&unfinished);
        }
        made?;
        fs::rename(&unfinished, &place).map_err(|e| failed("rename", &unfinished, e))?;
        self.directory.sync()
    }
}

impl Maker {
    fn fill(&self, path: &Path) -> Result<(), DeviceError> {
        let file = open_file(path, Access { create_new: true, ..Access::default() })?;
        let size = self.directory.file_bytes;
        match preallocate(&file, size) {
            Err(e) if e.raw_os_error() != Some(libc::EOPNOTSUPP) => return Err(failed("preallocate", path, e)),
            _ => {}
        }
        // Blocks that are reserved only are turned into written ones at their first write, and the
        // sync of that write has to write metadata.
        let zeros = AlignedBuf::new(CHUNK)?;
        let mut at = 0;
        while at < size {
            let length = usize::try_from(size - at).unwrap_or(CHUNK).min(CHUNK);
            file.write_all_at(zeros.get(..length).unwrap_or_default(), at).map_err(|e| failed("write", path, e))?;
            at += length as u64;
        }
        file.sync_all().map_err(|e| failed("sync", path, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_made_whole_listed_and_recycled() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::open(dir.path(), 8192).unwrap();
        fs::write(dir.path().join(UNFINISHED), "left over").unwrap();
        let mut maker = directory.maker();
        for file in [0, 1] {
            maker.make(file, None).unwrap();
        }
        fs::write(directory.place(0), vec![7; 8192]).unwrap();
        maker.make(0, None).unwrap();
        assert_eq!(fs::read(directory.place(0)).unwrap(), vec![7; 8192], "a ready file is left alone");
        maker.make(2, Some(0)).unwrap();
        maker.make(3, Some(0)).unwrap();
        let mut files = directory.files().unwrap();
        files.sort_unstable();
        assert_eq!(files, [1, 2, 3]);
        assert_eq!(fs::read(directory.place(2)).unwrap(), vec![7; 8192]);
        assert_eq!(fs::read(directory.place(3)).unwrap(), vec![0; 8192]);
        assert!(!dir.path().join(UNFINISHED).exists());
    }

    #[test]
    fn a_directory_is_for_one_log_of_one_size() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::open(dir.path(), 8192).unwrap();
        directory.maker().make(0, None).unwrap();
        let error = Directory::open(dir.path(), 8192).unwrap_err().to_string();
        assert!(error.contains("is open already"), "{error}");
        drop(directory);
        let error = Directory::open(dir.path(), 4096).unwrap_err().to_string();
        assert!(error.contains("its files have 8192 bytes, not 4096"), "{error}");
        let error = Directory::open(&dir.path().join("none"), 4096).unwrap_err().to_string();
        assert!(error.contains("none") && error.contains("Check that it is there"), "{error}");
    }

    #[test]
    fn a_file_that_finds_no_space_is_not_left_behind() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let directory = Directory::open(dir.path(), 1 << 60).unwrap();
        let error = directory.maker().make(0, None).unwrap_err().to_string();
        assert!(error.contains("preallocate") && error.contains("Free some space"), "{error}");
        assert!(directory.files().unwrap().is_empty());
        assert!(!dir.path().join(UNFINISHED).exists());
    }
}
