//! One test: opens the sessions, runs all jobs in a common window, collects the counters. A crate of its own: nothing of
//! plans, checks or files can get into a timed loop, and it is optimised for speed, what is around it for size.

pub mod between;
pub mod client_job;
mod crew;
mod database_job;
mod job;
mod many_jobs;
mod observed;
pub mod pace;
pub mod phase;
mod remote;
pub mod schedule;
mod scripts;
mod warmup;
mod worker;

pub use client_job::Timing;
pub use crew::{Crew, OWN_FILES, allow_files};
pub use job::{Books, JobResult, Tally};
pub use remote::{Ended, OwnCommits, RemoteCrew, RemoteJobs};
pub use schedule::{Schedule, Shared};
pub use scripts::{ScriptJob, Scripted};
pub use warmup::{Counts, Load, STEP_NS, WarmedUp, Warmup, next_count_ns};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use loadline_collect::os::{Server, Tasks};
use loadline_collect::{
    CollectError, Collected, CpuSource, Edge, PendingEdge, Recent, Sampler, SamplerConfig, Second, Surroundings,
};
use loadline_database::clock::now_ns;
use loadline_database::machine::boot_id;
use loadline_database::{Observer, Runs, SessionTasks, Target, TargetError, Work};
use loadline_model::record::AgentFigures;
use loadline_model::snapshot::WaitProfile;
use loadline_model::{Driver, JobLoad, Snapshot};

use observed::Observed;
use remote::AnyCrew;
use warmup::LEAD_NS;

/// What a test does.
#[derive(Clone)]
pub struct Request {
    /// The database.
    pub target: Arc<dyn Target>,
    /// The work.
    pub work: Arc<Work>,
    /// The driver.
    pub driver: Driver,
    /// Number of jobs.
    pub jobs: u32,
    /// Jobs on a thread, if the target's sessions can share one; `None`: a thread for each as long as they are few.
    pub sessions_per_thread: Option<u32>,
    /// Warm-up.
    pub warmup: Warmup,
    /// Window, s.
    pub duration_s: f64,
    /// How the jobs make load.
    pub load: JobLoad,
    /// Source of CPU figures.
    pub cpu: CpuSource,
    /// Block device under the log, if it is on this machine.
    pub disk: Option<String>,
    /// The same under the data.
    pub data_disk: Option<String>,
    /// Where the jobs run.
    pub place: Place,
    /// Set when the user wants to stop.
    pub interrupted: Arc<AtomicBool>,
}

impl Request {
    /// Number in the test of the job of this number here.
    pub(crate) fn number(&self, job: u32) -> u32 {
        if let Place::Part { first_job, .. } = self.place { first_job + job } else { job }
    }

    /// Jobs of the test, here and elsewhere.
    pub(crate) fn all_jobs(&self) -> u32 {
        if let Place::Part { all_jobs, .. } = self.place { all_jobs } else { self.jobs }
    }
}

/// Where the jobs of a test run.
#[derive(Clone, Default)]
pub enum Place {
    /// In this process, all of them.
    #[default]
    Here,
    /// In this process; they are a part of those of a test, whose other jobs run elsewhere.
    Part {
        /// Number of the first one in the test.
        first_job: u32,
        /// Jobs of the test.
        all_jobs: u32,
    },
    /// In other processes.
    Remote(Arc<dyn RemoteJobs>),
}

/// Measurements of a test.
#[derive(Debug)]
pub struct Measured {
    /// The window.
    pub schedule: Schedule,
    /// Wall-clock time of the window start.
    pub opened_at: SystemTime,
    /// The warm-up before it.
    pub warmup: WarmedUp,
    /// Counts of warm-up and window.
    pub counts: Counts,
    /// Result of each job.
    pub jobs: Vec<JobResult>,
    /// What all jobs counted.
    pub merged: Tally,
    /// Jobs on a thread, at most.
    pub sessions_per_thread: u32,
    /// What the jobs of each population counted, in the order of [`JobLoad::populations`].
    pub populations: Vec<Tally>,
    /// Counters before the jobs connected.
    pub before: Result<Snapshot, String>,
    /// Counters at window start and window end.
    pub edges: Edges,
    /// Counters after the jobs disconnected.
    pub after: Result<Snapshot, String>,
    /// Time series, waits, problems.
    pub collected: Collected,
    /// What surrounded it, if anybody looks at that.
    pub around: Option<Around>,
    /// What each agent did, if the jobs ran on agents.
    pub agents: Vec<AgentFigures>,
}

/// What surrounded a test: read when all jobs had passed window start and window end, by a thread that does nothing else
/// then.
#[derive(Debug)]
pub struct Around {
    /// At window start and window end.
    pub readings: [Surroundings; 2],
    /// The database's processes.
    pub server: Server,
    /// loadline's, also those of agents on this machine.
    pub own: Vec<u32>,
}

impl Measured {
    /// Sampled wait events of the window.
    #[must_use]
    pub fn waits(&self) -> WaitProfile {
        self.collected.waits_between(self.schedule.open_ns, self.schedule.close_ns)
    }

    /// Snapshots of the counters that could be read, with their names in a run folder.
    pub fn snapshots(&self) -> impl Iterator<Item = (&'static str, &Snapshot)> {
        let edges = &self.edges;
        let named = [
            ("before", &self.before),
            ("open", &edges.at_open.snapshot),
            ("passed open", &edges.passed_open.snapshot),
            ("close", &edges.at_close.snapshot),
            ("passed close", &edges.passed_close.snapshot),
            ("after", &self.after),
        ];
        named.into_iter().filter_map(|(name, snapshot)| Some((name, snapshot.as_ref().ok()?)))
    }

    /// Load of the window in values of 0.1 s. In-database jobs publish once a second only: see [`JobResult::per_second`].
    #[must_use]
    pub fn load(&self) -> Load {
        self.counts.load(self.schedule.open_ns, self.schedule.close_ns, self.jobs.len() as u32, None)
    }
}

/// Called by a test before its jobs start and after they have ended.
pub trait TestHooks {
    /// All sessions are open; the jobs start when this returns. What it starts must end when `shared` says so.
    ///
    /// # Errors
    /// If it cannot start; the test then fails.
    fn start(&mut self, request: &Request, shared: &Arc<Shared>) -> Result<(), TargetError>;

    /// Ends what was started. Called after the jobs have ended.
    fn stop(&mut self, jobs: &[JobResult]);

    /// Whether the counters matter, so that a server that counts late is waited for.
    fn counts(&self) -> bool {
        true
    }
}

/// No hooks.
impl TestHooks for () {
    fn start(&mut self, _: &Request, _: &Arc<Shared>) -> Result<(), TargetError> {
        Ok(())
    }
    fn stop(&mut self, _: &[JobResult]) {}
}

/// Counters at window start and window end. Each is read twice: on time, for counters that change continuously (log
/// position, operating system), and again when all jobs have published their counters (commits, syncs), which can
/// take as long as their current transaction.
#[derive(Debug)]
pub struct Edges {
    /// On time at the window start.
    pub at_open: Edge,
    /// On time at the window end.
    pub at_close: Edge,
    /// When all jobs had passed the window start.
    pub passed_open: Edge,
    /// When all jobs had passed the window end.
    pub passed_close: Edge,
}

impl Edges {
    /// Why the counters could not be read, if so.
    #[must_use]
    pub fn unread(&self) -> Option<String> {
        let all = [&self.at_open, &self.passed_open, &self.at_close, &self.passed_close];
        let why = all.iter().find_map(|e| e.snapshot.as_ref().err())?;
        Some(format!("the database's counters could not be read: {why}"))
    }
}

/// Why a test failed to run.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
    /// The target failed.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The counters could not be read at window start or window end.
    #[error("the counters could not be read: {0}")]
    Counters(String),
    /// The processes that run the jobs cannot do so.
    #[error("{0}")]
    Remote(String),
    /// Agents were lost before the test began. Each says why it `failed`.
    #[error("{}", AgentFigures::failures(.0))]
    AgentsLost(Vec<AgentFigures>),
    /// The process may not open a file for each session.
    #[error(
        "{jobs} jobs need {need} open files, and this process may open {most}: run fewer jobs or raise the limit (ulimit -Hn)"
    )]
    Files {
        /// Jobs.
        jobs: u32,
        /// Files that they need.
        need: u64,
        /// The hard limit.
        most: u64,
    },
    /// The operating system refused to start a thread.
    #[error(
        "no thread could be started for job {job}: {source}; run fewer jobs or raise the limit of processes (ulimit -u)"
    )]
    Thread {
        /// Which job.
        job: u32,
        /// Why.
        source: std::io::Error,
    },
}

/// How long to wait for jobs to pass window start or window end before its snapshot is taken anyway.
const PASS_TIMEOUT: Duration = Duration::from_millis(1000);
/// How long to wait for the first transaction of every job. Then the window is set anyway; the test is invalid if a
/// job is still missing.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between the last session being ready and the common start.
const START_DELAY: Duration = Duration::from_millis(20);

/// What a test is at, about once a second.
#[derive(Debug)]
pub struct Tick<'a> {
    /// Seconds since the jobs began.
    pub elapsed_s: f64,
    /// The jobs' own counts.
    pub jobs: &'a Shared,
    /// What the sampler read; nothing during the warm-up.
    pub second: Second,
}

/// Runs one test. Calls `tick` about once a second, on a thread that only waits for the window's end.
///
/// # Errors
/// [`TestError`]; there are no results then.
pub fn run_test(
    request: &Request,
    hooks: &mut dyn TestHooks,
    tick: impl FnMut(&Tick<'_>),
) -> Result<Measured, TestError> {
    let mut observer = request.target.observer()?;
    wait_published(request, hooks);
    let begin_ns = now_ns();
    let before = observer.snapshot().map_err(|e| e.to_string());
    let took_ns = now_ns().saturating_sub(begin_ns);
    let shared = Arc::new(Shared::new(request.jobs, Arc::clone(&request.interrupted)));
    let mut crew = AnyCrew::open(request, &shared)?;
    let (sessions, server) = session_tasks(request, observer.as_mut(), crew.tasks());
    let around = hooks.counts().then_some(&server);
    if let Err(e) = hooks.start(request, &shared) {
        crew.end(Counts::default());
        return Err(e.into());
    }

    let start_ns = now_ns() + crew.lead_ns().max(START_DELAY.as_nanos() as u64);
    let timing = Timing { start_ns, window_ns: (request.duration_s * 1e9) as u64 };
    crew.start(timing);
    wait_started(&shared);
    let mut watch = Watch::new(&shared, start_ns, tick);
    let (open_ns, mut warmup) = watch.warm_up(request);
    let late_ns = (now_ns() + crew.lead_ns()).saturating_sub(open_ns);
    let open_ns = open_ns + late_ns;
    warmup.taken_s += late_ns as f64 / 1e9;
    let schedule = Schedule { start_ns, open_ns, close_ns: open_ns + timing.window_ns };
    let _ = shared.window.set(schedule);
    crew.set_window(schedule);
    let opened_at = SystemTime::now() + Duration::from_nanos(open_ns.saturating_sub(now_ns()));
    let mut config = SamplerConfig::new(open_ns);
    config.cpu = request.cpu;
    config.disk.clone_from(&request.disk);
    config.data_disk.clone_from(&request.data_disk);
    config.job_threads = Tasks::own(crew.tasks().to_vec());
    // Those of the first sessions end when the jobs open others.
    let stay = request.load.reconnect_every.is_none() || request.target.facts().runs == Runs::InProcess;
    config.sessions = sessions.filter(|_| stay);
    // Neither in-database jobs nor those of agents tell in the window what they have done.
    let counting = (request.driver == Driver::Client && !crew.is_remote()).then(|| Arc::clone(&shared));
    let sampler = match Sampler::start(config, Box::new(Observed::new(observer, counting, took_ns))) {
        Ok(s) => s,
        Err(e) => {
            crew.end(Counts::default());
            return Err(TestError::Counters(e.to_string()));
        }
    };
    watch.recent = Some(sampler.recent());
    let edges = watch_window(&schedule, &mut watch, &sampler, around);
    let counts = watch.counts;
    let Ended { own: own_commits, mut tallies, jobs: results, sessions_per_thread, counts, agents } = crew.end(counts);
    hooks.stop(&results);
    let mut collected = sampler.finish();
    wait_published(request, hooks);
    let mut after = match collected.source.as_mut() {
        Some(source) => source.snapshot(),
        None => Err("the session that reads the counters does not respond".to_owned()),
    };
    if request.interrupted.load(Ordering::Relaxed) {
        return Err(TestError::Interrupted);
    }
    let (mut edges, readings) = edges.map_err(|text| lost_first(&results, text))?;
    own_commits.subtract_from(&mut edges, &mut after);
    let own = own_processes(&agents);
    let around = readings.map(|readings| Around { readings, server, own });
    let mut merged = Tally::new(schedule.window_ns(), request.load.has_rate());
    tallies.iter().for_each(|tally| merged.merge(tally));
    tallies.resize_with(request.load.populations.len(), Tally::default);
    Ok(Measured {
        schedule,
        opened_at,
        warmup,
        counts,
        jobs: results,
        merged,
        sessions_per_thread,
        populations: tallies,
        before,
        edges,
        after,
        collected,
        around,
        agents,
    })
}

/// This process, and those of agents on this machine.
fn own_processes(agents: &[AgentFigures]) -> Vec<u32> {
    let machine = boot_id();
    let here = |agent: &&AgentFigures| !agent.machine.is_empty() && agent.machine == machine;
    std::iter::once(std::process::id()).chain(agents.iter().filter(here).map(|agent| agent.process)).collect()
}

/// Waits until a server that counts late has counted all that was done.
fn wait_published(request: &Request, hooks: &dyn TestHooks) {
    if hooks.counts() {
        std::thread::sleep(Duration::from_secs_f64(request.target.facts().counter_lag_s));
    }
}

/// If a job lost its session, reports that instead of the missing counters.
fn lost_first(results: &[JobResult], text: String) -> TestError {
    match results.iter().find_map(|r| r.lost.clone()) {
        Some(lost) => TestError::Target(TargetError::Lost(lost)),
        None => TestError::Counters(text),
    }
}

/// The tasks that run the jobs' sessions, if they are on this machine and all are known; and the database's processes.
pub fn session_tasks(request: &Request, observer: &mut dyn Observer, threads: &[u32]) -> (Option<Tasks>, Server) {
    match request.target.facts().runs {
        Runs::InProcess => {
            // On threads that jobs share, a thread's waits are no job's.
            let own = (threads.len() == request.jobs as usize).then(|| Tasks::own(threads.to_vec()));
            return (own, Server::Inside);
        }
        Runs::Nowhere => return (None, Server::Inside),
        Runs::Apart => {}
    }
    let SessionTasks { ids, commands } = observer.session_tasks();
    let all = request.cpu == CpuSource::Local && ids.len() == request.jobs as usize;
    let tasks = Some(ids).filter(|_| all).and_then(|ids| Tasks::of_command(ids, commands));
    let server = Server::of(tasks.as_ref(), commands);
    (tasks, server)
}

/// The test's own thread, which waits, counts what the jobs have done, and reports once a second.
struct Watch<'a, T> {
    shared: &'a Shared,
    start_ns: u64,
    tick: T,
    recent: Option<Recent>,
    next_tick_ns: u64,
    next_count_ns: u64,
    counts: Counts,
}

impl<'a, T: FnMut(&Tick<'_>)> Watch<'a, T> {
    fn new(shared: &'a Shared, start_ns: u64, tick: T) -> Watch<'a, T> {
        let next_tick_ns = start_ns + 1_000_000_000;
        let mut watch =
            Watch { shared, start_ns, tick, recent: None, next_tick_ns, next_count_ns: 0, counts: Counts::default() };
        watch.count_next();
        watch
    }

    fn ended(&self) -> bool {
        self.shared.stopped() || self.shared.all_ended()
    }

    fn count(&mut self) {
        self.counts.count(self.shared);
        self.count_next();
    }

    fn count_next(&mut self) {
        self.next_count_ns = next_count_ns(self.start_ns, now_ns());
    }

    /// Waits until `ns` on the clock, or until the jobs have ended.
    fn wait_until(&mut self, ns: u64) {
        while now_ns() < ns && !self.ended() {
            let now = now_ns();
            if now >= self.next_count_ns {
                self.count();
            }
            if now >= self.next_tick_ns {
                let second = self.recent.as_mut().map(Recent::second).unwrap_or_default();
                let elapsed_s = (now - self.start_ns) as f64 / 1e9;
                (self.tick)(&Tick { elapsed_s, jobs: self.shared, second });
                self.next_tick_ns += 1_000_000_000;
            }
            let next = ns.min(self.next_tick_ns).min(self.next_count_ns);
            std::thread::sleep(Duration::from_nanos(next.saturating_sub(now).min(50_000_000)));
        }
    }

    /// Waits until the warm-up is nearly over. Returns the window start, and what the warm-up was.
    fn warm_up(&mut self, request: &Request) -> (u64, WarmedUp) {
        let began_ns = now_ns();
        let (most_s, steady) = match request.warmup {
            Warmup::Seconds(s) => return (began_ns + (s * 1e9) as u64, WarmedUp { taken_s: s, ..WarmedUp::default() }),
            Warmup::UntilSteady { most_s, steady } => (most_s, steady),
        };
        let last_ns = began_ns + ((most_s * 1e9) as u64).saturating_sub(LEAD_NS);
        let due = request.load.rate_tps.map(|rate| (rate / 1e9, self.start_ns));
        let (mut load, mut is_steady) = (Load::default(), false);
        while !is_steady && now_ns() < last_ns && !self.ended() {
            self.wait_until(self.next_count_ns.min(last_ns));
            self.count();
            load = self.counts.load(began_ns, now_ns(), request.jobs, due);
            is_steady = steady(&load);
        }
        let open_ns = now_ns() + LEAD_NS;
        (open_ns, WarmedUp { taken_s: (open_ns - began_ns) as f64 / 1e9, steady: Some(is_steady), load })
    }
}

/// Waits for window start and window end, and takes the snapshots there; and reads what surrounds the test, if the
/// database's processes are given.
fn watch_window(
    schedule: &Schedule,
    watch: &mut Watch<'_, impl FnMut(&Tick<'_>)>,
    sampler: &Sampler,
    server: Option<&Server>,
) -> Result<(Edges, Option<[Surroundings; 2]>), String> {
    let text = |e: CollectError| e.to_string();
    let shared = watch.shared;
    // Requested in advance, so that the sampler does nothing else at that moment.
    let at_open = sampler.edge_at("at open", schedule.open_ns).map_err(text);
    watch.wait_until(schedule.open_ns);
    wait_passed(&shared.passed_open, shared);
    let passed_open = sampler.edge("passed open").map_err(text);
    let at_close = sampler.edge_at("at close", schedule.close_ns).map_err(text);
    let around_open = server.map(Surroundings::read);
    watch.wait_until(schedule.close_ns);
    wait_passed(&shared.passed_close, shared);
    watch.count();
    if shared.stopped() {
        // Do not wait for a snapshot that is still to come.
        return Err("interrupted".to_owned());
    }
    // Before the jobs end: a session that ends publishes what it did after the window.
    let passed_close = sampler.edge("passed close").map_err(text);
    let around = around_open.zip(server.map(Surroundings::read)).map(|(open, close)| [open, close]);
    shared.stop.store(true, Ordering::Relaxed);
    let (passed_open, passed_close) = (passed_open?, passed_close?);
    // If the jobs ended before, read the counters now.
    let edge = |announced: PendingEdge, at_ns: u64, now: &Edge| {
        if now_ns() < at_ns { Ok(now.clone()) } else { announced.wait().map_err(text) }
    };
    let edges = Edges {
        at_open: edge(at_open?, schedule.open_ns, &passed_open)?,
        at_close: edge(at_close?, schedule.close_ns, &passed_close)?,
        passed_open,
        passed_close,
    };
    Ok((edges, around))
}

/// Waits until every job has completed its first transaction.
fn wait_started(shared: &Shared) {
    let deadline = Instant::now() + START_TIMEOUT;
    while shared.started.load(Ordering::Relaxed) < shared.jobs() {
        // A job that has ended already makes the test invalid: do not wait.
        if shared.any_ended() || Instant::now() >= deadline || shared.stopped() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until all running jobs have passed window start or window end: their counters are then visible.
fn wait_passed(passed: &AtomicU32, shared: &Shared) {
    let deadline = Instant::now() + PASS_TIMEOUT;
    while passed.load(Ordering::Relaxed) < shared.jobs() && Instant::now() < deadline && !shared.stopped() {
        if shared.all_ended() {
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}
