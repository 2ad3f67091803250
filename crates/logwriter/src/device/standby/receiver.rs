//! The standby's side: receives blocks from the network and writes them to its own log device.

use std::io::{self, Read as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::frame::{Head, Kind, ON_RECEIPT};
use super::stream::{Listener, connect};
use crate::device::replicas::{BACKLOG_BYTES, Blocks, Board, Lane, Op, Pool, close};
use crate::device::{DeviceError, FileMaker, LogDevice};

/// A standby that receives a log. Dropping it ends it after everything received is written.
pub struct Receiver {
    address: String,
    standby: Arc<Standby>,
    lane: Vec<Lane>,
    thread: Option<JoinHandle<()>>,
}

struct Standby {
    board: Arc<Board>,
    device: Arc<Mutex<Box<dyn LogDevice>>>,
    maker: Mutex<Box<dyn FileMaker>>,
    greeting: Vec<u8>,
    stopping: AtomicBool,
    ticket: AtomicU64,
    /// Open connections by number, to be closed at the end.
    connections: Mutex<Vec<(u64, UnixStream)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The guarded values are consistent after every statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Receiver {
    /// Starts to receive to `device`: through a new Unix socket, or over TCP at a free port of 127.0.0.1. There is no
    /// encryption and no password.
    ///
    /// # Errors
    /// The socket cannot be made, or there is no free port.
    pub fn start(device: Box<dyn LogDevice>, socket: Option<&Path>) -> Result<Receiver, DeviceError> {
        let failed = |source| DeviceError::Io {
            action: "start",
            what: socket.map_or("a standby".to_owned(), |path| format!("standby at {}", path.display())),
            source,
            advice: "Check the folder of its socket, and the limits on open files and threads".to_owned(),
        };
        let listener = Listener::bind(socket).map_err(failed)?;
        let address = listener.address().map_err(failed)?;
        let mut greeting = u32::try_from(device.block_bytes()).unwrap_or_default().to_le_bytes().to_vec();
        greeting.extend_from_slice(&device.file_bytes().to_le_bytes());
        greeting.extend_from_slice(device.describe().as_bytes());
        let board = Arc::new(Board::new([device.describe()]));
        let maker = Mutex::new(device.file_maker());
        let lane = Lane::start(&board, 0, device)?;
        let standby = Arc::new(Standby {
            board,
            device: Arc::clone(&lane.device),
            maker,
            greeting,
            stopping: AtomicBool::new(false),
            ticket: AtomicU64::new(0),
            connections: Mutex::default(),
        });
        let shared = Arc::clone(&standby);
        let thread = thread::Builder::new()
            .name("log-standby".to_owned())
            .spawn(move || accept(&listener, &shared))
            .map_err(failed)?;
        Ok(Receiver { address, standby, lane: vec![lane], thread: Some(thread) })
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Why its device failed, if it did.
    pub fn failed(&self) -> Option<String> {
        self.standby.board.lock().lanes.first().and_then(|lane| lane.failed.clone())
    }

    /// Bytes written since it started.
    pub fn written_bytes(&self) -> u64 {
        self.standby.board.lock().lanes.first().map_or(0, |lane| lane.bytes)
    }

    /// Bytes received and not yet written.
    #[cfg(test)]
    pub(super) fn behind_bytes(&self) -> usize {
        self.standby.board.lock().lanes.first().map_or(0, |lane| lane.behind)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.standby.stopping.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _ = connect(&self.address, Duration::from_secs(10));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        close(&self.standby.board, &mut self.lane);
    }
}

fn accept(listener: &Listener, standby: &Arc<Standby>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    for number in 0.. {
        let stream = listener.accept();
        if standby.stopping.load(Ordering::SeqCst) {
            break;
        }
        let Ok(stream) = stream else {
            // Usually too many open files, which is temporary.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        threads.retain(|thread| !thread.is_finished());
        if let Ok(ours) = stream.try_clone() {
            lock(&standby.connections).push((number, ours));
            let shared = Arc::clone(standby);
            let serve = move || {
                serve(&shared, stream);
                lock(&shared.connections).retain(|(other, _)| *other != number);
            };
            if let Ok(thread) = thread::Builder::new().name("log-standby-link".to_owned()).spawn(serve) {
                threads.push(thread);
            }
        }
    }
    for (_, stream) in lock(&standby.connections).iter() {
        let _ = stream.shutdown(Shutdown::Both);
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// Serves one connection until it ends or something is wrong with it.
fn serve(standby: &Standby, mut stream: UnixStream) {
    let mut memory = Vec::new();
    if let Err(e) = talk(standby, &mut stream, &mut memory)
        && e.kind() != io::ErrorKind::UnexpectedEof
    {
        // Best effort: the other side may be gone.
        let _ = Head::new(Kind::Failed).send(e.to_string().as_bytes(), &mut memory, &mut stream);
    }
    let _ = stream.shutdown(Shutdown::Both);
}

fn talk(standby: &Standby, stream: &mut UnixStream, memory: &mut Vec<u8>) -> io::Result<()> {
    let hello = Head::receive(stream)?;
    hello.body(stream)?;
    if hello.kind != Kind::Hello {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a connection must start with a greeting"));
    }
    let mut pool = Pool::default();
    Head::new(Kind::Done).send(&standby.greeting, memory, stream)?;
    loop {
        let head = Head::receive(stream)?;
        let answer = match head.kind {
            Kind::Write | Kind::WriteSync => {
                let blocks = pool.blocks(head.length, |to| {
                    stream.read_exact(to)?;
                    head.check(to).map_err(FillError)
                });
                standby.put(&head, Some(blocks.map_err(|FillError(e)| e)?))?;
                Vec::new()
            }
            _ => {
                let body = head.body(stream)?;
                standby.answer(&head, &body)?
            }
        };
        if head.kind != Kind::Write {
            Head::new(Kind::Done).send(&answer, memory, stream)?;
        }
    }
}

/// An error while a pool's memory is filled.
struct FillError(io::Error);

impl From<io::Error> for FillError {
    fn from(e: io::Error) -> Self {
        FillError(e)
    }
}

impl From<loadline_storage::DeviceError> for FillError {
    fn from(e: loadline_storage::DeviceError) -> Self {
        FillError(io::Error::other(e.to_string()))
    }
}

fn as_io(e: DeviceError) -> io::Error {
    io::Error::other(e.to_string())
}

impl Standby {
    /// Executes a request without blocks.
    fn answer(&self, head: &Head, body: &[u8]) -> io::Result<Vec<u8>> {
        match head.kind {
            Kind::Open | Kind::Sync => self.put(head, None).map(|()| Vec::new()),
            Kind::Files => {
                let files = lock(&self.device).files().map_err(as_io)?;
                Ok(files.into_iter().flat_map(u64::to_le_bytes).collect())
            }
            Kind::Make => {
                let recycle = body.first_chunk().map(|eight| u64::from_le_bytes(*eight));
                lock(&self.maker).make(head.number, recycle).map_err(as_io)?;
                Ok(Vec::new())
            }
            kind => Err(io::Error::new(io::ErrorKind::InvalidData, format!("{kind:?} is no request"))),
        }
    }

    /// Queues blocks, a file or a sync, and waits for a sync unless it is answered on receipt.
    fn put(&self, head: &Head, blocks: Option<Blocks>) -> io::Result<()> {
        let mut state = self.board.lock();
        let bytes = blocks.as_ref().map_or(0, |blocks| blocks.length);
        while let Some(lane) = state.lanes.first() {
            if let Some(why) = &lane.failed {
                return Err(io::Error::other(why.clone()));
            }
            if bytes == 0 || lane.behind == 0 || lane.behind + bytes <= BACKLOG_BYTES {
                break;
            }
            state = self.board.wait(state);
        }
        let offset = head.offset;
        let mut ticket = None;
        let mut next = || *ticket.insert(self.ticket.fetch_add(1, Ordering::SeqCst) + 1);
        let op = match (head.kind, blocks) {
            (Kind::Open, _) => Op::Open { file: head.number },
            (Kind::WriteSync, Some(blocks)) => Op::WriteSync { offset, blocks, ticket: next() },
            (Kind::Write, Some(blocks)) => Op::Write { offset, blocks },
            _ => Op::Sync { ticket: next() },
        };
        self.board.enqueue(&mut state, &op);
        drop(state);
        match ticket {
            Some(ticket) if head.flags & ON_RECEIPT == 0 => self.wait(ticket),
            _ => Ok(()),
        }
    }

    fn wait(&self, ticket: u64) -> io::Result<()> {
        let mut state = self.board.lock();
        while let Some(lane) = state.lanes.first() {
            if let Some(why) = &lane.failed {
                return Err(io::Error::other(why.clone()));
            }
            if lane.done >= ticket {
                break;
            }
            state = self.board.wait(state);
        }
        Ok(())
    }
}
