//! The standby's side: receives blocks from the network and writes them to its own log device.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::frame::{Head, Kind, MAX_BODY, ON_RECEIPT};
use super::stream::{Listener, Stream};
use crate::device::replicas::{Blocks, Board, FileLabel, LabelStore as _, Lane, Op, Pool, close};
use crate::device::{DeviceError, FileMaker, LogDevice};

/// Settings of a [`Receiver`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverOptions {
    /// Listen address: `host:port` (port 0 picks a free one), or the absolute path of a new Unix socket.
    pub listen: String,
    /// Whether it may listen on an address that other hosts can reach. There is no encryption and no password:
    /// anyone who reaches the port can write to the log.
    pub allow_remote: bool,
    /// How much it keeps in memory before it stops receiving, bytes.
    pub backlog_bytes: usize,
}

impl Default for ReceiverOptions {
    fn default() -> Self {
        Self { listen: "127.0.0.1:0".to_owned(), allow_remote: false, backlog_bytes: 64 << 20 }
    }
}

/// A standby that receives a log. Dropping it ends it after everything received is written.
pub struct Receiver {
    address: String,
    standby: Arc<Standby>,
    thread: Option<JoinHandle<()>>,
}

struct Standby {
    board: Arc<Board>,
    lane: Mutex<[Option<Lane>; 1]>,
    label: Mutex<FileLabel>,
    maker: Mutex<Box<dyn FileMaker>>,
    greeting: Vec<u8>,
    backlog_bytes: usize,
    stopping: AtomicBool,
    ticket: AtomicU64,
    /// Open connections by number, to be closed at the end, and the number of the log's newest greeting.
    connections: Mutex<(Vec<(u64, Stream)>, u64)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The guarded values are consistent after every statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Receiver {
    /// Starts to receive to `device`, whose directory is `dir`.
    ///
    /// # Errors
    /// The address is not of this host, the port is in use, or other hosts can reach it and
    /// [`ReceiverOptions::allow_remote`] is not set.
    pub fn start(device: Box<dyn LogDevice>, dir: &Path, options: &ReceiverOptions) -> Result<Receiver, DeviceError> {
        let failed = |source| DeviceError::Io {
            action: "start",
            what: format!("standby at {}", options.listen),
            source,
            advice: "Name an address of this host and a free port".to_owned(),
        };
        let listener = Listener::bind(&options.listen, options.allow_remote)?;
        let address = listener.address().map_err(failed)?;
        let mut greeting = u32::try_from(device.block_bytes()).unwrap_or_default().to_le_bytes().to_vec();
        greeting.extend_from_slice(&device.file_bytes().to_le_bytes());
        greeting.extend_from_slice(device.describe().as_bytes());
        let board = Arc::new(Board::new([device.describe()]));
        let standby = Arc::new(Standby {
            maker: Mutex::new(device.file_maker()),
            lane: Mutex::new([Some(Lane::start(&board, 0, device)?)]),
            board,
            label: Mutex::new(FileLabel::in_dir(dir)),
            greeting,
            backlog_bytes: options.backlog_bytes,
            stopping: AtomicBool::new(false),
            ticket: AtomicU64::new(0),
            connections: Mutex::default(),
        });
        let shared = Arc::clone(&standby);
        let thread = thread::Builder::new()
            .name("log-standby".to_owned())
            .spawn(move || accept(&listener, &shared))
            .map_err(failed)?;
        Ok(Receiver { address, standby, thread: Some(thread) })
    }

    /// Its listen address.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Why its device failed, if it did.
    #[must_use]
    pub fn failed(&self) -> Option<String> {
        self.standby.board.lock().lanes.first().and_then(|lane| lane.failed.clone())
    }

    /// Bytes written since it started.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.standby.board.lock().lanes.first().map_or(0, |lane| lane.bytes)
    }

    /// Bytes received and not yet written.
    #[must_use]
    pub fn behind_bytes(&self) -> u64 {
        self.standby.board.lock().lanes.first().map_or(0, |lane| lane.behind as u64)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.standby.stopping.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _ = Stream::connect(&self.address, Duration::from_secs(10));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        close(&self.standby.board, lock(&self.standby.lane).as_mut_slice());
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
            lock(&standby.connections).0.push((number, ours));
            let shared = Arc::clone(standby);
            let serve = move || {
                serve(&shared, stream);
                lock(&shared.connections).0.retain(|(other, _)| *other != number);
            };
            if let Ok(thread) = thread::Builder::new().name("log-standby-link".to_owned()).spawn(serve) {
                threads.push(thread);
            }
        }
    }
    for (_, stream) in &lock(&standby.connections).0 {
        stream.close();
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// Serves one connection until it ends or something is wrong with it.
fn serve(standby: &Standby, mut stream: Stream) {
    let mut memory = Vec::new();
    let _ = stream.send_at_once();
    if let Err(e) = talk(standby, &mut stream, &mut memory)
        && e.kind() != io::ErrorKind::UnexpectedEof
    {
        // Best effort: the other side may be gone.
        let _ = Head::new(Kind::Failed).send(e.to_string().as_bytes(), &mut memory, &mut stream);
    }
    stream.close();
}

fn talk(standby: &Standby, stream: &mut Stream, memory: &mut Vec<u8>) -> io::Result<()> {
    let hello = Head::receive(stream)?;
    hello.body(stream)?;
    if hello.kind != Kind::Hello || hello.number > 1 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a connection must start with a greeting"));
    }
    let mut pool = Pool::default();
    let mut mine = None;
    if hello.number == 0 {
        // The newest connection of a log wins: the previous one may belong to a dead primary. What that one sent
        // is written first.
        let mut connections = lock(&standby.connections);
        connections.1 += 1;
        mine = Some(connections.1);
        drop(connections);
        standby.sync_all()?;
    }
    Head::new(Kind::Done).send(&standby.greeting, memory, stream)?;
    loop {
        let head = Head::receive(stream)?;
        let answer = match head.kind {
            Kind::Write | Kind::WriteSync => {
                let blocks = pool.blocks(head.length, |to| {
                    io::Read::read_exact(stream, to)?;
                    head.check(to).map_err(FillError)
                });
                let blocks = blocks.map_err(|FillError(e)| e)?;
                standby.put(&head, mine, Some(blocks))?;
                None
            }
            _ => Some(head.body(stream)?),
        };
        let answer = match answer {
            None => Vec::new(),
            Some(body) => standby.answer(&head, mine, &body)?,
        };
        if head.kind != Kind::Write {
            Head::new(Kind::Done).number(head.number).offset(head.offset).send(&answer, memory, stream)?;
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

impl From<loadline_device::DeviceError> for FillError {
    fn from(e: loadline_device::DeviceError) -> Self {
        FillError(io::Error::other(e.to_string()))
    }
}

fn as_io(e: &DeviceError) -> io::Error {
    io::Error::other(e.to_string())
}

impl Standby {
    /// Executes a request without blocks.
    fn answer(&self, head: &Head, mine: Option<u64>, body: &[u8]) -> io::Result<Vec<u8>> {
        match head.kind {
            Kind::Open | Kind::Sync => self.put(head, mine, None).map(|()| Vec::new()),
            Kind::Files => {
                self.sync_all()?;
                let files = self.ask(|device| device.files())?;
                Ok(files.into_iter().flat_map(u64::to_le_bytes).collect())
            }
            Kind::Read => {
                self.sync_all()?;
                let wanted = body.first_chunk().map_or(0, |four| u32::from_le_bytes(*four)) as usize;
                let mut bytes = vec![0; wanted.min(MAX_BODY)];
                let read = self.ask(|device| device.read(head.number, head.offset, &mut bytes))?;
                bytes.truncate(read);
                Ok(bytes)
            }
            Kind::Make => {
                let recycle = body.first_chunk().map(|eight| u64::from_le_bytes(*eight));
                lock(&self.maker).make(head.number, recycle).map_err(|e| as_io(&e))?;
                Ok(Vec::new())
            }
            Kind::LoadLabel => {
                Ok(lock(&self.label).load().map_err(|e| as_io(&e))?.map_or_else(Vec::new, String::into_bytes))
            }
            Kind::StoreLabel => {
                self.check_newest(mine)?;
                // The label describes what was written before it.
                self.sync_all()?;
                lock(&self.label).store(&String::from_utf8_lossy(body)).map_err(|e| as_io(&e))?;
                Ok(Vec::new())
            }
            kind => Err(io::Error::new(io::ErrorKind::InvalidData, format!("{kind:?} is no request"))),
        }
    }

    /// Asks the device.
    fn ask<T>(&self, question: impl FnOnce(&dyn LogDevice) -> Result<T, DeviceError>) -> io::Result<T> {
        let device = match lock(&self.lane).as_slice() {
            [Some(lane)] => Arc::clone(&lane.device),
            _ => return Err(io::Error::other("the standby is ending")),
        };
        let device = lock(&device);
        question(device.as_ref()).map_err(|e| as_io(&e))
    }

    /// Checks that this connection is still the newest of the log.
    fn check_newest(&self, mine: Option<u64>) -> io::Result<()> {
        if mine.is_some_and(|mine| mine == lock(&self.connections).1) {
            return Ok(());
        }
        Err(io::Error::other("another log has connected to this standby in the meantime"))
    }

    /// Queues blocks, a file or a sync, and waits for a sync unless it is answered on receipt.
    fn put(&self, head: &Head, mine: Option<u64>, blocks: Option<Blocks>) -> io::Result<()> {
        let mut state = self.board.lock();
        let bytes = blocks.as_ref().map_or(0, |blocks| blocks.length);
        let mut stalled = false;
        while let Some(lane) = state.lanes.first() {
            if let Some(why) = &lane.failed {
                return Err(io::Error::other(why.clone()));
            }
            if bytes == 0 || lane.behind == 0 || lane.behind + bytes <= self.backlog_bytes {
                break;
            }
            stalled = true;
            state = self.board.wait(state);
        }
        state.stalls += u64::from(stalled);
        // Under the board's lock: nothing may follow the first sync of a newer connection.
        self.check_newest(mine)?;
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

    /// Waits until everything received is durable.
    fn sync_all(&self) -> io::Result<()> {
        if self.ticket.load(Ordering::SeqCst) == 0 {
            // Nothing was written, so no file is open.
            return Ok(());
        }
        let mut state = self.board.lock();
        let ticket = self.ticket.fetch_add(1, Ordering::SeqCst) + 1;
        self.board.enqueue(&mut state, &Op::Sync { ticket });
        drop(state);
        self.wait(ticket)
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
