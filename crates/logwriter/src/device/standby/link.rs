//! The log's side of a standby: a log device whose writes go through a stream.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
}

fn unreachable(source: io::Error) -> DeviceError {
    DeviceError::Io {
        action: "reach",
        what: "the standby".to_owned(),
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
        let limited = stream.set_read_timeout(Some(timeout)).and_then(|()| stream.set_write_timeout(Some(timeout)));
        limited.map_err(unreachable)?;
        Ok(Link { stream, memory: Vec::new(), broken: None, rule: Arc::clone(rule), device: Arc::clone(device) })
    }

    fn send(&mut self, head: Head, body: &[u8]) -> Result<(), DeviceError> {
        if let Some(why) = &self.broken {
            return Err(unreachable(io::Error::new(io::ErrorKind::NotConnected, why.clone())));
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
                    what: "the standby".to_owned(),
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
        unreachable(match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time")
            }
            io::ErrorKind::UnexpectedEof => {
                io::Error::new(io::ErrorKind::ConnectionAborted, "it closed the connection")
            }
            _ => source,
        })
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
        self.device().file_maker()
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
