//! The coordinator's side of a run: finds agents, orders, waits for answers. All it knows of time and of the hub is its [`Link`],
//! so that the simulation drives what runs.

use std::collections::{BTreeMap, BTreeSet};

use loadline_model::format::counted;

use crate::link::{Link, Received};
use crate::message::{Answer, Message, MessageError, Order, PROTOCOL, Presence, Progress, Why};
use crate::offset::{Offset, RoundTrip};
use crate::pack::unpack;

/// An order that is not answered is repeated after this long, ns.
const AGAIN_NS: u64 = 250_000_000;
/// An agent that does not answer a plain order for this long is lost, ns.
pub const SILENT_NS: u64 = 5_000_000_000;
/// How long all who are there have to say so, ns.
const ROLL_NS: u64 = 700_000_000;
/// Round trips by which a clock is measured, at most and at least.
const TRIPS: (usize, usize) = (40, 8);
/// A clock that is known this well needs no more of them, ns.
const GOOD_BOUND_NS: u64 = 150_000;
/// Agents whose clocks are measured at a time.
const AT_A_TIME: usize = 8;

/// An agent of a run.
#[derive(Debug, Clone)]
pub struct Member {
    /// Who it is.
    pub presence: Presence,
    /// Its clock, as last measured.
    pub clock: Option<Offset>,
    /// Why it is lost, if it is.
    pub lost: Option<String>,
    /// How far its jobs are.
    pub progress: Progress,
    /// The last test whose window end all its jobs have passed.
    pub closed: u64,
    /// Its jobs' sessions on each server, by the server's ids, as far as known.
    pub sessions: Vec<Vec<u32>>,
}

impl Member {
    /// `a1 on db-host`.
    #[must_use]
    pub fn name(&self) -> String {
        described(&self.presence)
    }
}

fn described(presence: &Presence) -> String {
    format!("{} on {}", presence.name, presence.host)
}

/// Why there are no agents to work with, or why one does not work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentsError {
    /// Fewer agents than asked for.
    #[error("{} were asked for, {} free at the hub{}; start more with `loadline agent --hub … --name …`", counted(*.asked, "agent"), are(*.free), listed(.there))]
    Few {
        /// How many were asked for.
        asked: usize,
        /// How many can be used.
        free: usize,
        /// All who are there, and why some cannot be used.
        there: Vec<String>,
    },
    /// Several agents have the same name.
    #[error("several agents have the name {name}: {}; end all but one, or start them with other names (--name)", .who.join(", "))]
    SameName {
        /// The name.
        name: String,
        /// Where they are.
        who: Vec<String>,
    },
    /// Agents refused, or did not answer.
    #[error("{}", .0.join("; "))]
    Agents(Vec<String>),
    /// The hub is gone.
    #[error("the hub cannot be reached: {0}")]
    Hub(String),
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
}

fn are(n: usize) -> String {
    if n == 1 { "1 is".to_owned() } else { format!("{n} are") }
}

fn listed(there: &[String]) -> String {
    if there.is_empty() { " (none is there)".to_owned() } else { format!(": {}", there.join(", ")) }
}

/// Why an agent did not carry out an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It did not answer.
    Silent(String),
    /// It refused.
    Refused(Why, String),
}

impl Failure {
    /// In words.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Failure::Silent(text) | Failure::Refused(_, text) => text,
        }
    }
}

/// Asks who is there, for `wait_ns`, or until `enough`.
///
/// # Errors
/// [`AgentsError::Hub`], [`AgentsError::Interrupted`].
pub fn roll(
    link: &mut dyn Link,
    asker: &str,
    wait_ns: u64,
    enough: impl Fn(&[Presence]) -> bool,
) -> Result<Vec<Presence>, AgentsError> {
    let begin_ns = link.now_ns();
    let mut there: BTreeMap<String, Presence> = BTreeMap::new();
    let (mut next_ns, mut number) = (begin_ns, 0);
    loop {
        let now = link.now_ns();
        let all: Vec<Presence> = there.values().cloned().collect();
        if now >= begin_ns + wait_ns || (now >= begin_ns + ROLL_NS.min(wait_ns) && enough(&all)) {
            break;
        }
        if link.interrupted() {
            return Err(AgentsError::Interrupted);
        }
        if now >= next_ns {
            if let Some(why) = link.trouble(u64::MAX) {
                return Err(AgentsError::Hub(why));
            }
            number += 1;
            link.send(None, &Message::new(asker, number, "", Order::Roll));
            next_ns = now + AGAIN_NS;
        }
        let Some(Received { bytes, .. }) = link.receive(next_ns.min(begin_ns + wait_ns)) else { continue };
        // One that starts may find that its name is taken.
        if let Some(presence) = presence_in(&bytes).filter(|p| !p.starting) {
            there.insert(presence.id.clone(), presence);
        }
    }
    let mut all: Vec<Presence> = there.into_values().collect();
    all.sort_by_key(|p| (natural(&p.name), p.host.clone(), p.process));
    Ok(all)
}

/// The agent that a message introduces, also of another protocol.
fn presence_in(bytes: &[u8]) -> Option<Presence> {
    match Message::<Answer>::read(bytes) {
        Ok(Message { body: Answer::Here(presence), .. }) => Some(presence),
        Err(MessageError::Protocol { theirs, .. }) => {
            let raw: serde_json::Value = serde_json::from_slice(bytes).ok()?;
            let mut presence: Presence = serde_json::from_value(raw.get("body")?.get("here")?.clone()).ok()?;
            presence.protocol = theirs;
            Some(presence)
        }
        _ => None,
    }
}

/// Sorts a2 before a10.
fn natural(name: &str) -> (String, u64, String) {
    let digits = name.chars().rev().take_while(char::is_ascii_digit).count();
    let (text, number) = name.split_at(name.len() - digits);
    (text.to_owned(), number.parse().unwrap_or(0), name.to_owned())
}

/// Why an agent cannot be used by a loadline of `version`, if so.
#[must_use]
pub fn unusable(presence: &Presence, version: &str) -> Option<String> {
    if presence.protocol != PROTOCOL || presence.version != version {
        return Some(format!("has version {} of loadline, not {version}", presence.version));
    }
    presence.busy.as_ref().map(|run| format!("works for run {run}"))
}

/// Orders and answers of a run.
pub struct Coordinator<L> {
    /// The hub.
    pub link: L,
    run: String,
    number: u64,
    members: Vec<Member>,
}

impl<L: Link> Coordinator<L> {
    /// Takes `asked` free agents, which wait until they are enough for `wait_ns` at most. From now on they have a lease.
    ///
    /// # Errors
    /// [`AgentsError`]; then none is taken.
    pub fn enlist(
        mut link: L,
        run: &str,
        version: &str,
        asked: usize,
        wait_ns: u64,
    ) -> Result<Coordinator<L>, AgentsError> {
        let usable = |all: &[Presence]| all.iter().filter(|p| unusable(p, version).is_none()).count();
        let there = roll(&mut link, run, wait_ns, |all| usable(all) >= asked)?;
        let mut names = BTreeSet::new();
        if let Some(double) = there.iter().find(|p| !names.insert(p.name.as_str())) {
            let same = there.iter().filter(|p| p.name == double.name);
            let who = same.map(|p| format!("process {} on {}", p.process, p.host)).collect();
            return Err(AgentsError::SameName { name: double.name.clone(), who });
        }
        let free = usable(&there);
        if free < asked {
            let say = |p: &Presence| {
                unusable(p, version).map_or_else(|| described(p), |why| format!("{} ({why})", described(p)))
            };
            return Err(AgentsError::Few { asked, free, there: there.iter().map(say).collect() });
        }
        let taken = there.into_iter().filter(|p| unusable(p, version).is_none()).take(asked);
        let member = |presence| Member {
            presence,
            clock: None,
            lost: None,
            progress: Progress::default(),
            closed: 0,
            sessions: Vec::new(),
        };
        let mut coordinator =
            Coordinator { link, run: run.to_owned(), number: 1 << 32, members: taken.map(member).collect() };
        coordinator.link.beat(Some(run));
        let failed = coordinator.gather();
        if failed.is_empty() {
            return Ok(coordinator);
        }
        coordinator.release();
        Err(AgentsError::Agents(failed))
    }

    /// All agents, lost ones as well.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// From now on no agent runs more jobs than it may open sessions on servers.
    pub fn limit_by_sessions(&mut self) {
        for Member { presence, .. } in &mut self.members {
            presence.most_jobs = presence.most_jobs.min(presence.most_sessions);
        }
    }

    /// The agents that are not lost.
    #[must_use]
    pub fn left(&self) -> Vec<usize> {
        self.members.iter().enumerate().filter(|(_, m)| m.lost.is_none()).map(|(i, _)| i).collect()
    }

    /// Name of an agent.
    #[must_use]
    pub fn name(&self, agent: usize) -> String {
        self.members.get(agent).map(Member::name).unwrap_or_default()
    }

    /// Marks an agent as lost. The first reason is kept.
    pub fn lose(&mut self, agent: usize, why: &str) {
        if let Some(member) = self.members.get_mut(agent) {
            member.lost.get_or_insert_with(|| why.to_owned());
        }
    }

    /// Gives each of the agents its order, again and again until it answers, for `within_ns` at most. Returns what each did.
    /// Messages that agents send unasked are noted meanwhile.
    pub fn round(
        &mut self,
        who: &[usize],
        within_ns: u64,
        mut order: impl FnMut(usize, &Member) -> Order,
    ) -> Vec<(usize, Result<Answer, Failure>)> {
        struct Open {
            agent: usize,
            order: Message<Order>,
            answer: Option<Answer>,
        }
        let mut open = Vec::new();
        for agent in who.iter().copied() {
            self.number += 1;
            let Some(member) = self.members.get(agent) else { continue };
            let order = Message::new(&self.run, self.number, "", order(agent, member));
            open.push(Open { agent, order, answer: None });
        }
        let begin_ns = self.link.now_ns();
        let end_ns = begin_ns.saturating_add(within_ns.max(1));
        let mut next_ns = begin_ns;
        while open.iter().any(|o| o.answer.is_none()) {
            let now = self.link.now_ns();
            if now >= end_ns && now > begin_ns {
                break;
            }
            if now >= next_ns {
                for o in open.iter().filter(|o| o.answer.is_none()) {
                    let Some(member) = self.members.get(o.agent) else { continue };
                    self.link.send(Some(&member.presence.id), &o.order);
                }
                next_ns = now + AGAIN_NS;
            }
            // After it was sent: the order may be to end.
            if self.link.interrupted() {
                break;
            }
            let Some((_, message)) = self.receive(next_ns.min(end_ns)) else { continue };
            let of = |o: &&mut Open| o.answer.is_none() && o.order.number == message.number;
            if let Some(o) = open.iter_mut().find(of) {
                o.answer = Some(message.body);
            }
        }
        let seconds = self.link.now_ns().saturating_sub(begin_ns) as f64 / 1e9;
        let silent = match self.link.trouble(begin_ns) {
            Some(why) => format!("could not be asked: {why}"),
            None => format!("did not answer for {seconds:.1} s: it ended, hangs, or is cut off from the hub"),
        };
        let outcome = |answer: Option<Answer>| match answer {
            Some(Answer::Refused { why, text }) => Err(Failure::Refused(why, text)),
            Some(answer) => Ok(answer),
            None => Err(Failure::Silent(silent.clone())),
        };
        open.into_iter().map(|o| (o.agent, outcome(o.answer))).collect()
    }

    /// Takes all agents that are left for what comes next: one that heard nothing for too long left the run, and comes back. Those that
    /// do not are lost, and named.
    pub fn gather(&mut self) -> Vec<String> {
        let (mut who, mut failed) = (self.left(), Vec::new());
        self.members.iter_mut().for_each(|member| member.sessions.clear());
        let end_ns = self.link.now_ns() + SILENT_NS;
        loop {
            let late = self.link.now_ns() >= end_ns;
            let mut busy = Vec::new();
            for (agent, outcome) in self.round(&who, SILENT_NS, |_, _| Order::Enlist) {
                match outcome {
                    Ok(_) => {}
                    // It still ends the jobs of a test that it left.
                    Err(Failure::Refused(Why::Busy, _)) if !late => busy.push(agent),
                    Err(failure) => {
                        self.lose(agent, failure.text());
                        failed.push(format!("agent {}: {}", self.name(agent), failure.text()));
                    }
                }
            }
            if busy.is_empty() || self.link.interrupted() {
                return failed;
            }
            who = busy;
            self.pump(self.link.now_ns() + AGAIN_NS);
        }
    }

    /// Handles what comes until `until_ns`.
    pub fn pump(&mut self, until_ns: u64) {
        while self.link.now_ns() < until_ns && !self.link.interrupted() {
            let _ = self.receive(until_ns);
        }
    }

    /// As [`Self::round`] for orders that take long: an agent that still tells the time is waited for, up to `limit_ns`.
    pub fn patient(
        &mut self,
        who: &[usize],
        limit_ns: u64,
        mut order: impl FnMut(usize, &Member) -> Order,
    ) -> Vec<(usize, Result<Answer, Failure>)> {
        let end_ns = self.link.now_ns().saturating_add(limit_ns);
        let (mut waiting, mut all) = (who.to_vec(), Vec::new());
        loop {
            let left_ns = end_ns.saturating_sub(self.link.now_ns());
            let outcomes = self.round(&waiting, SILENT_NS.min(left_ns), &mut order);
            let is_silent = |o: &(usize, Result<Answer, Failure>)| matches!(o.1, Err(Failure::Silent(_)));
            let (silent, done): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(is_silent);
            all.extend(done);
            if silent.is_empty() || self.link.interrupted() || self.link.now_ns() >= end_ns {
                all.extend(silent);
                return all;
            }
            let asked: Vec<usize> = silent.iter().map(|(agent, _)| *agent).collect();
            waiting.clear();
            for (agent, outcome) in self.round(&asked, AGAIN_NS * 4, |_, _| Order::Ping) {
                match outcome {
                    Ok(_) => waiting.push(agent),
                    Err(Failure::Silent(_)) => all.extend(silent.iter().find(|(of, _)| *of == agent).cloned()),
                    Err(refused) => all.push((agent, Err(refused))),
                }
            }
            if waiting.is_empty() {
                return all;
            }
        }
    }

    /// Measures the clocks of these agents. One that does not answer is lost.
    pub fn clocks(&mut self, who: &[usize]) {
        for some in who.chunks(AT_A_TIME) {
            let mut trips: Vec<Vec<RoundTrip>> = vec![Vec::new(); some.len()];
            let end_ns = self.link.now_ns() + SILENT_NS;
            for _ in 0..TRIPS.0 {
                if self.link.now_ns() >= end_ns || self.link.interrupted() {
                    break;
                }
                let good = |of: &[RoundTrip]| {
                    of.len() >= TRIPS.1 && Offset::of(of).is_some_and(|clock| clock.bound_ns <= GOOD_BOUND_NS)
                };
                let need: Vec<usize> = trips.iter().enumerate().filter(|(_, t)| !good(t)).map(|(i, _)| i).collect();
                if need.is_empty() {
                    break;
                }
                self.trip(some, &need, &mut trips);
            }
            for (agent, trips) in some.iter().zip(&trips) {
                match (Offset::of(trips), self.members.get_mut(*agent)) {
                    (Some(clock), Some(member)) => member.clock = Some(clock),
                    _ => {
                        self.lose(*agent, "did not tell the time: it ended, hangs, or is cut off from the hub");
                    }
                }
            }
        }
    }

    /// A round trip to each of `some` whose number in it is in `need`.
    fn trip(&mut self, some: &[usize], need: &[usize], trips: &mut [Vec<RoundTrip>]) {
        let mut sent = BTreeMap::new();
        for i in need {
            let Some(member) = some.get(*i).and_then(|agent| self.members.get(*agent)) else { continue };
            self.number += 1;
            let ping = Message::new(&self.run, self.number, "", Order::Ping);
            let sent_ns = self.link.now_ns();
            self.link.send(Some(&member.presence.id), &ping);
            sent.insert(self.number, (*i, sent_ns));
        }
        let until_ns = self.link.now_ns() + AGAIN_NS;
        while !sent.is_empty() && self.link.now_ns() < until_ns && !self.link.interrupted() {
            let Some((returned_ns, message)) = self.receive(until_ns) else { continue };
            let Answer::Pong { received_ns, answered_ns } = message.body else { continue };
            let Some((i, sent_ns)) = sent.remove(&message.number) else { continue };
            if let Some(trips) = trips.get_mut(i) {
                trips.push(RoundTrip { sent_ns, received_ns, answered_ns, returned_ns });
            }
        }
    }

    /// The next message of an agent of this run, until `until_ns`, and when it came. What agents say unasked is noted.
    fn receive(&mut self, until_ns: u64) -> Option<(u64, Message<Answer>)> {
        let Received { at_ns, bytes } = self.link.receive(until_ns)?;
        let message: Message<Answer> = Message::read(&bytes).ok().filter(|m: &Message<Answer>| m.run == self.run)?;
        let member = self.members.iter_mut().find(|m| m.presence.id == message.agent)?;
        match &message.body {
            Answer::Progress(progress) if progress.test >= member.progress.test => member.progress = *progress,
            Answer::Closed(test) => member.closed = member.closed.max(*test),
            Answer::Opened(opened) => member.sessions = unpack(opened.sessions.as_bytes()).unwrap_or_default(),
            _ => {}
        }
        Some((at_ns, message))
    }

    /// The run is over: the agents are free again, or find out by their lease.
    pub fn release(&mut self) {
        let who = self.left();
        let _ = self.round(&who, AGAIN_NS * 2, |_, _| Order::Release);
        self.link.beat(None);
    }
}
