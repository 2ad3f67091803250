//! The standby's side: receives blocks and writes them to its own log device.

use std::io::{self, Read as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use super::frame::{Head, Kind, ON_RECEIPT};
use crate::device::replicas::{BACKLOG_BYTES, Board, Lane, LaneState, Op, Pool, State, close};
use crate::device::{DeviceError, LogDevice};

/// A standby that receives a log. Dropping it ends it after everything received is written.
pub(super) struct Receiver {
    pub(super) board: Arc<Board>,
    pub(super) device: Arc<Mutex<Box<dyn LogDevice>>>,
    lane: Vec<Lane>,
    pub(super) stream: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    pub(super) fn start(stream: UnixStream, device: Box<dyn LogDevice>) -> Result<Receiver, DeviceError> {
        let failed = |source| DeviceError::Io {
            action: "start",
            what: "a standby".to_owned(),
            source,
            advice: "Check the limits on open files and threads".to_owned(),
        };
        let board = Arc::new(Board::new([device.describe()]));
        let (shared, ours) = (Arc::clone(&board), stream.try_clone().map_err(failed)?);
        let lane = Lane::start(&board, 0, device)?;
        let thread = thread::Builder::new().name("log-standby".to_owned()).spawn(move || serve(&shared, stream));
        let thread = Some(thread.map_err(failed)?);
        Ok(Receiver { board, device: Arc::clone(&lane.device), lane: vec![lane], stream: ours, thread })
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        close(&self.board, &mut self.lane);
    }
}

/// Serves the log until its stream ends or something is wrong with it.
fn serve(board: &Board, mut stream: UnixStream) {
    let mut memory = Vec::new();
    if let Err(e) = receive(board, &mut stream, &mut memory)
        && e.kind() != io::ErrorKind::UnexpectedEof
    {
        // Best effort: the other side may be gone.
        let _ = Head::new(Kind::Failed).send(e.to_string().as_bytes(), &mut memory, &mut stream);
    }
    let _ = stream.shutdown(Shutdown::Both);
}

/// Queues what is received, and answers: a sync when it is done, unless it is answered on receipt.
fn receive(board: &Board, stream: &mut UnixStream, memory: &mut Vec<u8>) -> io::Result<()> {
    let (mut pool, mut ticket) = (Pool::default(), 0);
    loop {
        let head = Head::receive(stream)?;
        let mut read = Ok(());
        let blocks = pool.blocks(head.length, |to| read = stream.read_exact(to).and_then(|()| head.check(to)));
        read?;
        let (blocks, offset) = (blocks.map_err(|e| io::Error::other(e.to_string()))?, head.at);
        let is_sync = matches!(head.kind, Kind::Sync | Kind::WriteSync);
        ticket += u64::from(is_sync);
        let op = match head.kind {
            Kind::Open => Op::Open { file: head.at },
            Kind::Write => Op::Write { offset, blocks },
            Kind::WriteSync => Op::WriteSync { offset, blocks, ticket },
            Kind::Sync => Op::Sync { ticket },
            kind => return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{kind:?} is no request"))),
        };
        // No frame is longer than the backlog: an empty one has space for each.
        let mut state = wait(board, |lane| lane.behind + head.length <= BACKLOG_BYTES)?;
        board.enqueue(&mut state, &op);
        drop(state);
        if is_sync && head.flags & ON_RECEIPT == 0 {
            drop(wait(board, |lane| lane.done >= ticket)?);
        }
        if head.kind != Kind::Write {
            Head::new(Kind::Done).send(&[], memory, stream)?;
        }
    }
}

/// Waits until `ready` holds of the standby's lane; fails if that has failed.
fn wait(board: &Board, ready: impl Fn(&LaneState) -> bool) -> io::Result<MutexGuard<'_, State>> {
    let mut state = board.lock();
    while let Some(lane) = state.lanes.first() {
        if let Some(why) = &lane.failed {
            return Err(io::Error::other(why.clone()));
        }
        if ready(lane) {
            break;
        }
        state = board.wait(state);
    }
    Ok(state)
}
