//! Test helpers: a disk in memory that fails, waits and slows down on request, and a log simple enough to be recovered in
//! a few lines.

#[path = "../../tests/common/mod.rs"]
pub(crate) mod common;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use super::{DeviceError, LogDevice};
use common::{Call, Event, Failure, Fate, MemDevice};

#[derive(Debug, Default)]
struct Control {
    writes: u64,
    syncs: u64,
    fail_write_after: Option<u64>,
    fail_sync_after: Option<u64>,
    is_full: bool,
    delay: Duration,
    held: bool,
}

/// A disk that outlives the devices on it. They make the files that they open.
#[derive(Clone)]
pub(crate) struct Disk {
    stored: Arc<Mutex<common::Disk>>,
    control: Arc<(Mutex<Control>, Condvar)>,
    block: usize,
}

impl Disk {
    pub(crate) fn new(block: usize, file_bytes: u64) -> Disk {
        Disk::holding(block, common::Disk::new(usize::try_from(file_bytes).unwrap()))
    }

    fn holding(block: usize, stored: common::Disk) -> Disk {
        Disk { stored: Arc::new(Mutex::new(stored)), control: Arc::default(), block }
    }

    pub(crate) fn device(&self) -> Box<dyn LogDevice> {
        let disk = self.clone();
        Box::new(MemDevice::hooked(&self.stored, self.block, Arc::new(move |call| disk.before(call))))
    }

    fn before(&self, call: Call) -> Option<Failure> {
        let fails = |is: bool| is.then_some(Failure::Errno(libc::EIO));
        match call {
            Call::Make => return self.released().is_full.then_some(Failure::Errno(libc::ENOSPC)),
            Call::Read => {}
            Call::Open { file } => self.stored.lock().unwrap().apply(Event::Make { file, recycle: None }),
            Call::Write { address } => {
                assert_eq!(address % 4096, 0, "buffers are aligned");
                let mut control = self.control();
                control.writes += 1;
                return fails(control.fail_write_after.is_some_and(|n| control.writes > n));
            }
            Call::Sync => {
                let delay = self.control().delay;
                thread::sleep(delay);
                let mut control = self.released();
                control.syncs += 1;
                return fails(control.fail_sync_after.is_some_and(|n| control.syncs > n));
            }
        }
        None
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.0.lock().unwrap()
    }

    /// After `let_go`, with a limit: a test that fails meanwhile must end.
    fn released(&self) -> MutexGuard<'_, Control> {
        let patience = Duration::from_secs(20);
        self.control.1.wait_timeout_while(self.control(), patience, |control| control.held).unwrap().0
    }

    /// A copy of what a power cut would leave at this moment.
    pub(crate) fn snapshot(&self) -> Disk {
        Disk::holding(self.block, self.stored.lock().unwrap().after_power_loss(|| Fate::Lost))
    }

    /// Commits of a [`TinyLog`] on the disk if the power failed now.
    pub(crate) fn kept(&self) -> u64 {
        recover(self.snapshot().device().as_ref()).unwrap().len() as u64
    }

    /// Every write after `more` others fails with EIO.
    pub(crate) fn fail_writes_after(&self, more: u64) {
        let mut control = self.control();
        control.fail_write_after = Some(control.writes + more);
    }

    /// Every sync after `more` others fails with EIO.
    pub(crate) fn fail_syncs_after(&self, more: u64) {
        let mut control = self.control();
        control.fail_sync_after = Some(control.syncs + more);
    }

    /// No more files can be made.
    pub(crate) fn fill_up(&self) {
        self.control().is_full = true;
    }

    /// Every sync takes `delay`.
    pub(crate) fn slow_down(&self, delay: Duration) {
        self.control().delay = delay;
    }

    /// Every sync and every preparation of a file waits for `let_go`.
    pub(crate) fn hold(&self) {
        self.control().held = true;
    }

    pub(crate) fn let_go(&self) {
        self.control().held = false;
        self.control.1.notify_all();
    }

    /// Whether a commit to `log` waits for this disk; also lets it go.
    pub(crate) fn delays_a_commit<D: LogDevice>(&self, log: &mut TinyLog<D>) -> bool {
        self.hold();
        thread::scope(|scope| {
            let commit = scope.spawn(|| log.commit().unwrap());
            thread::sleep(Duration::from_millis(50));
            let early = commit.is_finished();
            self.let_go();
            !early
        })
    }

    /// Files that a power cut would leave.
    pub(crate) fn durable(&self) -> BTreeMap<u64, Vec<u8>> {
        self.stored.lock().unwrap().files.clone()
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.control().syncs
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

    pub(crate) fn commits(&mut self, count: u64) {
        for _ in 0..count {
            self.commit().unwrap();
        }
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
