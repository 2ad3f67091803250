//! A thousand agents with wrong clocks, behind a hub that delays and loses messages, in simulated time. The coordinator, the
//! protocol and the agents are those of a run; only clock, hub and jobs are simulated. Everything follows from the seed.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use loadline_model::random::Random;

use crate::agent::{Action, Agent, BEAT_NS, Event, is_last};
use crate::coordinator::{AgentsError, Coordinator, MOST_SKEW_NS, described};
use crate::hub::Link;
use crate::message::{Answer, Command, JobsOrder, Message, Opened, Order, PROTOCOL, Presence, Received, Refusal};
use crate::test::LEAD_NS;

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const VERSION: &str = "1.2.3";
/// How long jobs take to end, if they are not cancelled, ns.
const END_NS: u64 = 3 * S;

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
    /// Usual time of a message to it and from it, ns.
    legs: [u64; 2],
    /// Nothing reaches it or comes from it; its jobs go on.
    cut_off: Range<u64>,
    /// It has ended, or hangs.
    dead: Range<u64>,
    /// Number of its last test, and the window of that on its own clock.
    test: u64,
    window: Option<(u64, u64)>,
    /// Whether its jobs load the database, and when it heard something last, on the true clock.
    loads: bool,
    heard_ns: u64,
}

type Happening = Box<dyn FnOnce(&mut World)>;

struct World {
    now_ns: u64,
    /// Coming events, by time and by the order in which they were found out.
    queue: BTreeMap<(u64, usize), Happening>,
    pushed: usize,
    inbox: VecDeque<Received>,
    random: Random,
    hosts: Vec<Host>,
    /// The run of which the coordinator says that it goes on.
    run: Option<String>,
    /// Share of messages that get lost, %.
    loss_pct: u64,
    /// When messages other than beats were sent.
    sent_ns: Vec<u64>,
}

fn presence(i: usize) -> Presence {
    Presence {
        id: i.to_string(),
        name: format!("a{i}"),
        version: VERSION.into(),
        protocol: PROTOCOL,
        host: format!("h{i}"),
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
            clock: Clock { ahead_ns: random.below(1 << 53), gains_ppm: random.below(400) as f64 / 10.0 - 20.0 },
            legs: [(); 2].map(|()| 50_000 + random.below(350_000)),
            cut_off: 0..0,
            dead: 0..0,
            test: 0,
            window: None,
            loads: false,
            heard_ns: 0,
        });
        let hosts = hosts.collect();
        let (now_ns, queue, inbox, sent_ns) = (1000 * S, BTreeMap::new(), VecDeque::new(), Vec::new());
        World { now_ns, queue, pushed: 0, inbox, random, hosts, run: None, loss_pct: 0, sent_ns }
    }

    fn at(&mut self, ns: u64, happening: impl FnOnce(&mut World) + 'static) {
        self.pushed += 1;
        self.queue.insert((ns.max(self.now_ns), self.pushed), Box::new(happening));
    }

    /// Sends a message to a host or from it (leg 0 or 1). A leg takes half its time or more, a few take very long.
    fn deliver(&mut self, i: usize, leg: usize, bytes: Vec<u8>) {
        let slow = if self.random.below(50) == 0 { 60 } else { 2 };
        let leg_ns = self.hosts[i].legs[leg];
        let at_ns = self.now_ns + leg_ns / 2 + self.random.below(leg_ns * slow) / 2;
        let lost = self.random.below(100) < self.loss_pct;
        if lost || self.hosts[i].cut_off.contains(&self.now_ns) {
            return;
        }
        self.at(at_ns, move |world| {
            if leg == 1 {
                return world.inbox.push_back(Received { at_ns, bytes });
            }
            world.hosts[i].heard_ns = at_ns;
            world.tell(i, Event::Message(bytes));
        });
    }

    fn beats(&mut self) {
        let Some(run) = self.run.clone() else { return };
        let beat = Message::new(&run, 0, "", Order::Beat).bytes();
        (0..self.hosts.len()).for_each(|i| self.deliver(i, 0, beat.clone()));
        self.at(self.now_ns + BEAT_NS, World::beats);
    }

    /// The jobs of an agent's test will say something, unless another has begun by then.
    fn jobs(&mut self, i: usize, at_ns: u64, said: Answer) {
        let test = self.hosts[i].test;
        self.at(at_ns, move |world| {
            let host = &mut world.hosts[i];
            if is_last(&said) && host.loads {
                let hung = host.dead.start > 0 && at_ns >= host.dead.start;
                assert!(hung || at_ns <= host.heard_ns + 5 * S, "jobs go on without the coordinator");
                host.loads = false;
            }
            if host.test == test {
                world.tell(i, Event::Jobs(said));
            }
        });
    }

    /// An event happens to an agent, which acts. What it misses while it hangs is lost here; a real one would get it late.
    fn tell(&mut self, i: usize, event: Event) {
        let (now, host) = (self.now_ns, &mut self.hosts[i]);
        let clock = host.clock;
        if host.dead.contains(&now) {
            let until_ns = host.dead.end;
            return self.at(until_ns, move |world| world.tell(i, Event::Time));
        }
        for action in host.agent.on(clock.at(now), event) {
            self.act(i, action);
        }
        if let Some(due) = self.hosts[i].agent.due_ns() {
            self.at(clock.truth(due) + 1, move |world| world.tell(i, Event::Time));
        }
    }

    fn act(&mut self, i: usize, action: Action) {
        let (now, host) = (self.now_ns, &mut self.hosts[i]);
        match action {
            Action::Say(_) => {}
            Action::Send(message) => {
                self.sent_ns.push(now);
                self.deliver(i, 1, message.bytes());
            }
            Action::Open(order) => {
                (host.test, host.window) = (order.test, None);
                let at_ns = now + self.random.below(200 * MS);
                let opened = Opened { fingerprint: "work".into(), ..Opened::default() };
                self.jobs(i, at_ns, Answer::Opened(opened));
                if order.jobs.is_empty() {
                    self.jobs(i, at_ns, Answer::Counts(String::new()));
                }
            }
            Action::Jobs(Command::Start { .. }) => host.loads = true,
            Action::Jobs(Command::Window { open_ns, close_ns }) => {
                host.window = Some((open_ns, close_ns));
                let (test, at_ns) = (host.test, host.clock.truth(close_ns) + 2 * MS);
                self.jobs(i, at_ns, Answer::Closed(test));
            }
            Action::Jobs(Command::End { urgent }) => {
                let takes_ns = if urgent { 5 * MS } else { END_NS };
                self.jobs(i, now + takes_ns, Answer::Counts(counts(i)));
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
            self.deliver(i, 0, order.bytes());
        }
    }

    fn receive(&mut self, until_ns: u64) -> Option<Received> {
        while self.inbox.is_empty() && self.queue.first_key_value().is_some_and(|((at_ns, _), _)| *at_ns <= until_ns) {
            let ((at_ns, _), happening) = self.queue.pop_first()?;
            self.now_ns = at_ns;
            happening(self);
        }
        if self.inbox.is_empty() {
            self.now_ns = self.now_ns.max(until_ns);
        }
        self.inbox.pop_front()
    }

    fn beat(&mut self, run: Option<&str>) {
        self.run = run.map(str::to_owned);
        self.beats();
    }
}

/// Counts of an agent's jobs: more than one answer holds.
fn counts(agent: usize) -> String {
    (0..500).map(|n| format!("{:x}", (agent as u64 + n).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect()
}

struct Outcome {
    failed: Vec<usize>,
    /// Bound of the difference between the clocks in the window, of the agents that counted, ns.
    skew_ns: u64,
    /// Largest true difference between the common window and that of an agent that counted, ns.
    truly_off_ns: u64,
    jobs: usize,
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

/// Opens and starts a test. Returns its window.
fn begin(c: &mut Coordinator<World>, jobs: u32, window_s: u64) -> Result<Range<u64>, AgentsError> {
    c.open(&jobs_of(jobs), &|_| "work".to_owned())?;
    let start_ns = c.link.now_ns + LEAD_NS;
    c.command(Command::Start { start_ns, window_ns: window_s * S });
    c.pump(start_ns + 300 * MS);
    let open_ns = c.link.now_ns + LEAD_NS;
    let close_ns = open_ns + window_s * S;
    c.command(Command::Window { open_ns, close_ns });
    Ok(open_ns..close_ns)
}

fn test(c: &mut Coordinator<World>, jobs: u32, window_s: u64) -> Result<Outcome, AgentsError> {
    let window = begin(c, jobs, window_s)?;
    c.pump(window.end);
    let deadline = window.end + S;
    while !c.closed() && c.link.now_ns < deadline {
        c.pump((c.link.now_ns + 10 * MS).min(deadline));
    }
    c.stop(window_s * S);
    let (mut skew_ns, mut truly_off_ns, mut jobs) = (0, 0, 0);
    for (i, member) in c.members.iter().enumerate() {
        if member.part.failed.is_some() {
            continue;
        }
        assert_eq!(member.part.counts, counts(i), "all parts, in order");
        let host = &c.link.hosts[i];
        let (open, close) = host.window.unwrap();
        let off = |local, truth: u64| host.clock.truth(local).abs_diff(truth);
        truly_off_ns = truly_off_ns.max(off(open, window.start)).max(off(close, window.end));
        skew_ns = skew_ns.max(member.part.skew_ns.unwrap());
        jobs += member.part.jobs.len();
    }
    // A message on its way at the window start was sent before it.
    let in_window = c.link.sent_ns.iter().filter(|at| window.contains(at)).count();
    Ok(Outcome { failed: c.which(|m| m.part.failed.is_some()), skew_ns, truly_off_ns, jobs, in_window })
}

fn enlisted(world: World) -> Coordinator<World> {
    let agents = world.hosts.len();
    Coordinator::enlist(world, "r1", VERSION, agents, 5 * S).unwrap()
}

#[test]
fn the_window_of_a_thousand_agents_is_common() {
    let mut c = enlisted(World::new(1000, 1));
    for jobs in 4001..=4003 {
        let outcome = test(&mut c, jobs, 20).unwrap();
        assert!(outcome.valid(), "{:?} {}", outcome.failed, outcome.skew_ns);
        assert!(outcome.truly_off_ns <= outcome.skew_ns, "{} {}", outcome.truly_off_ns, outcome.skew_ns);
        assert!(outcome.truly_off_ns > 0, "the clocks do differ");
        assert_eq!((outcome.jobs, outcome.in_window), (jobs as usize, 0), "no message in the window");
    }
}

#[test]
fn a_common_window_or_an_invalid_test_under_every_fault() {
    let (mut valid, mut invalid, mut named) = (0, 0, 0);
    for seed in 0..250 {
        let mut world = World::new(12, seed);
        let mut random = Random::new(seed + 7777);
        let mut pick = |n: u64| random.below(n);
        // Clocks that drift so much that a window of 10 s is not common.
        let wild = (pick(3) == 0).then(|| pick(12) as usize);
        if let Some(i) = wild {
            world.hosts[i].clock.gains_ppm = 900.0;
        }
        world.loss_pct = if pick(3) == 0 { 5 } else { 0 };
        let mut c = enlisted(world);
        let fault_at = c.link.now_ns + pick(15 * S);
        let (faulty, fault) = (pick(12) as usize, fault_at..fault_at + S / 2 + pick(20 * S));
        let kind = pick(5);
        let hosts = &mut c.link.hosts;
        match kind {
            0 => hosts[faulty].dead = fault_at..u64::MAX,
            1 => hosts[faulty].dead = fault,
            2 => hosts[faulty].cut_off = fault,
            // The hub is away.
            3 => hosts.iter_mut().for_each(|host| host.cut_off = fault.clone()),
            _ => {}
        }
        for number in 1..=2 {
            if c.members.iter().any(|member| member.lost) {
                break;
            }
            let Ok(outcome) = test(&mut c, 100, 10) else {
                invalid += 1;
                continue;
            };
            let said = format!("seed {seed} test {number}: fault {kind} {:?} {}", outcome.failed, outcome.skew_ns);
            if c.link.loss_pct == 0 && kind < 3 && !outcome.failed.is_empty() {
                named += 1;
                assert_eq!(outcome.failed, [faulty], "{said}");
                assert!((91..=92).contains(&outcome.jobs), "{said}: what the others counted is there");
            }
            if !outcome.valid() {
                invalid += 1;
                continue;
            }
            valid += 1;
            assert!(outcome.truly_off_ns <= outcome.skew_ns && outcome.truly_off_ns <= MOST_SKEW_NS, "{said}");
            assert_eq!(outcome.jobs, 100, "{said}");
            assert!(wild.is_none(), "{said}: 900 ppm are 9 ms in 10 s");
        }
    }
    assert!(valid > 60 && invalid > 60 && named > 20, "{valid} {invalid} {named}: all must be tried");
}

#[test]
fn nothing_loads_the_database_after_the_coordinator_is_gone() {
    for seed in 0..20 {
        let mut c = enlisted(World::new(100, seed));
        let window = begin(&mut c, 200, 60).unwrap();
        c.pump(window.start + seed * S);
        assert!(c.link.hosts.iter().all(|h| h.loads), "all load it, held by beats alone");
        c.link.run = None;
        c.pump(c.link.now_ns + 5 * S);
        assert!(c.link.hosts.iter().all(|h| !h.loads), "their jobs were ended");
    }
}

#[test]
fn who_cannot_be_used_is_named() {
    let enlist = |change: &dyn Fn(&mut Presence), asked: usize| {
        let mut world = World::new(3, 5);
        change(&mut world.hosts[1].agent.presence);
        Coordinator::enlist(world, "r1", VERSION, asked, 2 * S).err()
    };
    let few = |asked, free, one: &str| {
        let there = ["a0 on h0", one, "a2 on h2"].map(str::to_owned).into();
        Some(AgentsError::Few { asked, free, there })
    };
    assert_eq!(enlist(&|_| (), 3), None);
    assert_eq!(enlist(&|_| (), 5), few(5, 3, "a1 on h1"));
    let older = "a1 on h1 (has version 1.2.2 of loadline, not 1.2.3)";
    assert_eq!(enlist(&|one| one.version = "1.2.2".into(), 3), few(3, 2, older));
    assert_eq!(enlist(&|one| one.version = "1.2.2".into(), 2), None, "the others are enough");
    assert!(enlist(&|one| one.protocol = 4, 3).is_some());
    let twice = enlist(&|one| one.name = "a0".into(), 2);
    assert!(matches!(twice, Some(AgentsError::SameName { name, who }) if name == "a0" && who.len() == 2));
}

#[test]
fn an_agent_whose_window_can_never_be_common_is_refused_before_the_first_test() {
    let mut c = enlisted(World::new(4, 3));
    assert_eq!(c.reach(&jobs_of(0)), Ok(()));
    // No leg takes less than half of this.
    c.link.hosts[2].legs = [6 * MS; 2];
    assert!(c.reach(&jobs_of(0)).is_err());
    assert_eq!(c.which(|member| member.part.failed.is_some()), [2]);
}

#[test]
fn an_agent_of_one_run_takes_no_orders_of_another() {
    let mut c = enlisted(World::new(4, 9));
    let mut world = World::new(0, 9);
    std::mem::swap(&mut world.hosts, &mut c.link.hosts);
    let there = c.members.iter().map(|m| format!("{} (works for run r1)", described(&m.presence))).collect();
    let busy = Coordinator::enlist(world, "r2", VERSION, 2, S).err();
    assert_eq!(busy, Some(AgentsError::Few { asked: 2, free: 0, there }));
    // Nor does it open sessions for whoever has not enlisted it.
    let mut agent = Agent::new(presence(0));
    let open = Message::new("r9", 1, "", Order::Open(Box::new(jobs_of(1))));
    let refused = Message::new("r9", 1, "0", Answer::Refused(Refusal::NotEnlisted));
    let actions = agent.on(5, Event::Message(open.bytes()));
    assert_eq!(actions, [Action::Send(Box::new(refused))]);
}
