//! A test over agents: sessions are opened, clocks are measured, all start at one moment, and what they counted is fetched.

use std::collections::BTreeMap;

use crate::coordinator::{AgentsError, Coordinator, Failure, Member, SILENT_NS};
use crate::link::Link;
use crate::message::{Answer, Command, JobsOrder, Order, Progress, Why};
use crate::offset::Offset;
use crate::share::{Share, spread};

/// All agents must have the order to start by then, ns after it is given.
pub(crate) const START_LEAD_NS: u64 = 400_000_000;
/// The same of the order that sets the window.
pub(crate) const WINDOW_LEAD_NS: u64 = 400_000_000;
/// The clocks of agents may be off by this much at most, ns.
pub(crate) const MOST_SKEW_NS: u64 = (loadline_model::record::MOST_START_SKEW_MS * 1e6) as u64;
/// How long sessions may take to open, ns.
const OPEN_NS: u64 = 120_000_000_000;
/// How long jobs may take to end after the window, beyond its length, ns.
const END_NS: u64 = 40_000_000_000;
/// Agents whose counts are fetched at a time: the hub holds them meanwhile.
const FETCH_AT_A_TIME: usize = 8;

/// A test over agents.
#[derive(Debug)]
pub(crate) struct Test {
    number: u64,
    /// The jobs of each agent that takes part.
    pub(crate) shares: Vec<Share>,
    /// Clocks as they were measured before the start, of the same agents.
    before: Vec<Option<Offset>>,
    /// What went wrong with which agent (its number in the run), in words.
    pub(crate) failures: BTreeMap<usize, String>,
    /// When it was opened, ns.
    opened_ns: u64,
}

/// What an agent gave back.
#[derive(Debug)]
pub(crate) struct AgentCounts {
    pub(crate) share: Share,
    /// What it counted, as it was sent; `None` if the agent was lost.
    pub(crate) text: Option<String>,
    /// Its clock before the start.
    pub(crate) clock: Option<Offset>,
    /// Upper bound of the error of that clock until after the test, ns.
    pub(crate) skew_ns: Option<u64>,
}

impl Test {
    /// Opens the sessions of the jobs of `order` on the agents that are left, and measures their clocks. `fingerprint` is that of the
    /// work that begins with a job.
    ///
    /// # Errors
    /// [`AgentsError::Agents`]: each agent that failed, and why. No session is open then.
    pub(crate) fn open<L: Link>(
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
        let opened_ns = c.link.now_ns();
        let mut test = Test { number, shares, before: Vec::new(), failures: BTreeMap::new(), opened_ns };
        let who = test.who();
        let first_of: BTreeMap<usize, Share> = test.shares.iter().map(|share| (share.agent, *share)).collect();
        let open = |agent: usize, _: &Member| {
            let (first_job, jobs) = first_of.get(&agent).map_or((0, 0), |share| (share.first, share.jobs));
            Order::Open(Box::new(JobsOrder { test: number, first_job, jobs, ..order.clone() }))
        };
        for (agent, outcome) in c.round(&who, OPEN_NS, open) {
            let first = first_of.get(&agent).map_or(0, |share| share.first);
            let outcome = outcome.and_then(|answer| match answer {
                Answer::Opened(theirs) if theirs.fingerprint == fingerprint(first) => Ok(()),
                Answer::Opened(_) => Err(Failure::Refused(
                    Why::Work,
                    "it would do other work: the rows of its jobs, or their order, differ from this loadline's"
                        .to_owned(),
                )),
                other => Err(unexpected(&other, "open sessions")),
            });
            test.note(c, agent, outcome);
        }
        if test.failures.is_empty() {
            c.clocks(&who);
            test.note_lost(c);
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

    /// Lets all agents open the target, without sessions of jobs, and measures their clocks.
    ///
    /// # Errors
    /// [`AgentsError::Agents`]: each agent that cannot, or is too far from the hub, and why.
    pub(crate) fn reach<L: Link>(c: &mut Coordinator<L>, order: &JobsOrder) -> Result<(), AgentsError> {
        let who = c.left();
        let open = |_: usize, _: &Member| Order::Open(Box::new(JobsOrder { test: 0, jobs: 0, ..order.clone() }));
        let outcomes = c.round(&who, OPEN_NS, open);
        let named = |(agent, outcome): (usize, Result<Answer, Failure>)| {
            Some(format!("agent {}: {}", c.name(agent), outcome.err()?.text()))
        };
        let mut failed: Vec<String> = outcomes.into_iter().filter_map(named).collect();
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

    /// Agents that take part and have not failed.
    fn who(&self) -> Vec<usize> {
        self.shares.iter().map(|share| share.agent).filter(|agent| !self.failures.contains_key(agent)).collect()
    }

    /// Agents that take part and are not lost.
    fn left<L: Link>(&self, c: &Coordinator<L>) -> Vec<usize> {
        let left = c.left();
        self.shares.iter().map(|share| share.agent).filter(|agent| left.contains(agent)).collect()
    }

    /// Notes a failure. What is silent is lost for the run; what refuses, and says why, is not.
    fn note<L: Link>(&mut self, c: &mut Coordinator<L>, agent: usize, outcome: Result<(), Failure>) {
        let Err(failure) = outcome else { return };
        let mut text = failure.text().to_owned();
        match failure {
            Failure::Silent(_) => c.lose(agent, &text),
            Failure::Refused(..) => {
                if let Some(trouble) = c.link.trouble(self.opened_ns) {
                    text = format!("{text}; {trouble}");
                }
            }
        }
        self.failures.entry(agent).or_insert(text);
    }

    /// Notes the agents that are lost meanwhile.
    fn note_lost<L: Link>(&mut self, c: &Coordinator<L>) {
        for agent in self.who() {
            if let Some(why) = c.members().get(agent).and_then(|m| m.lost.clone()) {
                self.failures.insert(agent, why);
            }
        }
    }

    /// Ends what was begun; nothing is fetched.
    fn abandon<L: Link>(&self, c: &mut Coordinator<L>) {
        let who = self.left(c);
        let _ = c.round(&who, SILENT_NS, |_, _| Order::Jobs(Command::End { urgent: false }));
    }

    /// Tells all to start, or their window. The time of `command` must be [`START_LEAD_NS`] or [`WINDOW_LEAD_NS`] ahead.
    pub(crate) fn tell<L: Link>(&mut self, c: &mut Coordinator<L>, command: Command) {
        let limit_ns = command.due_ns().map_or(SILENT_NS, |due_ns| due_ns.saturating_sub(c.link.now_ns()));
        let who = self.who();
        let outcomes = c.round(&who, limit_ns, |_, member| {
            Order::Jobs(command.on(&member.clock.unwrap_or(Offset { ahead_ns: 0, bound_ns: u64::MAX })))
        });
        for (agent, outcome) in outcomes {
            self.note(c, agent, outcome.map(drop));
        }
    }

    /// How far the jobs of all are, and of each agent that takes part how many transactions it completed.
    pub(crate) fn progress<L: Link>(&self, c: &Coordinator<L>) -> (Progress, Vec<u64>) {
        let mut sum = Progress::default();
        let mut each = Vec::new();
        for share in &self.shares {
            let of_member = c.members().get(share.agent).map(|m| m.progress);
            let of = of_member.filter(|(test, _)| *test == self.number).map_or_else(Progress::default, |(_, p)| p);
            sum.started += of.started;
            sum.ended += of.ended;
            sum.completed += of.completed;
            each.push(of.completed);
        }
        (sum, each)
    }

    /// Whether all that have not failed passed the window end.
    pub(crate) fn closed<L: Link>(&self, c: &Coordinator<L>) -> bool {
        let closed = |agent: usize| c.members().get(agent).is_some_and(|m| m.closed >= self.number);
        self.who().into_iter().all(closed)
    }

    /// Ends the jobs, fetches what they counted, and measures the clocks again.
    pub(crate) fn stop<L: Link>(&mut self, c: &mut Coordinator<L>, window_ns: u64) -> Vec<AgentCounts> {
        let (who, mut ended) = (self.left(c), Vec::new());
        let end = |_: usize, _: &Member| Order::Jobs(Command::End { urgent: false });
        for (agent, outcome) in c.round(&who, window_ns.saturating_add(END_NS), end) {
            if outcome.is_ok() {
                ended.push(agent);
            }
            self.note(c, agent, outcome.map(drop));
        }
        // All jobs have ended: the machines are quiet, and the clocks are measured best.
        c.clocks(&ended);
        self.note_lost(c);
        let mut fetched = BTreeMap::new();
        for some in ended.chunks(FETCH_AT_A_TIME) {
            for (agent, outcome) in c.round(some, END_NS, |_, _| Order::Counts) {
                let outcome = outcome.and_then(|answer| match answer {
                    Answer::Counts(text) => {
                        fetched.insert(agent, text);
                        Ok(())
                    }
                    other => Err(unexpected(&other, "send its counts")),
                });
                self.note(c, agent, outcome);
            }
        }
        let counts = |(share, before): (&Share, &Option<Offset>)| {
            let after = c.members().get(share.agent).and_then(|m| m.clock).filter(|_| ended.contains(&share.agent));
            let whole = !self.failures.contains_key(&share.agent);
            AgentCounts {
                share: *share,
                text: fetched.remove(&share.agent).filter(|text| whole && !text.is_empty()),
                clock: *before,
                skew_ns: before.zip(after).map(|(before, after)| before.error_until_ns(&after)),
            }
        };
        self.shares.iter().zip(&self.before).map(counts).collect()
    }
}

/// An answer that does not fit its order.
fn unexpected(answer: &Answer, order: &str) -> Failure {
    Failure::Refused(Why::Work, format!("it answered {answer:?} to the order to {order}"))
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
