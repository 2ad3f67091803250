//! The coordinator's side of a run: finds agents, orders, waits for answers. All it knows of time and of the hub is its [`Link`],
//! so that the simulation drives what runs.

use std::collections::{BTreeMap, BTreeSet};

use loadline_model::format::counted;

use crate::link::Link;
use crate::message::{Answer, Message, MessageError, Order, PROTOCOL, Presence, Progress, Reader, Received, Why};
use crate::offset::{Offset, RoundTrip};

/// An order that is not answered is repeated after this long, ns.
const AGAIN_NS: u64 = 250_000_000;
/// The next times after longer ones, up to this, ns.
const MOST_AGAIN_NS: u64 = 1_000_000_000;
/// An agent that does not answer an order for this long, not even that it is under way, is lost, ns.
pub(crate) const SILENT_NS: u64 = 5_000_000_000;
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
pub(crate) struct Member {
    /// Who it is.
    pub(crate) presence: Presence,
    /// Its clock, as last measured.
    pub(crate) clock: Option<Offset>,
    /// Why it is lost, if it is.
    pub(crate) lost: Option<String>,
    /// How far its jobs are, and in which test.
    pub(crate) progress: (u64, Progress),
    /// The last test whose window end all its jobs have passed.
    pub(crate) closed: u64,
    /// Its jobs' sessions on each server, by the server's ids, as far as known.
    pub(crate) sessions: Vec<Vec<u32>>,
}

impl Member {
    /// `a1 on db-host`.
    pub(crate) fn name(&self) -> String {
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
pub(crate) enum Failure {
    /// It did not answer.
    Silent(String),
    /// It refused.
    Refused(Why, String),
}

impl Failure {
    /// In words.
    pub(crate) fn text(&self) -> &str {
        match self {
            Failure::Silent(text) | Failure::Refused(_, text) => text,
        }
    }
}

/// Asks who is there, for `wait_ns`, or until `enough`.
///
/// # Errors
/// [`AgentsError::Hub`], [`AgentsError::Interrupted`].
pub(crate) fn roll(
    link: &mut dyn Link,
    asker: &str,
    wait_ns: u64,
    enough: impl Fn(&[Presence]) -> bool,
) -> Result<Vec<Presence>, AgentsError> {
    let begin_ns = link.now_ns();
    let mut there: BTreeMap<String, Presence> = BTreeMap::new();
    let (mut next_ns, mut number, mut reader) = (begin_ns, 0, Reader::default());
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
        if let Some(presence) = presence_in(&mut reader, &bytes).filter(|p| !p.starting) {
            there.insert(presence.id.clone(), presence);
        }
    }
    let mut all: Vec<Presence> = there.into_values().collect();
    all.sort_by_key(|p| (natural(&p.name), p.host.clone(), p.process));
    Ok(all)
}

/// The agent that a message introduces, also of another protocol.
fn presence_in(reader: &mut Reader, bytes: &[u8]) -> Option<Presence> {
    match reader.read(bytes) {
        Ok(Some(Message { body: Answer::Here(presence), .. })) => Some(presence),
        Err(MessageError::Protocol(raw)) => serde_json::from_value(raw.body.get("here")?.clone()).ok(),
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
fn unusable(presence: &Presence, version: &str) -> Option<String> {
    if presence.protocol != PROTOCOL || presence.version != version {
        return Some(format!("has version {} of loadline, not {version}", presence.version));
    }
    presence.busy.as_ref().map(|run| format!("works for run {run}"))
}

/// Orders and answers of a run.
pub(crate) struct Coordinator<L> {
    /// The hub.
    pub(crate) link: L,
    reader: Reader,
    run: String,
    number: u64,
    members: Vec<Member>,
}

impl<L: Link> Coordinator<L> {
    /// Takes `asked` free agents, which wait until they are enough for `wait_ns` at most. From now on they have a lease.
    ///
    /// # Errors
    /// [`AgentsError`]; then none is taken.
    pub(crate) fn enlist(
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
            progress: Default::default(),
            closed: 0,
            sessions: Vec::new(),
        };
        let (run_id, members) = (run.to_owned(), taken.map(member).collect());
        let mut coordinator = Coordinator { link, reader: Reader::default(), run: run_id, number: 1 << 32, members };
        coordinator.link.beat(Some(run));
        let failed = coordinator.gather();
        if failed.is_empty() {
            return Ok(coordinator);
        }
        coordinator.release();
        Err(AgentsError::Agents(failed))
    }

    /// All agents, lost ones as well.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// From now on no agent runs more jobs than it may open sessions on servers.
    pub(crate) fn limit_by_sessions(&mut self) {
        for Member { presence, .. } in &mut self.members {
            presence.most_jobs = presence.most_jobs.min(presence.most_sessions);
        }
    }

    /// The agents that are not lost.
    pub(crate) fn left(&self) -> Vec<usize> {
        self.members.iter().enumerate().filter(|(_, m)| m.lost.is_none()).map(|(i, _)| i).collect()
    }

    /// Name of an agent.
    pub(crate) fn name(&self, agent: usize) -> String {
        self.members.get(agent).map(Member::name).unwrap_or_default()
    }

    /// Marks an agent as lost. The first reason is kept.
    pub(crate) fn lose(&mut self, agent: usize, why: &str) {
        if let Some(member) = self.members.get_mut(agent) {
            member.lost.get_or_insert_with(|| why.to_owned());
        }
    }

    /// Gives each of the agents its order, again and again until it answers, for `limit_ns` at most; one that says nothing for
    /// [`SILENT_NS`] is not waited for. Returns what each did. Messages that agents send unasked are noted meanwhile.
    pub(crate) fn round(
        &mut self,
        who: &[usize],
        limit_ns: u64,
        mut order: impl FnMut(usize, &Member) -> Order,
    ) -> Vec<(usize, Result<Answer, Failure>)> {
        struct Asked {
            agent: usize,
            order: Message<Order>,
            heard_ns: u64,
            /// Parts that came of its answer.
            came: usize,
            outcome: Option<Result<Answer, Failure>>,
        }
        let begin_ns = self.link.now_ns();
        let mut all = Vec::new();
        for agent in who.iter().copied() {
            self.number += 1;
            let Some(member) = self.members.get(agent) else { continue };
            let order = Message::new(&self.run, self.number, "", order(agent, member));
            all.push(Asked { agent, order, heard_ns: begin_ns, came: 0, outcome: None });
        }
        let end_ns = begin_ns.saturating_add(limit_ns.max(1));
        let (mut next_ns, mut again_ns) = (begin_ns, AGAIN_NS);
        loop {
            let now = self.link.now_ns();
            for asked in all.iter_mut().filter(|asked| asked.outcome.is_none()) {
                let Some(member) = self.members.get(asked.agent) else { continue };
                let came = self.reader.came(&self.run, &member.presence.id);
                if came != asked.came {
                    (asked.came, asked.heard_ns) = (came, now);
                }
            }
            if now >= next_ns {
                // A long answer that is on its way is not asked for again.
                let waits = |asked: &&Asked| asked.came == 0 || now - asked.heard_ns >= again_ns;
                for asked in all.iter().filter(|asked| asked.outcome.is_none()).filter(waits) {
                    let Some(member) = self.members.get(asked.agent) else { continue };
                    self.link.send(Some(&member.presence.id), &asked.order);
                }
                (next_ns, again_ns) = (now + again_ns, (again_ns * 2).min(MOST_AGAIN_NS));
            }
            // After it was sent: the order may be to end.
            let given_up = now >= end_ns || self.link.interrupted();
            for asked in all.iter_mut().filter(|asked| asked.outcome.is_none()) {
                let silent_ns = now.saturating_sub(asked.heard_ns);
                if given_up || silent_ns >= SILENT_NS {
                    asked.outcome = Some(Err(Failure::Silent(self.silent(begin_ns, now - begin_ns))));
                }
            }
            if all.iter().all(|asked| asked.outcome.is_some()) {
                return all.into_iter().filter_map(|asked| Some((asked.agent, asked.outcome?))).collect();
            }
            let Some((_, message)) = self.receive(next_ns.min(end_ns)) else { continue };
            let of = |asked: &&mut Asked| asked.outcome.is_none() && asked.order.number == message.number;
            if let Some(asked) = all.iter_mut().find(of) {
                match message.body {
                    Answer::UnderWay => asked.heard_ns = self.link.now_ns(),
                    Answer::Refused(why, text) => asked.outcome = Some(Err(Failure::Refused(why, text))),
                    answer => asked.outcome = Some(Ok(answer)),
                }
            }
        }
    }

    /// Why an agent did not answer.
    fn silent(&self, since_ns: u64, silent_ns: u64) -> String {
        let seconds = silent_ns as f64 / 1e9;
        match self.link.trouble(since_ns) {
            Some(why) => format!("could not be asked: {why}"),
            None => format!("did not answer for {seconds:.1} s: it ended, hangs, or is cut off from the hub"),
        }
    }

    /// Takes all agents that are left for what comes next: one that heard nothing for too long left the run, and comes back. Those that
    /// do not are lost, and named.
    pub(crate) fn gather(&mut self) -> Vec<String> {
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
    pub(crate) fn pump(&mut self, until_ns: u64) {
        while self.link.now_ns() < until_ns && !self.link.interrupted() {
            let _ = self.receive(until_ns);
        }
    }

    /// Measures the clocks of these agents. One that does not answer is lost.
    pub(crate) fn clocks(&mut self, who: &[usize]) {
        for some in who.chunks(AT_A_TIME) {
            let mut trips: BTreeMap<usize, Vec<RoundTrip>> = some.iter().map(|agent| (*agent, Vec::new())).collect();
            let end_ns = self.link.now_ns() + SILENT_NS;
            for _ in 0..TRIPS.0 {
                let good = |of: &[RoundTrip]| {
                    of.len() >= TRIPS.1 && Offset::of(of).is_some_and(|clock| clock.bound_ns <= GOOD_BOUND_NS)
                };
                let need: Vec<usize> = trips.iter().filter(|(_, of)| !good(of)).map(|(agent, _)| *agent).collect();
                if need.is_empty() || self.link.now_ns() >= end_ns || self.link.interrupted() {
                    break;
                }
                self.trip(&need, &mut trips);
            }
            for (agent, trips) in trips {
                match (Offset::of(&trips), self.members.get_mut(agent)) {
                    (Some(clock), Some(member)) => member.clock = Some(clock),
                    _ => self.lose(agent, "did not tell the time: it ended, hangs, or is cut off from the hub"),
                }
            }
        }
    }

    /// A round trip to each of these agents.
    fn trip(&mut self, who: &[usize], trips: &mut BTreeMap<usize, Vec<RoundTrip>>) {
        let mut sent = BTreeMap::new();
        for agent in who {
            let Some(member) = self.members.get(*agent) else { continue };
            self.number += 1;
            let sent_ns = self.link.now_ns();
            self.link.send(Some(&member.presence.id), &Message::new(&self.run, self.number, "", Order::Ping));
            sent.insert(self.number, (*agent, sent_ns));
        }
        let until_ns = self.link.now_ns() + AGAIN_NS;
        while !sent.is_empty() && self.link.now_ns() < until_ns && !self.link.interrupted() {
            let Some((returned_ns, message)) = self.receive(until_ns) else { continue };
            let Answer::Pong { received_ns, answered_ns } = message.body else { continue };
            let Some((agent, sent_ns)) = sent.remove(&message.number) else { continue };
            trips.entry(agent).or_default().push(RoundTrip { sent_ns, received_ns, answered_ns, returned_ns });
        }
    }

    /// The next message of an agent of this run, until `until_ns`, and when it came. What agents say unasked is noted.
    fn receive(&mut self, until_ns: u64) -> Option<(u64, Message<Answer>)> {
        let Received { at_ns, bytes } = self.link.receive(until_ns)?;
        let message = self.reader.read(&bytes).ok()??;
        let member = self.members.iter_mut().find(|m| message.run == self.run && m.presence.id == message.agent)?;
        match &message.body {
            Answer::Progress { test, progress } if *test >= member.progress.0 => member.progress = (*test, *progress),
            Answer::Closed(test) => member.closed = member.closed.max(*test),
            Answer::Opened(opened) => member.sessions.clone_from(&opened.sessions),
            _ => {}
        }
        Some((at_ns, message))
    }

    /// The run is over: the agents are free again, or find out by their lease.
    pub(crate) fn release(&mut self) {
        let who = self.left();
        let _ = self.round(&who, AGAIN_NS * 2, |_, _| Order::Release);
        self.link.beat(None);
    }
}
