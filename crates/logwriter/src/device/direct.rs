//! Log files past the page cache (`O_DIRECT`), through io_uring where the kernel allows it: a write
//! and its sync are one submission.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use loadline_device::{Access, AlignedBuf, PAGE, SyncRing, direct_alignment, io_uring_available, open_file};

use super::file::{Maker, Place, failed};
use crate::device::{DeviceError, DeviceTimes, FileMaker, LogDevice};

const CHUNK: usize = 1 << 20;

/// How a write past the page cache is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DirectSync {
    /// Each write by itself (`O_DSYNC`; `RWF_DSYNC` without the flag per write): where the device can,
    /// one command that goes through its cache (FUA) instead of a write and a flush.
    #[default]
    Dsync,
    /// A write, and fdatasync linked to it.
    Fdatasync,
}

/// How the kernel is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Via {
    /// io_uring where the kernel allows it, else system calls, and [`LogDevice::describe`] says why.
    #[default]
    Auto,
    /// io_uring, or an error.
    IoUring,
    /// pwrite and fdatasync.
    SystemCalls,
}

/// How a direct log works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectOptions {
    /// Bytes of each log file.
    pub file_bytes: u64,
    /// Bytes of a block; what the filesystem asks for if it is none.
    pub block_bytes: Option<usize>,
    /// How writes are made durable.
    pub sync: DirectSync,
    /// How the kernel is asked.
    pub via: Via,
}

impl Default for DirectOptions {
    fn default() -> Self {
        Self { file_bytes: 64 << 20, block_bytes: None, sync: DirectSync::default(), via: Via::default() }
    }
}

/// A log in a directory, written past the page cache.
#[derive(Debug)]
pub struct DirectDevice {
    place: Place,
    file_bytes: u64,
    block_bytes: usize,
    sync: DirectSync,
    ring: Option<SyncRing>,
    /// Why there is no ring, if one was wanted.
    no_ring: Option<String>,
    file: Option<(File, PathBuf)>,
}

impl DirectDevice {
    /// Opens `dir`, which must exist.
    ///
    /// # Errors
    /// A filesystem without `O_DIRECT`, blocks that it does not take, io_uring asked for and
    /// forbidden, a directory that is in use.
    pub fn open(dir: &Path, options: DirectOptions) -> Result<DirectDevice, DeviceError> {
        let least = least_block(dir)?;
        let block_bytes = options.block_bytes.unwrap_or(least);
        let refuse = |why: String, advice: String| DeviceError::Unsupported {
            what: dir.display().to_string(),
            wish: format!(
                "hold log files of {} bytes in blocks of {block_bytes} bytes past the page cache",
                options.file_bytes
            ),
            why,
            advice,
        };
        if !block_bytes.is_multiple_of(least) || !block_bytes.is_power_of_two() || block_bytes > 1 << 16 {
            let why = format!("its filesystem takes multiples of {least} bytes");
            return Err(refuse(why, format!("Use blocks of {least} bytes, or a power of two above it up to 65536")));
        }
        if !options.file_bytes.is_multiple_of(block_bytes as u64) || options.file_bytes < 4 * block_bytes as u64 {
            return Err(refuse(
                "a file must have whole blocks, at least 4".to_owned(),
                format!("Use a multiple of {block_bytes} bytes"),
            ));
        }
        let (ring, no_ring) = match options.via {
            Via::SystemCalls => (None, None),
            via => match io_uring_available().and_then(|()| SyncRing::new().map_err(|e| e.to_string())) {
                Ok(ring) => (Some(ring), None),
                Err(why) if via == Via::IoUring => {
                    return Err(refuse(why, "Allow io_uring, or use system calls".to_owned()));
                }
                Err(why) => (None, Some(why)),
            },
        };
        let (place, file_bytes) = (Place(dir.to_owned()), options.file_bytes);
        Ok(DirectDevice { place, file_bytes, block_bytes, sync: options.sync, ring, no_ring, file: None })
    }

    fn put(&mut self, offset: u64, blocks: &[u8], synced: bool) -> Result<(), DeviceError> {
        let Some((file, path)) = &self.file else { return Err(no_file(&self.place.0)) };
        match &mut self.ring {
            Some(ring) if synced && self.sync == DirectSync::Fdatasync => {
                Ok(ring.write_sync(file, path, blocks, offset)?)
            }
            Some(ring) => Ok(ring.write(file, path, blocks, offset)?),
            None => {
                write_all(file, path, offset, blocks)?;
                if synced { fdatasync_unless(self.sync, file, path) } else { Ok(()) }
            }
        }
    }
}

/// Without `O_DSYNC` on the file, what was written is still to be synced.
fn fdatasync_unless(sync: DirectSync, file: &File, path: &Path) -> Result<(), DeviceError> {
    match sync {
        DirectSync::Dsync => Ok(()),
        DirectSync::Fdatasync => file.sync_data().map_err(|e| failed("sync", path, e)),
    }
}

/// Writes all of `blocks`; a device that takes nothing is an error.
fn write_all(file: &File, path: &Path, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
    let mut done = 0;
    while let Some(rest) = blocks.get(done..).filter(|rest| !rest.is_empty()) {
        match file.write_at(rest, offset + done as u64) {
            Ok(0) => {
                let what = path.display().to_string();
                return Err(DeviceError::Short { what, offset, asked: blocks.len(), written: done });
            }
            Ok(n) => done += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(failed("write to", path, e)),
        }
    }
    Ok(())
}

pub(super) fn no_file(dir: &Path) -> DeviceError {
    DeviceError::Unsupported {
        what: dir.display().to_string(),
        wish: "be written".to_owned(),
        why: "no log file is open".to_owned(),
        advice: "Call open_file first".to_owned(),
    }
}

/// The least block that `O_DIRECT` takes in `dir`, found out with a file that has no name.
fn least_block(dir: &Path) -> Result<usize, DeviceError> {
    let path = dir.join("alignment.probe");
    // Left over from a process that was killed here.
    let _ = std::fs::remove_file(&path);
    let file = open_file(&path, Access { direct: true, create_new: true, ..Access::default() });
    let _ = std::fs::remove_file(&path);
    let stated = direct_alignment(&file?);
    // Where the filesystem does not state it, a page is always right.
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
        Box::new(Maker { place: self.place.clone(), file_bytes: self.file_bytes })
    }

    fn open_file(&mut self, file: u64) -> Result<(), DeviceError> {
        let access = Access { direct: true, dsync: self.sync == DirectSync::Dsync, ..Access::default() };
        self.file_maker().make(file, None)?;
        let path = self.place.path(file);
        self.file = Some((open_file(&path, access)?, path));
        Ok(())
    }

    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
        self.put(offset, blocks, false)
    }

    fn sync(&mut self) -> Result<(), DeviceError> {
        match &self.file {
            Some((file, path)) => fdatasync_unless(self.sync, file, path),
            None => Err(no_file(&self.place.0)),
        }
    }

    fn write_and_sync(
        &mut self,
        offset: u64,
        blocks: &[u8],
        now: &dyn Fn() -> u64,
    ) -> Result<DeviceTimes, DeviceError> {
        let begun = now();
        if self.ring.is_some() || self.sync == DirectSync::Dsync {
            self.put(offset, blocks, true)?;
            return Ok(DeviceTimes { write_ns: 0, sync_ns: now().saturating_sub(begun) });
        }
        self.put(offset, blocks, false)?;
        let written = now();
        self.sync()?;
        Ok(DeviceTimes { write_ns: written.saturating_sub(begun), sync_ns: now().saturating_sub(written) })
    }

    fn files(&self) -> Result<Vec<u64>, DeviceError> {
        self.place.files()
    }

    fn read(&self, file: u64, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError> {
        let path = self.place.path(file);
        let source = open_file(&path, Access { direct: true, ..Access::default() })?;
        let block = self.block_bytes as u64;
        let from = offset / block * block;
        let skip = usize::try_from(offset - from).unwrap_or_default();
        let length = (skip + into.len()).next_multiple_of(self.block_bytes).min(CHUNK);
        let mut bounce = AlignedBuf::new(length)?;
        let read = loop {
            match source.read_at(&mut bounce, from) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                result => break result.map_err(|e| failed("read", &path, e))?,
            }
        };
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
        format!("direct log in {}, {how}{why}, blocks of {} B", self.place.0.display(), self.block_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::testing::{TinyLog, recover};

    fn here() -> tempfile::TempDir {
        tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
    }

    const ALL: [(DirectSync, Via); 4] = [
        (DirectSync::Dsync, Via::Auto),
        (DirectSync::Fdatasync, Via::Auto),
        (DirectSync::Dsync, Via::SystemCalls),
        (DirectSync::Fdatasync, Via::SystemCalls),
    ];

    #[test]
    fn a_log_written_past_the_cache_in_each_way_is_read_back() {
        for (sync, via) in ALL {
            let dir = here();
            let options = DirectOptions { file_bytes: 65536, sync, via, ..DirectOptions::default() };
            let mut log = TinyLog::open(DirectDevice::open(dir.path(), options).unwrap()).unwrap();
            let per_file = 65536 / log.device.block_bytes() as u64;
            for _ in 0..per_file + 3 {
                log.commit().unwrap();
            }
            // Not in one call: what is not durable before the next sync is after it.
            let memory = AlignedBuf::new(2 * PAGE).unwrap();
            log.device.write(65536 - 2 * PAGE as u64, &memory).unwrap();
            log.device.sync().unwrap();
            drop(log);
            let device = DirectDevice::open(dir.path(), options).unwrap();
            assert_eq!(recover(&device).unwrap().len() as u64, per_file + 3);
            // Offsets and lengths of any kind can be read, and a file ends where it ends.
            let whole = std::fs::read(device.place.path(0)).unwrap();
            let mut some = vec![0; 700];
            assert_eq!(device.read(0, 5001, &mut some).unwrap(), 700);
            assert_eq!(some, whole[5001..5701]);
            assert_eq!(device.read(0, 65536, &mut some).unwrap(), 0);
            assert_eq!(device.read(0, 65530, &mut some).unwrap(), 6);
        }
    }

    #[test]
    fn it_says_how_it_writes() {
        let dir = here();
        let told = |sync, via| {
            DirectDevice::open(dir.path(), DirectOptions { sync, via, ..DirectOptions::default() }).unwrap().describe()
        };
        let plain = told(DirectSync::Fdatasync, Via::SystemCalls);
        assert!(plain.contains("O_DIRECT, pwrite and fdatasync, blocks of"), "{plain}");
        let auto = told(DirectSync::Fdatasync, Via::Auto);
        match io_uring_available() {
            Ok(()) => assert!(auto.contains("write linked with fdatasync through io_uring"), "{auto}"),
            Err(why) => assert!(auto.contains(&why), "{auto}"),
        }
        let mut device = DirectDevice::open(dir.path(), DirectOptions::default()).unwrap();
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
        assert!(error.contains("whole blocks"), "{error}");
        assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
    }

    #[test]
    fn without_an_open_file_nothing_is_written() {
        let dir = here();
        let mut device = DirectDevice::open(dir.path(), DirectOptions::default()).unwrap();
        let memory = AlignedBuf::new(PAGE).unwrap();
        for result in [device.write(0, &memory), device.sync()] {
            assert!(result.unwrap_err().to_string().contains("no log file is open"));
        }
    }

    #[test]
    fn an_error_of_the_kernel_comes_through_in_each_way() {
        for (sync, via) in ALL {
            let dir = here();
            let options = DirectOptions { file_bytes: 65536, sync, via, ..DirectOptions::default() };
            let mut device = DirectDevice::open(dir.path(), options).unwrap();
            device.open_file(0).unwrap();
            let path = device.place.path(0);
            device.file = Some((File::open(&path).unwrap(), path));
            let memory = AlignedBuf::new(PAGE).unwrap();
            let error = device.write_and_sync(0, &memory, &|| 0).unwrap_err().to_string();
            assert!(error.contains("cannot write") && error.contains("redo-"), "{error}");
        }
    }
}
