//! The threads that run the jobs: one for each, or a few with many jobs each.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadline_database::machine::allow_open_files;
use loadline_database::{Canceller, Hindrance, Runs, Target};
use loadline_model::Driver;

use crate::client_job::Timing;
use crate::job::{JobResult, Tally, tallies};
use crate::many_jobs;
use crate::remote::{Ended, RunningJobs};
use crate::schedule::{Schedule, Shared};
use crate::warmup::Counts;
use crate::worker::{Ready, Worked, job};
use crate::{Request, TestError};

/// Up to so many jobs per CPU have a thread each, in which a job reads its answer at once. With 500 per CPU, and the database on
/// the same CPUs, reading the counters, by one thread among a thousand, took more than ten seconds.
const THREADS_PER_CPU: u32 = 256;
/// After this time without a transaction, the database is asked why …
pub(crate) const ASK_AFTER: Duration = Duration::from_secs(30);
/// … and again after this one.
pub(crate) const ASK_AGAIN: Duration = Duration::from_secs(5);
/// Time in which sessions are asked.
const ASK_AT_MOST: Duration = Duration::from_secs(5);
/// Open files besides those of jobs: run folder, observers, samplers.
pub const OWN_FILES: u64 = 200;
/// Sessions that are cancelled at a time: each may wait for a server that does not answer.
const CANCEL_AT_A_TIME: usize = 256;
const CRASHED: &str = "the job crashed: this is a bug in loadline, please report it";

/// Time for jobs to end before their sessions are cancelled, if the database works for them: at least the length of the
/// window. Longer transactions make the test invalid anyway.
fn end_timeout(window_ns: u64) -> Duration {
    ASK_AFTER.max(Duration::from_nanos(window_ns))
}

/// How many jobs a thread runs.
fn sessions_per_thread(request: &Request) -> u32 {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    match request.sessions_per_thread {
        _ if !request.target.facts().shares_threads || request.driver != Driver::Client => 1,
        Some(n) => n.clamp(1, request.jobs.max(1)),
        None if request.jobs <= cpus.saturating_mul(THREADS_PER_CPU) => 1,
        None => request.jobs.div_ceil(cpus),
    }
}

/// All jobs of a test, with open sessions.
pub struct Crew {
    workers: Vec<Worker>,
    cancellers: Vec<Canceller>,
    tasks: Vec<u32>,
    sessions_per_thread: u32,
    shared: Arc<Shared>,
}

/// A thread with its jobs.
struct Worker {
    thread: JoinHandle<Worked>,
    go: Sender<Timing>,
}

impl Crew {
    /// Starts the workers, which open the sessions of their jobs and wait. Returns when all are ready.
    ///
    /// # Errors
    /// The first that a session had; [`TestError::Thread`].
    pub fn open(request: &Request, shared: &Arc<Shared>) -> Result<Box<Crew>, TestError> {
        allow_files(request.target.as_ref(), request.jobs)?;
        let (ready, inbox) = channel();
        let sessions_per_thread = sessions_per_thread(request);
        let (workers, cancellers, tasks) = (Vec::new(), Vec::new(), Vec::new());
        let shared_by_all = Arc::clone(shared);
        let mut crew = Box::new(Crew { workers, cancellers, tasks, sessions_per_thread, shared: shared_by_all });
        let threads = request.jobs.div_ceil(sessions_per_thread);
        for worker in 0..threads {
            let (go, wait) = channel();
            let (request, shared, ready) = (request.clone(), Arc::clone(shared), ready.clone());
            // In turn, so that each has as many jobs of each node.
            let jobs: Vec<u32> = (worker..request.jobs).step_by(threads as usize).collect();
            let spawned = std::thread::Builder::new()
                .name(format!("job {}", request.number(worker)))
                .stack_size(1 << 20)
                .spawn(move || match *jobs {
                    [job] if sessions_per_thread == 1 => one_job(job, &request, &shared, ready, &wait),
                    _ => many_jobs::run(&jobs, request, shared, ready, &wait),
                });
            match spawned {
                Ok(thread) => crew.workers.push(Worker { thread, go }),
                Err(source) => {
                    crew.end(Counts::default(), &mut || ());
                    return Err(TestError::Thread { job: worker, source });
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
                crew.end(Counts::default(), &mut || ());
                Err(e.into())
            }
        }
    }
}

impl RunningJobs for Crew {
    fn are_remote(&self) -> bool {
        false
    }

    fn tasks(&self) -> &[u32] {
        &self.tasks
    }

    fn hindrance(&self) -> Option<Hindrance> {
        hindrance(&self.cancellers)
    }

    fn start(&mut self, timing: Timing) {
        for worker in &self.workers {
            // A worker that has ended reports why when it is joined.
            let _ = worker.go.send(timing);
        }
    }

    /// Cancels the sessions of jobs that do not end.
    fn end(self: Box<Self>, counts: Counts, meanwhile: &mut dyn FnMut()) -> Ended {
        let shared = &self.shared;
        shared.stop.store(true, Ordering::Relaxed);
        let threads: Vec<JoinHandle<Worked>> = self.workers.into_iter().map(|w| w.thread).collect();
        let at_most = end_timeout(shared.window.get().map_or(0, Schedule::window_ns));
        let (begin, mut ask_at, mut cut) = (Instant::now(), ASK_AFTER, false);
        while threads.iter().any(|t| !t.is_finished()) {
            let waited = begin.elapsed();
            // After an interrupt, do not wait long for a server that does not respond.
            let urgent = shared.interrupted.load(Ordering::Relaxed) && waited >= Duration::from_secs(2);
            if !cut && !urgent && waited >= ask_at {
                ask_at = waited + ASK_AGAIN;
                let why = hindrance(&self.cancellers);
                if why.is_some() || waited >= at_most {
                    let why = why.map_or_else(|| "its transaction had not ended".to_owned(), |found| found.why);
                    let s = waited.as_secs();
                    let _ =
                        shared.cut.set(format!("loadline ended its session, {s} s after the end of the test: {why}"));
                }
            }
            if !cut && (urgent || shared.cut.get().is_some()) {
                cancel(&self.cancellers);
                cut = true;
            }
            meanwhile();
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut tallies = Vec::<Tally>::new();
        let mut results = vec![JobResult::ended(CRASHED); shared.jobs() as usize];
        for worked in threads.into_iter().map(|t| t.join().unwrap_or_default()) {
            Tally::merge_parts(&mut tallies, &worked.tallies);
            for (job, result) in worked.jobs {
                if let Some(place) = results.get_mut(job as usize) {
                    *place = result;
                }
            }
        }
        let sessions_per_thread = self.sessions_per_thread;
        Ended { tallies, jobs: results, sessions_per_thread, counts, ..Ended::default() }
    }
}

/// Raises the limit of open files, as far as the process may, so that each session of `jobs` on a server has one.
///
/// # Errors
/// [`TestError::Files`].
pub fn allow_files(target: &dyn Target, jobs: u32) -> Result<(), TestError> {
    if target.facts().runs != Runs::Apart {
        return Ok(());
    }
    let need = u64::from(jobs) + OWN_FILES;
    match allow_open_files(need) {
        Some(most) if most < need => Err(TestError::Files { jobs, need, most }),
        // If the limit is unknown, a session will say what is wrong.
        _ => Ok(()),
    }
}

/// What keeps a session from ending its call, of the first for which the database says so.
fn hindrance(cancellers: &[Canceller]) -> Option<Hindrance> {
    let begin = Instant::now();
    cancellers.iter().take_while(|_| begin.elapsed() < ASK_AT_MOST).find_map(Canceller::hindrance)
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

/// A thread of one job.
fn one_job(number: u32, request: &Request, shared: &Shared, ready: Sender<Ready>, go: &Receiver<Timing>) -> Worked {
    let of_parts = OnceCell::new();
    let result = job(number, request, shared, ready, || {
        let timing = go.recv().ok()?;
        Some((timing, &of_parts.get_or_init(|| tallies(timing.window_ns, &request.load))[..]))
    });
    let of_parts = of_parts.into_inner().unwrap_or_default();
    Worked { tallies: of_parts.into_iter().map(RefCell::into_inner).collect(), jobs: vec![(number, result)] }
}
