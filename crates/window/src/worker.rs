//! What a worker's thread does for one job: opens its session, waits for the start and runs it.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Sender;

use loadline_database::{Canceller, ClientSession, DatabaseSession, TargetError};
use loadline_model::Driver;
use loadline_workload::Stream;

use crate::client_job::{self, Client, Timing};
use crate::job::{JobResult, Tally};
use crate::pace::Pace;
use crate::schedule::Shared;
use crate::{Request, database_job};

/// What the jobs of a worker did.
#[derive(Default)]
pub(crate) struct Worked {
    pub(crate) tally: Tally,
    pub(crate) jobs: Vec<(u32, JobResult)>,
}

/// What a worker says of each job when its session is open, or could not be opened.
pub(crate) struct Ready {
    pub(crate) outcome: Result<Canceller, TargetError>,
    /// The worker's thread in the operating system.
    pub(crate) thread: u32,
}

impl Ready {
    pub(crate) fn new(outcome: Result<Canceller, TargetError>) -> Ready {
        Ready { outcome, thread: nix::unistd::gettid().as_raw().unsigned_abs() }
    }
}

/// Counts a job as ended when it is dropped, also by a panic.
struct Ending<'a>(&'a AtomicU32);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Opens the session of a job, says so, waits for `go` and runs the job.
pub(crate) fn job<'a>(
    job: u32,
    request: &Request,
    shared: &Shared,
    ready: Sender<Ready>,
    go: impl FnOnce() -> Option<(Timing, &'a RefCell<Tally>)>,
) -> JobResult {
    let _ending = Ending(&shared.ended);
    let never = || JobResult::ended("the job never started");
    let mut session = match JobSession::open(request, job) {
        Ok(session) => session,
        Err(e) => {
            let _ = ready.send(Ready::new(Err(e)));
            return never();
        }
    };
    let _ = ready.send(Ready::new(Ok(session.canceller())));
    // So that the crew knows that all have said something.
    drop(ready);
    // No timing: another session could not be opened, or the user interrupted.
    let Some((timing, tally)) = go() else { return never() };
    session.run(job, request, timing, shared, tally)
}

/// A job's session.
enum JobSession {
    Client(Box<dyn ClientSession>, Stream),
    Database(Box<dyn DatabaseSession>),
}

impl JobSession {
    fn open(request: &Request, job: u32) -> Result<JobSession, TargetError> {
        Ok(match request.driver {
            Driver::Client => {
                JobSession::Client(request.target.client_session(&request.work, job)?, request.work.stream(job)?)
            }
            Driver::Database => {
                JobSession::Database(request.target.abilities().driver()?.database_session(&request.work, job)?)
            }
        })
    }

    fn canceller(&self) -> Canceller {
        match self {
            JobSession::Client(s, _) => s.canceller(),
            JobSession::Database(s) => s.canceller(),
        }
    }

    fn run(
        &mut self,
        job: u32,
        request: &Request,
        timing: Timing,
        shared: &Shared,
        tally: &RefCell<Tally>,
    ) -> JobResult {
        let program = &request.work.program;
        match self {
            JobSession::Client(s, stream) => {
                let pace = request.rate_tps.map(|rate| Pace::new(rate, job, request.jobs, timing.start_ns));
                let client = Client { job, session: s.as_mut(), stream, program, pace };
                client_job::run(client, timing, shared, tally)
            }
            JobSession::Database(s) => {
                let result = database_job::run(job, s.as_mut(), timing, shared, tally);
                if program.varies() {
                    // The database reports the number of transactions; the changes of each follow from its number.
                    if let Ok(stream) = request.work.stream(job) {
                        tally.borrow_mut().rows_changed += stream.rows_changed_by(program, result.total);
                    }
                }
                result
            }
        }
    }
}
