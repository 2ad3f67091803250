//! Log files mapped from persistent memory: a commit is durable when its cache lines are written back, without
//! a system call. A tmpfs may stand in for persistent memory; it survives nothing and is labelled so.

use std::path::Path;

use loadline_storage::{Access, Backing, Flush, PmemMap, open_file};

use super::directory::{LogDir, open_to_read, read_at};
use super::{DeviceError, FileMaker, LogDevice};

/// Size of a block, bytes. Persistent memory has no blocks; small ones waste less.
const BLOCK: usize = 512;

/// A log in a directory of persistent memory.
#[derive(Debug)]
pub struct PmemDevice {
    dir: LogDir,
    backing: Backing,
    flush: Flush,
    map: Option<PmemMap>,
    /// Range stored since the last sync.
    dirty: Option<(u64, u64)>,
}

impl PmemDevice {
    /// Opens the existing directory `dir`, which must be on persistent memory (DAX) or a tmpfs, for log files of so many bytes.
    ///
    /// # Errors
    /// It is on neither, or the CPU is not x86-64.
    pub fn open(dir: &Path, file_bytes: u64) -> Result<PmemDevice, DeviceError> {
        let probe = dir.join("mapping.probe");
        // A leftover of a killed process.
        let _ = std::fs::remove_file(&probe);
        let file = open_file(&probe, Access { create_new: true, ..Access::default() })?;
        let mapped = PmemMap::map(&file, dir, 4096);
        let _ = std::fs::remove_file(&probe);
        let mapped = mapped?;
        let (backing, flush) = (mapped.backing, mapped.flush);
        Ok(PmemDevice { dir: LogDir { path: dir.to_owned(), file_bytes }, backing, flush, map: None, dirty: None })
    }
}

impl LogDevice for PmemDevice {
    fn block_bytes(&self) -> usize {
        BLOCK
    }

    fn file_bytes(&self) -> u64 {
        self.dir.file_bytes
    }

    fn file_maker(&self) -> Box<dyn FileMaker> {
        Box::new(self.dir.clone())
    }

    fn open_file(&mut self, file: u64) -> Result<(), DeviceError> {
        (self.map, self.dirty) = (None, None);
        self.dir.make(file, None)?;
        let path = self.dir.file(file);
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
        let path = self.dir.file(file);
        read_at(&open_to_read(&path)?, &path, offset, into)
    }

    fn describe(&self) -> String {
        let (dir, backing, flush) = (self.dir.path.display(), self.backing.label(), self.flush.name());
        format!("mapped log in {dir}, {backing}, {flush} and sfence, blocks of {BLOCK} B")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::testing::{TinyLog, recover};
    use loadline_storage::{AlignedBuf, PAGE};

    const FILE: u64 = 16384;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_log_in_mapped_memory_is_read_back_and_is_labelled() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let mut device = PmemDevice::open(dir.path(), FILE).unwrap();
        let described = device.describe();
        assert!(described.contains("stand-in") && described.contains("no persistent memory"), "{described}");
        assert!(device.sync().unwrap_err().to_string().contains("no log file is open"));
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
        assert_eq!(std::fs::metadata(dir.path().join("redo-0000000000.log")).unwrap().len(), FILE);
        let device = PmemDevice::open(dir.path(), FILE).unwrap();
        assert_eq!(recover(&device).unwrap().len(), 75);
        let mut some = [0; 600];
        assert_eq!(device.read(2, 12790, &mut some).unwrap(), 600);
        assert_eq!((some[9], some[10]), (1, 0));
    }

    #[test]
    fn a_disk_is_refused_with_advice() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        match PmemDevice::open(dir.path(), FILE) {
            Err(error) => assert!(error.to_string().contains("a log file with fdatasync instead"), "{error}"),
            // A developer's machine may have persistent memory.
            Ok(device) => assert_eq!(device.backing, Backing::Dax),
        }
        assert!(!dir.path().join("mapping.probe").exists());
    }
}
