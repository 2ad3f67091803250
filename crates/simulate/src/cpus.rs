//! The CPUs of a node: a job that is ready runs at once if one is idle, otherwise it queues.

use std::collections::VecDeque;

/// CPUs and the jobs that wait for one.
#[derive(Debug)]
pub(crate) struct Cpus {
    idle: u32,
    /// Jobs that write the log, or are about to: the kernel runs them first, because they have slept.
    urgent: VecDeque<u32>,
    ready: VecDeque<u32>,
}

impl Cpus {
    pub(crate) fn new(count: Option<u32>) -> Cpus {
        Cpus { idle: count.unwrap_or(u32::MAX), urgent: VecDeque::new(), ready: VecDeque::new() }
    }

    /// Whether `job` gets an idle CPU; otherwise it is queued.
    pub(crate) fn take(&mut self, job: u32, urgent: bool) -> bool {
        if self.idle > 0 {
            self.idle -= 1;
            return true;
        }
        if urgent {
            self.urgent.push_back(job)
        } else {
            self.ready.push_back(job)
        }
        false
    }

    /// A CPU is given back. Returns the job that gets it; without one it is idle.
    pub(crate) fn give(&mut self) -> Option<u32> {
        let next = self.urgent.pop_front().or_else(|| self.ready.pop_front());
        if next.is_none() {
            self.idle += 1;
        }
        next
    }
}
