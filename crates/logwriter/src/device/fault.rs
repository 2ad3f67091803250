//! A wrapper that makes a log device fail on purpose, for tests of error handling.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::{DeviceError, FileMaker, LogDevice};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceCall {
    /// [`LogDevice::open_file`].
    Open,
    /// [`LogDevice::write`], also as the first half of [`LogDevice::write_and_sync`].
    Write,
    /// [`LogDevice::sync`], also as the second half of [`LogDevice::write_and_sync`].
    Sync,
    /// [`LogDevice::read`].
    Read,
    /// [`FileMaker::make`].
    Make,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// With this system error (`EIO`, `ENOSPC`, ...), having done nothing.
    Errno(i32),
    /// With this system error, after doing its work.
    ErrnoAfter(i32),
    /// A write takes only this many blocks.
    ShortBlocks(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub call: DeviceCall,
    /// Which of these calls, from 0.
    pub at: usize,
    pub failure: Failure,
}

/// The plan and the calls so far, shared by device and maker.
struct Plan {
    faults: Vec<Fault>,
    calls: [usize; 5],
}

#[derive(Clone)]
struct SharedPlan(Arc<Mutex<Plan>>);

impl SharedPlan {
    fn next(&self, call: DeviceCall) -> Option<Failure> {
        let mut plan = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = plan.calls[call as usize];
        plan.calls[call as usize] += 1;
        plan.faults.iter().find(|fault| fault.call == call && fault.at == number).map(|fault| fault.failure)
    }

    /// Does `step`, unless the plan has it fail.
    fn step<T>(&self, call: DeviceCall, step: impl FnOnce() -> Result<T, DeviceError>) -> Result<T, DeviceError> {
        match self.next(call) {
            None => step(),
            Some(Failure::Errno(number)) => Err(injected(call, number)),
            Some(Failure::ErrnoAfter(number)) => step().and_then(|_| Err(injected(call, number))),
            Some(Failure::ShortBlocks(_)) => Err(injected(call, libc::EIO)),
        }
    }
}

fn injected(call: DeviceCall, number: i32) -> DeviceError {
    let action = match call {
        DeviceCall::Open => "open",
        DeviceCall::Write => "write to",
        DeviceCall::Sync => "sync",
        DeviceCall::Read => "read",
        DeviceCall::Make => "preallocate",
    };
    DeviceError::Io {
        action,
        what: "a device that fails on purpose".into(),
        source: io::Error::from_raw_os_error(number),
        advice: "This is a test".into(),
    }
}

pub struct FaultDevice {
    inner: Box<dyn LogDevice>,
    plan: SharedPlan,
}

impl FaultDevice {
    /// Wraps `inner`.
    pub fn new(inner: Box<dyn LogDevice>, faults: Vec<Fault>) -> Self {
        Self { inner, plan: SharedPlan(Arc::new(Mutex::new(Plan { faults, calls: [0; 5] }))) }
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
        self.plan.clone().step(DeviceCall::Open, || self.inner.open_file(file))
    }

    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
        match self.plan.next(DeviceCall::Write) {
            None => self.inner.write(offset, blocks),
            Some(Failure::Errno(number)) => Err(injected(DeviceCall::Write, number)),
            Some(Failure::ErrnoAfter(number)) => {
                self.inner.write(offset, blocks)?;
                Err(injected(DeviceCall::Write, number))
            }
            Some(Failure::ShortBlocks(count)) => {
                let written = blocks.len().min(count * self.block_bytes());
                self.inner.write(offset, &blocks[..written])?;
                let what = "a device that fails on purpose".into();
                Err(DeviceError::Short { what, offset, asked: blocks.len(), written })
            }
        }
    }

    fn sync(&mut self) -> Result<(), DeviceError> {
        self.plan.clone().step(DeviceCall::Sync, || self.inner.sync())
    }

    fn files(&self) -> Result<Vec<u64>, DeviceError> {
        self.inner.files()
    }

    fn read(&self, file: u64, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError> {
        self.plan.step(DeviceCall::Read, || self.inner.read(file, offset, into))
    }

    fn describe(&self) -> String {
        format!("{}, failing on purpose", self.inner.describe())
    }
}

struct FaultMaker {
    inner: Box<dyn FileMaker>,
    plan: SharedPlan,
}

impl FileMaker for FaultMaker {
    fn make(&mut self, file: u64, recycle: Option<u64>) -> Result<(), DeviceError> {
        self.plan.clone().step(DeviceCall::Make, || self.inner.make(file, recycle))
    }
}
