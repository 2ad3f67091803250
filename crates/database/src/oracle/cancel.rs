//! Cancels calls that hang. The driver cannot cancel a running call, so another session executes
//! `ALTER SYSTEM CANCEL SQL` (SQL Language Reference, from 18c on), which needs the privilege ALTER SYSTEM.
//! Without it, or if the server does not answer, the driver's time limit ends the call.

use std::sync::{Arc, Mutex, PoisonError};

use super::address::OraAddress;
use super::session::{Connector, SessionId};
use crate::role::Canceller;
use crate::secret::Secret;

/// A job's session and its instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) id: SessionId,
    /// Number of its instance (`V$SESSION`: INST_ID of the `GV$` view).
    pub(super) instance: u32,
}

/// The statement that cancels a session's call.
pub(super) fn statement(job: Job) -> String {
    format!("ALTER SYSTEM CANCEL SQL '{}, {}, @{}'", job.id.sid, job.id.serial, job.instance)
}

/// Cancels calls on one node, all through one session, which the first cancel opens.
pub(super) struct Control {
    pub(super) address: OraAddress,
    pub(super) password: Secret,
    pub(super) connector: &'static Connector,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Job>,
    /// Whether a thread serves it.
    served: bool,
}

impl Control {
    pub(super) fn new(address: OraAddress, password: Secret, connector: &'static Connector) -> Arc<Control> {
        Arc::new(Control { address, password, connector, queue: Mutex::default() })
    }

    /// A handle that cancels the call of `job`. It returns at once, because a server that hangs may not answer.
    pub(super) fn canceller(self: &Arc<Self>, job: Option<Job>) -> Canceller {
        let control = Arc::clone(self);
        Canceller::new(move || {
            if let Some(job) = job {
                control.cancel(job);
            }
        })
    }

    fn cancel(self: &Arc<Self>, job: Job) {
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
            // The driver's time limit ends the call.
            self.queue.lock().unwrap_or_else(PoisonError::into_inner).served = false;
        }
    }

    fn serve(&self) {
        let mut session = (self.connector)(&self.address, &self.password, "cancel");
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
                        log::warn!("a call that hangs could not be cancelled: {}", e.text);
                    }
                }
                Err(e) => log::warn!("a call that hangs could not be cancelled: {e}"),
            }
        }
    }
}
