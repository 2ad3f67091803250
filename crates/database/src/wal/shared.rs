//! Commits of sessions that share a thread: another thread makes durable what they have appended, all of it at once, and
//! wakes them.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use loadline_fibers::{Waker, park, waker};
use loadline_logwriter::{LogError, LogSession, LogWriter};

use crate::error::TargetError;

/// A failure of the log: no further commit is durable until it is opened again.
pub(super) fn failed(e: LogError) -> TargetError {
    TargetError::Lost(format!("the log writer: {e}"))
}

/// The thread that commits for others. It ends when the last session is gone.
pub(super) struct Committer(Arc<Queue>);

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Sessions whose records wait to be written.
    waiting: Vec<Waker>,
    /// Why the log has stopped, if it has.
    failed: Option<String>,
    ended: bool,
}

impl Queue {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes groups durable until the committer is dropped.
    fn run(&self, mut session: LogSession) {
        let mut state = self.locked();
        while !state.ended {
            if state.waiting.is_empty() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let group = std::mem::take(&mut state.waiting);
            drop(state);
            let flushed = session.flush();
            state = self.locked();
            state.failed = flushed.err().map(|e| failed(e).to_string());
            Waker::wake_all(&group);
        }
    }
}

impl Committer {
    /// The one in `place`, or a new one.
    ///
    /// # Errors
    /// When the log or the operating system refuses it.
    pub(super) fn of(place: &Mutex<Weak<Committer>>, writer: &LogWriter) -> Result<Arc<Committer>, TargetError> {
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = place.upgrade() {
            return Ok(there);
        }
        let (queue, session) = (Arc::new(Queue::default()), writer.session().map_err(failed)?);
        let of_thread = Arc::clone(&queue);
        std::thread::Builder::new()
            .name("wal commits".into())
            .spawn(move || of_thread.run(session))
            .map_err(|e| TargetError::Lost(format!("no thread for the commits of shared threads: {e}")))?;
        let new = Arc::new(Committer(queue));
        *place = Arc::downgrade(&new);
        Ok(new)
    }

    /// Waits until everything appended so far is durable.
    ///
    /// # Errors
    /// [`TargetError::Lost`] when the log has stopped.
    pub(super) fn commit(&self) -> Result<(), TargetError> {
        let Some(waker) = waker() else {
            return Err(TargetError::Usage("a session of a shared thread is used on another".into()));
        };
        let mut state = self.0.locked();
        state.waiting.push(waker);
        drop(state);
        self.0.changed.notify_one();
        park();
        self.0.locked().failed.clone().map_or(Ok(()), |why| Err(TargetError::Lost(why)))
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.0.locked().ended = true;
        self.0.changed.notify_one();
    }
}
