//! CPU time of the proxy or pooler through which the jobs of a test go.

use std::sync::Arc;
use std::thread::JoinHandle;

use loadline_collect::os::{Processes, Server};
use loadline_database::TargetError;
use loadline_load::{JobResult, Request, Schedule, Shared};
use loadline_model::{Column, column};

use super::{Instrument, beside_jobs, outcome, wait_until};
use crate::evidence::Evidence;
use crate::test::Test;

pub(super) const COLUMNS: &[&Column] = &[column::VIA_CPU_US_PER_TX];
pub(super) const ABSENT: &str = "the jobs reach the server directly (loadline ab --via: through a proxy or pooler)";

pub(crate) struct Via {
    /// Its processes on this machine, or why they are unknown.
    processes: Result<Vec<u32>, String>,
    thread: Option<JoinHandle<Result<f64, String>>>,
    /// CPU time in the window, s.
    outcome: Option<Result<f64, String>>,
}

impl Via {
    pub(crate) fn of(processes: Result<Vec<u32>, String>) -> Via {
        Via { processes, thread: None, outcome: None }
    }
}

impl Instrument for Via {
    fn follows_window(&self) -> bool {
        true
    }

    fn start(&mut self, _: &Request, shared: &Arc<Shared>) -> Result<(), TargetError> {
        if let Ok(ids) = self.processes.clone() {
            let shared = Arc::clone(shared);
            self.thread = Some(beside_jobs("proxy", move || in_window(&ids, &shared))?);
        }
        Ok(())
    }

    fn stop(&mut self, _: &[JobResult]) {
        self.outcome = self.thread.take().map(outcome);
    }

    fn report(&self, e: &Evidence<'_>, test: &mut Test) {
        let used = match (&self.processes, &self.outcome) {
            (Err(why), _) | (Ok(_), Some(Err(why))) => Err(why.as_str()),
            (Ok(_), None) => Err("the proxy was not looked at"),
            (Ok(_), Some(Ok(seconds))) => Ok(*seconds),
        };
        match used {
            Ok(seconds) if e.transactions() > 0.0 => {
                test.set(column::VIA_CPU_US_PER_TX, seconds * 1e6 / e.transactions());
            }
            Ok(_) => test.set_all_absent(COLUMNS, "no transaction completed in the window"),
            Err(why) => test.set_all_absent(COLUMNS, why),
        }
    }
}

/// CPU time that the processes and those that they start use in the window, s.
fn in_window(ids: &[u32], shared: &Shared) -> Result<f64, String> {
    let read = || Processes::read().map_err(|e| e.to_string());
    let at = |edge: fn(&Schedule) -> u64| wait_until(shared, edge).and_then(|()| read());
    let (begin, end) = (at(|window| window.open_ns)?, at(|window| window.close_ns)?);
    // Some have a process for each session.
    let used = begin.used_until(&end, &[], &Server::Roots(ids.iter().copied().collect()));
    if used.server_seen { Ok(used.server_s) } else { Err("the proxy's process ended in the test".to_owned()) }
}
