//! One test: opens the sessions, runs all jobs in a common window, collects the counters. A crate of its own: nothing of
//! plans, checks or files can get into a timed loop, and it is optimised for speed, what is around it for size.

pub mod between;
pub mod client_job;
mod crew;
mod database_job;
mod job;
mod limits;
mod measured;
mod request;
pub mod schedule;
mod scripts;
mod slowest;
#[cfg(test)]
mod tests;
mod warmup;
mod watch;

pub use client_job::Timing;
pub use crew::Crew;
pub use job::{Books, Held, JobResult, Tally, tps};
pub use limits::{Limit, OWN_FILES, allow_jobs, allow_threads};
pub use measured::{Around, Elsewhere, Measured, OwnCommits, WindowReadings};
pub use request::{Place, RemoteJobs, Request};
pub use schedule::{Parts, Reported, SECOND_NS, STEP_NS, Schedule, Shared, course_step_ns};
pub use scripts::{ScriptJob, Scripted};
pub use slowest::{Slowest, WATCHED_JOBS};
pub use warmup::{Counts, Load, WarmedUp, Warmup, next_count_ns};
pub use watch::{Tick, TickAt};

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use loadline_collect::os::{CostMeter, CostUnknown, Server, Tasks, Whose};
use loadline_collect::{CpuSource, Sampler, SamplerConfig};
use loadline_database::{Observer, Runs, SessionTasks, Target, TargetError};
use loadline_model::Driver;
use loadline_storage::now_ns;

use watch::{MANY_JOBS, Observed, Watch, wait_started, watch_window};

/// Called by a test before its jobs start and after they have ended.
pub trait TestHooks {
    /// All sessions are open; the jobs start when this returns. What it starts must end when `shared` says so.
    /// If it fails, so does the test.
    fn start(&mut self, _request: &Request, _shared: &Arc<Shared>) -> Result<(), TargetError> {
        Ok(())
    }

    /// Whether [`TestHooks::may_open`] is to be asked.
    fn holds(&self) -> bool {
        false
    }

    /// Whether the window may start: asked each 0.2 s, first 0.2 s before the end of the warm-up.
    fn may_open(&mut self) -> bool {
        true
    }

    /// Whether the window, which all jobs have passed, does not count: another one follows, of the same jobs. Asked only where one can.
    fn opens_again(&mut self) -> bool {
        false
    }

    /// Ends what was started. Called after the jobs have ended.
    fn stop(&mut self, _jobs: &[JobResult]) {}

    /// Whether the counters matter, so that a server that counts late is waited for.
    fn counts(&self) -> bool {
        true
    }
}

impl TestHooks for () {}

#[derive(Debug, thiserror::Error)]
pub enum TestError {
    #[error("interrupted")]
    Interrupted,
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The counters could not be read at window start or window end.
    #[error("the counters could not be read: {0}")]
    Counters(String),
    #[error("{0}")]
    Remote(String),
    #[error(transparent)]
    Limit(#[from] Limit),
    #[error(
        "no thread could be started for job {job}: {source}; run fewer jobs or raise the limit of processes (ulimit -u)"
    )]
    Thread { job: u32, source: std::io::Error },
}

/// The jobs of a test with open sessions. They end if this is dropped.
pub trait RunningJobs {
    /// Threads of this process that run them; none if they are in other processes.
    fn tasks(&self) -> &[u32] {
        &[]
    }

    /// Hindrance of this process's transactions, if the database says so.
    fn hindrance(&self) -> Option<TargetError> {
        None
    }

    /// How far ahead an order must be given, ns.
    fn lead_ns(&self) -> u64 {
        0
    }

    fn start(&mut self, timing: Timing);

    /// Tells jobs of other processes when the window is; those of this process find it in [`Shared`].
    fn set_window(&mut self, _: Schedule) {}

    /// Ends all jobs and collects what they counted. `counts`: those that were made here, of jobs of this process, for which it calls
    /// `meanwhile` while it waits.
    fn end(self: Box<Self>, counts: Counts, meanwhile: &mut dyn FnMut()) -> Ended;
}

#[derive(Default)]
pub struct Ended {
    pub tallies: Vec<Tally>,
    /// Each job, in the order of their numbers; times are on the clock of this machine.
    pub jobs: Vec<JobResult>,
    /// Transactions of all jobs, at times about 0.1 s apart.
    pub counts: Counts,
    pub elsewhere: Elsewhere,
}

fn open_jobs(request: &Request, shared: &Arc<Shared>) -> Result<Box<dyn RunningJobs>, TestError> {
    match &request.place {
        Place::Here | Place::Part { .. } => Ok(Crew::open(request, shared)?),
        Place::Remote(jobs) => jobs.open(request, shared),
    }
}

const SILENT_SOURCE: &str = "the session that reads the counters does not respond";

/// Time between the last session being ready and the common start.
const START_DELAY: Duration = Duration::from_millis(20);

/// Runs one test. Calls `tick` as [`Tick`] says, on a thread that only waits for the window's end.
#[expect(clippy::too_many_lines)]
pub fn run_test(request: &Request, hooks: &mut dyn TestHooks, tick: impl FnMut(&Tick)) -> Result<Measured, TestError> {
    let mut observer = request.target.observer()?;
    wait_published(request, hooks)?;
    let begin_ns = now_ns();
    let before = observer.snapshot().map_err(|e| e.to_string());
    let took_ns = now_ns().saturating_sub(begin_ns);
    let shared = Arc::new(Shared::new(request.jobs, Arc::clone(&request.interrupted)).split(request.parts));
    let mut crew = open_jobs(request, &shared)?;
    let (sessions, server) = session_tasks(request, observer.as_mut(), crew.tasks());
    let helpers = || observer.session_tasks().ids;
    let meter = CostMeter::new(whose(request, &server, sessions.as_ref(), helpers), request.perf_events);
    let around = hooks.counts().then_some((&server, &meter));
    hooks.start(request, &shared)?;

    let start_ns = now_ns() + crew.lead_ns().max(START_DELAY.as_nanos() as u64);
    let timing = Timing { start_ns, window_ns: (request.duration_s * 1e9) as u64 };
    crew.start(timing);
    if let Some(why) = wait_started(&shared, &*crew) {
        let _ = shared.cut.set(why.to_string());
        return Err(TestError::Target(why));
    }
    let mut watch = Watch::new(&shared, start_ns, tick);
    let (warm_ns, mut warmup) = watch.warm_up(request, hooks);
    let mut threads = crew.tasks().to_vec();
    if request.target.facts().runs == Runs::InProcess {
        // What helps the jobs' threads is no work of loadline's either.
        threads.extend(observer.session_tasks().ids);
    }
    // Neither in-database jobs nor those of other processes tell in the window what they have done.
    let counting = (request.driver == Driver::Client && !crew.tasks().is_empty()).then(|| Arc::clone(&shared));
    let mut source: Box<dyn Observer> = Box::new(Observed { observer, counting, fastest_ns: took_ns });
    let mut open_ns = warm_ns;
    let (schedule, opened_at, sampler, readings) = loop {
        open_ns = open_ns.max(now_ns() + crew.lead_ns());
        let schedule = Schedule { start_ns, open_ns, close_ns: open_ns + timing.window_ns };
        shared.set_window(schedule);
        crew.set_window(schedule);
        let opened_at = SystemTime::now() + Duration::from_nanos(open_ns.saturating_sub(now_ns()));
        let config = sampler_config(request, &schedule, Tasks::own(threads.clone()), sessions.clone());
        let sampler = Sampler::start(config, source).map_err(|e| TestError::Counters(e.to_string()))?;
        watch.recent = Some(sampler.recent());
        let may_repeat = request.may_repeat_window() && shared.has_window_left();
        let is_repeated = || may_repeat && hooks.opens_again();
        let readings = match watch_window(&schedule, &mut watch, &sampler, around, is_repeated) {
            Ok(Some(readings)) => Ok(readings),
            Ok(None) => {
                let silent = || TestError::Counters(SILENT_SOURCE.to_owned());
                source = sampler.finish().source.ok_or_else(silent)?;
                open_ns = watch.hold_again(hooks);
                continue;
            }
            Err(why) => Err(why),
        };
        break (schedule, opened_at, sampler, readings);
    };
    warmup.taken_s += (schedule.open_ns - warm_ns) as f64 / 1e9;
    let counts = std::mem::take(&mut watch.counts);
    watch.tick_from_now();
    let ended = crew.end(counts, &mut || watch.tick_if_due(TickAt::Ending));
    let Ended { elsewhere, mut tallies, jobs: results, counts } = ended;
    hooks.stop(&results);
    let mut collected = sampler.finish();
    let published = wait_published(request, hooks);
    let mut after = match (published, collected.source.as_mut()) {
        (Err(why), _) => Err(why.to_string()),
        (Ok(()), Some(source)) => source.snapshot().map_err(|e| e.to_string()),
        (Ok(()), None) => Err(SILENT_SOURCE.to_owned()),
    };
    if request.interrupted.load(Ordering::Relaxed) {
        return Err(TestError::Interrupted);
    }
    let lost = results.iter().any(|job| job.lost.is_some());
    // A server that answered neither the jobs nor the sampler: whoever asks for the test says which.
    let unread = |text: String| {
        if lost { Ok((WindowReadings::unread_because(&text), None)) } else { Err(TestError::Counters(text)) }
    };
    let (readings, surroundings) = readings.or_else(unread)?;
    let readings = readings.without(&elsewhere.own, &mut after);
    let own = elsewhere.processes_here().chain(request.proxy.iter().flatten().flatten().copied()).collect();
    let around = surroundings.map(|readings| Around { readings, server, own });
    let mut merged = Tally::new(schedule.window_ns(), request.load.has_rate());
    tallies.iter().for_each(|tally| merged.merge(tally));
    tallies.resize_with(request.load.populations.len(), Tally::default);
    Ok(Measured {
        schedule,
        opened_at,
        warmup,
        counts,
        jobs: results,
        completed_before: shared.completed_before.load(Ordering::Relaxed),
        merged,
        populations: tallies,
        before,
        readings,
        after,
        collected,
        around,
        elsewhere,
    })
}

/// Whose cost is that of the database. `sessions`: the tasks of the jobs' sessions; `helpers`: threads with which an embedded one helps them.
fn whose(request: &Request, server: &Server, sessions: Option<&Tasks>, helpers: impl FnOnce() -> Vec<u32>) -> Whose {
    match request.target.facts().runs {
        Runs::Nowhere => Whose::None(CostUnknown::NoDatabase),
        // A log without a database has threads of its own.
        Runs::InProcess if request.target.abilities().tables.is_none() => Whose::None(CostUnknown::NoDatabase),
        Runs::InProcess => sessions.map_or(Whose::None(CostUnknown::OtherThreads), |of| {
            Whose::Threads(Tasks::own(of.ids().chain(helpers()).collect()))
        }),
        Runs::Apart if request.cpu == CpuSource::Local => Whose::Server(server.clone()),
        Runs::Apart => Whose::None(CostUnknown::Elsewhere),
    }
}

/// Samples in the window of `schedule`. `sessions`: the server's tasks for the jobs' sessions.
fn sampler_config(
    request: &Request,
    schedule: &Schedule,
    job_threads: Tasks,
    sessions: Option<Tasks>,
) -> SamplerConfig {
    let mut config = SamplerConfig::new(schedule.open_ns);
    config.cpu = request.cpu;
    config.disk.clone_from(&request.disk);
    config.data_disk.clone_from(&request.data_disk);
    let step_ns = course_step_ns(schedule.window_ns());
    let is_fine = step_ns < SECOND_NS && request.driver == Driver::Client && request.cpu == CpuSource::Local;
    config.between_ns = is_fine.then_some(step_ns);
    config.before_others = request.jobs >= MANY_JOBS;
    config.job_threads = job_threads;
    // Those of the first sessions end when the jobs open others.
    let stay = request.load.reconnect_every.is_none() || request.target.facts().runs == Runs::InProcess;
    config.sessions = if stay { sessions } else { None };
    config
}

/// Waits until a server that counts late, or behind a pooler, has counted all that was done.
fn wait_published(request: &Request, hooks: &dyn TestHooks) -> Result<(), TargetError> {
    if !hooks.counts() {
        return Ok(());
    }
    std::thread::sleep(Duration::from_secs_f64(request.target.facts().counter_lag_s));
    request.target.publish_shared()
}

/// The database's processes as they are known without a session of a job: by their names, so also after the server was started again.
pub fn server_of(target: &dyn Target) -> Result<Server, TargetError> {
    let is_apart = target.facts().runs == Runs::Apart;
    Ok(if is_apart { Server::new(None, target.observer()?.session_tasks().commands) } else { Server::Inside })
}

/// The tasks that run the jobs' sessions, if they are on this machine and all are known; and the database's processes.
pub fn session_tasks(request: &Request, observer: &mut dyn Observer, threads: &[u32]) -> (Option<Tasks>, Server) {
    match request.target.facts().runs {
        Runs::InProcess => {
            // Those of other processes are not known.
            let own = (threads.len() == request.jobs as usize).then(|| Tasks::own(threads.to_vec()));
            return (own, Server::Inside);
        }
        Runs::Nowhere => return (None, Server::Inside),
        Runs::Apart => {}
    }
    let SessionTasks { ids, commands } = observer.session_tasks();
    let all = request.cpu == CpuSource::Local && ids.len() == request.jobs as usize;
    let tasks = if all { Tasks::of_command(ids, commands) } else { None };
    let server = Server::new(tasks.as_ref(), commands);
    (tasks, server)
}
