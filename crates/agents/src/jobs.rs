//! The jobs of an agent: a thread opens their sessions, and starts, counts and ends them by the crew of a local run.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loadline_collect::os::{CpuTimes, Interfaces};
use loadline_collect::{CpuSource, System};
use loadline_database::{OpenRequest, Target, Work};
use loadline_load::{
    Counts, Crew, Ended, OwnCommits, Parts, Place, Request, RunningJobs, STEP_NS, Schedule, Shared, Timing, Warmup,
    next_count_ns,
};
use loadline_model::Driver;
use loadline_model::random::{FNV_START, fnv1a};
use loadline_storage::{now_ns, process_cpu_ns};

use crate::counted::Counted;
use crate::message::{Answer, Command, JobsOrder, Opened, Progress, Refusal};

/// Time between looks whether all have passed the window end, ns.
const LOOK_NS: u64 = 2_000_000;

/// The target as it was last opened, and by what: opening one anew would be work for the database that counts as that of the jobs.
pub(crate) type OpenTarget = Arc<Mutex<Option<(JobsOrder, Arc<dyn Target>)>>>;

/// Begins to open the sessions of `order`, in a thread that is then told what its jobs do next. What happens is told to `tell`.
/// `interrupted` is of the whole run: once it is set, nothing waits for the target.
pub(crate) fn open(
    order: JobsOrder,
    opened: &OpenTarget,
    interrupted: &Arc<AtomicBool>,
    tell: impl Fn(Answer) + Send + 'static,
) -> std::io::Result<Sender<Command>> {
    let (commands, inbox) = channel();
    let (opened, interrupted) = (Arc::clone(opened), Arc::clone(interrupted));
    let thread = std::thread::Builder::new().name("jobs".to_owned());
    thread.spawn(move || run(&order, &opened, &inbox, &interrupted, &tell))?;
    Ok(commands)
}

/// Identity of the work of jobs from this number on: program, parameters, seeds and rows.
pub(crate) fn fingerprint(work: &Work, first_job: u32) -> String {
    let (params, start) = (work.params.to_map(), work.start(first_job));
    let of = (&work.workload.code, &params, (work.seed, work.draws), work.payload, work.nodes);
    let text = format!("{of:?} {:?} {start:?} {:?}", work.params.size_bytes(), work.program);
    format!("{:016x}", fnv1a(fnv1a(FNV_START, text.as_bytes()), &work.pool_of_job(first_job)))
}

fn work(order: &JobsOrder) -> Result<Work, String> {
    let workload = match &order.file {
        Some(file) => loadline_workload::read_file(&file.name, &file.text).map_err(|e| e.to_string())?,
        None => loadline_workload::find(&order.workload).map_err(|e| e.to_string())?,
    };
    let params = workload.params(&order.parameters).map_err(|e| e.to_string())?.with_size(order.size_bytes);
    let params = params.with_keys(order.load.keys);
    let work = Work::new(workload, params, order.seed, order.payload);
    Ok(Work { draws: order.draws, nodes: order.used_nodes, ..work })
}

/// The target of an order: the one of the test before, or opened.
fn target(order: &JobsOrder, opened: &OpenTarget, interrupted: &Arc<AtomicBool>) -> Result<Arc<dyn Target>, Refusal> {
    let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |of: &JobsOrder| (&of.run, &of.url, &of.nodes) == (&order.run, &order.url, &order.nodes);
    if let Some((_, target)) = opened.as_ref().filter(|(of, _)| same(of)) {
        return Ok(Arc::clone(target));
    }
    let open = OpenRequest {
        nodes: order.nodes.clone(),
        // No name of the run: sessions are named as those of a local run, so that the coordinator finds them.
        interrupted: Arc::clone(interrupted),
        // Nothing is put there: the targets of agents are servers.
        ..OpenRequest::new(&order.url, PathBuf::from("."))
    };
    let target = loadline_database::open(&open).map_err(|e| unreachable(order, &e))?;
    let target: Arc<dyn Target> = Arc::from(target);
    *opened = Some((order.clone(), Arc::clone(&target)));
    Ok(target)
}

/// Why the target was not reached, without the passwords of the order's URLs.
fn unreachable(order: &JobsOrder, why: &dyn std::error::Error) -> Refusal {
    let urls = std::iter::once(&order.url).chain(&order.nodes);
    Refusal::Target(urls.fold(why.to_string(), |text, url| loadline_database::hide(&text, url)))
}

/// The request of a test whose jobs from a number on are here.
fn request(order: &JobsOrder, target: Arc<dyn Target>, interrupted: &Arc<AtomicBool>) -> Result<Request, Refusal> {
    let work = work(order).map_err(Refusal::Work)?;
    Ok(Request {
        target,
        work: Arc::new(work),
        driver: order.driver.unwrap_or(Driver::Client),
        jobs: order.jobs.len() as u32,
        warmup: Warmup::Seconds(0.0),
        duration_s: 0.0,
        load: order.load.clone(),
        cpu: CpuSource::Local,
        disk: None,
        data_disk: None,
        proxy: None,
        parts: Parts::One,
        place: Place::Part { first_job: order.jobs.start, all_jobs: order.all_jobs },
        perf_events: false,
        interrupted: Arc::clone(interrupted),
    })
}

fn run(
    order: &JobsOrder,
    opened: &OpenTarget,
    inbox: &Receiver<Command>,
    interrupted: &Arc<AtomicBool>,
    tell: &dyn Fn(Answer),
) {
    let target = match target(order, opened, interrupted) {
        Ok(target) => target,
        Err(why) => return tell(Answer::Refused(why)),
    };
    if order.jobs.is_empty() {
        // The run begins: nothing more is asked than whether the target can be reached.
        tell(Answer::Opened(Opened::default()));
        return tell(Answer::Counts(String::new()));
    }
    let shared = Arc::new(Shared::of_part(order.jobs.start, order.jobs.len() as u32, Arc::clone(interrupted)));
    let earlier = target.job_sessions();
    let mut watch = Watch {
        test: order.test,
        target: &*target,
        base: target.own_commits(),
        own: OwnCommits::default(),
        shared: &shared,
        start_ns: 0,
        window: None,
        counts: Vec::new(),
        readings: [None, None],
        next_count_ns: 0,
        closed: false,
    };
    let opened = request(order, Arc::clone(&target), interrupted).and_then(|request| {
        let crew = Crew::open(&request, &shared).map_err(|e| unreachable(order, &e))?;
        Ok((request, crew))
    });
    let (request, mut crew) = match opened {
        Ok(opened) => opened,
        Err(why) => return tell(Answer::Refused(why)),
    };
    let fingerprint = fingerprint(&request.work, order.jobs.start);
    let sessions = opened_since(&earlier, target.job_sessions());
    tell(Answer::Opened(Opened { fingerprint, sessions }));
    loop {
        match inbox.recv_timeout(Duration::from_nanos(watch.next_ns().saturating_sub(now_ns()))) {
            Ok(Command::Start { start_ns, window_ns }) => {
                crew.start(Timing { start_ns, window_ns });
                watch.start_ns = start_ns;
            }
            Ok(Command::Window { open_ns, close_ns }) => {
                let schedule = Schedule { start_ns: watch.start_ns, open_ns, close_ns };
                shared.set_window(schedule);
                watch.window = Some(schedule);
            }
            Err(RecvTimeoutError::Timeout) => watch.look(tell),
            Ok(Command::End { .. }) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let Ended { tallies, jobs, .. } = crew.end(Counts::default(), &mut || ());
    let counted = Counted { tallies, jobs, ..watch.counted() };
    tell(Answer::Counts(counted.text()));
}

/// Sessions on each server that were not there `earlier`.
fn opened_since(earlier: &[Vec<u32>], now: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    let mut earlier = earlier.iter();
    let anew = |ids: Vec<u32>| {
        let known: BTreeSet<u32> = earlier.next().into_iter().flatten().copied().collect();
        ids.into_iter().filter(|id| !known.contains(id)).collect()
    };
    now.into_iter().map(anew).collect()
}

fn read_machine() -> (System, Interfaces) {
    let (at_ns, process_ns) = (now_ns(), Some(process_cpu_ns()));
    let system = System { at_ns, process_ns, cpu: CpuTimes::local().ok(), ..System::default() };
    (system, Interfaces::local())
}

/// The thread of the jobs, which waits and counts.
struct Watch<'a> {
    test: u64,
    target: &'a dyn Target,
    /// Commits of the target's own before the sessions were opened.
    base: Vec<u64>,
    own: OwnCommits,
    shared: &'a Shared,
    start_ns: u64,
    window: Option<Schedule>,
    counts: Vec<(u64, u64)>,
    /// At window start and window end.
    readings: [Option<(System, Interfaces)>; 2],
    next_count_ns: u64,
    closed: bool,
}

impl Watch<'_> {
    /// Counts, once the jobs have ended; without those of the jobs themselves.
    fn counted(mut self) -> Counted {
        self.note_own(4..5);
        let Watch { counts, readings: [open, close], own, .. } = self;
        let counted = Counted { counts, own, ..Counted::default() };
        let (Some((open, before)), Some((close, after))) = (open, close) else { return counted };
        let rates = open.rates_until(&close);
        Counted {
            process_cpu_ns: rates.process_ns,
            machine_cpu_pct: rates.cpu.map(|cpu| cpu.busy_pct),
            network: before.busiest(&after, rates.seconds),
            ..counted
        }
    }

    /// Notes what the sessions committed for themselves so far, at these of the times of [`OwnCommits`].
    fn note_own(&mut self, times: Range<usize>) {
        let now = self.target.own_commits();
        let own: Vec<u64> = now.iter().zip(&self.base).map(|(now, before)| now.saturating_sub(*before)).collect();
        self.own.0.iter_mut().take(times.end).skip(times.start).for_each(|at| at.clone_from(&own));
    }

    fn next_ns(&self) -> u64 {
        let now = now_ns();
        if self.start_ns == 0 {
            return now + STEP_NS;
        }
        // Counts are at the times of the other agents, which are those of the start.
        let count_ns = self.next_count_ns.max(self.start_ns + STEP_NS / 2).max(now);
        match (self.window, &self.readings) {
            (None, _) => count_ns,
            (Some(window), [None, _]) => window.open_ns.min(count_ns),
            (Some(window), [_, None]) => window.close_ns.min(count_ns),
            _ if self.closed => now + STEP_NS,
            _ => now + LOOK_NS,
        }
    }

    fn look(&mut self, tell: &dyn Fn(Answer)) {
        let now = now_ns();
        if self.start_ns == 0 || now < self.start_ns {
            return;
        }
        if now >= self.next_count_ns && !self.closed {
            self.counts.push((now, self.shared.completed()));
            self.next_count_ns = next_count_ns(self.start_ns, now);
            if self.window.is_none() {
                let progress = Progress {
                    started: self.shared.started.load(Ordering::Relaxed),
                    ended: self.shared.ended.load(Ordering::Relaxed),
                    completed: self.shared.completed(),
                };
                tell(Answer::Progress { test: self.test, progress });
            }
        }
        let Some(Schedule { open_ns, close_ns, .. }) = self.window else { return };
        // At window start and window end, and when all have passed them: each is as it was last seen before.
        let until_ns = [open_ns + LOOK_NS, open_ns + (close_ns - open_ns) / 2, close_ns + LOOK_NS, u64::MAX];
        self.note_own(until_ns.partition_point(|until_ns| *until_ns < now)..4);
        for (at, reading) in [open_ns, close_ns].into_iter().zip(&mut self.readings) {
            if now >= at {
                reading.get_or_insert_with(read_machine);
            }
        }
        let passed = self.shared.after_end.load(Ordering::Relaxed) + self.shared.ended.load(Ordering::Relaxed);
        if now >= close_ns && passed >= self.shared.jobs() && !self.closed {
            // The last count is of after the window, so that the window lies between two.
            self.counts.push((now, self.shared.completed()));
            self.closed = true;
            tell(Answer::Closed(self.test));
        }
    }
}
