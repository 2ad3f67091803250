//! A thousand agents with wrong clocks, behind a hub that delays and loses messages, in simulated time. The coordinator, the
//! protocol and the agents are those of a run; only clock, hub and jobs are simulated. Everything follows from the seed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use loadline_agents::agent::{Action, Agent, Event};
use loadline_agents::coordinator::{AgentsError, Coordinator};
use loadline_agents::lease::BEAT_NS;
use loadline_agents::link::{Link, Received};
use loadline_agents::message::{Answer, JobsOrder, Message, Opened, Order, PROTOCOL, Presence, Progress};
use loadline_agents::test::{MOST_SKEW_NS, START_LEAD_NS, Test, WINDOW_LEAD_NS};
use loadline_model::plan::WorkloadFile;
use loadline_model::random::Random;

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const VERSION: &str = "1.2.3";

/// What may go wrong with an agent.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// It ends.
    Dies,
    /// It does nothing from then until later.
    Hangs(u64),
    /// Nothing reaches it or comes from it; its jobs go on.
    CutOff(u64),
}

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
    fault: Option<(u64, Fault)>,
    opened: Option<u64>,
    /// The file that came with it.
    file: Option<String>,
    /// Window on its own clock.
    window: Option<(u64, u64)>,
    /// When its jobs began and ended, on the true clock.
    loads: Option<u64>,
    ended_ns: u64,
    urgent: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    ToAgent(usize, Vec<u8>),
    ToCoordinator(Vec<u8>),
    Beat,
    /// Looks at the time.
    Timer(usize),
    Opened(usize, u64),
    Progress(usize, u64),
    Closed(usize, u64),
    Ended(usize, u64),
}

/// The hub, the hosts and the time.
struct World {
    now_ns: u64,
    queue: BinaryHeap<Reverse<(u64, u64, What)>>,
    sequence: u64,
    random: Random,
    hosts: Vec<Host>,
    run: Option<String>,
    /// The hub is away between these times.
    away: (u64, u64),
    /// Share of messages that get lost.
    loss: f64,
    /// Messages sent (other than beats), with their times.
    sent_ns: Vec<u64>,
    /// Whether the coordinator says that the run goes on.
    beats: bool,
}

fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    low + (high - low) * (random.next() >> 11) as f64 / (1u64 << 53) as f64
}

fn presence(i: usize) -> Presence {
    Presence {
        id: format!("id{i}"),
        name: format!("a{i}"),
        version: VERSION.into(),
        protocol: PROTOCOL,
        host: format!("h{i}"),
        machine: format!("m{i}"),
        process: 1,
        private: true,
        cpus: 2,
        most_jobs: 64,
        most_sessions: 64,
        starting: false,
        busy: None,
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
            fault: None,
            opened: None,
            file: None,
            window: None,
            loads: None,
            ended_ns: 0,
            urgent: false,
        });
        let hosts = hosts.collect();
        World {
            now_ns: 1000 * S,
            queue: BinaryHeap::new(),
            sequence: 0,
            random,
            hosts,
            run: None,
            away: (0, 0),
            loss: 0.0,
            sent_ns: Vec::new(),
            beats: true,
        }
    }

    fn at(&mut self, ns: u64, what: What) {
        self.sequence += 1;
        self.queue.push(Reverse((ns.max(self.now_ns), self.sequence, what)));
    }

    /// A leg takes its mean or longer; a few take very long.
    fn delay(&mut self, mean: f64) -> u64 {
        let slow = if between(&mut self.random, 0.0, 1.0) < 0.02 { 30.0 } else { 1.0 };
        (mean * (0.5 - 0.5 * between(&mut self.random, 1e-9, 1.0).ln() * slow)) as u64
    }

    fn cut_off(&mut self, host: usize) -> bool {
        let now = self.now_ns;
        let lost = self.loss > 0.0 && between(&mut self.random, 0.0, 1.0) < self.loss;
        let fault = matches!(self.hosts[host].fault, Some((from, Fault::CutOff(to))) if (from..to).contains(&now));
        lost || fault || (self.away.0..self.away.1).contains(&now)
    }

    /// Carries out what is next, if it is due by `until_ns`. Returns a message for the coordinator.
    fn step(&mut self, until_ns: u64) -> Option<Received> {
        let next = self.queue.peek().filter(|next| next.0.0 <= until_ns).map(|next| next.0.0);
        let Some(at_ns) = next else {
            self.now_ns = self.now_ns.max(until_ns);
            return None;
        };
        self.now_ns = self.now_ns.max(at_ns);
        let Reverse((_, _, what)) = self.queue.pop().unwrap();
        match what {
            What::ToCoordinator(bytes) => return Some(Received { at_ns: self.now_ns, bytes }),
            What::ToAgent(i, bytes) => self.tell(i, Event::Message(&bytes)),
            What::Timer(i) => self.tell(i, Event::Time),
            What::Opened(i, test) => {
                self.tell(i, Event::Opened(test, Ok(Opened { fingerprint: "work".into(), ..Opened::default() })))
            }
            What::Progress(i, test) => {
                let host = &self.hosts[i];
                if host.loads.is_some() && host.window.is_none() && host.opened == Some(test) {
                    let progress = Progress { test, started: 64, ended: 0, completed: self.now_ns };
                    self.tell(i, Event::Progress(progress));
                    self.at(self.now_ns + 100 * MS, What::Progress(i, test));
                }
            }
            What::Closed(i, test) => self.tell(i, Event::Closed(test)),
            What::Ended(i, test) => {
                let host = &mut self.hosts[i];
                if host.loads.take().is_some() {
                    host.ended_ns = self.now_ns;
                }
                self.tell(i, Event::Ended(test, vec![format!("{i},"), "end".into()]));
            }
            What::Beat => {
                if let Some(run) = self.run.clone().filter(|_| self.beats) {
                    let beat = Message::new(&run, 0, "", Order::Beat).bytes();
                    for i in 0..self.hosts.len() {
                        self.deliver(i, beat.clone());
                    }
                    self.at(self.now_ns + BEAT_NS, What::Beat);
                }
            }
        }
        None
    }

    fn deliver(&mut self, i: usize, bytes: Vec<u8>) {
        if !self.cut_off(i) {
            let delay = self.delay(self.hosts[i].legs[0]);
            self.at(self.now_ns + delay, What::ToAgent(i, bytes));
        }
    }

    /// An event happens to an agent, which acts.
    fn tell(&mut self, i: usize, event: Event<'_>) {
        let now = self.now_ns;
        match self.hosts[i].fault {
            Some((from, Fault::Dies)) if now >= from => {
                let host = &mut self.hosts[i];
                if host.loads.take().is_some() {
                    host.ended_ns = from;
                }
                return;
            }
            // What it misses while it hangs is lost here; a real one would get it late.
            Some((from, Fault::Hangs(to))) if (from..to).contains(&now) => {
                self.at(to, What::Timer(i));
                return;
            }
            _ => {}
        }
        let clock = self.hosts[i].clock;
        let actions = self.hosts[i].agent.on(clock.at(now), event);
        for action in actions {
            self.act(i, clock, action);
        }
        if let Some(due) = self.hosts[i].agent.due_ns() {
            self.at(clock.truth(due) + 1, What::Timer(i));
        }
    }

    fn act(&mut self, i: usize, clock: Clock, action: Action) {
        let now = self.now_ns;
        match action {
            Action::Say(_) => {}
            Action::Send(message) => {
                self.sent_ns.push(now);
                if !self.cut_off(i) {
                    let delay = self.delay(self.hosts[i].legs[1]);
                    self.at(now + delay, What::ToCoordinator(message.bytes()));
                }
            }
            Action::Open(order) => {
                self.hosts[i].file = order.file.map(|file| file.text);
                self.hosts[i].opened = Some(order.test);
                self.hosts[i].window = None;
                let takes = self.random.below(200 * MS);
                self.at(now + takes, What::Opened(i, order.test));
            }
            Action::Start(start_ns, _) => {
                let test = self.hosts[i].opened.unwrap();
                self.hosts[i].loads = Some(clock.truth(start_ns));
                self.at(clock.truth(start_ns) + 3 * MS, What::Progress(i, test));
            }
            Action::Window(open_ns, close_ns) => {
                let test = self.hosts[i].opened.unwrap();
                self.hosts[i].window = Some((open_ns, close_ns));
                self.at(clock.truth(close_ns) + 2 * MS, What::Closed(i, test));
            }
            Action::End { urgent } => {
                self.hosts[i].urgent |= urgent;
                let test = self.hosts[i].opened.unwrap();
                self.at(now + 5 * MS, What::Ended(i, test));
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
        let to: Vec<usize> = match agent {
            None => (0..self.hosts.len()).collect(),
            Some(id) => vec![id.strip_prefix("id").unwrap().parse().unwrap()],
        };
        for i in to {
            self.deliver(i, order.bytes());
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

    fn part_bytes(&self) -> usize {
        100
    }

    fn beat(&mut self, run: Option<&str>) {
        self.run = run.map(str::to_owned);
        self.at(self.now_ns, What::Beat);
    }

    fn trouble(&self, since_ns: u64) -> Option<String> {
        let away = self.now_ns >= self.away.0 && self.away.1 > since_ns.min(self.now_ns);
        away.then(|| "no hub".to_owned())
    }

    fn interrupted(&self) -> bool {
        false
    }
}

/// A workload file of several messages.
fn text() -> String {
    (0..99u64).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect()
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

fn test(c: &mut Coordinator<World>, number: u64, jobs: u32, window_s: u64) -> Result<Outcome, AgentsError> {
    let mut order = JobsOrder::of_jobs(jobs);
    // A thousand agents get none: it is the time of the test.
    order.file = (jobs < 1000).then(|| WorkloadFile { name: "mine.toml".into(), text: text() });
    let file = order.file.as_ref().map(|file| file.text.clone());
    let mut test = Test::open(c, number, &order, &|_| "work".to_owned())?;
    let start_ns = c.link.now_ns + START_LEAD_NS;
    test.start(c, start_ns, window_s * S);
    c.pump(start_ns + 300 * MS);
    let open_ns = c.link.now_ns + WINDOW_LEAD_NS;
    let close_ns = open_ns + window_s * S;
    test.window(c, open_ns, close_ns);
    c.pump(close_ns);
    let deadline = close_ns + S;
    while !test.closed(c) && c.link.now_ns < deadline {
        c.pump((c.link.now_ns + 10 * MS).min(deadline));
    }
    let counted = test.stop(c, window_s * S);
    let mut skew_ns = 0;
    let (mut truly_off_ns, mut jobs) = (0, 0);
    for of in counted.iter().filter(|of| of.bytes.is_some()) {
        assert_eq!(of.bytes.as_deref().unwrap(), format!("{},end", of.agent).as_bytes(), "all parts, in order");
        let host = &c.link.hosts[of.agent];
        assert_eq!(host.file, file, "the file came whole");
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
        let faulty = pick(12) as usize;
        let lasts = S / 2 + pick(20 * S);
        let fault = match pick(5) {
            0 => Some(Fault::Dies),
            1 => Some(Fault::Hangs(fault_at + lasts)),
            2 => Some(Fault::CutOff(fault_at + lasts)),
            3 => {
                c.link.away = (fault_at, fault_at + lasts);
                None
            }
            _ => None,
        };
        c.link.hosts[faulty].fault = fault.map(|fault| (fault_at, fault));
        for number in 1..=2 {
            let Ok(outcome) = test(&mut c, number, 100, 10) else {
                invalid += 1;
                // Whoever failed before the start is lost for the run, or the hub was away.
                continue;
            };
            let said = format!("seed {seed} test {number}: {fault:?} {:?} {}", outcome.failed, outcome.skew_ns);
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
    for (fault, seed) in [(Fault::Dies, 1), (Fault::Hangs(u64::MAX), 2), (Fault::CutOff(u64::MAX), 3)] {
        let mut c = enlisted(World::new(20, seed));
        // In the window of the first test.
        c.link.hosts[13].fault = Some((c.link.now_ns + 6 * S, fault));
        let outcome = test(&mut c, 1, 40, 10).unwrap();
        let failed: Vec<usize> = outcome.failed.iter().map(|(i, _)| *i).collect();
        assert_eq!(failed, [13], "{fault:?} {:?}", outcome.failed);
        assert!(outcome.failed[0].1.contains("hangs, or is cut off"), "{:?}", outcome.failed);
        assert_eq!(outcome.jobs, 38, "what the others counted is there");
        // The next test is spread over those that are left.
        let outcome = test(&mut c, 2, 38, 10).unwrap();
        assert!(outcome.valid() && outcome.jobs == 38, "{:?}", outcome.failed);
        if matches!(fault, Fault::CutOff(_)) {
            let ran_until = c.link.hosts[13].ended_ns;
            assert!(c.link.hosts[13].loads.is_none() && c.link.hosts[13].urgent && ran_until > 0);
        }
    }
}

#[test]
fn nothing_loads_the_database_after_the_coordinator_is_gone() {
    for seed in 0..20 {
        let mut c = enlisted(World::new(100, seed));
        let order = JobsOrder::of_jobs(200);
        let mut test = Test::open(&mut c, 1, &order, &|_| "work".to_owned()).unwrap();
        let start_ns = c.link.now_ns + START_LEAD_NS;
        test.start(&mut c, start_ns, 60 * S);
        c.pump(start_ns + S);
        let open_ns = c.link.now_ns + WINDOW_LEAD_NS;
        test.window(&mut c, open_ns, open_ns + 60 * S);
        c.pump(open_ns + seed * S);
        assert!(c.link.hosts.iter().all(|h| h.loads.is_some()), "all load it, held by beats alone");
        let gone_ns = c.link.now_ns;
        c.link.beats = false;
        c.pump(gone_ns + 10 * S);
        for host in &c.link.hosts {
            assert!(host.loads.is_none() && host.urgent, "its jobs were ended");
            assert!(host.ended_ns <= gone_ns + 5 * S, "after {} ms", (host.ended_ns - gone_ns) / MS);
        }
    }
}

#[test]
fn who_cannot_be_used_is_named() {
    let refused = |change: &dyn Fn(&mut Vec<Presence>), asked: usize| {
        let mut all: Vec<Presence> = (0..3).map(presence).collect();
        change(&mut all);
        let mut world = World::new(0, 5);
        let template = World::new(all.len(), 5);
        world.hosts = template.hosts;
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
    let reach = |c: &mut Coordinator<World>| Test::reach(c, &JobsOrder::of_jobs(0)).err().map(|e| e.to_string());
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
    let open = Message::new("r9", 1, "", Order::Open(Box::new(JobsOrder::of_jobs(1))));
    let actions = agent.on(5, Event::Message(&open.bytes()));
    let refused = |action: &Action| matches!(action, Action::Send(m) if matches!(m.body, Answer::Refused { .. }));
    assert!(actions.len() == 1 && actions.iter().all(refused), "{actions:?}");
}
