//! The log's side of a standby: a log device that works over a connection.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::frame::{Head, Kind, ON_RECEIPT};
use super::stream::connect;
use crate::device::{DeviceError, DeviceTimes, FileMaker, LogDevice, Rule};

struct Connection {
    stream: UnixStream,
    address: String,
    memory: Vec<u8>,
    /// Set after an error: a later answer could belong to an earlier request.
    broken: Option<String>,
}

impl Connection {
    fn open(address: &str, timeout: Duration) -> Result<(Self, Vec<u8>), DeviceError> {
        let stream = connect(address, timeout).map_err(|source| unreachable(address, source))?;
        let mut connection = Connection { stream, address: address.to_owned(), memory: Vec::new(), broken: None };
        let greeting = connection.ask(Head::new(Kind::Hello), &[])?;
        Ok((connection, greeting))
    }

    fn send(&mut self, head: Head, body: &[u8]) -> Result<(), DeviceError> {
        if let Some(why) = &self.broken {
            return Err(unreachable(&self.address, io::Error::new(io::ErrorKind::NotConnected, why.clone())));
        }
        head.send(body, &mut self.memory, &mut self.stream).map_err(|e| self.lost(e))
    }

    fn ask(&mut self, head: Head, body: &[u8]) -> Result<Vec<u8>, DeviceError> {
        self.send(head, body)?;
        let answer = Head::receive(&mut self.stream).and_then(|head| Ok((head, head.body(&mut self.stream)?)));
        match answer {
            Ok((head, body)) if head.kind == Kind::Done => Ok(body),
            Ok((head, body)) if head.kind == Kind::Failed => {
                let why = String::from_utf8_lossy(&body).into_owned();
                self.broken = Some(why.clone());
                Err(DeviceError::Unsupported {
                    what: format!("the standby at {}", self.address),
                    wish: "do what it was asked".to_owned(),
                    why,
                    advice: "Check the standby".to_owned(),
                })
            }
            Ok((head, _)) => {
                let why = format!("it answered with a frame of kind {:?}", head.kind);
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
        unreachable(&self.address, source)
    }
}

fn unreachable(address: &str, source: io::Error) -> DeviceError {
    DeviceError::Io {
        action: "reach",
        what: format!("the standby at {address}"),
        source,
        advice: "Check that it is running and that the network allows the connection".to_owned(),
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // If a panic left a frame incomplete, the checksum shows it.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The standby's log as a log device.
pub(super) struct Link {
    connection: Mutex<Connection>,
    timeout: Duration,
    rule: Arc<Mutex<Rule>>,
    block_bytes: usize,
    file_bytes: u64,
    described: String,
}

impl Link {
    /// Connects to the standby at `address`. While the rule is [`Rule::Received`], a sync is answered when the standby has the
    /// blocks in memory.
    pub(super) fn connect(address: &str, timeout: Duration, rule: &Arc<Mutex<Rule>>) -> Result<Link, DeviceError> {
        let (connection, greeting) = Connection::open(address, timeout)?;
        let wrong = || unreachable(address, io::Error::new(io::ErrorKind::InvalidData, "its greeting is too short"));
        let (block, rest) = greeting.split_first_chunk().ok_or_else(wrong)?;
        let (file, text) = rest.split_first_chunk().ok_or_else(wrong)?;
        Ok(Link {
            connection: Mutex::new(connection),
            timeout,
            rule: Arc::clone(rule),
            block_bytes: u32::from_le_bytes(*block) as usize,
            file_bytes: u64::from_le_bytes(*file),
            described: format!("standby at {address}: {}", String::from_utf8_lossy(text)),
        })
    }

    fn flags(&self) -> u8 {
        if *lock(&self.rule) == Rule::Received { ON_RECEIPT } else { 0 }
    }
}

impl LogDevice for Link {
    fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    fn file_maker(&self) -> Box<dyn FileMaker> {
        let address = lock(&self.connection).address.clone();
        Box::new(RemoteMaker { address, timeout: self.timeout, connection: None })
    }

    fn open_file(&mut self, file: u64) -> Result<(), DeviceError> {
        lock(&self.connection).ask(Head { number: file, ..Head::new(Kind::Open) }, &[]).map(|_| ())
    }

    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
        lock(&self.connection).send(Head { offset, ..Head::new(Kind::Write) }, blocks)
    }

    fn sync(&mut self) -> Result<(), DeviceError> {
        lock(&self.connection).ask(Head { flags: self.flags(), ..Head::new(Kind::Sync) }, &[]).map(drop)
    }

    fn write_and_sync(
        &mut self,
        offset: u64,
        blocks: &[u8],
        now: &dyn Fn() -> u64,
    ) -> Result<DeviceTimes, DeviceError> {
        let begun = now();
        lock(&self.connection).ask(Head { offset, flags: self.flags(), ..Head::new(Kind::WriteSync) }, blocks)?;
        Ok(DeviceTimes { write_ns: 0, sync_ns: now().saturating_sub(begun) })
    }

    fn files(&self) -> Result<Vec<u64>, DeviceError> {
        let body = lock(&self.connection).ask(Head::new(Kind::Files), &[])?;
        Ok(body.as_chunks().0.iter().map(|eight| u64::from_le_bytes(*eight)).collect())
    }

    fn read(&self, _: u64, _: u64, _: &mut [u8]) -> Result<usize, DeviceError> {
        Err(DeviceError::Unsupported {
            what: self.described.clone(),
            wish: "be read from here".to_owned(),
            why: "it only receives".to_owned(),
            advice: "Read its log files where they are".to_owned(),
        })
    }

    fn describe(&self) -> String {
        self.described.clone()
    }
}

/// Has the standby prepare files, over a second connection: writing a whole file takes long, and the log must not
/// wait for it.
struct RemoteMaker {
    address: String,
    timeout: Duration,
    connection: Option<Connection>,
}

impl FileMaker for RemoteMaker {
    fn make(&mut self, file: u64, recycle: Option<u64>) -> Result<(), DeviceError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => {
                // Preparing a file takes longer than a commit may.
                let patience = self.timeout.max(Duration::from_secs(60));
                let (connection, _) = Connection::open(&self.address, patience)?;
                self.connection.insert(connection)
            }
        };
        let body = recycle.map(u64::to_le_bytes);
        connection.ask(Head { number: file, ..Head::new(Kind::Make) }, body.as_ref().map_or(&[], |b| b)).map(|_| ())
    }
}
