//! Log files mapped from persistent memory: a commit is durable when its cache lines are written back, without
//! a system call. A tmpfs may stand in for persistent memory; it survives nothing and is labelled so.

use std::fs::File;
use std::path::Path;

use loadline_storage::{Access, Backing, Flush, PmemMap, open_file};

use super::directory::{DirMaker, LogDir, read_at};
use super::{DeviceError, FileMaker, LogDevice};

/// Settings of a [`PmemDevice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmemOptions {
    /// Size of each log file, bytes.
    pub file_bytes: u64,
    /// Size of a block, bytes. Persistent memory has no blocks; small ones waste less.
    pub block_bytes: usize,
}

impl Default for PmemOptions {
    fn default() -> Self {
        Self { file_bytes: 64 << 20, block_bytes: 512 }
    }
}

/// A log in a directory of persistent memory.
#[derive(Debug)]
pub struct PmemDevice {
    dir: LogDir,
    file_bytes: u64,
    block_bytes: usize,
    backing: Backing,
    flush: Flush,
    map: Option<PmemMap>,
    /// Range stored since the last sync.
    dirty: Option<(u64, u64)>,
}

impl PmemDevice {
    /// Opens the existing directory `dir`, which must be on persistent memory (DAX) or a tmpfs.
    ///
    /// # Errors
    /// It is on neither, the CPU is not x86-64, or the sizes do not fit.
    pub fn open(dir: &Path, options: PmemOptions) -> Result<PmemDevice, DeviceError> {
        let PmemOptions { file_bytes, block_bytes } = options;
        let refuse = |why: &str, advice: &str| DeviceError::Unsupported {
            what: dir.display().to_string(),
            wish: format!("hold log files of {file_bytes} bytes in blocks of {block_bytes} bytes in mapped memory"),
            why: why.to_owned(),
            advice: advice.to_owned(),
        };
        if !block_bytes.is_power_of_two() || !(512..=1 << 16).contains(&block_bytes) {
            return Err(refuse("a block is a power of two from 512 to 65536 bytes", "Use blocks of 512 bytes"));
        }
        let whole = file_bytes % block_bytes as u64 == 0 && file_bytes >= 4 * block_bytes as u64;
        if !whole || usize::try_from(file_bytes).is_err() {
            let why = "a file is a whole number of blocks, at least 4, and fits into memory";
            return Err(refuse(why, "Use files of 64 MiB"));
        }
        let probe = dir.join("mapping.probe");
        // A leftover of a killed process.
        let _ = std::fs::remove_file(&probe);
        let file = open_file(&probe, Access { create_new: true, ..Access::default() })?;
        let mapped = PmemMap::map(&file, &probe, 4096);
        let _ = std::fs::remove_file(&probe);
        let mapped = mapped.map_err(|e| match e {
            loadline_storage::DeviceError::Unsupported { why, .. } => {
                refuse(&why, "Name a directory on persistent memory, or use another log device")
            }
            other => other.into(),
        })?;
        let (backing, flush) = (mapped.backing, mapped.flush);
        Ok(PmemDevice { dir: LogDir(dir.to_owned()), file_bytes, block_bytes, backing, flush, map: None, dirty: None })
    }
}

impl LogDevice for PmemDevice {
    fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    fn file_maker(&self) -> Box<dyn FileMaker> {
        Box::new(DirMaker { dir: self.dir.clone(), file_bytes: self.file_bytes })
    }

    fn open_file(&mut self, file: u64) -> Result<(), DeviceError> {
        (self.map, self.dirty) = (None, None);
        self.file_maker().make(file, None)?;
        let path = self.dir.path(file);
        let opened = open_file(&path, Access::default())?;
        let size = usize::try_from(self.file_bytes()).unwrap_or_default();
        self.map = Some(PmemMap::map(&opened, &path, size)?);
        Ok(())
    }

    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
        let Some(map) = &mut self.map else { return Err(self.dir.no_file()) };
        map.store(offset, blocks)?;
        let end = offset + blocks.len() as u64;
        let (from, to) = self.dirty.unwrap_or((offset, end));
        self.dirty = Some((from.min(offset), to.max(end)));
        Ok(())
    }

    fn sync(&mut self) -> Result<(), DeviceError> {
        let Some(map) = &self.map else { return Err(self.dir.no_file()) };
        if let Some((from, to)) = self.dirty {
            map.persist(from, to - from)?;
            self.dirty = None;
        }
        Ok(())
    }

    fn files(&self) -> Result<Vec<u64>, DeviceError> {
        self.dir.files()
    }

    fn read(&self, file: u64, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError> {
        let path = self.dir.path(file);
        let source = File::open(&path).map_err(|cause| DeviceError::io("open", &path, cause))?;
        read_at(&source, &path, offset, into)
    }

    fn describe(&self) -> String {
        format!(
            "mapped log in {}, {}, {} and sfence, blocks of {} B",
            self.dir.0.display(),
            self.backing.label(),
            self.flush.name(),
            self.block_bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::testing::{TinyLog, recover};
    use loadline_storage::{AlignedBuf, PAGE};

    const OPTIONS: PmemOptions = PmemOptions { file_bytes: 16384, block_bytes: 512 };

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_log_in_mapped_memory_is_read_back_and_is_labelled() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let device = PmemDevice::open(dir.path(), OPTIONS).unwrap();
        let described = device.describe();
        assert!(described.contains("stand-in") && described.contains("no persistent memory"), "{described}");
        let mut log = TinyLog::open(device).unwrap();
        log.commits(75);
        assert_eq!(recover(&log.device).unwrap().len(), 75);
        let mut ones = AlignedBuf::new(PAGE).unwrap();
        ones.fill(1);
        log.device.write(8192, &ones).unwrap();
        log.device.write(12288, &ones[..512]).unwrap();
        assert_eq!(log.device.dirty, Some((8192, 12800)));
        log.device.sync().unwrap();
        assert_eq!(log.device.dirty, None);
        assert!(log.device.write(16384, &ones[..512]).is_err(), "past the end of the file");
        drop(log);
        assert_eq!(std::fs::metadata(dir.path().join("redo-0000000000.log")).unwrap().len(), OPTIONS.file_bytes);
        let device = PmemDevice::open(dir.path(), OPTIONS).unwrap();
        assert_eq!(recover(&device).unwrap().len(), 75);
        let mut some = [0; 600];
        assert_eq!(device.read(2, 12790, &mut some).unwrap(), 600);
        assert_eq!((some[9], some[10]), (1, 0));
    }

    #[test]
    fn a_disk_is_refused_with_advice() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        match PmemDevice::open(dir.path(), OPTIONS) {
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("mapped memory") && error.contains("use another log device"), "{error}");
            }
            // A developer's machine may have persistent memory.
            Ok(device) => assert_eq!(device.backing, Backing::Dax),
        }
        assert!(!dir.path().join("mapping.probe").exists());
    }

    #[test]
    fn impossible_sizes_are_refused() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        for bad in [PmemOptions { block_bytes: 100, ..OPTIONS }, PmemOptions { file_bytes: 1000, ..OPTIONS }] {
            assert!(PmemDevice::open(dir.path(), bad).unwrap_err().to_string().contains("Use"), "{bad:?}");
        }
        let mut device = PmemDevice::open(dir.path(), OPTIONS).unwrap();
        assert!(device.sync().unwrap_err().to_string().contains("no log file is open"));
    }
}
