//! Thread of a job: opens its session, waits for the start and runs it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use loadline_database::{Canceller, ClientSession, DatabaseSession, TargetError};
use loadline_model::Driver;
use loadline_model::load::PartOfJob;
use loadline_workload::{Replay, Stream};

use crate::between::{CurrentCanceller, Renewed, Session, Think};
use crate::client_job::{self, Client, Timing};
use crate::job::{Held, JobResult, Tally};
use crate::pace::Pace;
use crate::schedule::Shared;
use crate::scripts::ScriptJob;
use crate::{Request, database_job};

/// When a job starts, and what it shares.
pub(crate) struct Go {
    pub(crate) timing: Timing,
    pub(crate) tally: Arc<Mutex<Tally>>,
    /// Whether no other job has the tally.
    pub(crate) alone: bool,
}

/// Message of a job whose session is open, or could not be opened.
pub(crate) struct Ready {
    pub(crate) outcome: Result<Canceller, TargetError>,
    /// The job's thread in the operating system.
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
pub(crate) fn job(job: u32, request: &Request, shared: &Shared, ready: Sender<Ready>, go: &Receiver<Go>) -> JobResult {
    let _ending = Ending(&shared.ended);
    let never = || JobResult::ended("the job never started");
    let number = request.number(job);
    let session = match JobSession::open(request, number) {
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
    let Ok(go) = go.recv() else { return never() };
    let part = request.load.part_of(number, request.all_jobs());
    let mut result = session.run(number, &part, request, &go, shared);
    if let Some((lost, why)) = result.lost.as_mut().zip(shared.cut.get()) {
        lost.clone_from(why);
    }
    result
}

/// A session of the client driver that is timed.
fn client_session(request: &Request, job: u32) -> Result<Box<dyn ClientSession>, TargetError> {
    let mut session = request.target.client_session(&request.work, job)?;
    session.wait_without_limit()?;
    Ok(session)
}

enum JobSession {
    Client(Box<dyn ClientSession>, Stream, CurrentCanceller),
    Database(Box<dyn DatabaseSession>),
}

impl JobSession {
    fn open(request: &Request, job: u32) -> Result<JobSession, TargetError> {
        Ok(match request.driver {
            Driver::Client => {
                let session = client_session(request, job)?;
                let canceller = CurrentCanceller::new(session.canceller());
                JobSession::Client(session, request.work.stream(job)?, canceller)
            }
            Driver::Database => {
                JobSession::Database(request.target.abilities().driver()?.database_session(&request.work, job)?)
            }
        })
    }

    fn canceller(&self) -> Canceller {
        match self {
            JobSession::Client(.., current) => current.canceller(),
            JobSession::Database(s) => s.canceller(),
        }
    }

    fn run(
        self,
        job: u32,
        part: &PartOfJob,
        request: &Request,
        Go { timing, tally, alone }: &Go,
        shared: &Shared,
    ) -> JobResult {
        let (timing, held) = (*timing, Held::new(tally, *alone));
        let program = &request.work.program;
        match self {
            JobSession::Client(mut session, mut stream, canceller) => {
                let of = &part.population;
                let pace = of.rate_tps.map(|rate| Pace::new(rate, part.number, of.jobs, timing.start_ns));
                let think = of.think_s.map(|mean_s| Think::new(mean_s, request.work.draws, job));
                let session = match request.load.reconnect_every {
                    None => Session::Fixed(session.as_mut()),
                    Some(every) => {
                        let open = Box::new(|| client_session(request, job));
                        Session::Renewed(Renewed { now: Some(session), every, since: 0, open, canceller })
                    }
                };
                let script = ScriptJob::new(&request.work, job, request.all_jobs());
                let client = Client { job, session, stream: &mut stream, program, script, pace, think };
                client_job::run(client, timing, shared, held)
            }
            JobSession::Database(mut s) => {
                // What follows a computation is known only to the database.
                let follows = program.kinds().len() > 1 && program.computations_per_tx() == 0;
                let kinds = follows.then(|| request.work.stream(job).ok()).flatten();
                let kinds = kinds.map(|stream| Replay::new(stream, program));
                let result = database_job::run(job, s.as_mut(), kinds, timing, shared, held);
                if program.varies() {
                    // The database reports the number of transactions; the changes of each follow from its number.
                    if let Ok(stream) = request.work.stream(job) {
                        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
                        tally.rows_changed += stream.rows_changed_by(program, result.total);
                    }
                }
                result
            }
        }
    }
}
