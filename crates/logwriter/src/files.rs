//! Log files made ready ahead of their use, on a thread of their own.

use std::collections::BTreeSet;

use crate::config::Keep;
use crate::device::{DeviceError, FileMaker};
use crate::sync::{Condvar, Mutex};

/// What the maker's thread and who switches files share.
pub(crate) struct Files {
    state: Mutex<State>,
    changed: Condvar,
    keep: Keep,
}

struct State {
    maker: Option<Box<dyn FileMaker>>,
    have: BTreeSet<u64>,
    /// Below this all files that are still needed are ready.
    ready: u64,
    /// The file that is written to.
    current: u64,
    failed: Option<DeviceError>,
    over: bool,
}

impl Files {
    /// `have`: the files on the device, of which those that hold the log end before `first`, the
    /// first to be made ready.
    pub(crate) fn new(maker: Box<dyn FileMaker>, have: &[u64], first: u64, keep: Keep) -> Self {
        let have = have.iter().copied().collect();
        let state = State { maker: Some(maker), have, ready: first, current: first, failed: None, over: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), keep }
    }

    /// Says that `file` is written to now, and waits until it is ready.
    pub(crate) fn enter(&self, file: u64) -> Result<(), DeviceError> {
        let mut state = crate::locked(&self.state);
        state.current = state.current.max(file);
        self.changed.notify_all();
        while state.ready <= file {
            if let Some(failed) = state.failed.take() {
                return Err(failed);
            }
            if state.over {
                // The thread has ended, or was never started: made here.
                let Some(mut maker) = state.maker.take() else { break };
                let number = state.ready;
                let recycle = self.recyclable(&state);
                let made = maker.make(number, recycle);
                state.maker = Some(maker);
                made?;
                Self::made(&mut state, number, recycle);
                continue;
            }
            state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        Ok(())
    }

    /// The maker's thread: one file is always ready ahead of the one that is written to.
    pub(crate) fn run(&self) {
        let _unwinding = EndOnUnwind(self);
        let mut state = crate::locked(&self.state);
        while !state.over {
            let due = state.ready <= state.current.saturating_add(1) && state.failed.is_none();
            let Some(mut maker) = due.then(|| state.maker.take()).flatten() else {
                state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
                continue;
            };
            let (number, recycle) = (state.ready, self.recyclable(&state));
            drop(state);
            let made = maker.make(number, recycle);
            state = crate::locked(&self.state);
            state.maker = Some(maker);
            match made {
                Ok(()) => Self::made(&mut state, number, recycle),
                Err(error) => state.failed = Some(error),
            }
            self.changed.notify_all();
        }
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        crate::locked(&self.state).over = true;
        self.changed.notify_all();
    }

    fn made(state: &mut State, number: u64, recycled: Option<u64>) {
        if let Some(old) = recycled {
            state.have.remove(&old);
        }
        state.have.insert(number);
        state.ready = number + 1;
    }

    /// The oldest file, if the newest ones that are to be kept do not reach it. Nothing if the file
    /// to be made is there from before.
    fn recyclable(&self, state: &State) -> Option<u64> {
        let Keep::Newest(keep) = self.keep else { return None };
        let oldest_kept = (state.current + 1).saturating_sub(keep);
        let there = state.have.contains(&state.ready);
        state.have.first().copied().filter(|oldest| *oldest < oldest_kept && !there)
    }
}

/// Ends the making ahead if the maker panics, so that nobody waits for it for ever: the device
/// then makes its files itself.
struct EndOnUnwind<'f>(&'f Files);

impl Drop for EndOnUnwind<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end();
        }
    }
}
