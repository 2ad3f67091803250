//! Prepares log files ahead of use, on a thread of its own.

use std::collections::BTreeSet;

use crate::config::Keep;
use crate::device::{DeviceError, FileMaker};
use crate::sync::{Condvar, Mutex};

/// State shared by the maker's thread and the writer that switches files.
pub(crate) struct Files {
    state: Mutex<FilesState>,
    changed: Condvar,
    keep: Keep,
}

struct FilesState {
    maker: Option<Box<dyn FileMaker>>,
    have: BTreeSet<u64>,
    /// All needed files below this number are ready.
    ready: u64,
    current: u64,
    failed: Option<DeviceError>,
    over: bool,
}

impl Files {
    /// `have`: the files on the device. `first`: the first file to prepare, after those that hold the log.
    pub(crate) fn new(maker: Box<dyn FileMaker>, have: &[u64], first: u64, keep: Keep) -> Self {
        let have = have.iter().copied().collect();
        let state = FilesState { maker: Some(maker), have, ready: first, current: first, failed: None, over: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), keep }
    }

    /// Makes `file` the current one and waits until it is ready.
    pub(crate) fn enter(&self, file: u64) -> Result<(), DeviceError> {
        let mut state = crate::locked(&self.state);
        state.current = state.current.max(file);
        self.changed.notify_all();
        while state.ready <= file {
            if let Some(failed) = state.failed.take() {
                return Err(failed);
            }
            if state.over {
                // The thread has ended or was never started: prepare the file here.
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

    /// The maker's thread: keeps one file ready ahead of the current one.
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

    pub(crate) fn end(&self) {
        crate::locked(&self.state).over = true;
        self.changed.notify_all();
    }

    fn made(state: &mut FilesState, number: u64, recycled: Option<u64>) {
        if let Some(old) = recycled {
            state.have.remove(&old);
        }
        state.have.insert(number);
        state.ready = number + 1;
    }

    /// The oldest file, if it is older than all files to keep. `None` if the file to prepare already exists.
    fn recyclable(&self, state: &FilesState) -> Option<u64> {
        let Keep::Newest(keep) = self.keep else { return None };
        let oldest_kept = (state.current + 1).saturating_sub(keep);
        let there = state.have.contains(&state.ready);
        state.have.first().copied().filter(|oldest| *oldest < oldest_kept && !there)
    }
}

/// Ends the thread's work if the maker panics, so that nobody waits for it: the writer then prepares files itself.
struct EndOnUnwind<'f>(&'f Files);

impl Drop for EndOnUnwind<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end();
        }
    }
}
