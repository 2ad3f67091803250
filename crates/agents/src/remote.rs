//! The agents of a run as the place where its jobs run: what [`loadline_load::run_test`] asks for, by the protocol.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use loadline_load::{
    Counts, Ended, JobResult, OwnCommits, RemoteCrew, RemoteJobs, Request, Schedule, Shared, Tally, TestError, Timing,
};
use loadline_model::plan::WorkloadFile;
use loadline_model::record::AgentFigures;

use crate::coordinator::{AgentsError, Coordinator};
use crate::counted::Counted;
use crate::jobs::fingerprint;
use crate::link::{HubLink, Link};
use crate::message::{Command, JobsOrder, Presence};
use crate::offset::Offset;
use crate::test::{AgentCounts, START_LEAD_NS, Test, WINDOW_LEAD_NS};

/// Time between two looks at what agents said, ns.
const LOOK_NS: u64 = 5_000_000;
/// Jobs are taken to have passed the window start so many mean transaction times after it, and a twentieth of the window, but no less
/// and no more than these ns: nothing is heard of them then. A device that stalls for longer makes the check of commits fail. What
/// their sessions have published by then stays as it is for a second (PostgreSQL's PGSTAT_MIN_INTERVAL).
const PASSED: (u64, [u64; 2]) = (3, [20_000_000, 250_000_000]);

/// What agents need to open the target.
#[derive(Clone)]
pub struct AgentTarget {
    /// Its URL, with the password or without.
    pub url: String,
    /// URLs of further nodes.
    pub nodes: Vec<String>,
    /// The user's workload files, which agents do not have.
    pub files: Vec<WorkloadFile>,
}

/// The agents of a run.
pub struct Agents {
    coordinator: Arc<Mutex<Coordinator<HubLink>>>,
    target: AgentTarget,
    run: String,
    tests: AtomicU64,
}

impl Agents {
    /// Takes `asked` agents for the run; waits for them for `wait_ns` at most.
    ///
    /// # Errors
    /// [`AgentsError`].
    pub fn enlist(
        link: HubLink,
        run: &str,
        version: &str,
        asked: usize,
        wait_ns: u64,
        target: AgentTarget,
    ) -> Result<Agents, AgentsError> {
        let secret =
            std::iter::once(&target.url).chain(&target.nodes).any(|url| loadline_database::redact(url) != *url);
        let mut coordinator = Coordinator::enlist(link, run, version, asked, wait_ns)?;
        let open: Vec<String> = coordinator
            .members()
            .iter()
            .filter(|m| secret && !m.presence.private)
            .map(|m| format!("agent {}", m.name()))
            .collect();
        if secret && (!open.is_empty() || !coordinator.link.is_private()) {
            coordinator.release();
            let who = if open.is_empty() { "this loadline".to_owned() } else { open.join(", ") };
            return Err(AgentsError::Agents(vec![format!(
                "the password of the target's URL would be sent in clear: {who} reaches the hub neither by TLS nor on its own \
                 machine; use a tls:// hub, or --agent-credentials local"
            )]));
        }
        if loadline_database::kind_of(&target.url).is_ok_and(|kind| kind.no_sessions.is_none()) {
            coordinator.limit_by_sessions();
        }
        let order = JobsOrder {
            run: run.to_owned(),
            url: target.url.clone(),
            nodes: target.nodes.clone(),
            ..JobsOrder::default()
        };
        if let Err(e) = Test::reach(&mut coordinator, &order) {
            coordinator.release();
            return Err(e);
        }
        let coordinator = Arc::new(Mutex::new(coordinator));
        Ok(Agents { coordinator, target, run: run.to_owned(), tests: AtomicU64::new(0) })
    }

    fn lock(&self) -> MutexGuard<'_, Coordinator<HubLink>> {
        self.coordinator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The agents, and why each that is lost is.
    #[must_use]
    pub fn who(&self) -> Vec<(Presence, Option<String>)> {
        self.lock().members().iter().map(|m| (m.presence.clone(), m.lost.clone())).collect()
    }

    fn order(&self, request: &Request) -> JobsOrder {
        let work = &request.work;
        let own = |file: &&WorkloadFile| {
            loadline_workload::register(&file.name, &file.text).is_ok_and(|of| of.code == work.workload.code)
        };
        JobsOrder {
            run: self.run.clone(),
            url: self.target.url.clone(),
            nodes: self.target.nodes.clone(),
            all_jobs: request.jobs,
            driver: Some(request.driver),
            workload: work.workload.code.to_owned(),
            file: self.target.files.iter().find(own).cloned(),
            parameters: work.params.to_map(),
            size_bytes: work.params.size_bytes(),
            seed: work.seed,
            draws: work.draws,
            compressibility: work.compressibility,
            used_nodes: work.nodes,
            load: request.load.clone(),
            sessions_per_thread: request.sessions_per_thread,
            ..JobsOrder::default()
        }
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.lock().release();
    }
}

impl RemoteJobs for Agents {
    fn open(&self, request: &Request, shared: &Arc<Shared>) -> Result<Box<dyn RemoteCrew>, TestError> {
        let order = self.order(request);
        let work = Arc::clone(&request.work);
        let fingerprint = move |first_job| fingerprint(&work, first_job);
        let mut c = self.lock();
        let number = self.tests.fetch_add(1, Ordering::Relaxed) + 1;
        let (before, gone) = (c.left(), c.gather());
        // Of those who are gone before the order to open them there are no sessions.
        let jobs = if gone.is_empty() { request.jobs } else { 0 };
        let opened = match gone.is_empty() {
            true => Test::open(&mut c, number, &order, &fingerprint),
            false => Err(AgentsError::Agents(gone)),
        };
        let test = opened.map_err(|e| {
            let lost: Vec<AgentFigures> = before.iter().filter_map(|agent| lost(&c, *agent, jobs)).collect();
            match e {
                _ if c.link.interrupted() => TestError::Interrupted,
                e if lost.is_empty() => TestError::Remote(e.to_string()),
                _ => TestError::AgentsLost(lost),
            }
        })?;
        for share in &test.shares {
            request.target.adopt_jobs(c.members().get(share.agent).map_or(&[], |member| &member.sessions));
        }
        drop(c);
        let (commands, inbox) = channel();
        let conductor = Conductor {
            coordinator: Arc::clone(&self.coordinator),
            test,
            jobs: request.jobs,
            shared: Arc::clone(shared),
            window: None,
            start_ns: 0,
        };
        let thread = std::thread::Builder::new()
            .name("agents".to_owned())
            .spawn(move || conductor.conduct(&inbox))
            .map_err(|source| TestError::Thread { job: 0, source })?;
        Ok(Box::new(RunningCrew { commands, thread: Some(thread), jobs: request.jobs }))
    }

    fn left(&self) -> usize {
        self.lock().left().len()
    }
}

/// An agent that is lost before a test of so many jobs.
fn lost(c: &Coordinator<HubLink>, agent: usize, jobs: u32) -> Option<AgentFigures> {
    let member = c.members().get(agent)?;
    let failed = Some(member.lost.clone()?);
    let Presence { name, host, .. } = member.presence.clone();
    let sessions = member.sessions.clone();
    Some(AgentFigures { name, host, jobs, failed, lost: true, sessions, ..AgentFigures::default() })
}

/// Jobs of agents with open sessions. Its thread ends them when `commands` is dropped.
struct RunningCrew {
    commands: Sender<Command>,
    thread: Option<JoinHandle<Ended>>,
    jobs: u32,
}

impl RemoteCrew for RunningCrew {
    fn lead_ns(&self) -> u64 {
        START_LEAD_NS.max(WINDOW_LEAD_NS)
    }

    fn start(&mut self, Timing { start_ns, window_ns }: Timing) {
        let _ = self.commands.send(Command::Start { start_ns, window_ns });
    }

    fn set_window(&mut self, Schedule { open_ns, close_ns, .. }: Schedule) {
        let _ = self.commands.send(Command::Window { open_ns, close_ns });
    }

    fn end(mut self: Box<Self>) -> Ended {
        let thread = self.thread.take();
        let jobs = self.jobs as usize;
        drop(self);
        let crashed =
            || JobResult::ended("the coordinator of the agents crashed: this is a bug in loadline, please report it");
        thread.and_then(|thread| thread.join().ok()).unwrap_or_else(|| Ended {
            own: OwnCommits::default(),
            tallies: Vec::new(),
            jobs: vec![crashed(); jobs],
            counts: Counts::default(),
            sessions_per_thread: 1,
            agents: Vec::new(),
        })
    }
}

/// The thread that speaks with the agents in a test.
struct Conductor {
    coordinator: Arc<Mutex<Coordinator<HubLink>>>,
    test: Test,
    jobs: u32,
    shared: Arc<Shared>,
    window: Option<Schedule>,
    start_ns: u64,
}

impl Conductor {
    fn conduct(mut self, commands: &Receiver<Command>) -> Ended {
        let coordinator = Arc::clone(&self.coordinator);
        let mut c = coordinator.lock().unwrap_or_else(PoisonError::into_inner);
        let mut passed_ns = u64::MAX;
        loop {
            match commands.try_recv() {
                Ok(command) => {
                    self.test.tell(&mut c, command);
                    match command {
                        Command::Start { start_ns, .. } => self.start_ns = start_ns,
                        Command::Window { open_ns, close_ns } => {
                            let window = Schedule { start_ns: self.start_ns, open_ns, close_ns };
                            passed_ns = self.passed_ns(&c, &window);
                            self.window = Some(window);
                        }
                        Command::End { .. } => {}
                    }
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => break,
            }
            let until_ns = c.link.now_ns() + LOOK_NS;
            c.pump(until_ns);
            self.show(&c, passed_ns);
        }
        let window_ns = self.window.map_or(0, |w| w.window_ns());
        let counted = self.test.stop(&mut c, window_ns);
        self.ended(&c, counted)
    }

    /// When the jobs are taken to have passed the window start.
    fn passed_ns(&self, c: &Coordinator<HubLink>, window: &Schedule) -> u64 {
        let (sum, _) = self.test.progress(c);
        let ran_ns = c.link.now_ns().saturating_sub(self.start_ns);
        let mean_ns = ran_ns.saturating_mul(u64::from(self.jobs)) / sum.completed.max(1);
        let more_ns = (window.window_ns() / 20).clamp(PASSED.1[0], PASSED.1[1]);
        window.open_ns.saturating_add(mean_ns.saturating_mul(PASSED.0)).saturating_add(more_ns)
    }

    /// Brings what the run sees of the jobs up to date.
    fn show(&self, c: &Coordinator<HubLink>, passed_ns: u64) {
        let (sum, each) = self.test.progress(c);
        let now_ns = c.link.now_ns();
        for (progress, completed) in self.shared.progress.iter().zip(each).filter(|(p, n)| p.get() != *n) {
            progress.report(completed, now_ns);
        }
        let failed: u32 =
            self.test.shares.iter().filter(|s| self.test.failures.contains_key(&s.agent)).map(|s| s.jobs).sum();
        self.shared.started.store(sum.started, Ordering::Relaxed);
        self.shared.ended.store(sum.ended.saturating_add(failed).min(self.jobs), Ordering::Relaxed);
        if c.link.now_ns() >= passed_ns {
            self.shared.passed_open.store(self.jobs, Ordering::Relaxed);
        }
        if self.window.is_some() && self.test.closed(c) {
            self.shared.passed_close.store(self.jobs, Ordering::Relaxed);
        }
    }

    /// What all of them did.
    fn ended(&mut self, c: &Coordinator<HubLink>, counted: Vec<AgentCounts>) -> Ended {
        let window = self.window;
        let window_ns = window.map_or(0, |w| w.window_ns());
        let mut tallies = vec![Tally::new(window_ns, false)];
        let mut own = OwnCommits::default();
        let mut jobs = vec![JobResult::ended("the job never started"); self.jobs as usize];
        let (mut counts, mut agents, mut sessions_per_thread) = (Vec::new(), Vec::new(), 1);
        for of in counted {
            let clock = of.clock.unwrap_or(Offset { ahead_ns: 0, bound_ns: u64::MAX });
            let read = of.text.as_deref().map(|text| Counted::read(text, of.share.jobs, &clock));
            let why = self.test.failures.get(&of.share.agent).cloned();
            let (counted, why) = match read {
                Some(Ok(counted)) => (Some(counted), why),
                Some(Err(e)) => (None, why.or(Some(e))),
                None => (None, why.or_else(|| Some("it counted nothing".to_owned()))),
            };
            agents.push(figures(c, &of, counted.as_ref(), window, why.as_deref()));
            let places = jobs.iter_mut().skip(of.share.first as usize).take(of.share.jobs as usize);
            match counted {
                Some(of) => {
                    Tally::merge_parts(&mut tallies, &of.tallies);
                    own.merge(&of.own);
                    sessions_per_thread = of.sessions_per_thread.max(sessions_per_thread);
                    counts.push(Counts::new(of.counts));
                    places.zip(of.jobs).for_each(|(place, job)| *place = job);
                }
                None => {
                    let why = format!("agent {}: {}", c.name(of.share.agent), why.unwrap_or_default());
                    places.for_each(|place| *place = JobResult::ended(why.as_str()));
                }
            }
        }
        Ended { own, tallies, jobs, sessions_per_thread, counts: Counts::sum(&counts), agents }
    }
}

/// What one agent did.
fn figures(
    c: &Coordinator<HubLink>,
    of: &AgentCounts,
    counted: Option<&Counted>,
    window: Option<Schedule>,
    failed: Option<&str>,
) -> AgentFigures {
    let Some(member) = c.members().get(of.share.agent) else { return AgentFigures::default() };
    let Presence { name, host, machine, process, cpus, .. } = member.presence.clone();
    let window_ns = window.map_or(0, |w| w.window_ns()) as f64;
    let open_ns = window.map_or(0, |w| w.open_ns);
    let late = |job: &&JobResult| job.first_start_ns.is_none_or(|at| at > open_ns);
    let tally = counted.map(Counted::tally);
    let transaction = tally.as_ref().map(|tally| &tally.transaction);
    AgentFigures {
        name,
        host,
        machine,
        process,
        sessions: member.sessions.clone(),
        cpus,
        first_job: of.share.first,
        jobs: of.share.jobs,
        tps: transaction.filter(|_| window_ns > 0.0).map(|t| t.count() as f64 / window_ns * 1e9),
        transaction_time_ns_p50: transaction.and_then(|t| t.quantile_ns(0.5)),
        transaction_time_ns_p99: transaction.and_then(|t| t.quantile_ns(0.99)),
        errors: tally.as_ref().map_or(0, |tally| tally.errors),
        late_starts: counted.map_or(0, |counted| counted.jobs.iter().filter(late).count() as u32),
        client_cpu_pct: counted
            .and_then(|counted| counted.process_cpu_ns)
            .filter(|_| window_ns > 0.0)
            .map(|ns| ns as f64 / window_ns / f64::from(cpus.max(1)) * 100.0),
        machine_cpu_pct: counted.and_then(|counted| counted.machine_cpu_pct),
        network: counted.and_then(|counted| counted.network.clone()),
        start_skew_ms: of.skew_ns.filter(|_| counted.is_some()).map(|ns| ns as f64 / 1e6),
        failed: failed.map(str::to_owned),
        lost: member.lost.is_some(),
    }
}

/// The agents at a hub, for a listing.
///
/// # Errors
/// [`AgentsError`].
pub fn list(link: &mut HubLink, asker: &str, wait_ns: u64) -> Result<Vec<Presence>, AgentsError> {
    crate::coordinator::roll(link, asker, wait_ns, |_| false)
}
