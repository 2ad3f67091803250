//! Log files written with `O_DIRECT`, through io_uring if the kernel allows it: a write and its sync are one
//! submission.

use std::fs::File;
use std::path::{Path, PathBuf};

use loadline_storage::{Access, AlignedBuf, PAGE, SyncRing, direct_alignment, io_uring_available, open_file};

use super::directory::{DirMaker, LogDir, read_at, write_all};
use super::{DeviceError, DeviceTimes, FileMaker, LogDevice, write_then_sync};

const CHUNK: usize = 1 << 20;

/// How a direct write becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DirectSync {
    /// `O_DSYNC`: each write is durable when it returns. Devices with FUA need one command for it instead of a
    /// write and a flush.
    #[default]
    Dsync,
    /// A write with a linked `fdatasync`.
    Fdatasync,
}

/// The system interface to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Via {
    /// io_uring if the kernel allows it, otherwise system calls; [`LogDevice::describe`] then says why.
    #[default]
    Auto,
    /// pwrite and fdatasync.
    SystemCalls,
}

/// Settings of a [`DirectDevice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectOptions {
    /// Size of each log file, bytes.
    pub file_bytes: u64,
    /// Size of a block, bytes. `None`: the smallest that the filesystem takes.
    pub block_bytes: Option<usize>,
    /// How writes become durable.
    pub sync: DirectSync,
    /// The system interface to use.
    pub via: Via,
}

impl Default for DirectOptions {
    fn default() -> Self {
        Self { file_bytes: 64 << 20, block_bytes: None, sync: DirectSync::default(), via: Via::default() }
    }
}

/// A log in a directory, written with `O_DIRECT`.
#[derive(Debug)]
pub struct DirectDevice {
    dir: LogDir,
    file_bytes: u64,
    block_bytes: usize,
    sync: DirectSync,
    ring: Option<SyncRing>,
    /// Why there is no ring, if one was requested.
    no_ring: Option<String>,
    file: Option<(File, PathBuf)>,
}

impl DirectDevice {
    /// Opens the existing directory `dir`.
    ///
    /// # Errors
    /// The filesystem has no `O_DIRECT` or does not take the block size, or the file size does not fit.
    pub fn open(dir: &Path, options: DirectOptions) -> Result<DirectDevice, DeviceError> {
        let smallest = smallest_block(dir)?;
        let block_bytes = options.block_bytes.unwrap_or(smallest);
        let refuse = |why: String, advice: String| DeviceError::Unsupported {
            what: dir.display().to_string(),
            wish: format!(
                "hold log files of {} bytes in blocks of {block_bytes} bytes with O_DIRECT",
                options.file_bytes
            ),
            why,
            advice,
        };
        if !block_bytes.is_multiple_of(smallest) || !block_bytes.is_power_of_two() || block_bytes > 1 << 16 {
            let why = format!("its filesystem takes multiples of {smallest} bytes");
            return Err(refuse(why, format!("Use blocks of {smallest} bytes, or a larger power of two up to 65536")));
        }
        if !options.file_bytes.is_multiple_of(block_bytes as u64) || options.file_bytes < 4 * block_bytes as u64 {
            return Err(refuse(
                "a file must be a whole number of blocks, at least 4".to_owned(),
                format!("Use a multiple of {block_bytes} bytes"),
            ));
        }
        let (ring, no_ring) = match options.via {
            Via::SystemCalls => (None, None),
            Via::Auto => match io_uring_available().and_then(|()| SyncRing::new().map_err(|e| e.to_string())) {
                Ok(ring) => (Some(ring), None),
                Err(why) => (None, Some(why)),
            },
        };
        let (dir, file_bytes) = (LogDir(dir.to_owned()), options.file_bytes);
        Ok(DirectDevice { dir, file_bytes, block_bytes, sync: options.sync, ring, no_ring, file: None })
    }

    fn put(&mut self, offset: u64, blocks: &[u8], synced: bool) -> Result<(), DeviceError> {
        let Some((file, path)) = &self.file else { return Err(self.dir.no_file()) };
        match &mut self.ring {
            Some(ring) if synced && self.sync == DirectSync::Fdatasync => {
                Ok(ring.write_sync(file, path, blocks, offset)?)
            }
            Some(ring) => Ok(ring.write(file, path, blocks, offset)?),
            None => {
                write_all(file, path, offset, blocks)?;
                if synced { fdatasync_unless_dsync(self.sync, file, path) } else { Ok(()) }
            }
        }
    }
}

/// Syncs, unless the file has `O_DSYNC`.
fn fdatasync_unless_dsync(sync: DirectSync, file: &File, path: &Path) -> Result<(), DeviceError> {
    match sync {
        DirectSync::Dsync => Ok(()),
        DirectSync::Fdatasync => file.sync_data().map_err(|cause| DeviceError::io("sync", path, cause)),
    }
}

/// The smallest block that `O_DIRECT` takes in `dir`, measured with a temporary file.
fn smallest_block(dir: &Path) -> Result<usize, DeviceError> {
    let path = dir.join("alignment.probe");
    // A leftover of a killed process.
    let _ = std::fs::remove_file(&path);
    let file = open_file(&path, Access { direct: true, create_new: true, ..Access::default() });
    let _ = std::fs::remove_file(&path);
    let stated = direct_alignment(&file?);
    // A page always works if the filesystem does not say.
    Ok(stated.map_or(PAGE, |a| (a.offset.max(a.memory) as usize).next_power_of_two().max(512)))
}

impl LogDevice for DirectDevice {
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
        let access = Access { direct: true, dsync: self.sync == DirectSync::Dsync, ..Access::default() };
        self.file_maker().make(file, None)?;
        let path = self.dir.path(file);
        self.file = Some((open_file(&path, access)?, path));
        Ok(())
    }

    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
        self.put(offset, blocks, false)
    }

    fn sync(&mut self) -> Result<(), DeviceError> {
        match &self.file {
            Some((file, path)) => fdatasync_unless_dsync(self.sync, file, path),
            None => Err(self.dir.no_file()),
        }
    }

    fn write_and_sync(
        &mut self,
        offset: u64,
        blocks: &[u8],
        now: &dyn Fn() -> u64,
    ) -> Result<DeviceTimes, DeviceError> {
        if self.ring.is_none() && self.sync == DirectSync::Fdatasync {
            return write_then_sync(self, offset, blocks, now);
        }
        let begun = now();
        self.put(offset, blocks, true)?;
        Ok(DeviceTimes { write_ns: 0, sync_ns: now().saturating_sub(begun) })
    }

    fn files(&self) -> Result<Vec<u64>, DeviceError> {
        self.dir.files()
    }

    fn read(&self, file: u64, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError> {
        let path = self.dir.path(file);
        let source = open_file(&path, Access { direct: true, ..Access::default() })?;
        let block = self.block_bytes as u64;
        let from = offset / block * block;
        let skip = usize::try_from(offset - from).unwrap_or_default();
        let length = (skip + into.len()).next_multiple_of(self.block_bytes).min(CHUNK);
        let mut bounce = AlignedBuf::new(length)?;
        let read = read_at(&source, &path, from, &mut bounce)?;
        let found = bounce.get(skip..read).unwrap_or_default();
        let length = found.len().min(into.len());
        if let (Some(into), Some(found)) = (into.get_mut(..length), found.get(..length)) {
            into.copy_from_slice(found);
        }
        Ok(length)
    }

    fn describe(&self) -> String {
        let how = match (&self.ring, self.sync) {
            (Some(_), DirectSync::Dsync) => "O_DIRECT and O_DSYNC through io_uring",
            (Some(_), DirectSync::Fdatasync) => "O_DIRECT, write linked with fdatasync through io_uring",
            (None, DirectSync::Dsync) => "O_DIRECT and O_DSYNC, pwrite",
            (None, DirectSync::Fdatasync) => "O_DIRECT, pwrite and fdatasync",
        };
        let why = self.no_ring.as_ref().map_or_else(String::new, |why| format!(" because {why}"));
        format!("direct log in {}, {how}{why}, blocks of {} B", self.dir.0.display(), self.block_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::file::{FileConfig, FileDevice};
    use crate::device::testing::{TinyLog, recover};

    const ALL: [(DirectSync, Via); 4] = [
        (DirectSync::Dsync, Via::Auto),
        (DirectSync::Fdatasync, Via::Auto),
        (DirectSync::Dsync, Via::SystemCalls),
        (DirectSync::Fdatasync, Via::SystemCalls),
    ];

    /// More than new files are filled by at once, and no multiple of it.
    const FILE: u64 = 96 << 10;

    fn here() -> tempfile::TempDir {
        tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
    }

    fn open(dir: &Path, sync: DirectSync, via: Via) -> DirectDevice {
        DirectDevice::open(dir, DirectOptions { file_bytes: FILE, sync, via, ..DirectOptions::default() }).unwrap()
    }

    #[test]
    fn a_log_that_each_way_continues_is_read_back() {
        let dir = here();
        let block_bytes = open(dir.path(), DirectSync::Dsync, Via::Auto).block_bytes();
        let per_file = FILE / block_bytes as u64;
        for (round, (sync, via)) in (1..).zip(ALL) {
            let mut log = TinyLog::open(open(dir.path(), sync, via)).unwrap();
            log.commits(per_file + 3);
            // Write and sync as separate calls.
            let memory = AlignedBuf::new(2 * PAGE).unwrap();
            log.device.write(FILE - 2 * PAGE as u64, &memory).unwrap();
            log.device.sync().unwrap();
            drop(log);
            let device = open(dir.path(), sync, via);
            assert_eq!(recover(&device).unwrap().len() as u64, round * (per_file + 3), "{sync:?} {via:?}");
            // Reads need no alignment and stop at the end of the file.
            let whole = std::fs::read(device.dir.path(0)).unwrap();
            let mut some = vec![0; 700];
            assert_eq!(device.read(0, 5001, &mut some).unwrap(), 700);
            assert_eq!(some, whole[5001..5701]);
            assert_eq!(device.read(0, FILE, &mut some).unwrap(), 0);
            assert_eq!(device.read(0, FILE - 6, &mut some).unwrap(), 6);
        }
        let config = FileConfig { file_bytes: FILE, block_bytes, ..FileConfig::default() };
        let files = FileDevice::open(dir.path(), &config).unwrap();
        assert_eq!(recover(&files).unwrap().len() as u64, 4 * (per_file + 3));
    }

    #[test]
    fn it_says_how_it_writes() {
        let dir = here();
        let described = |sync, via| open(dir.path(), sync, via).describe();
        let plain = described(DirectSync::Fdatasync, Via::SystemCalls);
        assert!(plain.contains("O_DIRECT, pwrite and fdatasync, blocks of"), "{plain}");
        let auto = described(DirectSync::Fdatasync, Via::Auto);
        match io_uring_available() {
            Ok(()) => assert!(auto.contains("write linked with fdatasync through io_uring"), "{auto}"),
            Err(why) => assert!(auto.contains(&why), "{auto}"),
        }
        let mut device = open(dir.path(), DirectSync::Dsync, Via::Auto);
        (device.ring, device.no_ring) = (None, Some("it is forbidden".into()));
        assert!(device.describe().contains("O_DSYNC, pwrite because it is forbidden"), "{}", device.describe());
    }

    #[test]
    fn blocks_and_files_that_cannot_be_are_refused() {
        let dir = here();
        let open = |options| DirectDevice::open(dir.path(), options).map(|_| ()).unwrap_err().to_string();
        let options = DirectOptions::default();
        let error = open(DirectOptions { block_bytes: Some(100), ..options });
        assert!(error.contains("its filesystem takes multiples of"), "{error}");
        let error = open(DirectOptions { file_bytes: 5000, ..options });
        assert!(error.contains("whole number of blocks"), "{error}");
        assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
    }

    #[test]
    fn without_an_open_file_or_with_an_error_of_the_kernel_nothing_is_written() {
        let memory = AlignedBuf::new(PAGE).unwrap();
        for (sync, via) in ALL {
            let dir = here();
            let mut device = open(dir.path(), sync, via);
            for result in [device.write(0, &memory), device.sync()] {
                assert!(result.unwrap_err().to_string().contains("no log file is open"));
            }
            device.open_file(0).unwrap();
            let path = device.dir.path(0);
            device.file = Some((File::open(&path).unwrap(), path));
            let error = device.write_and_sync(0, &memory, &|| 0).unwrap_err().to_string();
            assert!(error.contains("cannot write") && error.contains("redo-"), "{error}");
        }
    }
}
