//! The log's side of a standby: a log device whose writes go through a stream.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::frame::{Head, Kind, ON_RECEIPT};
use crate::device::{DeviceError, DeviceTimes, FileMaker, LogDevice, Rule};

pub(super) struct Link {
    stream: UnixStream,
    memory: Vec<u8>,
    /// Set after an error: a later answer could belong to an earlier request.
    broken: Option<String>,
    rule: Arc<Mutex<Rule>>,
    /// The standby's own device, whose files are known without the stream.
    device: Arc<Mutex<Box<dyn LogDevice>>>,
    /// For errors.
    name: String,
    /// For preparing a file, which takes longer than a commit may.
    pub(super) file_limit: Duration,
}

fn unreachable(standby: &str, source: io::Error) -> DeviceError {
    DeviceError::Io {
        action: "reach",
        what: standby.to_owned(),
        source,
        advice: "Check the place of its log, and the link if there is one".to_owned(),
    }
}

impl Link {
    /// The link to the receiver behind `stream`, which writes to `device` and has `timeout` for each answer. While the rule is
    /// [`Rule::Received`], a sync is answered when the standby has the blocks in memory.
    pub(super) fn open(
        stream: UnixStream,
        timeout: Duration,
        rule: &Arc<Mutex<Rule>>,
        device: &Arc<Mutex<Box<dyn LogDevice>>>,
    ) -> Result<Link, DeviceError> {
        let name = format!("the standby ({})", device.lock().unwrap_or_else(PoisonError::into_inner).describe());
        let limited = stream.set_read_timeout(Some(timeout)).and_then(|()| stream.set_write_timeout(Some(timeout)));
        limited.map_err(|e| unreachable(&name, e))?;
        let (rule, device, file_limit) = (Arc::clone(rule), Arc::clone(device), timeout.max(Duration::from_secs(60)));
        Ok(Link { stream, memory: Vec::new(), broken: None, rule, device, name, file_limit })
    }

    fn send(&mut self, head: Head, body: &[u8]) -> Result<(), DeviceError> {
        if let Some(why) = &self.broken {
            return Err(unreachable(&self.name, io::Error::new(io::ErrorKind::NotConnected, why.clone())));
        }
        head.send(body, &mut self.memory, &mut self.stream).map_err(|e| self.lost(e))
    }

    fn ask(&mut self, head: Head, body: &[u8]) -> Result<(), DeviceError> {
        self.send(head, body)?;
        let answer = Head::receive(&mut self.stream).and_then(|head| Ok((head.kind, head.body(&mut self.stream)?)));
        match answer {
            Ok((Kind::Done, _)) => Ok(()),
            Ok((Kind::Failed, why)) => {
                let why = String::from_utf8_lossy(&why).into_owned();
                self.broken = Some(why.clone());
                Err(DeviceError::Unsupported {
                    what: self.name.clone(),
                    wish: "do what it was asked".to_owned(),
                    why,
                    advice: "Check the standby".to_owned(),
                })
            }
            Ok((kind, _)) => {
                let why = format!("it answered with a frame of kind {kind:?}");
                Err(self.lost(io::Error::new(io::ErrorKind::InvalidData, why)))
            }
            Err(e) => Err(self.lost(e)),
        }
    }

    fn lost(&mut self, source: io::Error) -> DeviceError {
        self.broken = Some(source.to_string());
        let source = match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time")
            }
            io::ErrorKind::UnexpectedEof => {
                io::Error::new(io::ErrorKind::ConnectionAborted, "it closed the connection")
            }
            _ => source,
        };
        unreachable(&self.name, source)
    }

    fn flags(&self) -> u8 {
        let rule = *self.rule.lock().unwrap_or_else(PoisonError::into_inner);
        if rule == Rule::Received { ON_RECEIPT } else { 0 }
    }

    fn device(&self) -> MutexGuard<'_, Box<dyn LogDevice>> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogDevice for Link {
    fn block_bytes(&self) -> usize {
        self.device().block_bytes()
    }

    fn file_bytes(&self) -> u64 {
        self.device().file_bytes()
    }

    fn file_maker(&self) -> Box<dyn FileMaker> {
        let maker = Some(self.device().file_maker());
        Box::new(LimitedMaker { maker, standby: self.name.clone(), limit: self.file_limit })
    }

    fn open_file(&mut self, file: u64) -> Result<(), DeviceError> {
        self.ask(Head { at: file, ..Head::new(Kind::Open) }, &[])
    }

    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
        self.send(Head { at: offset, ..Head::new(Kind::Write) }, blocks)
    }

    fn sync(&mut self) -> Result<(), DeviceError> {
        self.ask(Head { flags: self.flags(), ..Head::new(Kind::Sync) }, &[])
    }

    fn write_and_sync(
        &mut self,
        offset: u64,
        blocks: &[u8],
        now: &dyn Fn() -> u64,
    ) -> Result<DeviceTimes, DeviceError> {
        let begun = now();
        self.ask(Head { at: offset, flags: self.flags(), ..Head::new(Kind::WriteSync) }, blocks)?;
        Ok(DeviceTimes { write_ns: 0, sync_ns: now().saturating_sub(begun) })
    }

    fn files(&self) -> Result<Vec<u64>, DeviceError> {
        self.device().files()
    }

    fn read(&self, file: u64, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError> {
        self.device().read(file, offset, into)
    }

    fn describe(&self) -> String {
        format!("standby: {}", self.device().describe())
    }
}

/// Prepares files on a thread, so that a log does not wait forever for a standby that hangs.
struct LimitedMaker {
    /// `None` after a file that was not ready in time.
    maker: Option<Box<dyn FileMaker>>,
    standby: String,
    limit: Duration,
}

impl FileMaker for LimitedMaker {
    fn make(&mut self, file: u64, recycle: Option<u64>) -> Result<(), DeviceError> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, "it did not prepare a log file in time");
        let Some(mut maker) = self.maker.take() else { return Err(unreachable(&self.standby, late())) };
        let (done, answer) = mpsc::channel();
        let make = move || drop(done.send((maker.make(file, recycle), maker)));
        let thread = thread::Builder::new().name("log-standby-files".to_owned());
        thread.spawn(make).map_err(|e| unreachable(&self.standby, e))?;
        match answer.recv_timeout(self.limit) {
            Ok((made, maker)) => {
                self.maker = Some(maker);
                made
            }
            Err(RecvTimeoutError::Timeout) => Err(unreachable(&self.standby, late())),
            Err(RecvTimeoutError::Disconnected) => {
                Err(unreachable(&self.standby, io::Error::other("it stopped preparing log files")))
            }
        }
    }
}
