//! Helpers of the log's tests: a device in memory with power loss and failures, and records that can be identified.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::log::{DeviceError, FileMaker, Keep, LogConfig, LogDevice, Record};

/// The least that a device writes whole.
pub(crate) const SECTOR: usize = 512;

/// A log's setting that fits small files.
pub(crate) fn config(buffer_blocks: usize, at_bytes: Option<u64>, keep: Keep) -> LogConfig {
    LogConfig {
        buffer_bytes: buffer_blocks * SECTOR,
        buffer_fraction: None,
        at_bytes,
        every: None,
        put_off_bytes: 4096,
        keep,
    }
}

/// Calls to a device, in order.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A file is created, or made from a recycled one.
    Make { file: u64, recycle: Option<u64> },
    /// Bytes are written and not yet durable.
    Write { file: u64, offset: u64, bytes: Vec<u8> },
    /// Writes to the file so far are durable.
    Sync { file: u64 },
    /// The test was told that this many of its records are durable.
    Ack { records: usize },
}

/// A disk as its events made it: what is durable, and what a power loss may take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    pub(crate) events: Vec<Event>,
    pub(crate) files: BTreeMap<u64, Vec<u8>>,
    /// (file, offset, bytes) not synced yet.
    unsynced: Vec<(u64, u64, Vec<u8>)>,
    file_bytes: usize,
}

/// Fate of an unsynced sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    Lost,
    Garbled,
}

impl Disk {
    pub(crate) fn new(file_bytes: usize) -> Self {
        Self { file_bytes, ..Self::default() }
    }

    pub(crate) fn apply(&mut self, event: Event) {
        match &event {
            Event::Make { file, recycle } => {
                let old = recycle.and_then(|old| self.files.remove(&old));
                self.files.entry(*file).or_insert(old.unwrap_or(vec![0; self.file_bytes]));
            }
            Event::Write { file, offset, bytes } => self.unsynced.push((*file, *offset, bytes.clone())),
            Event::Sync { file } => {
                let (synced, left) = std::mem::take(&mut self.unsynced).into_iter().partition(|write| write.0 == *file);
                self.unsynced = left;
                let synced: Vec<_> = synced;
                synced.iter().for_each(|(file, offset, bytes)| self.put(*file, *offset, bytes));
            }
            Event::Ack { .. } => {}
        }
        self.events.push(event);
    }

    fn put(&mut self, file: u64, offset: u64, bytes: &[u8]) {
        let at = usize::try_from(offset).unwrap();
        self.files.get_mut(&file).expect("only files that were made are written")[at..at + bytes.len()]
            .copy_from_slice(bytes);
    }

    /// The disk after the power went: each sector not synced meets its fate.
    pub(crate) fn after_power_loss(&self, mut fate: impl FnMut() -> Fate) -> Self {
        let mut after = Self { files: self.files.clone(), file_bytes: self.file_bytes, ..Self::default() };
        for (file, offset, bytes) in &self.unsynced {
            for (number, sector) in bytes.chunks(SECTOR).enumerate() {
                let at = offset + (number * SECTOR) as u64;
                match fate() {
                    Fate::Kept => after.put(*file, at, sector),
                    Fate::Lost => {}
                    Fate::Garbled => after.put(*file, at, &sector.iter().map(|byte| byte ^ 0xA5).collect::<Vec<_>>()),
                }
            }
        }
        after
    }

    /// The disk as it was after its first `count` events, those before it was made not counted.
    pub(crate) fn replayed(base: &Self, events: &[Event]) -> Self {
        let mut disk = Self { files: base.files.clone(), file_bytes: base.file_bytes, ..Self::default() };
        events.iter().for_each(|event| disk.apply(event.clone()));
        disk
    }
}

/// A call that a device, or its maker of files, is about to execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Make,
    Open {
        file: u64,
    },
    /// Of bytes at this address.
    Write {
        address: usize,
    },
    Sync,
    Read,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// With this system error, having done nothing.
    Errno(i32),
    /// With this system error, after doing its work.
    ErrnoAfter(i32),
    /// A write takes only this many blocks.
    ShortBlocks(usize),
}

/// Called before each call, and says whether that fails.
pub(crate) type Hook = Arc<dyn Fn(Call) -> Option<Failure> + Send + Sync>;

/// The failure of one call of the kind of `of`: of that with this number, from 0.
pub(crate) fn failing(of: Call, at: usize, failure: Failure) -> Hook {
    let (kind, calls) = (std::mem::discriminant(&of), AtomicUsize::new(0));
    Arc::new(move |call| {
        let is_it = std::mem::discriminant(&call) == kind && calls.fetch_add(1, Ordering::Relaxed) == at;
        is_it.then_some(failure)
    })
}

fn failed(errno: i32) -> DeviceError {
    let source = std::io::Error::from_raw_os_error(errno);
    DeviceError::Io { action: "use", what: "the disk in memory".into(), source, advice: "It is a test".into() }
}

/// Does `step`, unless it fails.
fn unless<T>(failure: Option<Failure>, step: impl FnOnce() -> T) -> Result<T, DeviceError> {
    match failure {
        None => Ok(step()),
        Some(Failure::ErrnoAfter(errno)) => {
            step();
            Err(failed(errno))
        }
        Some(Failure::Errno(errno)) => Err(failed(errno)),
        Some(Failure::ShortBlocks(_)) => Err(failed(libc::EIO)),
    }
}

/// The disk as a log device.
pub(crate) struct MemDevice {
    pub(crate) disk: Arc<Mutex<Disk>>,
    pub(crate) block: usize,
    current: u64,
    hook: Hook,
}

impl MemDevice {
    pub(crate) fn new(disk: &Arc<Mutex<Disk>>, block: usize) -> Self {
        Self::hooked(disk, block, Arc::new(|_| None))
    }

    pub(crate) fn hooked(disk: &Arc<Mutex<Disk>>, block: usize, hook: Hook) -> Self {
        Self { disk: Arc::clone(disk), block, current: 0, hook }
    }
}

impl LogDevice for MemDevice {
    fn block_bytes(&self) -> usize {
        self.block
    }

    fn file_bytes(&self) -> u64 {
        self.disk.lock().unwrap().file_bytes as u64
    }

    fn file_maker(&self) -> Box<dyn FileMaker> {
        Box::new(MemMaker(Arc::clone(&self.disk), Arc::clone(&self.hook)))
    }

    fn open_file(&mut self, file: u64) -> Result<(), DeviceError> {
        unless((self.hook)(Call::Open { file }), || {
            let disk = self.disk.lock().unwrap();
            assert!(disk.files.contains_key(&file), "file {file} was made before it is opened");
            assert!(disk.unsynced.is_empty(), "all of a file is durable before the next is opened");
            self.current = file;
        })
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let (address, file) = (bytes.as_ptr() as usize, self.current);
        let put = |bytes: &[u8]| {
            assert!(offset.is_multiple_of(self.block as u64) && bytes.len().is_multiple_of(self.block), "whole blocks");
            assert!(address.is_multiple_of(self.block) && !bytes.is_empty(), "aligned to the block");
            self.disk.lock().unwrap().apply(Event::Write { file, offset, bytes: bytes.to_vec() });
        };
        match (self.hook)(Call::Write { address }) {
            Some(Failure::ShortBlocks(count)) => {
                put(&bytes[..bytes.len().min(count * self.block)]);
                Err(failed(libc::EIO))
            }
            failure => unless(failure, || put(bytes)),
        }
    }

    fn sync(&mut self) -> Result<(), DeviceError> {
        let file = self.current;
        unless((self.hook)(Call::Sync), || self.disk.lock().unwrap().apply(Event::Sync { file }))
    }

    fn files(&self) -> Result<Vec<u64>, DeviceError> {
        Ok(self.disk.lock().unwrap().files.keys().copied().collect())
    }

    fn read(&self, file: u64, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError> {
        unless((self.hook)(Call::Read), || {
            let disk = self.disk.lock().unwrap();
            let bytes = &disk.files[&file];
            let from = usize::try_from(offset).unwrap().min(bytes.len());
            let len = into.len().min(bytes.len() - from);
            into[..len].copy_from_slice(&bytes[from..from + len]);
            len
        })
    }

    fn describe(&self) -> String {
        "a device in memory".into()
    }
}

struct MemMaker(Arc<Mutex<Disk>>, Hook);

impl FileMaker for MemMaker {
    fn make(&mut self, file: u64, recycle: Option<u64>) -> Result<(), DeviceError> {
        unless((self.1)(Call::Make), || self.0.lock().unwrap().apply(Event::Make { file, recycle }))
    }
}

/// A payload that identifies its job and number: `len` bytes, at least 16.
pub(crate) fn payload(job: u64, number: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len.max(16));
    bytes.extend_from_slice(&job.to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    let mut state = job.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number;
    while bytes.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.push((state >> 56) as u8);
    }
    bytes
}

/// Job and number of a payload made by [`payload`]; `None` if any byte differs.
pub(crate) fn whose(bytes: &[u8]) -> Option<(u64, u64)> {
    let number = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let (job, count) = (number(0)?, number(8)?);
    (payload(job, count, bytes.len()) == bytes).then_some((job, count))
}

/// For each job, the numbers of its records that a commit follows, in the order of the log. Panics
/// on a record that nobody wrote.
pub(crate) fn committed(records: impl Iterator<Item = Record>) -> BTreeMap<u64, Vec<u64>> {
    let mut open: BTreeMap<(u32, u32), Vec<(u64, u64)>> = BTreeMap::new();
    let mut done: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for record in records {
        let session = (record.epoch, record.session);
        match record.redo {
            Some(bytes) => {
                let whose = whose(&bytes).expect("only what was appended is read back");
                open.entry(session).or_default().push(whose);
            }
            None => {
                for (job, number) in open.remove(&session).unwrap_or_default() {
                    done.entry(job).or_default().push(number);
                }
            }
        }
    }
    done
}
