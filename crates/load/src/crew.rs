//! The threads that run the jobs, one for each: it opens its session, waits for the start and runs the job.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadline_database::{Canceller, ClientSession, DatabaseSession, TargetError};
use loadline_model::Driver;
use loadline_model::load::PartOfJob;
use loadline_workload::{Replay, Stream};

use crate::between::{CurrentCanceller, Pace, Renewed, Session, Think, canceller_of};
use crate::client_job::{self, Client, Timing};
use crate::job::{Held, JobResult, Tally};
use crate::limits::allow_jobs;
use crate::request::TALLIES;
use crate::schedule::{Schedule, Shared};
use crate::scripts::ScriptJob;
use crate::warmup::Counts;
use crate::{Ended, Request, RunningJobs, TestError, database_job};

/// Address space of a thread's stack, bytes. Memory is used only where a session has been: some KiB.
const STACK_BYTES: usize = 512 << 10;
/// Sessions that are opened at a time: servers refuse connections that come all at once.
const OPEN_AT_A_TIME: usize = 128;
/// How often a crew looks whether a job has ended before it said anything.
const LOOK: Duration = Duration::from_millis(100);
/// Time for jobs to end before the database is asked why they do not, and their sessions are cancelled: at least the length of the
/// window. Longer transactions make the test refused anyway.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// Time in which sessions are asked.
const ASK_AT_MOST: Duration = Duration::from_secs(5);
/// Sessions that are cancelled at a time: each may wait for a server that does not answer.
const CANCEL_AT_A_TIME: usize = 256;
const CRASHED: &str = "the job crashed: an internal error, please report it";

pub struct Crew {
    workers: Vec<Worker>,
    cancellers: Vec<Canceller>,
    tasks: Vec<u32>,
    /// By part of the jobs and number there.
    tallies: BTreeMap<(usize, u32), Arc<Mutex<Tally>>>,
    request: Request,
    shared: Arc<Shared>,
}

struct Worker {
    thread: JoinHandle<JobResult>,
    go: Sender<Go>,
}

impl Crew {
    /// Starts the threads, which open their sessions and wait. Returns when all are ready.
    pub fn open(request: &Request, shared: &Arc<Shared>) -> Result<Box<Crew>, TestError> {
        allow_jobs(request.target.as_ref(), request.jobs)?;
        let (workers, cancellers, tasks, tallies) = (Vec::new(), Vec::new(), Vec::new(), BTreeMap::new());
        let (request, shared) = (request.clone(), Arc::clone(shared));
        let mut crew = Box::new(Crew { workers, cancellers, tasks, tallies, request, shared });
        crew.open_all()?;
        Ok(crew)
    }

    fn open_all(&mut self) -> Result<(), TestError> {
        let (ready, inbox) = channel();
        for job in 0..self.request.jobs {
            while self.workers.len() - self.tasks.len() >= OPEN_AT_A_TIME {
                match inbox.recv_timeout(LOOK) {
                    Ok(said) => self.hear(said)?,
                    Err(_) if self.shared.any_ended() || self.shared.stopped() => return Ok(()),
                    Err(_) => {}
                }
            }
            self.spawn(job, ready.clone())?;
        }
        drop(ready);
        inbox.iter().try_for_each(|said| self.hear(said))?;
        Ok(())
    }

    fn hear(&mut self, (thread, outcome): Ready) -> Result<(), TargetError> {
        self.tasks.push(thread);
        self.cancellers.push(outcome?);
        Ok(())
    }

    fn spawn(&mut self, number: u32, ready: Sender<Ready>) -> Result<(), TestError> {
        let (go, wait) = channel();
        let (request, shared) = (self.request.clone(), Arc::clone(&self.shared));
        let thread = std::thread::Builder::new()
            .name(format!("job {}", request.number(number)))
            .stack_size(STACK_BYTES)
            .spawn(move || job(number, &request, &shared, ready, &wait))
            .map_err(|source| TestError::Thread { job: number, source })?;
        self.workers.push(Worker { thread, go });
        Ok(())
    }

    /// Ends all jobs, and cancels the sessions of those that do not. Calls `meanwhile` while it waits.
    fn stop(&mut self, meanwhile: &mut dyn FnMut()) -> Vec<JobResult> {
        let shared = &self.shared;
        shared.stop.store(true, Ordering::Relaxed);
        let threads: Vec<JoinHandle<JobResult>> = self.workers.drain(..).map(|w| w.thread).collect();
        let window_ns = shared.window().map_or(0, Schedule::window_ns);
        let at_most = END_TIMEOUT.max(Duration::from_nanos(window_ns));
        let (begin, mut cut) = (Instant::now(), false);
        while threads.iter().any(|t| !t.is_finished()) {
            let waited = begin.elapsed();
            // After an interrupt, do not wait long for a server that does not respond.
            let urgent = shared.interrupted.load(Ordering::Relaxed) && waited >= Duration::from_secs(2);
            if !cut && !urgent && waited >= at_most {
                let why = hindrance(&self.cancellers);
                let why = why.map_or_else(|| "its transaction had not ended".to_owned(), |found| found.to_string());
                let s = waited.as_secs();
                let _ = shared.cut.set(format!("loadline ended its session, {s} s after the end of the test: {why}"));
            }
            if !cut && (urgent || shared.cut.get().is_some()) {
                cancel(&self.cancellers);
                cut = true;
            }
            meanwhile();
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut results = vec![JobResult::ended(CRASHED); shared.jobs() as usize];
        for (place, thread) in results.iter_mut().zip(threads) {
            if let Ok(job) = thread.join() {
                *place = job;
            }
        }
        results
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.stop(&mut || ());
    }
}

impl RunningJobs for Crew {
    fn tasks(&self) -> &[u32] {
        &self.tasks
    }

    fn hindrance(&self) -> Option<TargetError> {
        hindrance(&self.cancellers)
    }

    fn start(&mut self, timing: Timing) {
        let alone = self.request.jobs <= TALLIES;
        for (job, worker) in (0..).zip(&self.workers) {
            let part = self.request.load.part_of(self.request.number(job), self.request.all_jobs());
            let new = || Tally::new(timing.window_ns, part.population.rate_tps.is_some());
            let tally = self.tallies.entry((part.index, part.number % TALLIES));
            let tally = Arc::clone(tally.or_insert_with(|| Arc::new(Mutex::new(new()))));
            // A worker that has ended reports why when it is joined.
            let _ = worker.go.send(Go { timing, tally, alone });
        }
    }

    fn end(mut self: Box<Self>, counts: Counts, meanwhile: &mut dyn FnMut()) -> Ended {
        let jobs = self.stop(meanwhile);
        let mut tallies = Vec::<Tally>::new();
        for ((part, _), tally) in &self.tallies {
            tallies.resize_with(part + 1, Tally::default);
            tallies[*part].merge(&tally.lock().unwrap_or_else(PoisonError::into_inner));
        }
        Ended { tallies, jobs, counts, ..Ended::default() }
    }
}

/// Hindrance of a session's call, of the first for which the database says so.
fn hindrance(cancellers: &[Canceller]) -> Option<TargetError> {
    let begin = Instant::now();
    cancellers.iter().take_while(|_| begin.elapsed() < ASK_AT_MOST).find_map(Canceller::hindrance)
}

fn cancel(cancellers: &[Canceller]) {
    std::thread::scope(|scope| {
        for some in cancellers.chunks(cancellers.len().div_ceil(CANCEL_AT_A_TIME).max(1)) {
            let cancel = || some.iter().for_each(Canceller::cancel);
            if std::thread::Builder::new().spawn_scoped(scope, cancel).is_err() {
                cancel();
            }
        }
    });
}

/// When a job starts, and what it shares.
struct Go {
    timing: Timing,
    tally: Arc<Mutex<Tally>>,
    /// Whether no other job has the tally.
    alone: bool,
}

/// Message of a job, in this thread of the operating system, whose session is open, or could not be opened.
type Ready = (u32, Result<Canceller, TargetError>);

/// Counts a job as ended when it is dropped, also by a panic.
struct Ending<'a>(&'a AtomicU32);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Opens the session of a job, says so, waits for `go` and runs the job.
fn job(job: u32, request: &Request, shared: &Shared, ready: Sender<Ready>, go: &Receiver<Go>) -> JobResult {
    let _ending = Ending(&shared.ended);
    let never = || JobResult::ended("the job never started");
    let (number, thread) = (request.number(job), nix::unistd::gettid().as_raw().unsigned_abs());
    let session = match JobSession::open(request, number) {
        Ok(session) => session,
        Err(e) => {
            let _ = ready.send((thread, Err(e)));
            return never();
        }
    };
    let _ = ready.send((thread, Ok(session.canceller())));
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
                let canceller = CurrentCanceller::new(session.canceller().into());
                JobSession::Client(session, request.work.stream(job)?, canceller)
            }
            Driver::Database => {
                JobSession::Database(request.target.abilities().driver()?.database_session(&request.work, job)?)
            }
        })
    }

    fn canceller(&self) -> Canceller {
        match self {
            JobSession::Client(.., current) => canceller_of(current),
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use loadline_database::{OpenRequest, Target, Work, open};

    use super::*;

    #[test]
    fn each_session_is_cancelled_once() {
        let calls: Arc<Vec<AtomicU32>> = Arc::new((0..600).map(|_| AtomicU32::new(0)).collect());
        let canceller = |n: usize| {
            let calls = Arc::clone(&calls);
            Canceller::new(move || {
                calls[n].fetch_add(1, Ordering::Relaxed);
            })
        };
        cancel(&(0..600).map(canceller).collect::<Vec<_>>());
        assert!(calls.iter().all(|n| n.load(Ordering::Relaxed) == 1));
        cancel(&[]);
    }

    #[test]
    fn a_job_that_hangs_is_cancelled_two_seconds_after_the_user_stopped_it_and_a_crash_is_said() {
        let target: Arc<dyn Target> = Arc::from(open(&OpenRequest::new("null:", PathBuf::new())).unwrap());
        let request = Request::new(&target, &Arc::new(Work::from_catalogue("LGWR-LAT1", &[]).unwrap()), 2);
        request.interrupted.store(true, Ordering::Relaxed);
        let shared = Arc::new(Shared::new(2, Arc::clone(&request.interrupted)));
        let cancelled = Arc::new(AtomicU32::new(0));
        let [seen, calls] = [(); 2].map(|()| Arc::clone(&cancelled));
        let hangs = move || {
            while seen.load(Ordering::Relaxed) == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            JobResult { total: 7, ..JobResult::default() }
        };
        let jobs: [Box<dyn FnOnce() -> JobResult + Send>; 2] = [Box::new(hangs), Box::new(|| panic!("on purpose"))];
        let worker = |run| Worker { thread: std::thread::spawn(run), go: channel().0 };
        let cancellers = vec![Canceller::new(move || {
            calls.fetch_add(1, Ordering::Relaxed);
        })];
        let workers = jobs.into_iter().map(worker).collect();
        let mut crew = Crew { workers, cancellers, tasks: Vec::new(), tallies: BTreeMap::new(), request, shared };
        let (begin, mut waits) = (Instant::now(), 0);
        let jobs = crew.stop(&mut || waits += 1);
        assert!(begin.elapsed() >= Duration::from_secs(2) && waits > 0);
        assert_eq!((cancelled.load(Ordering::Relaxed), jobs[0].total, jobs[1].lost.as_deref()), (1, 7, Some(CRASHED)));
    }
}
