//! Ends calls that hang. The driver has no handle on a call that runs, so another session asks the
//! server: `ALTER SYSTEM CANCEL SQL` (SQL Language Reference, from 18c on), for which the user needs
//! ALTER SYSTEM. Where that is missing, or the server does not answer, a call ends with the driver's
//! own limit.

use std::sync::{Arc, Mutex, PoisonError};

use super::address::OraAddress;
use super::session::{Dial, SessionId};
use crate::role::Canceller;
use crate::secret::Secret;

/// A session of a job, wherever in the cluster it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) id: SessionId,
    /// Number of its instance (`V$SESSION`: INST_ID of the `GV$` view).
    pub(super) instance: u32,
}

/// The statement that ends what a session runs.
pub(super) fn statement(job: Job) -> String {
    format!("ALTER SYSTEM CANCEL SQL '{}, {}, @{}'", job.id.sid, job.id.serial, job.instance)
}

/// Ends calls on one node: all through one session, which is opened when the first is to be ended.
pub(super) struct Control {
    pub(super) address: OraAddress,
    pub(super) password: Secret,
    pub(super) dial: &'static Dial,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Job>,
    /// Whether a thread is at work on it.
    served: bool,
}

impl Control {
    pub(super) fn new(address: OraAddress, password: Secret, dial: &'static Dial) -> Arc<Control> {
        Arc::new(Control { address, password, dial, queue: Mutex::default() })
    }

    /// A handle on what `job` runs. Cancelling returns at once: the server that hangs may not answer.
    pub(super) fn canceller(self: &Arc<Self>, job: Option<Job>) -> Canceller {
        let control = Arc::clone(self);
        Canceller::new(move || {
            if let Some(job) = job {
                control.end(job);
            }
        })
    }

    fn end(self: &Arc<Self>, job: Job) {
        let served = {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.waiting.push(job);
            std::mem::replace(&mut queue.served, true)
        };
        if served {
            return;
        }
        let control = Arc::clone(self);
        let spawned = std::thread::Builder::new().name("loadline-cancel".to_owned()).spawn(move || control.serve());
        if spawned.is_err() {
            // The driver's limit ends the call.
            self.queue.lock().unwrap_or_else(PoisonError::into_inner).served = false;
        }
    }

    fn serve(&self) {
        let mut session = (self.dial)(&self.address, &self.password, "cancel");
        loop {
            let job = {
                let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(job) = queue.waiting.pop() else {
                    queue.served = false;
                    return;
                };
                job
            };
            match &mut session {
                Ok(session) => {
                    if let Err(e) = session.execute(&statement(job), &[]) {
                        tracing::warn!("a call that hangs could not be ended: {}", e.text);
                    }
                }
                Err(e) => tracing::warn!("a call that hangs could not be ended: {e}"),
            }
        }
    }
}
