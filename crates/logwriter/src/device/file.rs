//! Log files in a directory, written through the page cache or with `O_DIRECT`.

use std::cell::RefCell;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use loadline_storage::{
    Access, AlignedBuf, PAGE, Step, SyncRing, direct_alignment, drop_cached, io_uring_available, open_file,
    start_writing,
};

use super::directory::{LogDir, open_to_read, read_at};
use super::{DeviceError, DeviceTimes, FileMaker, LogDevice, write_then_sync};

/// How a write becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSync {
    /// A write, then `fdatasync`: through io_uring as one submission.
    Fdatasync,
    /// `O_DSYNC`: each write is durable when it returns. Devices with FUA need one command for it instead of a write and a
    /// flush. Through the page cache, writes whose sync comes later, and those of 1 MiB and more, go to a second descriptor
    /// without it and are synced with `fdatasync`: else each would wait for the device before the next is copied.
    Dsync,
}

/// The system interface of `O_DIRECT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// io_uring if the kernel allows it, otherwise system calls; [`LogDevice::describe`] then says why.
    Auto,
    /// pwrite and fdatasync.
    SystemCalls,
}

/// Settings of a [`FileDevice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileConfig {
    /// Size of a log file, bytes: a multiple of the block.
    pub file_bytes: u64,
    /// Size of a block, bytes: a power of two from 512 to 65536. If it is smaller than a page (4 KiB), the
    /// kernel must read the page before it changes a part of it, unless the page is cached.
    pub block_bytes: usize,
    /// Way to make writes durable.
    pub sync: FileSync,
    /// `O_DIRECT`; `None`: through the page cache.
    pub direct: Option<Via>,
}

impl Default for FileConfig {
    fn default() -> Self {
        Self { file_bytes: 64 << 20, block_bytes: 4096, sync: FileSync::Fdatasync, direct: None }
    }
}

struct Current {
    path: PathBuf,
    file: File,
    /// Handle of a cached file with `O_DSYNC`, if that is how writes become durable.
    dsync: Option<File>,
    /// Bytes were written to `file` that are not synced.
    unsynced: bool,
}

/// A log in a directory.
pub struct FileDevice {
    dir: LogDir,
    config: FileConfig,
    ring: Option<SyncRing>,
    /// Why there is no ring, if one was requested.
    no_ring: Option<String>,
    current: Option<Current>,
    reading: RefCell<Option<(u64, File)>>,
}

impl FileDevice {
    /// A log in the existing directory `dir`. Writes nothing yet.
    ///
    /// # Errors
    /// `dir` is not a directory or cannot be read, or its filesystem has no `O_DIRECT` or does not take the block size.
    pub fn open(dir: &Path, config: &FileConfig) -> Result<Self, DeviceError> {
        fs::read_dir(dir).map_err(|cause| DeviceError::io(Step::Open, dir, cause))?;
        if config.direct.is_some() {
            let smallest = smallest_block(dir)?;
            if !config.block_bytes.is_multiple_of(smallest) {
                return Err(DeviceError::Unsupported {
                    what: dir.display().to_string(),
                    wish: format!("be written with O_DIRECT in blocks of {} bytes", config.block_bytes),
                    why: format!("its filesystem takes multiples of {smallest} bytes"),
                    advice: format!("Use blocks of {smallest} bytes, or a larger power of two up to 65536"),
                });
            }
        }
        let ring = || io_uring_available().and_then(|()| SyncRing::new().map_err(|e| e.to_string()));
        let (ring, no_ring) = match (config.direct == Some(Via::Auto)).then(ring) {
            Some(Ok(ring)) => (Some(ring), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        let dir = LogDir { path: dir.to_owned(), file_bytes: config.file_bytes };
        Ok(Self { dir, config: *config, ring, no_ring, current: None, reading: RefCell::new(None) })
    }

    fn current(&mut self) -> Result<(&mut Current, Option<&mut SyncRing>), DeviceError> {
        let current = self.current.as_mut().ok_or_else(|| self.dir.no_file())?;
        Ok((current, self.ring.as_mut()))
    }

    /// Opens a file for reading. Of a cached one the pages are dropped first: after a failed sync the cache holds pages that
    /// never reached the device.
    fn open_to_read(&self, path: &Path) -> Result<File, DeviceError> {
        if self.config.direct.is_some() {
            return Ok(open_file(path, Access { direct: true, ..Access::default() })?);
        }
        let opened = open_to_read(path)?;
        opened.sync_data().map_err(|cause| DeviceError::io(Step::Sync, path, cause))?;
        drop_cached(&opened).map_err(|cause| DeviceError::io(Step::Read, path, cause))?;
        Ok(opened)
    }
}

/// The smallest block that `O_DIRECT` takes in `dir`, measured with a temporary file.
fn smallest_block(dir: &Path) -> Result<usize, DeviceError> {
    let path = dir.join("alignment.probe");
    // A leftover of a killed process.
    let _ = fs::remove_file(&path);
    let file = open_file(&path, Access { direct: true, create_new: true, ..Access::default() });
    let _ = fs::remove_file(&path);
    let file = file.map_err(|e| match e {
        loadline_storage::DeviceError::Unsupported { .. } => DeviceError::Unsupported {
            what: dir.display().to_string(),
            wish: "be written with O_DIRECT".to_owned(),
            why: "its filesystem does not support it".to_owned(),
            advice: "Use device=fdatasync, or another directory".to_owned(),
        },
        e => e.into(),
    })?;
    let stated = direct_alignment(&file);
    // A page always works if the filesystem does not say.
    Ok(stated.map_or(PAGE, |a| (a.offset.max(a.memory) as usize).next_power_of_two().max(512)))
}

fn write_all(file: &File, path: &Path, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
    file.write_all_at(blocks, offset).map_err(|cause| DeviceError::io(Step::Write, path, cause))
}

/// Large cached writes are split into pieces of this size, bytes. The device writes one piece while the next is
/// copied to the page cache.
const WRITE_OUT: usize = 1 << 20;
/// Most bytes of a direct read.
const CHUNK: usize = 1 << 20;

impl LogDevice for FileDevice {
    fn block_bytes(&self) -> usize {
        self.config.block_bytes
    }

    fn file_bytes(&self) -> u64 {
        self.dir.file_bytes
    }

    fn file_maker(&self) -> Box<dyn FileMaker> {
        Box::new(self.dir.clone())
    }

    fn open_file(&mut self, file: u64) -> Result<(), DeviceError> {
        self.dir.make(file, None)?;
        let path = self.dir.file(file);
        let (direct, is_dsync) = (self.config.direct.is_some(), self.config.sync == FileSync::Dsync);
        let open = |dsync| open_file(&path, Access { direct, dsync, create_new: false });
        let file = open(direct && is_dsync)?;
        let dsync = if is_dsync && !direct { Some(open(true)?) } else { None };
        self.current = Some(Current { file, dsync, unsynced: false, path });
        Ok(())
    }

    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
        let FileConfig { direct, sync, .. } = self.config;
        let (Current { path, file, unsynced, .. }, ring) = self.current()?;
        *unsynced |= direct.is_none() || sync == FileSync::Fdatasync;
        if let Some(ring) = ring {
            return Ok(ring.write(file, path, blocks, offset)?);
        }
        if direct.is_some() {
            return write_all(file, path, offset, blocks);
        }
        for (number, piece) in blocks.chunks(WRITE_OUT).enumerate() {
            let at = offset + (number * WRITE_OUT) as u64;
            write_all(file, path, at, piece)?;
            // Not for small groups: their sync follows at once. Where it is not possible, the sync has more to do.
            if piece.len() == WRITE_OUT
                && let Err(cause) = start_writing(file, &(at..at + WRITE_OUT as u64))
                && !matches!(cause.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL | libc::EOPNOTSUPP | libc::ESPIPE))
            {
                return Err(DeviceError::io(Step::Write, path, cause));
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), DeviceError> {
        let (Current { path, file, unsynced, .. }, _) = self.current()?;
        if *unsynced {
            file.sync_data().map_err(|cause| DeviceError::io(Step::Sync, path, cause))?;
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
        let FileConfig { direct, sync, .. } = self.config;
        let begun = now();
        let (Current { path, file, dsync, unsynced }, ring) = self.current()?;
        match (ring, sync, dsync) {
            (Some(ring), FileSync::Dsync, _) => ring.write(file, path, blocks, offset)?,
            (Some(ring), FileSync::Fdatasync, _) => ring.write_sync(file, path, blocks, offset)?,
            (None, FileSync::Dsync, None) if direct.is_some() => write_all(file, path, offset, blocks)?,
            (None, _, Some(dsync)) if !*unsynced && blocks.len() < WRITE_OUT => write_all(dsync, path, offset, blocks)?,
            _ => return write_then_sync(self, offset, blocks, begun, now),
        }
        *unsynced = false;
        Ok(DeviceTimes { write_ns: 0, sync_ns: now().saturating_sub(begun) })
    }

    fn files(&self) -> Result<Vec<u64>, DeviceError> {
        self.dir.files()
    }

    fn read(&self, file: u64, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError> {
        let (mut reading, path) = (self.reading.borrow_mut(), self.dir.file(file));
        let opened = match reading.take().filter(|(number, _)| *number == file) {
            Some((_, opened)) => opened,
            None => self.open_to_read(&path)?,
        };
        let (_, opened) = reading.insert((file, opened));
        if self.config.direct.is_none() {
            return read_at(opened, &path, offset, into);
        }
        let block = self.config.block_bytes as u64;
        let from = offset / block * block;
        let skip = usize::try_from(offset - from).unwrap_or_default();
        let length = (skip + into.len()).next_multiple_of(self.config.block_bytes).min(CHUNK);
        let mut bounce = AlignedBuf::new(length)?;
        let read = read_at(opened, &path, from, &mut bounce)?;
        let found = bounce.get(skip..read).unwrap_or_default();
        let length = found.len().min(into.len());
        into[..length].copy_from_slice(&found[..length]);
        Ok(length)
    }

    fn describe(&self) -> String {
        let FileConfig { block_bytes, sync, direct, .. } = self.config;
        let dir = self.dir.path.display();
        if direct.is_none() {
            let sync = match sync {
                FileSync::Fdatasync => "fdatasync",
                FileSync::Dsync => "O_DSYNC (fdatasync from 1 MiB on)",
            };
            return format!("file log in '{dir}', {sync}, blocks of {block_bytes} bytes");
        }
        let how = match (&self.ring, sync) {
            (Some(_), FileSync::Dsync) => "O_DIRECT and O_DSYNC through io_uring",
            (Some(_), FileSync::Fdatasync) => "O_DIRECT, write linked with fdatasync through io_uring",
            (None, FileSync::Dsync) => "O_DIRECT and O_DSYNC, pwrite",
            (None, FileSync::Fdatasync) => "O_DIRECT, pwrite and fdatasync",
        };
        let why = self.no_ring.as_ref().map_or_else(String::new, |why| format!(" because {why}"));
        format!("direct log in {dir}, {how}{why}, blocks of {block_bytes} B")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::testing::{TinyLog, recover};

    const DIRECT: [(FileSync, Option<Via>); 4] = [
        (FileSync::Dsync, Some(Via::Auto)),
        (FileSync::Fdatasync, Some(Via::Auto)),
        (FileSync::Dsync, Some(Via::SystemCalls)),
        (FileSync::Fdatasync, Some(Via::SystemCalls)),
    ];

    /// More than new files are filled by at once, and no multiple of it.
    const FILE: u64 = 96 << 10;

    fn here() -> tempfile::TempDir {
        tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
    }

    fn open(dir: &Path, (sync, direct): (FileSync, Option<Via>)) -> FileDevice {
        FileDevice::open(dir, &FileConfig { file_bytes: FILE, sync, direct, ..FileConfig::default() }).unwrap()
    }

    #[test]
    fn every_cached_write_is_synced_once_and_only_small_ones_at_once() {
        let blocks: Vec<u8> = (0..WRITE_OUT * 2).map(|at| (at / 4096) as u8).collect();
        for sync in [FileSync::Fdatasync, FileSync::Dsync] {
            let dir = here();
            let config = FileConfig { file_bytes: 4 << 20, sync, ..FileConfig::default() };
            let mut device = FileDevice::open(dir.path(), &config).unwrap();
            device.open_file(0).unwrap();
            let now = || 0;
            let unsynced = |device: &mut FileDevice| device.current().unwrap().0.unsynced;
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
            let (_, reading) = device.reading.take().unwrap();
            assert!(reading.write_at(&[0], 0).is_err(), "{sync:?}: read with a descriptor for reading");
        }
    }

    #[test]
    fn a_log_that_each_direct_way_continues_is_read_back() {
        let dir = here();
        let per_file = FILE / 4096;
        for (round, way) in (1..).zip(DIRECT) {
            let mut log = TinyLog::open(open(dir.path(), way)).unwrap();
            log.commits(per_file + 3);
            // Write and sync as separate calls.
            let memory = AlignedBuf::new(2 * PAGE).unwrap();
            log.device.write(FILE - 2 * PAGE as u64, &memory).unwrap();
            let unsynced = |device: &mut FileDevice| device.current().unwrap().0.unsynced;
            assert_eq!(unsynced(&mut log.device), way.0 == FileSync::Fdatasync, "{way:?}");
            log.device.sync().unwrap();
            assert!(!unsynced(&mut log.device), "{way:?}");
            drop(log);
            let device = open(dir.path(), way);
            assert_eq!(recover(&device).unwrap().len() as u64, round * (per_file + 3), "{way:?}");
            // Reads need no alignment and stop at the end of the file.
            let whole = fs::read(device.dir.file(0)).unwrap();
            let mut some = vec![0; 700];
            assert_eq!(device.read(0, 5001, &mut some).unwrap(), 700);
            assert_eq!(some, whole[5001..5701]);
            assert_eq!(device.read(0, FILE, &mut some).unwrap(), 0);
            assert_eq!(device.read(0, FILE - 6, &mut some).unwrap(), 6);
        }
        let cached = open(dir.path(), (FileSync::Fdatasync, None));
        assert_eq!(recover(&cached).unwrap().len() as u64, 4 * (per_file + 3));
    }

    #[test]
    fn it_says_why_it_does_not_write_as_asked() {
        let dir = here();
        let auto = open(dir.path(), DIRECT[1]).describe();
        assert_eq!(auto.contains("through io_uring"), io_uring_available().is_ok(), "{auto}");
        let mut device = open(dir.path(), DIRECT[0]);
        (device.ring, device.no_ring) = (None, Some("it is forbidden".into()));
        assert!(device.describe().contains("O_DSYNC, pwrite because it is forbidden"), "{}", device.describe());
        for (way, says) in
            [(DIRECT[3], "O_DIRECT, pwrite and fdatasync,"), ((FileSync::Fdatasync, None), "', fdatasync,")]
        {
            let described = open(dir.path(), way).describe();
            assert!(described.contains(says), "{described}");
        }
        let blocks = FileConfig { block_bytes: 100, direct: Some(Via::Auto), ..FileConfig::default() };
        let error = FileDevice::open(dir.path(), &blocks).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("its filesystem takes multiples of"), "{error}");
        assert!(fs::read_dir(dir.path()).unwrap().next().is_none());
    }

    #[test]
    fn without_an_open_file_or_with_an_error_of_the_kernel_nothing_is_written() {
        let memory = AlignedBuf::new(PAGE).unwrap();
        for way in DIRECT {
            let dir = here();
            let mut device = open(dir.path(), way);
            for result in [device.write(0, &memory), device.sync()] {
                assert!(result.unwrap_err().to_string().contains("no log file is open"));
            }
            device.open_file(0).unwrap();
            device.current().unwrap().0.file = File::open(device.dir.file(0)).unwrap();
            let error = device.write_and_sync(0, &memory, &|| 0).unwrap_err().to_string();
            assert!(error.contains("cannot write") && error.contains("redo-"), "{error}");
        }
        // Nor is a file made where it cannot be seen whether there is one.
        let place = here();
        let gone = place.path().join("gone");
        fs::create_dir(&gone).unwrap();
        let mut maker = open(&gone, DIRECT[0]).file_maker();
        fs::remove_dir(&gone).unwrap();
        fs::write(&gone, b"").unwrap();
        assert!(maker.make(0, None).unwrap_err().to_string().starts_with("cannot read"));
    }
}
