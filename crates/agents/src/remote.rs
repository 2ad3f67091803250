//! The agents of a run as the place where its jobs run: what [`loadline_load::run_test`] asks for, by the protocol.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use loadline_load::{
    Counts, Elsewhere, Ended, JobResult, RemoteJobs, Request, RunningJobs, Schedule, Shared, Tally, TestError, Timing,
};
use loadline_model::plan::WorkloadFile;
use loadline_model::record::AgentFigures;

use crate::coordinator::{AgentsError, Coordinator, Member, Part, described, roll};
use crate::counted::Counted;
use crate::hub::{HubLink, Link};
use crate::jobs::fingerprint;
use crate::message::{Command, JobsOrder, Presence};
use crate::test::LEAD_NS;

/// Time between two looks at what agents said, ns.
const LOOK_NS: u64 = 5_000_000;
/// Jobs are taken to have passed the window start so many mean transaction times after it, and a twentieth of the window, but no less
/// and no more than these ns: nothing is heard of them then. A device that stalls for longer makes the check of commits fail. What
/// their sessions have published by then stays as it is for a second (PostgreSQL's PGSTAT_MIN_INTERVAL).
const PASSED: (u64, [u64; 2]) = (3, [20_000_000, 250_000_000]);

#[derive(Clone)]
pub struct AgentTarget {
    /// URL, with the password or without.
    pub url: String,
    pub nodes: Vec<String>,
    /// The user's workload files, which agents do not have.
    pub files: Vec<WorkloadFile>,
}

pub struct Agents {
    coordinator: Arc<Mutex<Coordinator<HubLink>>>,
    target: AgentTarget,
    order: JobsOrder,
}

impl Agents {
    /// Takes `asked` agents for the run; waits for them for `wait_ns` at most.
    pub fn enlist(
        link: HubLink,
        run: &str,
        version: &str,
        asked: usize,
        wait_ns: u64,
        target: AgentTarget,
    ) -> Result<Agents, AgentsError> {
        let AgentTarget { url, nodes, .. } = target.clone();
        let secret = std::iter::once(&url).chain(&nodes).any(|url| loadline_database::redact(url) != *url);
        let mut c = Coordinator::enlist(link, run, version, asked, wait_ns)?;
        if loadline_database::kind_of(&url).is_ok_and(|kind| kind.no_sessions.is_none()) {
            // Each job needs a session on the server.
            for Member { presence, .. } in &mut c.members {
                presence.most_jobs = presence.most_jobs.min(presence.most_sessions);
            }
        }
        let order = JobsOrder { run: run.to_owned(), url, nodes, ..JobsOrder::default() };
        let ready = if secret { can_be_sent_secrets(&c) } else { Ok(()) };
        if let Err(e) = ready.and_then(|()| c.reach(&order)) {
            c.release();
            return Err(e);
        }
        Ok(Agents { coordinator: Arc::new(Mutex::new(c)), target, order })
    }

    fn lock(&self) -> MutexGuard<'_, Coordinator<HubLink>> {
        self.coordinator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn who(&self) -> Vec<Presence> {
        self.lock().members.iter().map(|member| member.presence.clone()).collect()
    }

    fn order(&self, request: &Request) -> JobsOrder {
        let work = &request.work;
        let own = |file: &&WorkloadFile| file.text == work.workload.text();
        JobsOrder {
            all_jobs: request.jobs,
            driver: Some(request.driver),
            workload: work.workload.code.clone(),
            file: self.target.files.iter().find(own).cloned(),
            parameters: work.params.to_map(),
            size_bytes: work.params.size_bytes(),
            seed: work.seed,
            draws: work.draws,
            payload: work.payload,
            used_nodes: work.nodes,
            load: request.load.clone(),
            ..self.order.clone()
        }
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.lock().release();
    }
}

/// Fails with those between whom and the hub others can read.
fn can_be_sent_secrets(c: &Coordinator<HubLink>) -> Result<(), AgentsError> {
    let open = c.members.iter().map(|member| &member.presence).filter(|presence| !presence.private);
    let open: Vec<String> = open.map(|presence| format!("agent {}", described(presence))).collect();
    let who = match open.is_empty() {
        true if c.link.hub.private => return Ok(()),
        true => "this loadline".to_owned(),
        false => open.join(", "),
    };
    Err(AgentsError::Agents(vec![format!(
        "the password of the target's URL would be sent in clear: {who} reaches the hub neither by TLS nor on its own machine; use a tls:// \
         hub, or --agent-credentials local"
    )]))
}

impl RemoteJobs for Agents {
    fn open(&self, request: &Request, shared: &Arc<Shared>) -> Result<Box<dyn RunningJobs>, TestError> {
        let work = Arc::clone(&request.work);
        let mut c = self.lock();
        if let Err(e) = c.open(&self.order(request), &move |first_job| fingerprint(&work, first_job)) {
            let lost = c.members.iter().filter(|member| member.lost).map(|member| figures(member, None, None));
            let lost = Elsewhere { processes: lost.collect(), ..Elsewhere::default() };
            let ended = lost.end_lost(request.target.as_ref());
            let said: Vec<String> =
                std::iter::once(e.to_string()).chain(ended.iter().map(ToString::to_string)).collect();
            return Err(match e {
                AgentsError::Interrupted => TestError::Interrupted,
                _ => TestError::Remote(said.join("; ")),
            });
        }
        c.parts().for_each(|member| request.target.adopt_jobs(&member.part.sessions));
        drop(c);
        let (commands, inbox) = channel();
        let (coordinator, shared) = (Arc::clone(&self.coordinator), Arc::clone(shared));
        let mut conductor = Conductor { jobs: request.jobs, shared, window: None, start_ns: 0, passed_ns: u64::MAX };
        let thread = std::thread::Builder::new()
            .name("agents".to_owned())
            .spawn(move || conductor.conduct(&mut coordinator.lock().unwrap_or_else(PoisonError::into_inner), &inbox))
            .map_err(|source| TestError::Thread { job: 0, source })?;
        Ok(Box::new(RunningCrew { commands, thread, jobs: request.jobs }))
    }
}

/// Jobs of agents with open sessions. Its thread ends them when `commands` is dropped.
struct RunningCrew {
    commands: Sender<Command>,
    thread: JoinHandle<Ended>,
    jobs: u32,
}

impl RunningJobs for RunningCrew {
    fn lead_ns(&self) -> u64 {
        LEAD_NS
    }

    fn start(&mut self, Timing { start_ns, window_ns }: Timing) {
        let _ = self.commands.send(Command::Start { start_ns, window_ns });
    }

    fn set_window(&mut self, Schedule { open_ns, close_ns, .. }: Schedule) {
        let _ = self.commands.send(Command::Window { open_ns, close_ns });
    }

    fn end(self: Box<Self>, _: Counts, _: &mut dyn FnMut()) -> Ended {
        let RunningCrew { commands, thread, jobs } = *self;
        drop(commands);
        let crashed = "the coordinator of the agents crashed: an internal error, please report it";
        thread.join().unwrap_or_else(|_| Ended { jobs: ended(jobs, crashed), ..Ended::default() })
    }
}

fn ended(jobs: u32, why: &str) -> Vec<JobResult> {
    (0..jobs).map(|_| JobResult::ended(why)).collect()
}

/// The thread that speaks with the agents in a test.
struct Conductor {
    jobs: u32,
    shared: Arc<Shared>,
    window: Option<Schedule>,
    start_ns: u64,
    /// When the jobs are taken to have passed the window start.
    passed_ns: u64,
}

impl Conductor {
    fn conduct(&mut self, c: &mut Coordinator<HubLink>, commands: &Receiver<Command>) -> Ended {
        loop {
            match commands.try_recv() {
                Ok(command) => {
                    c.command(command);
                    match command {
                        Command::Start { start_ns, .. } => self.start_ns = start_ns,
                        Command::Window { open_ns, close_ns } => {
                            self.set_window(c, Schedule { start_ns: self.start_ns, open_ns, close_ns });
                        }
                        Command::End { .. } => {}
                    }
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => break,
            }
            c.pump(c.link.now_ns() + LOOK_NS);
            self.show(c);
        }
        c.stop(self.window.map_or(0, |w| w.window_ns()));
        self.ended(c)
    }

    fn set_window(&mut self, c: &Coordinator<HubLink>, window: Schedule) {
        let completed: u64 = c.parts().map(|member| member.part.progress.completed).sum();
        let ran_ns = c.link.now_ns().saturating_sub(self.start_ns);
        let mean_ns = ran_ns.saturating_mul(u64::from(self.jobs)) / completed.max(1);
        let more_ns = (window.window_ns() / 20).clamp(PASSED.1[0], PASSED.1[1]);
        self.passed_ns = window.open_ns.saturating_add(mean_ns.saturating_mul(PASSED.0)).saturating_add(more_ns);
        self.window = Some(window);
    }

    fn show(&self, c: &Coordinator<HubLink>) {
        let now_ns = c.link.now_ns();
        let (mut started, mut ended) = (0, 0);
        for (Member { part, .. }, progress) in c.parts().zip(&self.shared.progress) {
            if progress.get() != part.progress.completed {
                progress.report(part.progress.completed, now_ns);
            }
            started += part.progress.started;
            ended += if part.failed.is_some() { part.jobs.len() as u32 } else { part.progress.ended };
        }
        self.shared.started.store(started, Ordering::Relaxed);
        self.shared.ended.store(ended, Ordering::Relaxed);
        if now_ns >= self.passed_ns {
            self.shared.after_start.store(self.jobs, Ordering::Relaxed);
        }
        if self.window.is_some() && c.closed() {
            self.shared.after_end.store(self.jobs, Ordering::Relaxed);
        }
    }

    fn ended(&self, c: &mut Coordinator<HubLink>) -> Ended {
        let mut all = Ended {
            tallies: vec![Tally::new(self.window.map_or(0, |w| w.window_ns()), false)],
            jobs: ended(self.jobs, "the job never started"),
            ..Ended::default()
        };
        let mut counts = Vec::new();
        for member in c.members.iter_mut().filter(|member| !member.part.jobs.is_empty()) {
            let Part { jobs, clock, counts: text, failed, .. } = &mut member.part;
            let read = match clock {
                Some(clock) if failed.is_none() && !text.is_empty() => {
                    Counted::read(&std::mem::take(text), jobs.len(), clock)
                }
                _ => Err("it counted nothing".to_owned()),
            };
            let counted = read.map_err(|why| failed.get_or_insert(why)).ok();
            let places = all.jobs.iter_mut().skip(jobs.start as usize).take(jobs.len());
            let figures = figures(member, counted.as_ref(), self.window);
            match counted {
                Some(of) => {
                    Tally::merge_parts(&mut all.tallies, &of.tallies);
                    all.elsewhere.own.merge(&of.own);
                    counts.push(Counts(of.counts));
                    places.zip(of.jobs).for_each(|(place, job)| *place = job);
                }
                None => {
                    let why = figures.failed.as_deref().unwrap_or_default();
                    let why = format!("agent {}: {why}", described(&member.presence));
                    places.for_each(|place| *place = JobResult::ended(why.as_str()));
                }
            }
            all.elsewhere.processes.push(figures);
        }
        all.counts = Counts::sum(&counts);
        all
    }
}

/// Figures of one agent, if it counted in a window.
fn figures(
    Member { presence, lost, part, .. }: &Member,
    counted: Option<&Counted>,
    window: Option<Schedule>,
) -> AgentFigures {
    let Presence { name, host, machine, process, cpus, .. } = presence.clone();
    let window_ns = window.map(|w| w.window_ns() as f64).filter(|ns| *ns > 0.0);
    let open_ns = window.map_or(0, |w| w.open_ns);
    let late = |job: &&JobResult| job.first_start_ns.is_none_or(|at| at > open_ns);
    let figures = |counted: &Counted| {
        let tally = counted.tally();
        let cpus = counted.process_cpu_ns.zip(window_ns).map(|(ns, window_ns)| ns as f64 / window_ns);
        AgentFigures {
            tps: window.filter(|w| w.window_ns() > 0).map(|w| loadline_load::tps(&counted.jobs, &w)),
            transaction_time_ns_p50: tally.transaction.quantile_ns(0.5),
            transaction_time_ns_p99: tally.transaction.quantile_ns(0.99),
            errors: tally.errors,
            late_starts: counted.jobs.iter().filter(late).count() as u32,
            client_cpu_pct: cpus.map(|used| used / f64::from(presence.cpus.max(1)) * 100.0),
            machine_cpu_pct: counted.machine_cpu_pct,
            network: counted.network.clone(),
            start_skew_ms: part.skew_ns.map(|ns| ns as f64 / 1e6),
            ..AgentFigures::default()
        }
    };
    AgentFigures {
        name,
        host,
        machine,
        process,
        cpus,
        sessions: part.sessions.clone(),
        first_job: part.jobs.start,
        jobs: part.jobs.len() as u32,
        failed: part.failed.clone(),
        lost: *lost,
        ..counted.map(figures).unwrap_or_default()
    }
}

/// The agents at a hub, for a listing.
pub fn list(link: &mut HubLink, asker: &str, wait_ns: u64) -> Result<Vec<Presence>, AgentsError> {
    roll(link, asker, wait_ns, |_| false)
}
