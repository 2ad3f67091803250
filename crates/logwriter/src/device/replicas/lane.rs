//! A lane: one member of a set of replicas behind a thread of its own, which does what it is handed
//! in order, and the board on which all lanes of a set say how far they are.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use loadline_device::AlignedBuf;

use crate::device::{DeviceError, LogDevice};

/// What a lane is handed. A ticket numbers the syncs; blocks are shared by all lanes.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Open { file: u64 },
    Write { offset: u64, blocks: Blocks },
    WriteSync { offset: u64, blocks: Blocks, ticket: u64 },
    Sync { ticket: u64 },
}

impl Op {
    fn bytes(&self) -> usize {
        match self {
            Op::Write { blocks, .. } | Op::WriteSync { blocks, .. } => blocks.length,
            Op::Open { .. } | Op::Sync { .. } => 0,
        }
    }

    fn ticket(&self) -> Option<u64> {
        match self {
            Op::WriteSync { ticket, .. } | Op::Sync { ticket } => Some(*ticket),
            Op::Open { .. } | Op::Write { .. } => None,
        }
    }
}

/// Blocks on their way to the lanes, in memory that goes back to where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    pub(crate) memory: Arc<AlignedBuf>,
    pub(crate) length: usize,
}

impl Blocks {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.get(..self.length).unwrap_or_default()
    }
}

/// Memory for blocks, used again once every lane is done with it.
#[derive(Debug, Default)]
pub(crate) struct Pool(Vec<Arc<AlignedBuf>>);

impl Pool {
    /// `length` bytes, as `fill` fills them.
    pub(crate) fn blocks<E: From<loadline_device::DeviceError>>(
        &mut self,
        length: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Blocks, E> {
        let free = |memory: &mut Arc<AlignedBuf>| memory.len() >= length && Arc::get_mut(memory).is_some();
        let mut memory = match self.0.iter_mut().position(free) {
            Some(free) => self.0.swap_remove(free),
            None => {
                // Small ones that are free make room for one that fits.
                self.0.retain_mut(|memory| Arc::get_mut(memory).is_none());
                Arc::new(AlignedBuf::new(length.next_power_of_two().max(1 << 16))?)
            }
        };
        let filled = match Arc::get_mut(&mut memory).and_then(|memory| memory.get_mut(..length)) {
            Some(to) => fill(to),
            None => Ok(()),
        };
        self.0.push(Arc::clone(&memory));
        filled.map(|()| Blocks { memory, length })
    }
}

/// How far one lane is.
#[derive(Debug, Default)]
pub(crate) struct LaneState {
    pub(crate) name: String,
    queue: VecDeque<Op>,
    /// Bytes handed over and not yet written.
    pub(crate) behind: usize,
    /// All tickets up to this one are durable here.
    pub(crate) done: u64,
    /// Why it is of no more use.
    pub(crate) failed: Option<String>,
    /// Whether the set goes on without it.
    pub(crate) dropped: bool,
    pub(crate) writes: u64,
    pub(crate) syncs: u64,
    pub(crate) bytes: u64,
    /// How often it was the first to have a ticket.
    pub(crate) first: u64,
}

/// What all lanes share.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) lanes: Vec<LaneState>,
    closing: bool,
    /// How often a write had to wait because a lane was too far behind.
    pub(crate) stalls: u64,
}

/// How far each lane is, and where to wait for it.
#[derive(Debug)]
pub(crate) struct Board {
    state: Mutex<State>,
    /// Some lane got on, or failed.
    progress: Condvar,
    /// There is work, one for each lane.
    work: Vec<Condvar>,
}

impl Board {
    pub(crate) fn new(names: impl IntoIterator<Item = String>) -> Board {
        let lanes: Vec<_> = names.into_iter().map(|name| LaneState { name, ..LaneState::default() }).collect();
        let work = lanes.iter().map(|_| Condvar::new()).collect();
        Board { state: Mutex::new(State { lanes, ..State::default() }), progress: Condvar::new(), work }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // What is under the lock is whole between any two statements, so a panic elsewhere spoils nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until some lane got on or failed.
    pub(crate) fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.progress.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands `op` to every lane that still works.
    pub(crate) fn hand_over(&self, state: &mut State, op: &Op) {
        for (lane, work) in state.lanes.iter_mut().zip(&self.work) {
            if lane.failed.is_none() {
                lane.behind += op.bytes();
                lane.queue.push_back(op.clone());
                work.notify_one();
            }
        }
    }

    /// Takes a lane out of service.
    pub(crate) fn fail(&self, index: usize, cause: String) {
        if let Some(lane) = self.lock().lanes.get_mut(index) {
            lane.failed.get_or_insert(cause);
            lane.queue.clear();
            lane.behind = 0;
        }
        self.progress.notify_all();
    }

    /// All that waits for lane `index`, once there is something. Nothing when it is to end.
    fn take(&self, index: usize) -> Option<VecDeque<Op>> {
        let work = self.work.get(index)?;
        let mut state = self.lock();
        loop {
            let closing = state.closing;
            let lane = state.lanes.get_mut(index)?;
            if lane.failed.is_some() {
                return None;
            }
            if !lane.queue.is_empty() {
                return Some(std::mem::take(&mut lane.queue));
            }
            if closing {
                return None;
            }
            state = work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wrote(&self, index: usize, bytes: usize, synced: Option<u64>) {
        let mut state = self.lock();
        let first = synced.is_some_and(|t| state.lanes.iter().all(|l| l.done < t));
        if let Some(lane) = state.lanes.get_mut(index) {
            lane.behind = lane.behind.saturating_sub(bytes);
            lane.bytes += bytes as u64;
            lane.writes += u64::from(bytes > 0);
            if let Some(ticket) = synced {
                lane.done = ticket;
                lane.syncs += 1;
                lane.first += u64::from(first);
            }
        }
        drop(state);
        self.progress.notify_all();
    }
}

/// A member's device and its thread.
pub(crate) struct Lane {
    pub(crate) device: Arc<Mutex<Box<dyn LogDevice>>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Lane {
    /// Starts the thread of lane `index` of `board`.
    pub(crate) fn start(board: &Arc<Board>, index: usize, device: Box<dyn LogDevice>) -> Result<Lane, DeviceError> {
        let device = Arc::new(Mutex::new(device));
        let (its_board, its_device) = (Arc::clone(board), Arc::clone(&device));
        let thread = thread::Builder::new()
            .name(format!("log-replica-{index}"))
            .spawn(move || run(&its_board, index, &its_device))
            .map_err(|source| DeviceError::Io {
                action: "start",
                what: "the thread of a replica".to_owned(),
                source,
                advice: "Raise the limit on threads (ulimit -u)".to_owned(),
            })?;
        Ok(Lane { device, thread: Some(thread) })
    }
}

/// Lets all lanes do what they were handed, and waits for them.
pub(crate) fn close(board: &Board, lanes: &mut [Option<Lane>]) {
    board.lock().closing = true;
    board.work.iter().for_each(Condvar::notify_all);
    for thread in lanes.iter_mut().flatten().filter_map(|lane| lane.thread.take()) {
        // A lane that panicked has nothing to hand back; what it did not write is not acknowledged.
        let _ = thread.join();
    }
}

fn run(board: &Board, index: usize, device: &Mutex<Box<dyn LogDevice>>) {
    // If the device panics, whoever waits for this lane must hear of it.
    let guard = Fails { board, index };
    let begun = Instant::now();
    let now = || u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    while let Some(batch) = board.take(index) {
        let mut device = device.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, op) in batch.iter().enumerate() {
            // A lane that is behind makes one sync of those that wait in the same file.
            let later = batch.iter().skip(at + 1).take_while(|op| !matches!(op, Op::Open { .. }));
            let ticket = op.ticket().filter(|_| !later.clone().any(|op| op.ticket().is_some()));
            let result = match op {
                Op::Open { file } => device.open_file(*file),
                Op::Write { offset, blocks } => device.write(*offset, blocks.bytes()),
                Op::WriteSync { offset, blocks, .. } if ticket.is_some() => {
                    device.write_and_sync(*offset, blocks.bytes(), &now).map(|_| ())
                }
                Op::WriteSync { offset, blocks, .. } => device.write(*offset, blocks.bytes()),
                Op::Sync { .. } if ticket.is_some() => device.sync(),
                Op::Sync { .. } => Ok(()),
            };
            match result {
                Ok(()) => board.wrote(index, op.bytes(), ticket),
                Err(e) => {
                    board.fail(index, e.to_string());
                    std::mem::forget(guard);
                    return;
                }
            }
        }
    }
    std::mem::forget(guard);
}

struct Fails<'a> {
    board: &'a Board,
    index: usize,
}

impl Drop for Fails<'_> {
    fn drop(&mut self) {
        self.board.fail(self.index, "its thread ended unexpectedly".to_owned());
    }
}
