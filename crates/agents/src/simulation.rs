//! A thousand agents with wrong clocks, behind a hub that delays and loses messages, in simulated time. The coordinator, the
//! protocol and the agents are those of a run; only clock, hub and jobs are simulated. Everything follows from the seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use loadline_model::random::Random;

use crate::agent::{Action, Agent, Event, JobsEvent};
use crate::coordinator::{AgentsError, Coordinator};
use crate::lease::BEAT_NS;
use crate::link::Link;
use crate::message::{Answer, Command, JobsOrder, Message, Opened, Order, PROTOCOL, Presence, Received};
use crate::test::{MOST_SKEW_NS, START_LEAD_NS, Test, WINDOW_LEAD_NS};

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const VERSION: &str = "1.2.3";
/// Most bytes of a message: what is longer comes in parts.
const MOST_BYTES: usize = 2000;

/// A clock that is ahead by some time at the beginning and gains or loses.
#[derive(Debug, Clone, Copy)]
struct Clock {
    ahead_ns: u64,
    gains_ppm: f64,
}

impl Clock {
    fn at(&self, true_ns: u64) -> u64 {
        (true_ns + self.ahead_ns).wrapping_add_signed((true_ns as f64 * self.gains_ppm / 1e6) as i64)
    }

    fn truth(&self, local_ns: u64) -> u64 {
        ((local_ns - self.ahead_ns) as f64 / (1.0 + self.gains_ppm / 1e6)) as u64
    }
}

struct Host {
    agent: Agent,
    clock: Clock,
    /// Mean time of a message to it and from it, ns.
    legs: [f64; 2],
    /// Nothing reaches it or comes from it; its jobs go on.
    cut_off: Range<u64>,
    /// It has ended, or hangs.
    dead: Range<u64>,
    /// Number of its last test.
    test: u64,
    /// Window on its own clock.
    window: Option<(u64, u64)>,
    /// Whether its jobs load the database, and when they ended, on the true clock.
    loads: bool,
    ended_ns: u64,
    urgent: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    ToAgent(Vec<u8>),
    ToCoordinator(Vec<u8>),
    /// Looks at the time.
    Timer,
    /// The jobs of this test have opened their sessions, passed the window end, ended.
    Opened(u64),
    Closed(u64),
    Ended(u64),
    /// The coordinator says that the run goes on.
    Beat,
}

/// The hub, the hosts and the time.
struct World {
    now_ns: u64,
    /// What comes next: when, in which order, at which host.
    queue: BinaryHeap<Reverse<(u64, usize, usize, What)>>,
    pushed: usize,
    random: Random,
    hosts: Vec<Host>,
    /// The run of which the coordinator says that it goes on.
    run: Option<String>,
    /// Share of messages that get lost.
    loss: f64,
    /// When messages other than beats were sent.
    sent_ns: Vec<u64>,
}

fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    low + (high - low) * (random.next() >> 11) as f64 / (1u64 << 53) as f64
}

fn presence(i: usize) -> Presence {
    Presence {
        id: i.to_string(),
        name: format!("a{i}"),
        version: VERSION.into(),
        protocol: PROTOCOL,
        host: format!("h{i}"),
        process: 1,
        most_jobs: 64,
        ..Presence::default()
    }
}

impl World {
    fn new(agents: usize, seed: u64) -> World {
        let mut random = Random::new(seed);
        let hosts = (0..agents).map(|i| Host {
            agent: Agent::new(presence(i)),
            // Clocks that began at any time in the last months, and gain or lose up to 20 ppm.
            clock: Clock { ahead_ns: random.below(1 << 53), gains_ppm: between(&mut random, -20.0, 20.0) },
            legs: [between(&mut random, 50e3, 400e3), between(&mut random, 50e3, 400e3)],
            cut_off: 0..0,
            dead: 0..0,
            test: 0,
            window: None,
            loads: false,
            ended_ns: 0,
            urgent: false,
        });
        let hosts = hosts.collect();
        let (now_ns, queue, sent_ns) = (1000 * S, BinaryHeap::new(), Vec::new());
        World { now_ns, queue, pushed: 0, random, hosts, run: None, loss: 0.0, sent_ns }
    }

    fn at(&mut self, ns: u64, host: usize, what: What) {
        self.pushed += 1;
        self.queue.push(Reverse((ns.max(self.now_ns), self.pushed, host, what)));
    }

    /// Sends the pieces of a message to a host or from it (leg 0 or 1). A leg takes its mean or longer, a few take very long.
    fn deliver(&mut self, i: usize, leg: usize, pieces: Vec<Vec<u8>>, what: fn(Vec<u8>) -> What) {
        let slow = if between(&mut self.random, 0.0, 1.0) < 0.02 { 30.0 } else { 1.0 };
        let times = 0.5 - 0.5 * between(&mut self.random, 1e-9, 1.0).ln() * slow;
        let at_ns = self.now_ns + (self.hosts[i].legs[leg] * times) as u64;
        for piece in pieces {
            let lost = between(&mut self.random, 0.0, 1.0) < self.loss;
            if !lost && !self.hosts[i].cut_off.contains(&self.now_ns) {
                self.at(at_ns, i, what(piece));
            }
        }
    }

    /// Carries out what is next, if it is due by `until_ns`. Returns a message for the coordinator.
    fn step(&mut self, until_ns: u64) -> Option<Received> {
        if self.queue.peek().is_none_or(|next| next.0.0 > until_ns) {
            self.now_ns = self.now_ns.max(until_ns);
            return None;
        }
        let Reverse((at_ns, _, i, what)) = self.queue.pop()?;
        self.now_ns = self.now_ns.max(at_ns);
        match what {
            What::ToCoordinator(bytes) => return Some(Received { at_ns: self.now_ns, bytes }),
            What::ToAgent(bytes) => self.tell(i, Event::Message(&bytes)),
            What::Timer => self.tell(i, Event::Time),
            What::Opened(test) => {
                let opened = Opened { fingerprint: "work".into(), ..Opened::default() };
                self.jobs(i, test, JobsEvent::Opened(Ok(opened)));
            }
            What::Closed(test) => self.jobs(i, test, JobsEvent::Closed),
            What::Ended(test) => {
                (self.hosts[i].loads, self.hosts[i].ended_ns) = (false, self.now_ns);
                self.jobs(i, test, JobsEvent::Ended(counts(i)));
            }
            What::Beat => {
                let run = self.run.clone()?;
                let beat = Message::new(&run, 0, "", Order::Beat).pieces(MOST_BYTES);
                (0..self.hosts.len()).for_each(|i| self.deliver(i, 0, beat.clone(), What::ToAgent));
                self.at(self.now_ns + BEAT_NS, 0, What::Beat);
            }
        }
        None
    }

    /// Something happens to the jobs of an agent, unless they are of an earlier test.
    fn jobs(&mut self, i: usize, test: u64, event: JobsEvent) {
        if self.hosts[i].test == test {
            self.tell(i, Event::Jobs(event));
        }
    }

    /// An event happens to an agent, which acts. What it misses while it hangs is lost here; a real one would get it late.
    fn tell(&mut self, i: usize, event: Event<'_>) {
        let (now, host) = (self.now_ns, &mut self.hosts[i]);
        let clock = host.clock;
        if host.dead.contains(&now) {
            let until_ns = host.dead.end;
            return self.at(until_ns, i, What::Timer);
        }
        for action in host.agent.on(clock.at(now), event) {
            self.act(i, clock, action);
        }
        if let Some(due) = self.hosts[i].agent.due_ns() {
            self.at(clock.truth(due) + 1, i, What::Timer);
        }
    }

    fn act(&mut self, i: usize, clock: Clock, action: Action) {
        let (now, host) = (self.now_ns, &mut self.hosts[i]);
        let test = host.test;
        match action {
            Action::Say(_) => {}
            Action::Send(message) => {
                self.sent_ns.push(now);
                self.deliver(i, 1, message.pieces(MOST_BYTES), What::ToCoordinator);
            }
            Action::Open(order) => {
                (host.test, host.window) = (order.test, None);
                let takes = self.random.below(200 * MS);
                self.at(now + takes, i, What::Opened(order.test));
                if order.jobs == 0 {
                    self.at(now + takes, i, What::Ended(order.test));
                }
            }
            Action::Jobs(Command::Start { .. }) => host.loads = true,
            Action::Jobs(Command::Window { open_ns, close_ns }) => {
                host.window = Some((open_ns, close_ns));
                self.at(clock.truth(close_ns) + 2 * MS, i, What::Closed(test));
            }
            Action::Jobs(Command::End { urgent }) => {
                host.urgent |= urgent;
                self.at(now + 5 * MS, i, What::Ended(test));
            }
        }
    }
}

impl Link for World {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn send(&mut self, agent: Option<&str>, order: &Message<Order>) {
        self.sent_ns.push(self.now_ns);
        let only: Option<usize> = agent.map(|id| id.parse().unwrap());
        for i in (0..self.hosts.len()).filter(|i| only.is_none_or(|only| only == *i)) {
            self.deliver(i, 0, order.pieces(MOST_BYTES), What::ToAgent);
        }
    }

    fn receive(&mut self, until_ns: u64) -> Option<Received> {
        while self.now_ns < until_ns {
            if let Some(received) = self.step(until_ns) {
                return Some(received);
            }
        }
        None
    }

    fn beat(&mut self, run: Option<&str>) {
        self.run = run.map(str::to_owned);
        self.at(self.now_ns, 0, What::Beat);
    }

    fn trouble(&self, _: u64) -> Option<String> {
        None
    }

    fn interrupted(&self) -> bool {
        false
    }
}

/// What the jobs of an agent counted: more than a message holds.
fn counts(agent: usize) -> String {
    (0..500).map(|n| format!("{:x}", (agent as u64 + n).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect()
}

/// What a test over agents came to.
struct Outcome {
    /// Names of agents that failed, with the reason.
    failed: Vec<(usize, String)>,
    /// Bound of the difference between the clocks in the window, of the agents that counted, ns.
    skew_ns: u64,
    /// Largest true difference between the common window and that of an agent that counted, ns.
    truly_off_ns: u64,
    jobs: u32,
    /// Messages in the window besides beats.
    in_window: usize,
}

impl Outcome {
    fn valid(&self) -> bool {
        self.failed.is_empty() && self.skew_ns <= MOST_SKEW_NS
    }
}

fn jobs_of(all_jobs: u32) -> JobsOrder {
    JobsOrder { all_jobs, ..JobsOrder::default() }
}

fn test(c: &mut Coordinator<World>, number: u64, jobs: u32, window_s: u64) -> Result<Outcome, AgentsError> {
    let mut test = Test::open(c, number, &jobs_of(jobs), &|_| "work".to_owned())?;
    let start_ns = c.link.now_ns + START_LEAD_NS;
    test.tell(c, Command::Start { start_ns, window_ns: window_s * S });
    c.pump(start_ns + 300 * MS);
    let open_ns = c.link.now_ns + WINDOW_LEAD_NS;
    let close_ns = open_ns + window_s * S;
    test.tell(c, Command::Window { open_ns, close_ns });
    c.pump(close_ns);
    let deadline = close_ns + S;
    while !test.closed(c) && c.link.now_ns < deadline {
        c.pump((c.link.now_ns + 10 * MS).min(deadline));
    }
    let counted = test.stop(c, window_s * S);
    let mut skew_ns = 0;
    let (mut truly_off_ns, mut jobs) = (0, 0);
    for of in counted.iter().filter(|of| of.text.is_some()) {
        assert_eq!(of.text, Some(counts(of.share.agent)), "all parts, in order");
        let host = &c.link.hosts[of.share.agent];
        let (open, close) = host.window.unwrap();
        let off = |local, truth: u64| host.clock.truth(local).abs_diff(truth);
        truly_off_ns = truly_off_ns.max(off(open, open_ns)).max(off(close, close_ns));
        skew_ns = skew_ns.max(of.skew_ns.unwrap_or(u64::MAX));
        jobs += of.share.jobs;
    }
    // A message on its way at the window start was sent before it.
    let in_window = c.link.sent_ns.iter().filter(|at| (open_ns..close_ns).contains(at)).count();
    let failed = test.failures.clone().into_iter().collect();
    Ok(Outcome { failed, skew_ns, truly_off_ns, jobs, in_window })
}

fn enlisted(world: World) -> Coordinator<World> {
    let agents = world.hosts.len();
    Coordinator::enlist(world, "r1", VERSION, agents, 5 * S).unwrap()
}

#[test]
fn the_window_of_a_thousand_agents_is_common() {
    let mut c = enlisted(World::new(1000, 1));
    for number in 1..=3 {
        let outcome = test(&mut c, number, 4000 + number as u32, 20).unwrap();
        assert!(outcome.valid(), "{:?} {}", outcome.failed, outcome.skew_ns);
        assert!(outcome.truly_off_ns <= outcome.skew_ns, "{} {}", outcome.truly_off_ns, outcome.skew_ns);
        assert!(outcome.truly_off_ns > 0, "the clocks do differ");
        assert_eq!((outcome.jobs, outcome.in_window), (4000 + number as u32, 0), "no message in the window");
    }
}

#[test]
fn a_common_window_or_an_invalid_test_under_every_fault() {
    let (mut valid, mut invalid) = (0, 0);
    for seed in 0..150 {
        let mut world = World::new(12, seed);
        let mut random = Random::new(seed + 7777);
        let mut pick = |n: u64| random.below(n);
        // Clocks that drift so much that a window of 10 s is not common.
        let wild = (pick(3) == 0).then(|| pick(12) as usize);
        if let Some(i) = wild {
            world.hosts[i].clock.gains_ppm = 900.0;
        }
        world.loss = if pick(3) == 0 { 0.05 } else { 0.0 };
        let mut c = enlisted(world);
        let begin = c.link.now_ns;
        let fault_at = begin + pick(15 * S);
        let (faulty, fault) = (pick(12) as usize, fault_at..fault_at + S / 2 + pick(20 * S));
        let kind = pick(5);
        let hosts = &mut c.link.hosts;
        match kind {
            0 => hosts[faulty].dead = fault_at..u64::MAX,
            1 => hosts[faulty].dead = fault.clone(),
            2 => hosts[faulty].cut_off = fault.clone(),
            // The hub is away.
            3 => hosts.iter_mut().for_each(|host| host.cut_off = fault.clone()),
            _ => {}
        }
        for number in 1..=2 {
            let Ok(outcome) = test(&mut c, number, 100, 10) else {
                invalid += 1;
                // Whoever failed before the start is lost for the run, or the hub was away.
                continue;
            };
            let said = format!("seed {seed} test {number}: fault {kind} {:?} {}", outcome.failed, outcome.skew_ns);
            if !outcome.valid() {
                invalid += 1;
                continue;
            }
            valid += 1;
            assert!(outcome.truly_off_ns <= outcome.skew_ns && outcome.truly_off_ns <= MOST_SKEW_NS, "{said}");
            assert_eq!(outcome.jobs, 100, "{said}");
            let wild_one_worked = wild.is_some_and(|i| c.members()[i].lost.is_none());
            assert!(!wild_one_worked, "{said}: 900 ppm are 9 ms in 10 s");
        }
    }
    assert!(valid > 60 && invalid > 60, "{valid} valid, {invalid} invalid: both must be tried");
}

#[test]
fn the_agent_that_is_lost_is_the_one_that_is_named() {
    for cut_off in [false, true] {
        let mut c = enlisted(World::new(20, u64::from(cut_off)));
        // In the window of the first test.
        let fault = c.link.now_ns + 6 * S..u64::MAX;
        let host = &mut c.link.hosts[13];
        *(if cut_off { &mut host.cut_off } else { &mut host.dead }) = fault;
        let outcome = test(&mut c, 1, 40, 10).unwrap();
        let failed: Vec<usize> = outcome.failed.iter().map(|(i, _)| *i).collect();
        assert_eq!(failed, [13], "{:?}", outcome.failed);
        assert!(outcome.failed[0].1.contains("hangs, or is cut off"), "{:?}", outcome.failed);
        assert_eq!(outcome.jobs, 38, "what the others counted is there");
        // The next test is spread over those that are left.
        let outcome = test(&mut c, 2, 38, 10).unwrap();
        assert!(outcome.valid() && outcome.jobs == 38, "{:?}", outcome.failed);
        let host = &c.link.hosts[13];
        assert!(!cut_off || (!host.loads && host.urgent && host.ended_ns > 0), "it ended its jobs by itself");
    }
}

#[test]
fn nothing_loads_the_database_after_the_coordinator_is_gone() {
    for seed in 0..20 {
        let mut c = enlisted(World::new(100, seed));
        let mut test = Test::open(&mut c, 1, &jobs_of(200), &|_| "work".to_owned()).unwrap();
        let start_ns = c.link.now_ns + START_LEAD_NS;
        test.tell(&mut c, Command::Start { start_ns, window_ns: 60 * S });
        c.pump(start_ns + S);
        let open_ns = c.link.now_ns + WINDOW_LEAD_NS;
        test.tell(&mut c, Command::Window { open_ns, close_ns: open_ns + 60 * S });
        c.pump(open_ns + seed * S);
        assert!(c.link.hosts.iter().all(|h| h.loads), "all load it, held by beats alone");
        let gone_ns = c.link.now_ns;
        c.link.run = None;
        c.pump(gone_ns + 10 * S);
        for host in &c.link.hosts {
            assert!(!host.loads && host.urgent, "its jobs were ended");
            assert!(host.ended_ns <= gone_ns + 5 * S, "after {} ms", (host.ended_ns - gone_ns) / MS);
        }
    }
}

#[test]
fn who_cannot_be_used_is_named() {
    let refused = |change: &dyn Fn(&mut Vec<Presence>), asked: usize| {
        let mut all: Vec<Presence> = (0..3).map(presence).collect();
        change(&mut all);
        let mut world = World::new(all.len(), 5);
        for (host, presence) in world.hosts.iter_mut().zip(all) {
            host.agent = Agent::new(presence);
        }
        Coordinator::enlist(world, "r1", VERSION, asked, 2 * S).err().map(|e| e.to_string())
    };
    assert_eq!(refused(&|_| (), 3), None);
    let few = refused(&|_| (), 5).unwrap();
    assert!(few.starts_with("5 agents were asked for, 3 are free at the hub: a0 on h0, a1 on h1, a2 on h2"), "{few}");
    let twice = refused(&|all| all[2].name = "a0".into(), 2).unwrap();
    assert!(twice.contains("the name a0: process 1 on h0, process 1 on h2"), "{twice}");
    let old = refused(&|all| all[1].version = "1.2.2".into(), 3).unwrap();
    assert!(old.contains("a1 on h1 (has version 1.2.2 of loadline, not 1.2.3)"), "{old}");
    assert_eq!(refused(&|all| all[1].version = "1.2.2".into(), 2), None, "the others are enough");
}

#[test]
fn an_agent_whose_window_can_never_be_common_is_refused_before_the_first_test() {
    let mut c = enlisted(World::new(4, 3));
    let reach = |c: &mut Coordinator<World>| Test::reach(c, &jobs_of(0)).err().map(|e| e.to_string());
    assert_eq!(reach(&mut c), None);
    // No leg takes less than half of this.
    c.link.hosts[2].legs = [6.0 * MS as f64; 2];
    let why = reach(&mut c).unwrap();
    assert!(
        why.starts_with("agent a2 on h2: it is too far away: messages to it and back take") && !why.contains("a1"),
        "{why}"
    );
}

#[test]
fn an_agent_of_one_run_takes_no_orders_of_another() {
    let mut c = enlisted(World::new(4, 9));
    let mut world = World::new(0, 9);
    std::mem::swap(&mut world.hosts, &mut c.link.hosts);
    let busy = Coordinator::enlist(world, "r2", VERSION, 2, S).err().unwrap().to_string();
    assert!(busy.contains("0 are free") && busy.contains("a3 on h3 (works for run r1)"), "{busy}");
    // Nor does it open sessions for whoever has not enlisted it.
    let mut agent = Agent::new(presence(0));
    let open = Message::new("r9", 1, "", Order::Open(Box::new(jobs_of(1))));
    let actions = agent.on(5, Event::Message(&open.pieces(MOST_BYTES)[0]));
    let refused = |action: &Action| matches!(action, Action::Send(m) if matches!(m.body, Answer::Refused(..)));
    assert!(actions.len() == 1 && actions.iter().all(refused), "{actions:?}");
}
