//! The pieces of one direction of a connection that are under way, in order.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::way::READ;
use loadline_storage::now_ns;

/// What was received in one read.
pub(super) struct Piece {
    /// When it is due, ns.
    pub(super) due_ns: u64,
    /// The first `len` bytes are its own.
    pub(super) bytes: Vec<u8>,
    pub(super) len: usize,
}

/// Memory of a piece beside its bytes.
const PIECE: usize = size_of::<Piece>() + 16;
/// A longer wait is not slept through, so that a closed connection ends.
const NAP: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    pieces: VecDeque<Piece>,
    /// Memory of the pieces, bytes.
    held: usize,
    last_due_ns: u64,
    spare: Vec<Vec<u8>>,
    /// A piece was taken and is being sent.
    sending: bool,
    /// Nothing follows.
    ended: bool,
    /// Nothing can be sent.
    closed: bool,
}

impl Queue {
    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.pieces.is_empty() && !state.sending
    }

    /// A buffer of [`READ`] bytes.
    pub(super) fn spare(&self) -> Vec<u8> {
        self.lock().spare.pop().unwrap_or_else(|| vec![0; READ])
    }

    /// Adds a piece behind the others; waits while they hold more than `capacity` bytes. `false`: nothing can be sent.
    pub(super) fn push(&self, mut piece: Piece, capacity: usize) -> bool {
        let mut state = self.lock();
        while state.held > capacity && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return false;
        }
        // In order: one that is due earlier waits for those before it.
        piece.due_ns = piece.due_ns.max(state.last_due_ns);
        state.last_due_ns = piece.due_ns;
        state.held += piece.bytes.len() + PIECE;
        state.pieces.push_back(piece);
        self.changed.notify_all();
        true
    }

    /// The next piece, once it is due; `None` if there is no more.
    pub(super) fn next(&self) -> Option<Piece> {
        let mut state = self.lock();
        loop {
            let left = state.pieces.front().map(|piece| Duration::from_nanos(piece.due_ns.saturating_sub(now_ns())));
            match left {
                _ if state.closed => return None,
                Some(Duration::ZERO) => {
                    let piece = state.pieces.pop_front()?;
                    state.held = state.held.saturating_sub(piece.bytes.len() + PIECE);
                    state.sending = true;
                    self.changed.notify_all();
                    return Some(piece);
                }
                Some(left) => {
                    drop(state);
                    std::thread::sleep(left.min(NAP));
                    state = self.lock();
                }
                None if state.ended => return None,
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Takes the buffer of a piece back that has been sent.
    pub(super) fn sent(&self, piece: Piece) {
        let mut state = self.lock();
        state.sending = false;
        if piece.bytes.len() == READ && state.spare.len() < 8 {
            state.spare.push(piece.bytes);
        }
    }

    /// Nothing follows.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Nothing can be sent any more.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.pieces.clear();
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
