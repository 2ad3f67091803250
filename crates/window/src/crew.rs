//! The threads that run the jobs: one for each, or a few with many jobs each.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadline_database::{Canceller, ClientSession, DatabaseSession, TargetError};
use loadline_model::Driver;
use loadline_workload::Stream;

use crate::client_job::{self, Client, Timing};
use crate::job::{JobResult, Tally};
use crate::pace::Pace;
use crate::schedule::{Schedule, Shared};
use crate::{Request, TestError, database_job};

/// Minimum time for jobs to end before their sessions are cancelled.
const MIN_END_TIMEOUT: Duration = Duration::from_secs(30);
/// Sessions that are cancelled at a time: each may wait for a server that does not answer.
const CANCEL_AT_A_TIME: usize = 256;
const CRASHED: &str = "the job crashed: this is a bug in loadline, please report it";

/// Time for jobs to end before their sessions are cancelled: at least the length of the window. Longer transactions
/// make the test invalid anyway.
fn end_timeout(window_ns: u64) -> Duration {
    MIN_END_TIMEOUT.max(Duration::from_nanos(window_ns))
}

/// All jobs of a test, with open sessions.
pub(crate) struct Crew {
    workers: Vec<Worker>,
    cancellers: Vec<Canceller>,
    tasks: Vec<u32>,
    shared: Arc<Shared>,
}

/// A thread with its jobs.
struct Worker {
    thread: JoinHandle<Worked>,
    go: Sender<Timing>,
}

/// What the jobs of a worker did.
#[derive(Default)]
struct Worked {
    tally: Tally,
    jobs: Vec<(u32, JobResult)>,
}

/// What a worker says of each job when its session is open, or could not be opened.
struct Ready {
    outcome: Result<Canceller, TargetError>,
    /// The worker's thread in the operating system.
    thread: u32,
}

impl Crew {
    /// Starts the workers, which open the sessions of their jobs and wait. Returns when all are ready.
    ///
    /// # Errors
    /// The first that a session had; [`TestError::Thread`].
    pub(crate) fn open(request: &Request, shared: &Arc<Shared>) -> Result<Crew, TestError> {
        let (ready, inbox) = channel();
        let (workers, cancellers, tasks) = (Vec::new(), Vec::new(), Vec::new());
        let mut crew = Crew { workers, cancellers, tasks, shared: Arc::clone(shared) };
        for job in 0..request.jobs {
            let (go, wait) = channel();
            let (request, shared, ready) = (request.clone(), Arc::clone(shared), ready.clone());
            let spawned = std::thread::Builder::new()
                .name(format!("job {job}"))
                .stack_size(1 << 20)
                .spawn(move || one_job(job, &request, &shared, ready, &wait));
            match spawned {
                Ok(thread) => crew.workers.push(Worker { thread, go }),
                Err(source) => {
                    crew.end();
                    return Err(TestError::Thread { job, source });
                }
            }
        }
        drop(ready);
        let mut failure = None;
        for Ready { outcome, thread } in inbox {
            match outcome {
                Ok(canceller) => crew.cancellers.push(canceller),
                Err(e) => drop(failure.get_or_insert(e)),
            }
            if !crew.tasks.contains(&thread) {
                crew.tasks.push(thread);
            }
        }
        match failure {
            None => Ok(crew),
            Some(e) => {
                crew.end();
                Err(e.into())
            }
        }
    }

    /// The workers' threads in the operating system.
    pub(crate) fn tasks(&self) -> &[u32] {
        &self.tasks
    }

    /// Tells all jobs when to start.
    pub(crate) fn start(&self, timing: Timing) {
        for worker in &self.workers {
            // A worker that has ended reports why when it is joined.
            let _ = worker.go.send(timing);
        }
    }

    /// Ends all jobs and collects their results; cancels the sessions of jobs that do not end.
    pub(crate) fn end(self) -> (Tally, Vec<JobResult>) {
        let shared = &self.shared;
        shared.stop.store(true, Ordering::Relaxed);
        let threads: Vec<JoinHandle<Worked>> = self.workers.into_iter().map(|w| w.thread).collect();
        let at_most = end_timeout(shared.window.get().map_or(0, Schedule::window_ns));
        let deadline = Instant::now() + at_most;
        let mut cut = false;
        while threads.iter().any(|t| !t.is_finished()) {
            // After an interrupt, do not wait long for a server that does not respond.
            let urgent = shared.interrupted.load(Ordering::Relaxed);
            let limit = deadline.checked_sub(at_most - Duration::from_secs(2)).filter(|_| urgent).unwrap_or(deadline);
            if !cut && Instant::now() >= limit {
                cancel(&self.cancellers);
                cut = true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut tally = Tally::default();
        let mut results = vec![JobResult::ended(CRASHED); shared.jobs() as usize];
        for worked in threads.into_iter().map(|t| t.join().unwrap_or_default()) {
            tally.merge(&worked.tally);
            for (job, result) in worked.jobs {
                if let Some(place) = results.get_mut(job as usize) {
                    *place = result;
                }
            }
        }
        (tally, results)
    }
}

/// Cancels sessions.
fn cancel(cancellers: &[Canceller]) {
    for some in cancellers.chunks(CANCEL_AT_A_TIME) {
        std::thread::scope(|scope| {
            for canceller in some {
                let cancel = || canceller.cancel();
                if std::thread::Builder::new().spawn_scoped(scope, cancel).is_err() {
                    cancel();
                }
            }
        });
    }
}

/// Counts a job as ended when it is dropped, also by a panic.
struct Ending<'a>(&'a AtomicU32);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A thread of one job.
fn one_job(job: u32, request: &Request, shared: &Shared, ready: Sender<Ready>, go: &Receiver<Timing>) -> Worked {
    let _ending = Ending(&shared.ended);
    let (session, outcome) = match JobSession::open(request, job) {
        Ok(session) => {
            let canceller = session.canceller();
            (Some(session), Ok(canceller))
        }
        Err(e) => (None, Err(e)),
    };
    let _ = ready.send(Ready { outcome, thread: nix::unistd::gettid().as_raw().unsigned_abs() });
    // So that the crew knows that all have said something.
    drop(ready);
    let never = || Worked { jobs: vec![(job, JobResult::ended("the job never started"))], ..Worked::default() };
    // No timing: another session could not be opened, or the user interrupted.
    let (Some(mut session), Ok(timing)) = (session, go.recv()) else { return never() };
    let tally = RefCell::new(Tally::new(timing.window_ns, request.rate_tps.is_some()));
    let result = session.run(job, request, timing, shared, &tally);
    Worked { tally: tally.into_inner(), jobs: vec![(job, result)] }
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
