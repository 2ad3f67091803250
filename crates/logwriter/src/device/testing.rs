//! Test helpers: a disk in memory that loses unsynced data in a power cut and fails on request, and a log simple enough
//! to be recovered in a few lines.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use super::{DeviceError, FileMaker, LogDevice};

#[derive(Debug, Default)]
struct Inner {
    /// Contents of the cache, and those that would be left if the power failed now.
    cache: BTreeMap<u64, Vec<u8>>,
    durable: BTreeMap<u64, Vec<u8>>,
    writes: u64,
    syncs: u64,
    fail_write_after: Option<u64>,
    fail_sync_after: Option<u64>,
    delay: Duration,
    held: bool,
}

/// A disk that outlives the devices on it.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    inner: Arc<Mutex<Inner>>,
    released: Arc<Condvar>,
    block: usize,
    file_bytes: u64,
}

impl Disk {
    pub(crate) fn new(block: usize, file_bytes: u64) -> Disk {
        Disk { inner: Arc::default(), released: Arc::default(), block, file_bytes }
    }

    pub(crate) fn device(&self) -> Box<dyn LogDevice> {
        Box::new(Mounted { disk: self.clone(), file: 0 })
    }

    /// A copy of what a power cut would leave at this moment.
    pub(crate) fn snapshot(&self) -> Disk {
        let durable = self.durable();
        let inner = Inner { cache: durable.clone(), durable, ..Inner::default() };
        Disk { inner: Arc::new(Mutex::new(inner)), ..Disk::new(self.block, self.file_bytes) }
    }

    /// Every write after `more` others fails with EIO.
    pub(crate) fn fail_writes_after(&self, more: u64) {
        let mut inner = self.inner.lock().unwrap();
        inner.fail_write_after = Some(inner.writes + more);
    }

    /// Every sync after `more` others fails with EIO and drops the cache, as Linux does.
    pub(crate) fn fail_syncs_after(&self, more: u64) {
        let mut inner = self.inner.lock().unwrap();
        inner.fail_sync_after = Some(inner.syncs + more);
    }

    /// Every sync takes `delay`.
    pub(crate) fn slow_down(&self, delay: Duration) {
        self.inner.lock().unwrap().delay = delay;
    }

    /// Every sync waits for `let_go`.
    pub(crate) fn hold(&self) {
        self.inner.lock().unwrap().held = true;
    }

    pub(crate) fn let_go(&self) {
        self.inner.lock().unwrap().held = false;
        self.released.notify_all();
    }

    pub(crate) fn durable(&self) -> BTreeMap<u64, Vec<u8>> {
        self.inner.lock().unwrap().durable.clone()
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.inner.lock().unwrap().syncs
    }
}

fn eio(action: &'static str) -> DeviceError {
    let source = io::Error::from_raw_os_error(libc::EIO);
    DeviceError::Io { action, what: "the disk in memory".into(), source, advice: "It is a test".into() }
}

struct Mounted {
    disk: Disk,
    file: u64,
}

impl LogDevice for Mounted {
    fn block_bytes(&self) -> usize {
        self.disk.block
    }

    fn file_bytes(&self) -> u64 {
        self.disk.file_bytes
    }

    fn file_maker(&self) -> Box<dyn FileMaker> {
        Box::new(Maker(self.disk.clone()))
    }

    fn open_file(&mut self, file: u64) -> Result<(), DeviceError> {
        self.file = file;
        Maker(self.disk.clone()).make(file, None)
    }

    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
        let mut inner = self.disk.inner.lock().unwrap();
        let block = self.disk.block as u64;
        assert!(offset.is_multiple_of(block) && (blocks.len() as u64).is_multiple_of(block) && !blocks.is_empty());
        assert_eq!(blocks.as_ptr() as usize % 4096, 0, "buffers are aligned");
        if inner.fail_write_after.is_some_and(|n| inner.writes >= n) {
            return Err(eio("write"));
        }
        inner.writes += 1;
        let offset = usize::try_from(offset).unwrap();
        inner.cache.get_mut(&self.file).unwrap()[offset..offset + blocks.len()].copy_from_slice(blocks);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), DeviceError> {
        let delay = self.disk.inner.lock().unwrap().delay;
        thread::sleep(delay);
        let inner = self.disk.inner.lock().unwrap();
        // With a limit: a test that fails meanwhile must end.
        let patience = Duration::from_secs(20);
        let (mut inner, _) = self.disk.released.wait_timeout_while(inner, patience, |inner| inner.held).unwrap();
        if inner.fail_sync_after.is_some_and(|n| inner.syncs >= n) {
            inner.cache = inner.durable.clone();
            return Err(eio("sync"));
        }
        inner.syncs += 1;
        let written = inner.cache[&self.file].clone();
        inner.durable.insert(self.file, written);
        Ok(())
    }

    fn files(&self) -> Result<Vec<u64>, DeviceError> {
        Ok(self.disk.inner.lock().unwrap().cache.keys().copied().collect())
    }

    fn read(&self, file: u64, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError> {
        let inner = self.disk.inner.lock().unwrap();
        let from = inner.cache.get(&file).and_then(|f| f.get(usize::try_from(offset).unwrap()..)).unwrap_or_default();
        let length = from.len().min(into.len());
        into[..length].copy_from_slice(&from[..length]);
        Ok(length)
    }

    fn describe(&self) -> String {
        "a disk in memory".into()
    }
}

struct Maker(Disk);

impl FileMaker for Maker {
    fn make(&mut self, file: u64, recycle: Option<u64>) -> Result<(), DeviceError> {
        let mut inner = self.0.inner.lock().unwrap();
        let inner = &mut *inner;
        for files in [&mut inner.cache, &mut inner.durable] {
            let old = recycle.and_then(|r| files.remove(&r));
            files.entry(file).or_insert_with(|| old.unwrap_or(vec![0; usize::try_from(self.0.file_bytes).unwrap()]));
        }
        Ok(())
    }
}

/// A log of blocks, each with a number and a checksum.
pub(crate) struct TinyLog<D> {
    pub(crate) device: D,
    block: usize,
    per_file: u64,
    pub(crate) next: u64,
    memory: loadline_storage::AlignedBuf,
}

impl<D: LogDevice> TinyLog<D> {
    /// Continues after the last block.
    pub(crate) fn open(mut device: D) -> Result<TinyLog<D>, DeviceError> {
        let block = device.block_bytes();
        let per_file = device.file_bytes() / block as u64;
        let next = recover(&device)?.len() as u64;
        device.open_file(next / per_file)?;
        let memory = loadline_storage::AlignedBuf::new(16 * block).unwrap();
        Ok(TinyLog { device, block, per_file, next, memory })
    }

    /// Writes one block per commit, and returns its number once it is durable.
    pub(crate) fn commit(&mut self) -> Result<u64, DeviceError> {
        let number = self.next;
        if number.is_multiple_of(self.per_file) {
            self.device.open_file(number / self.per_file)?;
        }
        let block = &mut self.memory[..self.block];
        block.fill(u8::try_from(number % 251).unwrap());
        block[8..16].copy_from_slice(&number.to_le_bytes());
        let sum = u64::from(crc32fast::hash(&block[8..]));
        block[..8].copy_from_slice(&sum.to_le_bytes());
        self.device.write_and_sync(number % self.per_file * self.block as u64, &self.memory[..self.block], &|| 0)?;
        self.next += 1;
        Ok(number)
    }
}

/// The numbers of the complete blocks from the start on.
pub(crate) fn recover(device: &dyn LogDevice) -> Result<Vec<u64>, DeviceError> {
    let block = device.block_bytes();
    let per_file = device.file_bytes() / block as u64;
    let files = device.files()?;
    let mut found = Vec::new();
    let mut bytes = vec![0; block];
    loop {
        let number = found.len() as u64;
        if !files.contains(&(number / per_file)) {
            return Ok(found);
        }
        let read = device.read(number / per_file, number % per_file * block as u64, &mut bytes)?;
        let sum = u64::from(crc32fast::hash(&bytes[8..]));
        if read < block || bytes[..8] != sum.to_le_bytes() || bytes[8..16] != number.to_le_bytes() {
            return Ok(found);
        }
        found.push(number);
    }
}
