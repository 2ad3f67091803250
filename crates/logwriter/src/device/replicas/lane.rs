//! A lane: the thread of one member of a replica set, which executes its queue in order. The board holds the
//! queues and the progress of all lanes.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use loadline_storage::AlignedBuf;

use super::Rule;
use crate::device::{DeviceError, LogDevice};

/// An operation in a lane's queue. Tickets number the syncs; all lanes share the blocks.
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

/// Blocks to write, in memory of a [`Pool`].
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

/// Memory for blocks, reused when every lane is done with it.
#[derive(Debug, Default)]
pub(crate) struct Pool(Vec<Arc<AlignedBuf>>);

impl Pool {
    /// `length` bytes, written by `fill`. All lanes share them, because they finish at different times.
    pub(crate) fn blocks(&mut self, length: usize, fill: impl FnOnce(&mut [u8])) -> Result<Blocks, DeviceError> {
        let free = |memory: &mut Arc<AlignedBuf>| memory.len() >= length && Arc::get_mut(memory).is_some();
        let mut memory = match self.0.iter_mut().position(free) {
            Some(free) => self.0.swap_remove(free),
            None => {
                // Free the unused ones: they are too small.
                self.0.retain_mut(|memory| Arc::get_mut(memory).is_none());
                Arc::new(AlignedBuf::new(length.next_power_of_two().max(1 << 16))?)
            }
        };
        if let Some(to) = Arc::get_mut(&mut memory).and_then(|memory| memory.get_mut(..length)) {
            fill(to);
        }
        self.0.push(Arc::clone(&memory));
        Ok(Blocks { memory, length })
    }
}

/// Queue and progress of one lane.
#[derive(Debug, Default)]
pub(crate) struct LaneState {
    pub(crate) name: String,
    queue: VecDeque<Op>,
    /// Bytes queued and not yet written.
    pub(crate) behind: usize,
    /// All tickets up to this one are durable on this member.
    pub(crate) done: u64,
    pub(crate) failed: Option<String>,
    pub(crate) bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) lanes: Vec<LaneState>,
    closing: bool,
    /// Another rule that the set must adopt.
    pub(crate) wanted: Option<Rule>,
}

impl State {
    /// The lanes that work.
    pub(crate) fn live(&self) -> Vec<usize> {
        self.lanes.iter().enumerate().filter(|(_, lane)| lane.failed.is_none()).map(|(index, _)| index).collect()
    }
}

/// The state of all lanes, with condition variables.
#[derive(Debug)]
pub(crate) struct Board {
    state: Mutex<State>,
    /// A lane progressed or failed.
    progress: Condvar,
    /// A lane has work; one for each.
    work: Vec<Condvar>,
}

impl Board {
    pub(crate) fn new(names: impl IntoIterator<Item = String>) -> Board {
        let lanes: Vec<_> = names.into_iter().map(|name| LaneState { name, ..LaneState::default() }).collect();
        let work = lanes.iter().map(|_| Condvar::new()).collect();
        Board { state: Mutex::new(State { lanes, ..State::default() }), progress: Condvar::new(), work }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent after every statement, so a panic elsewhere does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a lane progressed or failed.
    pub(crate) fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.progress.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues `op` for every lane that works.
    pub(crate) fn enqueue(&self, state: &mut State, op: &Op) {
        for (lane, work) in state.lanes.iter_mut().zip(&self.work) {
            if lane.failed.is_none() {
                lane.behind += op.bytes();
                lane.queue.push_back(op.clone());
                work.notify_one();
            }
        }
    }

    /// Whether lane `index` has not failed.
    pub(crate) fn works(&self, index: usize) -> bool {
        self.lock().lanes.get(index).is_some_and(|lane| lane.failed.is_none())
    }

    /// Marks a lane as failed.
    pub(crate) fn fail(&self, index: usize, cause: String) {
        if let Some(lane) = self.lock().lanes.get_mut(index) {
            lane.failed.get_or_insert(cause);
            lane.queue.clear();
            lane.behind = 0;
        }
        self.progress.notify_all();
    }

    /// Waits for work and takes the whole queue of lane `index`; `None` when the lane must end.
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
        if let Some(lane) = state.lanes.get_mut(index) {
            lane.behind = lane.behind.saturating_sub(bytes);
            lane.bytes += bytes as u64;
            lane.done = synced.unwrap_or(lane.done);
        }
        drop(state);
        self.progress.notify_all();
    }
}

/// A member's device and its thread.
pub(crate) struct Lane {
    pub(crate) device: Arc<Mutex<Box<dyn LogDevice>>>,
    thread: thread::JoinHandle<()>,
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
        Ok(Lane { device, thread })
    }

    pub(crate) fn device(&self) -> MutexGuard<'_, Box<dyn LogDevice>> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until all lanes have finished their queues, and ends them.
pub(crate) fn close(board: &Board, lanes: &mut Vec<Lane>) {
    board.lock().closing = true;
    board.work.iter().for_each(Condvar::notify_all);
    for lane in lanes.drain(..) {
        // What a lane that panicked did not write was not acknowledged.
        let _ = lane.thread.join();
    }
}

fn run(board: &Board, index: usize, device: &Mutex<Box<dyn LogDevice>>) {
    // If the device panics, those who wait for this lane must see it as failed.
    let guard = FailOnUnwind { board, index };
    let begun = Instant::now();
    let now = || u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    while let Some(batch) = board.take(index) {
        let mut device = device.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, op) in batch.iter().enumerate() {
            // A lane that is behind syncs once for all queued syncs of the same file.
            let later = batch.iter().skip(at + 1).take_while(|op| !matches!(op, Op::Open { .. }));
            let ticket = if !later.clone().any(|op| op.ticket().is_some()) { op.ticket() } else { None };
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

struct FailOnUnwind<'a> {
    board: &'a Board,
    index: usize,
}

impl Drop for FailOnUnwind<'_> {
    fn drop(&mut self) {
        self.board.fail(self.index, "its thread ended unexpectedly".to_owned());
    }
}
