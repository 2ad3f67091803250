//! A test over agents: sessions are opened, clocks are measured, all start at one moment, and what they counted is fetched.

use std::collections::BTreeMap;

use loadline_model::Driver;
use loadline_model::plan::WorkloadFile;

use crate::coordinator::{AgentsError, Coordinator, Failure, Member, SILENT_NS};
use crate::link::Link;
use crate::message::{Answer, JobsOrder, Order, Progress, Why};
use crate::offset::Offset;
use crate::pack::parts;
use crate::share::{Share, spread};

/// All agents must have the order to start by then, ns after it is given.
pub const START_LEAD_NS: u64 = 400_000_000;
/// The same of the order that sets the window.
pub const WINDOW_LEAD_NS: u64 = 400_000_000;
/// The clocks of agents may be off by this much at most, ns.
pub const MOST_SKEW_NS: u64 = (loadline_model::record::MOST_START_SKEW_MS * 1e6) as u64;
/// How long sessions may take to open, ns.
const OPEN_NS: u64 = 120_000_000_000;
/// How long jobs may take to end after the window, beyond its length, ns.
const END_NS: u64 = 40_000_000_000;
/// Agents whose counts are fetched at a time: the hub holds them meanwhile.
const FETCH_AT_A_TIME: usize = 8;

/// A test over agents.
#[derive(Debug)]
pub struct Test {
    number: u64,
    /// The jobs of each agent that takes part.
    pub shares: Vec<Share>,
    /// Clocks as they were measured before the start, of the same agents.
    before: Vec<Option<Offset>>,
    /// What went wrong with which agent (its number in the run), in words.
    pub failures: BTreeMap<usize, String>,
    /// When it was opened, ns.
    opened_ns: u64,
}

/// What an agent gave back.
#[derive(Debug)]
pub struct Counted {
    /// Number of the agent in the run.
    pub agent: usize,
    /// Its jobs.
    pub share: Share,
    /// What it counted, as it was sent; `None` if the agent was lost.
    pub bytes: Option<Vec<u8>>,
    /// Its clock before the start.
    pub clock: Option<Offset>,
    /// Upper bound of the error of that clock until after the test, ns.
    pub skew_ns: Option<u64>,
}

impl Test {
    /// Opens the sessions of the jobs of `order` on the agents that are left, and measures their clocks. `fingerprint` is that of the
    /// work that begins with a job.
    ///
    /// # Errors
    /// [`AgentsError::Agents`]: each agent that failed, and why. No session is open then.
    pub fn open<L: Link>(
        c: &mut Coordinator<L>,
        number: u64,
        order: &JobsOrder,
        fingerprint: &dyn Fn(u32) -> String,
    ) -> Result<Test, AgentsError> {
        let limits: Vec<(usize, u32)> =
            c.left().into_iter().filter_map(|i| Some((i, c.members().get(i)?.presence.most_jobs))).collect();
        let Some(shares) = spread(order.all_jobs, &limits) else {
            let most: u64 = limits.iter().map(|(_, n)| u64::from(*n)).sum();
            let text =
                format!("{} jobs are asked for, and the agents that are left run {most} at most", order.all_jobs);
            return Err(AgentsError::Agents(vec![text]));
        };
        let before = vec![None; shares.len()];
        let mut test = Test { number, shares, before, failures: BTreeMap::new(), opened_ns: c.link.now_ns() };
        test.send_file(c, order);
        // The text went ahead.
        let file = order.file.as_ref().map(|file| WorkloadFile { text: String::new(), ..file.clone() });
        let order = &JobsOrder { file, ..order.clone() };
        let of = test.by_agent();
        let open = |agent: usize| {
            let share = of.get(&agent).copied().unwrap_or(Share { agent, first: 0, jobs: 0 });
            Order::Open(Box::new(JobsOrder { test: number, first_job: share.first, jobs: share.jobs, ..order.clone() }))
        };
        let who = test.who();
        for (agent, outcome) in c.patient(&who, OPEN_NS, |agent, _| open(agent)) {
            let first = of.get(&agent).map_or(0, |share| share.first);
            let failure = match outcome {
                Ok(Answer::Opened(theirs)) if theirs.fingerprint == fingerprint(first) => continue,
                Ok(Answer::Opened(_)) => {
                    let text =
                        "it would do other work: the rows of its jobs, or their order, differ from this loadline's";
                    Failure::Refused(Why::Work, text.to_owned())
                }
                Ok(other) => {
                    Failure::Refused(Why::Work, format!("it answered {other:?} to the order to open sessions"))
                }
                Err(failure) => failure,
            };
            test.failed(c, agent, &failure);
        }
        if test.failures.is_empty() {
            c.clocks(&who);
            test.note(c);
        }
        if c.link.interrupted() {
            test.abandon(c);
            return Err(AgentsError::Interrupted);
        }
        if !test.failures.is_empty() {
            test.abandon(c);
            let named = test.failures.iter().map(|(agent, why)| format!("agent {}: {why}", c.name(*agent)));
            return Err(AgentsError::Agents(named.collect()));
        }
        test.before = who.iter().map(|i| c.members().get(*i).and_then(|m| m.clock)).collect();
        Ok(test)
    }

    /// Sends the user's workload file, which agents do not have.
    fn send_file<L: Link>(&mut self, c: &mut Coordinator<L>, order: &JobsOrder) {
        let parts = order.file.as_ref().map_or_else(Vec::new, |file| parts(&file.text, c.link.part_bytes()));
        for (part, text) in parts.into_iter().enumerate() {
            let who = self.who();
            for (agent, outcome) in c.round(&who, SILENT_NS, |_, _| Order::File { part, text: text.clone() }) {
                if let Err(failure) = outcome {
                    self.failed(c, agent, &failure);
                }
            }
        }
    }

    /// Lets all agents open the target, without sessions of jobs, and measures their clocks.
    ///
    /// # Errors
    /// [`AgentsError::Agents`]: each agent that cannot, or is too far from the hub, and why.
    pub fn reach<L: Link>(c: &mut Coordinator<L>, order: &JobsOrder) -> Result<(), AgentsError> {
        let who = c.left();
        let open = |_: usize, _: &Member| Order::Open(Box::new(JobsOrder { test: 0, jobs: 0, ..order.clone() }));
        let mut failed = Vec::new();
        for (agent, outcome) in c.patient(&who, OPEN_NS, open) {
            match outcome {
                Ok(_) => {}
                Err(failure) => failed.push(format!("agent {}: {}", c.name(agent), failure.text())),
            }
        }
        if failed.is_empty() {
            c.clocks(&who);
            failed.extend(c.members().iter().filter_map(|m| Some(format!("agent {}: {}", m.name(), unfit(m)?))));
        }
        match failed.is_empty() {
            _ if c.link.interrupted() => Err(AgentsError::Interrupted),
            true => Ok(()),
            false => Err(AgentsError::Agents(failed)),
        }
    }

    fn by_agent(&self) -> BTreeMap<usize, Share> {
        self.shares.iter().map(|share| (share.agent, *share)).collect()
    }

    /// Agents that take part and have not failed.
    fn who(&self) -> Vec<usize> {
        self.shares.iter().map(|share| share.agent).filter(|agent| !self.failures.contains_key(agent)).collect()
    }

    /// Notes a failure. What is silent is lost for the run; what refuses, and says why, is not.
    fn failed<L: Link>(&mut self, c: &mut Coordinator<L>, agent: usize, failure: &Failure) {
        let lost = matches!(failure, Failure::Silent(_) | Failure::Refused(Why::Version, _));
        if lost {
            c.lose(agent, failure.text());
        }
        let mut text = failure.text().to_owned();
        if let (Failure::Refused(..), Some(trouble)) = (failure, c.link.trouble(self.opened_ns)) {
            text = format!("{text}; {trouble}");
        }
        self.failures.entry(agent).or_insert(text);
    }

    /// Notes the agents that are lost meanwhile.
    fn note<L: Link>(&mut self, c: &Coordinator<L>) {
        for agent in self.who() {
            if let Some(why) = c.members().get(agent).and_then(|m| m.lost.clone()) {
                self.failures.insert(agent, why);
            }
        }
    }

    /// Ends what was begun; nothing is fetched.
    pub fn abandon<L: Link>(&self, c: &mut Coordinator<L>) {
        let who: Vec<usize> = self.shares.iter().map(|s| s.agent).filter(|i| c.left().contains(i)).collect();
        let test = self.number;
        let _ = c.round(&who, SILENT_NS, |_, _| Order::Stop { test });
    }

    fn order_all<L: Link>(&mut self, c: &mut Coordinator<L>, within_ns: u64, order: impl Fn(&Offset) -> Order) {
        let who = self.who();
        let outcomes = c.round(&who, within_ns, |_, member| {
            order(&member.clock.unwrap_or(Offset { ahead_ns: 0, bound_ns: u64::MAX }))
        });
        for (agent, outcome) in outcomes {
            if let Err(failure) = outcome {
                self.failed(c, agent, &failure);
            }
        }
    }

    /// Tells all to start at `start_ns`, which is [`START_LEAD_NS`] ahead.
    pub fn start<L: Link>(&mut self, c: &mut Coordinator<L>, start_ns: u64, window_ns: u64) {
        let (test, within_ns) = (self.number, start_ns.saturating_sub(c.link.now_ns()));
        self.order_all(c, within_ns, |clock| Order::Start { test, start_ns: clock.to_agent(start_ns), window_ns });
    }

    /// Tells all the window, whose start is [`WINDOW_LEAD_NS`] ahead.
    pub fn window<L: Link>(&mut self, c: &mut Coordinator<L>, open_ns: u64, close_ns: u64) {
        let (test, within_ns) = (self.number, open_ns.saturating_sub(c.link.now_ns()));
        self.order_all(c, within_ns, |clock| Order::Window {
            test,
            open_ns: clock.to_agent(open_ns),
            close_ns: clock.to_agent(close_ns),
        });
    }

    /// How far the jobs of all are, and of each agent that takes part how many transactions it completed.
    #[must_use]
    pub fn progress<L>(&self, c: &Coordinator<L>) -> (Progress, Vec<u64>)
    where
        L: Link,
    {
        let mut sum = Progress { test: self.number, ..Progress::default() };
        let of = |share: &Share| {
            c.members().get(share.agent).map(|m| m.progress).filter(|p| p.test == self.number).unwrap_or_default()
        };
        let each: Vec<Progress> = self.shares.iter().map(of).collect();
        for p in &each {
            sum.started += p.started;
            sum.ended += p.ended;
            sum.completed += p.completed;
        }
        (sum, each.iter().map(|p| p.completed).collect())
    }

    /// Whether all that have not failed passed the window end.
    #[must_use]
    pub fn closed<L: Link>(&self, c: &Coordinator<L>) -> bool {
        let closed = |agent: usize| c.members().get(agent).is_some_and(|m| m.closed >= self.number);
        self.who().into_iter().all(closed)
    }

    /// Ends the jobs, fetches what they counted, and measures the clocks again.
    pub fn stop<L: Link>(&mut self, c: &mut Coordinator<L>, window_ns: u64) -> Vec<Counted> {
        let test = self.number;
        let mut parts = BTreeMap::new();
        let who: Vec<usize> = self.shares.iter().map(|s| s.agent).filter(|i| c.left().contains(i)).collect();
        for (agent, outcome) in c.patient(&who, window_ns.saturating_add(END_NS), |_, _| Order::Stop { test }) {
            match outcome {
                Ok(Answer::Ended(n)) => drop(parts.insert(agent, n)),
                Ok(other) => {
                    let text = format!("it answered {other:?} to the order to end its jobs");
                    self.failed(c, agent, &Failure::Refused(Why::Work, text));
                }
                Err(failure) => self.failed(c, agent, &failure),
            }
        }
        // All jobs have ended: the machines are quiet, and the clocks are measured best.
        let ended: Vec<usize> = parts.keys().copied().collect();
        c.clocks(&ended);
        self.note(c);
        let mut fetched: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for some in ended.chunks(FETCH_AT_A_TIME) {
            let most = some.iter().filter_map(|agent| parts.get(agent)).max().copied().unwrap_or(0);
            for part in 0..most {
                let having: Vec<usize> =
                    some.iter().copied().filter(|agent| parts.get(agent).is_some_and(|n| part < *n)).collect();
                for (agent, outcome) in c.round(&having, SILENT_NS, |_, _| Order::Part { test, part }) {
                    match outcome {
                        Ok(Answer::Part(text)) => {
                            fetched.entry(agent).or_default().extend(text.into_bytes());
                        }
                        Ok(other) => {
                            let text = format!("it answered {other:?} to the order to send its counts");
                            self.failed(c, agent, &Failure::Refused(Why::Work, text));
                        }
                        Err(failure) => self.failed(c, agent, &failure),
                    }
                }
            }
        }
        let counted = |(share, before): (&Share, &Option<Offset>)| {
            let member = c.members().get(share.agent);
            let after = member.and_then(|m| m.clock).filter(|_| parts.contains_key(&share.agent));
            let whole = !self.failures.contains_key(&share.agent);
            Counted {
                agent: share.agent,
                share: *share,
                bytes: fetched.remove(&share.agent).filter(|_| whole),
                clock: *before,
                skew_ns: before.zip(after).map(|(before, after)| before.error_until_ns(&after)),
            }
        };
        self.shares.iter().zip(&self.before).map(counted).collect()
    }
}

/// Why the window of an agent can never be the common one, if so.
fn unfit(member: &Member) -> Option<String> {
    let Some(clock) = &member.clock else { return member.lost.clone() };
    let ms = |ns: u64| ns as f64 / 1e6;
    (clock.bound_ns > MOST_SKEW_NS).then(|| {
        format!(
            "it is too far away: messages to it and back take {:.1} ms, so its clock is known to {:.1} ms, and {:.0} ms are allowed; \
             bring the hub, this loadline and the agents nearer to each other",
            ms(clock.bound_ns * 2),
            ms(clock.bound_ns),
            ms(MOST_SKEW_NS)
        )
    })
}

impl JobsOrder {
    /// An order with nothing in it but the number of jobs.
    #[must_use]
    pub fn of_jobs(all_jobs: u32) -> JobsOrder {
        JobsOrder {
            test: 0,
            run: String::new(),
            url: "null:".to_owned(),
            nodes: Vec::new(),
            first_job: 0,
            jobs: 0,
            all_jobs,
            driver: Driver::Client,
            workload: String::new(),
            file: None,
            parameters: BTreeMap::new(),
            size_bytes: 0,
            seed: 0,
            draws: 0,
            compressibility: 0.0,
            used_nodes: None,
            load: Default::default(),
            sessions_per_thread: None,
        }
    }
}
