//! A log device that fails on purpose, around any other: for tests of what a log, and whoever
//! uses one, does then.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::{DeviceError, DeviceTimes, FileMaker, LogDevice};

/// Where a device can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// [`LogDevice::open_file`].
    Open,
    /// [`LogDevice::write`], alone or as the first half of [`LogDevice::write_and_sync`].
    Write,
    /// [`LogDevice::sync`], alone or as the second half.
    Sync,
    /// [`LogDevice::read`].
    Read,
    /// [`FileMaker::make`].
    Make,
}

/// How it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// With an error of the system, by number (`EIO`, `ENOSPC`, ...), having done nothing.
    Errno(i32),
    /// With an error of the system, having done what it was asked.
    ErrnoAfter(i32),
    /// A write takes this many blocks and no more.
    ShortBlocks(usize),
}

/// One failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub edge: Edge,
    /// At which call there, the first being 0.
    pub at: usize,
    /// How.
    pub how: How,
}

/// What the device and its maker share.
struct Plan {
    faults: Vec<Fault>,
    calls: [usize; 5],
}

#[derive(Clone)]
struct Shared(Arc<Mutex<Plan>>);

impl Shared {
    fn next(&self, edge: Edge) -> Option<How> {
        let mut plan = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let call = plan.calls[edge as usize];
        plan.calls[edge as usize] += 1;
        plan.faults.iter().find(|fault| fault.edge == edge && fault.at == call).map(|fault| fault.how)
    }

    /// Does `step`, or fails in its place or after it.
    fn step<T>(&self, edge: Edge, step: impl FnOnce() -> Result<T, DeviceError>) -> Result<T, DeviceError> {
        match self.next(edge) {
            None => step(),
            Some(How::Errno(number)) => Err(injected(edge, number)),
            Some(How::ErrnoAfter(number)) => step().and_then(|_| Err(injected(edge, number))),
            Some(How::ShortBlocks(_)) => Err(injected(edge, libc::EIO)),
        }
    }
}

fn injected(edge: Edge, number: i32) -> DeviceError {
    let action = match edge {
        Edge::Open => "open",
        Edge::Write => "write to",
        Edge::Sync => "sync",
        Edge::Read => "read",
        Edge::Make => "preallocate",
    };
    DeviceError::Io {
        action,
        what: "a device that fails on purpose".into(),
        source: io::Error::from_raw_os_error(number),
        advice: "This is a test".into(),
    }
}

/// A device that fails as planned.
pub struct FaultDevice {
    inner: Box<dyn LogDevice>,
    plan: Shared,
}

impl FaultDevice {
    /// `inner`, with failures.
    #[must_use]
    pub fn new(inner: Box<dyn LogDevice>, faults: Vec<Fault>) -> Self {
        Self { inner, plan: Shared(Arc::new(Mutex::new(Plan { faults, calls: [0; 5] }))) }
    }
}

impl LogDevice for FaultDevice {
    fn block_bytes(&self) -> usize {
        self.inner.block_bytes()
    }

    fn file_bytes(&self) -> u64 {
        self.inner.file_bytes()
    }

    fn file_maker(&self) -> Box<dyn FileMaker> {
        Box::new(FaultMaker { inner: self.inner.file_maker(), plan: self.plan.clone() })
    }

    fn open_file(&mut self, file: u64) -> Result<(), DeviceError> {
        self.plan.clone().step(Edge::Open, || self.inner.open_file(file))
    }

    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
        match self.plan.next(Edge::Write) {
            None => self.inner.write(offset, blocks),
            Some(How::Errno(number)) => Err(injected(Edge::Write, number)),
            Some(How::ErrnoAfter(number)) => {
                self.inner.write(offset, blocks)?;
                Err(injected(Edge::Write, number))
            }
            Some(How::ShortBlocks(count)) => {
                let written = blocks.len().min(count * self.block_bytes());
                self.inner.write(offset, &blocks[..written])?;
                let what = "a device that fails on purpose".into();
                Err(DeviceError::Short { what, offset, asked: blocks.len(), written })
            }
        }
    }

    fn sync(&mut self) -> Result<(), DeviceError> {
        self.plan.clone().step(Edge::Sync, || self.inner.sync())
    }

    fn write_and_sync(
        &mut self,
        offset: u64,
        blocks: &[u8],
        now: &dyn Fn() -> u64,
    ) -> Result<DeviceTimes, DeviceError> {
        let begun = now();
        self.write(offset, blocks)?;
        let written = now();
        self.sync()?;
        Ok(DeviceTimes { write_ns: written.saturating_sub(begun), sync_ns: now().saturating_sub(written) })
    }

    fn files(&self) -> Result<Vec<u64>, DeviceError> {
        self.inner.files()
    }

    fn read(&self, file: u64, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError> {
        self.plan.step(Edge::Read, || self.inner.read(file, offset, into))
    }

    fn describe(&self) -> String {
        format!("{}, failing on purpose", self.inner.describe())
    }
}

struct FaultMaker {
    inner: Box<dyn FileMaker>,
    plan: Shared,
}

impl FileMaker for FaultMaker {
    fn make(&mut self, file: u64, recycle: Option<u64>) -> Result<(), DeviceError> {
        self.plan.clone().step(Edge::Make, || self.inner.make(file, recycle))
    }
}
