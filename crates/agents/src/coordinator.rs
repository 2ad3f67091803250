//! The coordinator's side of a run: finds agents, gives orders, waits for answers, measures clocks. A test over agents is in `test.rs`.
//! All that is known here of time and of the hub is the [`Link`], so that the simulation drives what runs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use loadline_model::format::counted;

use crate::hub::{HubError, Link};
use crate::message::{Answer, Message, Order, PROTOCOL, Presence, Progress, Received, Refusal};
use crate::offset::{Offset, RoundTrip};

/// The clocks of agents may be off by this much at most, ns.
pub(crate) const MOST_SKEW_NS: u64 = (loadline_model::record::MOST_START_SKEW_MS * 1e6) as u64;
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

/// Why there are no agents to work with, or why some do not work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentsError {
    /// `there`: all who are there, and why some cannot be used.
    #[error("{} were asked for, {} free at the hub{}; start more with `loadline agent --hub … --name …`", counted(*.asked, "agent"), are(*.free), listed(.there))]
    Few { asked: usize, free: usize, there: Vec<String> },
    #[error("several agents have the name {name}: {}; end all but one, or start them with other names (--name)", .who.join(", "))]
    SameName { name: String, who: Vec<String> },
    #[error("{0} jobs are asked for, and the agents run {1} at most")]
    TooManyJobs(u32, u32),
    /// Agents refused, or did not answer: which, and why.
    #[error("{}", .0.join("; "))]
    Agents(Vec<String>),
    #[error(transparent)]
    Connect(#[from] HubError),
    #[error("the hub cannot be reached: {0}")]
    Hub(String),
    #[error("interrupted")]
    Interrupted,
}

fn are(n: usize) -> String {
    if n == 1 { "1 is".to_owned() } else { format!("{n} are") }
}

fn listed(there: &[String]) -> String {
    if there.is_empty() { String::new() } else { format!(": {}", there.join(", ")) }
}

/// Why an agent did not do what it was told.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum Failure {
    #[error("did not answer for {0:.1} s: it ended, hangs, or is cut off from the hub")]
    Silent(f64),
    #[error("could not be asked: {0}")]
    Hub(String),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("it would do other work: the rows of its jobs, or their order, differ from this loadline's")]
    OtherWork,
    #[error("it gave an answer that does not fit the order")]
    OtherAnswer,
    #[error(
        "it is too far away: messages to it and back take {:.1} ms, so its clock is known to {:.1} ms, and {:.0} ms are allowed; bring the hub, \
         this loadline and the agents nearer to each other",
        ms(.0 * 2), ms(*.0), ms(MOST_SKEW_NS)
    )]
    TooFar(u64),
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Asks who is there, for `wait_ns`, or until `enough`.
pub(crate) fn roll(
    link: &mut dyn Link,
    asker: &str,
    wait_ns: u64,
    enough: impl Fn(&[Presence]) -> bool,
) -> Result<Vec<Presence>, AgentsError> {
    let begin_ns = link.now_ns();
    let (mut there, mut next_ns, mut number) = (Vec::<Presence>::new(), begin_ns, 0);
    loop {
        let now = link.now_ns();
        if now >= begin_ns + wait_ns || (now >= begin_ns + ROLL_NS.min(wait_ns) && enough(&there)) {
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
        let Some(Message { body: Answer::Here(presence), .. }) = Message::read(&bytes) else { continue };
        there.retain(|known| known.id != presence.id);
        there.push(presence);
    }
    // a2 before a10.
    there.sort_by_cached_key(|p| (p.name.len(), p.name.clone(), p.host.clone(), p.process));
    Ok(there)
}

/// `a1 on db-host`.
pub(crate) fn described(presence: &Presence) -> String {
    format!("{} on {}", presence.name, presence.host)
}

/// Why an agent cannot be used by a loadline of `version`, if so.
fn unusable(presence: &Presence, version: &str) -> Option<String> {
    if presence.protocol != PROTOCOL || presence.version != version {
        return Some(format!("has version {} of loadline, not {version}", presence.version));
    }
    presence.busy.as_ref().map(|run| format!("works for run {run}"))
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) presence: Presence,
    pub(crate) clock: Option<Offset>,
    /// Whether it is lost: the run ends with this test.
    pub(crate) lost: bool,
    pub(crate) part: Part,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    /// Jobs; without any it takes no part.
    pub(crate) jobs: Range<u32>,
    /// Their sessions on each server, by the server's ids, as far as known.
    pub(crate) sessions: Vec<Vec<u32>>,
    /// Clock before the start.
    pub(crate) clock: Option<Offset>,
    pub(crate) progress: Progress,
    /// Whether all its jobs have passed the window end.
    pub(crate) closed: bool,
    pub(crate) failed: Option<String>,
    /// Counts of its jobs, as far as they were sent.
    pub(crate) counts: String,
    /// Whether that is all of them.
    pub(crate) counted: bool,
    /// Upper bound of the error of `clock` until after the test, ns.
    pub(crate) skew_ns: Option<u64>,
}

pub(crate) struct Coordinator<L> {
    pub(crate) link: L,
    run: String,
    /// Number of the last order.
    number: u64,
    pub(crate) members: Vec<Member>,
    /// Number of the current test, and when it began, ns.
    pub(crate) test: u64,
    pub(crate) began_ns: u64,
}

/// An order to an agent, and what came of it.
pub(crate) struct Asked {
    agent: usize,
    order: Message<Order>,
    /// When it was sent first, and when the answer came, ns.
    sent_ns: Option<u64>,
    returned_ns: u64,
    heard_ns: u64,
    answer: Option<Result<Answer, Failure>>,
}

impl<L: Link> Coordinator<L> {
    /// Takes `asked` free agents, or none; waits until they are enough for `wait_ns` at most. From now on they have a lease.
    pub(crate) fn enlist(
        mut link: L,
        run: &str,
        version: &str,
        asked: usize,
        wait_ns: u64,
    ) -> Result<Coordinator<L>, AgentsError> {
        let usable = |p: &Presence| unusable(p, version).is_none();
        let count = |all: &[Presence]| all.iter().filter(|p| usable(p)).count();
        let there = roll(&mut link, run, wait_ns, |all| count(all) >= asked)?;
        let mut names = BTreeSet::new();
        if let Some(Presence { name, .. }) = there.iter().find(|p| !names.insert(p.name.as_str())) {
            let same = there.iter().filter(|p| p.name == *name);
            let who = same.map(|p| format!("process {} on {}", p.process, p.host)).collect();
            return Err(AgentsError::SameName { name: name.clone(), who });
        }
        let free = count(&there);
        if free < asked {
            let say = |p: &Presence| {
                unusable(p, version).map_or_else(|| described(p), |why| format!("{} ({why})", described(p)))
            };
            return Err(AgentsError::Few { asked, free, there: there.iter().map(say).collect() });
        }
        let member = |presence| Member { presence, clock: None, lost: false, part: Part::default() };
        let members = there.into_iter().filter(usable).take(asked).map(member).collect();
        // Beyond the numbers of the roll.
        let (run, number) = (run.to_owned(), 1 << 32);
        let mut coordinator = Coordinator { link, run, number, members, test: 0, began_ns: 0 };
        coordinator.link.beat(Some(&coordinator.run));
        coordinator.gather().inspect_err(|_| coordinator.release())?;
        Ok(coordinator)
    }

    pub(crate) fn which(&self, is: impl Fn(&Member) -> bool) -> Vec<usize> {
        self.members.iter().enumerate().filter(|(_, member)| is(member)).map(|(i, _)| i).collect()
    }

    /// Notes why an agent fails the current test. One that is silent is lost; one that refuses, and says why, is not.
    pub(crate) fn note(&mut self, agent: usize, failure: &Failure) {
        let mut text = failure.to_string();
        let silent = matches!(failure, Failure::Silent(_) | Failure::Hub(_));
        if let Some(trouble) = self.link.trouble(self.began_ns)
            && !silent
        {
            text = format!("{text}; {trouble}");
        }
        if let Some(member) = self.members.get_mut(agent) {
            member.lost |= silent;
            member.part.failed.get_or_insert(text);
        }
    }

    /// Fails with those that failed the current test.
    pub(crate) fn all_well(&self) -> Result<(), AgentsError> {
        if self.link.interrupted() {
            return Err(AgentsError::Interrupted);
        }
        let failed = |m: &Member| Some(format!("agent {}: {}", described(&m.presence), m.part.failed.as_ref()?));
        let failed: Vec<String> = self.members.iter().filter_map(failed).collect();
        if failed.is_empty() { Ok(()) } else { Err(AgentsError::Agents(failed)) }
    }

    /// Gives each of the agents its order, and notes those that fail. `take` has what the others answer.
    pub(crate) fn tell(
        &mut self,
        who: &[usize],
        limit_ns: u64,
        order: impl Fn(&Member) -> Order,
        take: impl Fn(&mut Member, Answer) -> Result<(), Failure>,
    ) {
        for Asked { agent, answer, .. } in self.round(who, limit_ns, order) {
            let Some((member, answer)) = self.members.get_mut(agent).zip(answer) else { continue };
            if let Err(failure) = answer.and_then(|answer| take(member, answer)) {
                self.note(agent, &failure);
            }
        }
    }

    /// Gives each of the agents its order, again and again until it answers, for `limit_ns` at most; one that says nothing for
    /// [`SILENT_NS`] is not waited for. Messages that agents send unasked are noted meanwhile.
    pub(crate) fn round(&mut self, who: &[usize], limit_ns: u64, order: impl Fn(&Member) -> Order) -> Vec<Asked> {
        let begin_ns = self.link.now_ns();
        let mut all: Vec<Asked> = Vec::new();
        for agent in who.iter().copied() {
            let Some(member) = self.members.get(agent) else { continue };
            self.number += 1;
            let order = Message::new(&self.run, self.number, "", order(member));
            let (sent_ns, returned_ns, heard_ns) = (None, 0, begin_ns);
            all.push(Asked { agent, order, sent_ns, returned_ns, heard_ns, answer: None });
        }
        let end_ns = begin_ns.saturating_add(limit_ns.max(1));
        // Counts are long: repeats must not pile up on a slow connection, and one that still answers earlier ones is not silent.
        let are_counts = all.iter().any(|asked| matches!(asked.order.body, Order::Counts(_)));
        let (mut next_ns, mut again_ns) = (begin_ns, if are_counts { MOST_AGAIN_NS } else { AGAIN_NS });
        loop {
            let now = self.link.now_ns();
            let again = now >= next_ns;
            for asked in all.iter_mut().filter(|asked| asked.answer.is_none()) {
                let Some(Member { presence, .. }) = self.members.get(asked.agent) else { continue };
                if again {
                    let sent_ns = self.link.now_ns();
                    asked.sent_ns.get_or_insert(sent_ns);
                    self.link.send(Some(&presence.id), &asked.order);
                }
                // After it was sent: the order may be to end.
                if now >= end_ns || now.saturating_sub(asked.heard_ns) >= SILENT_NS || self.link.interrupted() {
                    let silent = Failure::Silent((now - begin_ns) as f64 / 1e9);
                    asked.answer = Some(Err(self.link.trouble(begin_ns).map_or(silent, Failure::Hub)));
                }
            }
            if again {
                (next_ns, again_ns) = (now + again_ns, (again_ns * 2).min(MOST_AGAIN_NS));
            }
            if all.iter().all(|asked| asked.answer.is_some()) {
                return all;
            }
            let Some((returned_ns, message)) = self.receive(next_ns.min(end_ns)) else { continue };
            let is_by =
                |asked: &&mut Asked| self.members.get(asked.agent).is_some_and(|m| m.presence.id == message.agent);
            if are_counts && let Some(asked) = all.iter_mut().find(is_by) {
                asked.heard_ns = self.link.now_ns();
            }
            let is_of = |asked: &&mut Asked| asked.answer.is_none() && asked.order.number == message.number;
            let Some(asked) = all.iter_mut().find(is_of) else { continue };
            (asked.heard_ns, asked.returned_ns) = (self.link.now_ns(), returned_ns);
            asked.answer = match message.body {
                Answer::UnderWay => None,
                Answer::Refused(why) => Some(Err(why.into())),
                answer => Some(Ok(answer)),
            };
        }
    }

    /// Takes all agents for the next test: one that heard nothing for too long left the run, and comes back, or is lost.
    pub(crate) fn gather(&mut self) -> Result<(), AgentsError> {
        self.members.iter_mut().for_each(|member| member.part = Part::default());
        self.began_ns = self.link.now_ns();
        let mut who = self.which(|_| true);
        while !who.is_empty() && !self.link.interrupted() {
            let late = self.link.now_ns() >= self.began_ns + SILENT_NS;
            let mut busy = Vec::new();
            for Asked { agent, answer, .. } in self.round(&who, SILENT_NS, |_| Order::Enlist) {
                let Some(Err(failure)) = answer else { continue };
                // It still ends the jobs of a test that it left.
                if !late && matches!(failure, Failure::Refused(Refusal::Busy(_) | Refusal::Ending)) {
                    busy.push(agent);
                    continue;
                }
                self.note(agent, &failure);
                self.members.get_mut(agent).into_iter().for_each(|member| member.lost = true);
            }
            who = busy;
            if !who.is_empty() {
                self.pump(self.link.now_ns() + AGAIN_NS);
            }
        }
        self.all_well()
    }

    /// Measures the clocks of these agents. One that does not answer is lost.
    pub(crate) fn measure_clocks(&mut self, who: &[usize]) {
        for some in who.chunks(AT_A_TIME) {
            let begin_ns = self.link.now_ns();
            let mut trips: BTreeMap<usize, Vec<RoundTrip>> = some.iter().map(|agent| (*agent, Vec::new())).collect();
            for _ in 0..TRIPS.0 {
                let good = |trips: &[RoundTrip]| {
                    trips.len() >= TRIPS.1
                        && Offset::from_trips(trips).is_some_and(|clock| clock.bound_ns <= GOOD_BOUND_NS)
                };
                let need: Vec<usize> = trips.iter().filter(|(_, of)| !good(of)).map(|(agent, _)| *agent).collect();
                if need.is_empty() || self.link.now_ns() >= begin_ns + SILENT_NS || self.link.interrupted() {
                    break;
                }
                for Asked { agent, sent_ns, returned_ns, answer, .. } in self.round(&need, AGAIN_NS, |_| Order::Ping) {
                    if let (Some(sent_ns), Some(Ok(Answer::Pong { received_ns, answered_ns }))) = (sent_ns, answer) {
                        let trip = RoundTrip { sent_ns, received_ns, answered_ns, returned_ns };
                        trips.entry(agent).or_default().push(trip);
                    }
                }
            }
            for (agent, trips) in trips {
                match (Offset::from_trips(&trips), self.members.get_mut(agent)) {
                    (Some(clock), Some(member)) => member.clock = Some(clock),
                    _ => self.note(agent, &Failure::Silent((self.link.now_ns() - begin_ns) as f64 / 1e9)),
                }
            }
        }
    }

    pub(crate) fn pump(&mut self, until_ns: u64) {
        while self.link.now_ns() < until_ns && !self.link.interrupted() {
            let _ = self.receive(until_ns);
        }
    }

    /// The next message of an agent of this run, until `until_ns`, and when it came. What agents say unasked is noted.
    fn receive(&mut self, until_ns: u64) -> Option<(u64, Message<Answer>)> {
        let Received { at_ns, bytes } = self.link.receive(until_ns)?;
        let message: Message<Answer> = Message::read(&bytes)?;
        let member = self.members.iter_mut().find(|m| message.run == self.run && m.presence.id == message.agent)?;
        match &message.body {
            Answer::Progress { test, progress } if *test == self.test => member.part.progress = *progress,
            Answer::Closed(test) if *test == self.test => member.part.closed = true,
            // Also one that comes too late: the sessions are there.
            Answer::Opened(opened) => member.part.sessions.clone_from(&opened.sessions),
            _ => {}
        }
        Some((at_ns, message))
    }

    /// The run is over: the agents are free again, or find out by their lease.
    pub(crate) fn release(&mut self) {
        let who = self.which(|_| true);
        let _ = self.round(&who, AGAIN_NS * 2, |_| Order::Release);
        self.link.beat(None);
    }
}
