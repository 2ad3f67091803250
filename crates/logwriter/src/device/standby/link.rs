//! The log's side of a standby: a log device that works over a connection.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::frame::{Head, Kind, ON_RECEIPT};
use super::stream::Stream;
use crate::device::replicas::LabelStore;
use crate::device::{DeviceError, DeviceTimes, FileMaker, LogDevice};

/// Counters of a connection.
#[derive(Debug, Default)]
struct Counters {
    bytes: AtomicU64,
    round_trips: AtomicU64,
    round_trip_ns: AtomicU64,
    round_trip_ns_max: AtomicU64,
}

/// Figures of a standby's connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkFigures {
    /// Bytes sent, headers included.
    pub bytes: u64,
    /// Syncs answered.
    pub round_trips: u64,
    /// Sum of their times from sending to the answer, ns.
    pub round_trip_ns: u64,
    /// The longest, ns.
    pub round_trip_ns_max: u64,
}

/// A handle to read the figures of a standby's connection from any thread.
#[derive(Clone, Debug, Default)]
pub struct LinkWatch(Arc<Counters>);

impl LinkWatch {
    /// The figures so far.
    #[must_use]
    pub fn figures(&self) -> LinkFigures {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LinkFigures {
            bytes: of(&self.0.bytes),
            round_trips: of(&self.0.round_trips),
            round_trip_ns: of(&self.0.round_trip_ns),
            round_trip_ns_max: of(&self.0.round_trip_ns_max),
        }
    }
}

/// One connection.
struct Connection {
    stream: Stream,
    address: String,
    memory: Vec<u8>,
    counters: Arc<Counters>,
    /// Set after an error: a later answer could belong to an earlier request.
    broken: Option<String>,
}

impl Connection {
    fn open(
        address: &str,
        timeout: Duration,
        role: u64,
        counters: Arc<Counters>,
    ) -> Result<(Self, Vec<u8>), DeviceError> {
        let stream = Stream::connect(address, timeout).map_err(|source| unreachable(address, source))?;
        let mut connection =
            Connection { stream, address: address.to_owned(), memory: Vec::new(), counters, broken: None };
        let greeting = connection.ask(Head::new(Kind::Hello).number(role), &[])?;
        Ok((connection, greeting))
    }

    fn send(&mut self, head: Head, body: &[u8]) -> Result<(), DeviceError> {
        if let Some(why) = &self.broken {
            return Err(unreachable(&self.address, io::Error::new(io::ErrorKind::NotConnected, why.clone())));
        }
        match head.send(body, &mut self.memory, &mut self.stream) {
            Ok(bytes) => {
                self.counters.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
                Ok(())
            }
            Err(e) => Err(self.lost(e)),
        }
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

    /// Requests a sync, and times it.
    fn ask_sync(&mut self, head: Head, body: &[u8]) -> Result<(), DeviceError> {
        let begun = Instant::now();
        self.ask(head, body)?;
        let took = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.counters.round_trips.fetch_add(1, Ordering::Relaxed);
        self.counters.round_trip_ns.fetch_add(took, Ordering::Relaxed);
        self.counters.round_trip_ns_max.fetch_max(took, Ordering::Relaxed);
        Ok(())
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

type SharedConnection = Arc<Mutex<Connection>>;

fn lock(shared: &SharedConnection) -> MutexGuard<'_, Connection> {
    // If a panic left a frame incomplete, the checksum shows it.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The standby's log as a log device.
pub(super) struct Link {
    connection: SharedConnection,
    timeout: Duration,
    /// Whether a sync is answered when the standby has the blocks in memory.
    on_receipt: Arc<AtomicBool>,
    block_bytes: usize,
    file_bytes: u64,
    described: String,
}

impl Link {
    /// Connects to the standby at `address`. While `on_receipt` is set, a sync is answered when the standby has the
    /// blocks in memory.
    pub(super) fn connect(
        address: &str,
        timeout: Duration,
        on_receipt: &Arc<AtomicBool>,
        watch: &LinkWatch,
    ) -> Result<Link, DeviceError> {
        let (connection, greeting) = Connection::open(address, timeout, 0, Arc::clone(&watch.0))?;
        let wrong = || unreachable(address, io::Error::new(io::ErrorKind::InvalidData, "its greeting is too short"));
        let (block, rest) = greeting.split_first_chunk().ok_or_else(wrong)?;
        let (file, text) = rest.split_first_chunk().ok_or_else(wrong)?;
        Ok(Link {
            connection: Arc::new(Mutex::new(connection)),
            timeout,
            on_receipt: Arc::clone(on_receipt),
            block_bytes: u32::from_le_bytes(*block) as usize,
            file_bytes: u64::from_le_bytes(*file),
            described: format!("standby at {address}: {}", String::from_utf8_lossy(text)),
        })
    }

    fn flags(&self) -> u8 {
        if self.on_receipt.load(Ordering::SeqCst) { ON_RECEIPT } else { 0 }
    }

    /// The label, which the standby stores.
    pub(super) fn label(&self) -> Box<dyn LabelStore> {
        Box::new(RemoteLabel(Arc::clone(&self.connection)))
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
        lock(&self.connection).ask(Head::new(Kind::Open).number(file), &[]).map(|_| ())
    }

    fn write(&mut self, offset: u64, blocks: &[u8]) -> Result<(), DeviceError> {
        lock(&self.connection).send(Head::new(Kind::Write).offset(offset), blocks)
    }

    fn sync(&mut self) -> Result<(), DeviceError> {
        lock(&self.connection).ask_sync(Head::new(Kind::Sync).flags(self.flags()), &[])
    }

    fn write_and_sync(
        &mut self,
        offset: u64,
        blocks: &[u8],
        now: &dyn Fn() -> u64,
    ) -> Result<DeviceTimes, DeviceError> {
        let begun = now();
        lock(&self.connection).ask_sync(Head::new(Kind::WriteSync).offset(offset).flags(self.flags()), blocks)?;
        Ok(DeviceTimes { write_ns: 0, sync_ns: now().saturating_sub(begun) })
    }

    fn files(&self) -> Result<Vec<u64>, DeviceError> {
        let body = lock(&self.connection).ask(Head::new(Kind::Files), &[])?;
        Ok(body.as_chunks().0.iter().map(|eight| u64::from_le_bytes(*eight)).collect())
    }

    fn read(&self, file: u64, offset: u64, into: &mut [u8]) -> Result<usize, DeviceError> {
        let wanted = u32::try_from(into.len().min(super::frame::MAX_BODY)).unwrap_or_default();
        let head = Head::new(Kind::Read).number(file).offset(offset);
        let body = lock(&self.connection).ask(head, &wanted.to_le_bytes())?;
        let length = body.len().min(into.len());
        if let (Some(into), Some(body)) = (into.get_mut(..length), body.get(..length)) {
            into.copy_from_slice(body);
        }
        Ok(length)
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
                let (connection, _) = Connection::open(&self.address, patience, 1, Arc::default())?;
                self.connection.insert(connection)
            }
        };
        let body = recycle.map(u64::to_le_bytes);
        connection.ask(Head::new(Kind::Make).number(file), body.as_ref().map_or(&[], |b| b)).map(|_| ())
    }
}

struct RemoteLabel(SharedConnection);

impl LabelStore for RemoteLabel {
    fn load(&mut self) -> Result<Option<String>, DeviceError> {
        let body = lock(&self.0).ask(Head::new(Kind::LoadLabel), &[])?;
        Ok((!body.is_empty()).then(|| String::from_utf8_lossy(&body).into_owned()))
    }

    fn store(&mut self, text: &str) -> Result<(), DeviceError> {
        lock(&self.0).ask(Head::new(Kind::StoreLabel), text.as_bytes()).map(|_| ())
    }
}
