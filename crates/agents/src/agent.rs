//! An agent: orders, the time and what its jobs do go in, actions come out. No clock, no thread, no I/O, so that the simulation
//! drives what runs.
//!
//! The coordinator says once a second that the run goes on; it is the only message while a window is measured. An agent that misses
//! it for [`LEASE_NS`] ends its jobs, and cancels the sessions of those that have not ended [`CANCEL_AFTER_NS`] later. So nothing keeps
//! loading a database for 5 s after its run, its hub or its network is gone.

use crate::message::{Answer, Command, JobsOrder, Message, Order, Presence, Refusal};

/// Time between two beats of the coordinator, ns.
pub(crate) const BEAT_NS: u64 = 1_000_000_000;
/// Without a beat for this long an agent ends its jobs, ns.
pub(crate) const LEASE_NS: u64 = 2_500_000_000;
/// Then the sessions of jobs that have not ended after this long are cancelled, ns.
pub(crate) const CANCEL_AFTER_NS: u64 = 2_000_000_000;

const _: () = assert!(LEASE_NS + CANCEL_AFTER_NS < 5_000_000_000 && LEASE_NS > 2 * BEAT_NS);

#[derive(Debug)]
pub(crate) enum Event {
    Message(Vec<u8>),
    /// Answers of its jobs: `Opened` or `Refused`, then `Progress`, `Closed` and `Counts`.
    Jobs(Answer),
    Time,
}

/// Whether jobs that say so are gone.
pub(crate) fn is_last(said: &Answer) -> bool {
    matches!(said, Answer::Counts(_) | Answer::Refused(_))
}

#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    Send(Box<Message<Answer>>),
    Open(Box<JobsOrder>),
    Jobs(Command),
    Say(String),
}

/// Where the jobs are.
#[derive(Debug, PartialEq)]
enum Stage {
    /// There are none.
    Idle,
    Opening,
    Open,
    Running,
    Window,
    Ending,
    Ended(String),
}

#[derive(Debug)]
struct Enlisted {
    run: String,
    /// When the coordinator was heard last, ns.
    heard_ns: u64,
    /// Number of the last order.
    number: u64,
    /// The answer to it, in case it is repeated; `None`: it is under way.
    answer: Option<Answer>,
    stage: Stage,
}

#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) presence: Presence,
    work: Option<Enlisted>,
    /// The run that it left by itself, and why: [`Refusal::Left`].
    left: Option<(String, Refusal)>,
    /// Whether jobs that were told to end, of a run that it left, have not.
    ending: bool,
}

impl Agent {
    pub(crate) fn new(presence: Presence) -> Agent {
        Agent { presence, work: None, left: None, ending: false }
    }

    /// When [`Event::Time`] is due at the latest: the end of the lease, ns.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.work.as_ref().map(|work| work.heard_ns.saturating_add(LEASE_NS))
    }

    pub(crate) fn run(&self) -> Option<&str> {
        self.work.as_ref().map(|work| work.run.as_str())
    }

    /// Handles an event of the time `now_ns` on the agent's clock.
    pub(crate) fn on(&mut self, now_ns: u64, event: Event) -> Vec<Action> {
        let mut actions = self.end_of_lease(now_ns);
        actions.extend(match event {
            Event::Message(bytes) => Message::read(&bytes).map_or_else(Vec::new, |order| self.order(now_ns, order)),
            Event::Jobs(said) => self.jobs_said(said),
            Event::Time => Vec::new(),
        });
        actions
    }

    fn end_of_lease(&mut self, now_ns: u64) -> Vec<Action> {
        let over = self.due_ns().is_some_and(|due_ns| now_ns >= due_ns);
        let Some(Enlisted { run, heard_ns, stage, .. }) = self.work.take_if(|_| over) else { return Vec::new() };
        let why = Refusal::Left { run: run.clone(), silent_s: (now_ns - heard_ns) as f64 / 1e9 };
        let mut actions = self.end_jobs(&stage);
        let ended = if actions.is_empty() { "" } else { ": its jobs are ended" };
        actions.push(Action::Say(format!("{why}{ended}")));
        self.left = Some((run, why));
        actions
    }

    fn end_jobs(&mut self, stage: &Stage) -> Vec<Action> {
        if matches!(stage, Stage::Idle | Stage::Ended(_)) {
            return Vec::new();
        }
        self.ending = true;
        vec![Action::Jobs(Command::End { urgent: true })]
    }

    fn order(&mut self, now_ns: u64, Message { run, number, body, .. }: Message<Order>) -> Vec<Action> {
        let answer = match (body, self.work.as_mut()) {
            (Order::Roll, work) => {
                let busy = work.map(|work| work.run.clone());
                Answer::Here(Presence { busy, ..self.presence.clone() })
            }
            (order, Some(work)) if work.run == run => {
                work.heard_ns = work.heard_ns.max(now_ns);
                match order {
                    Order::Beat => return Vec::new(),
                    // Not kept as the last answer: a repeated one would tell old times.
                    Order::Ping => Answer::Pong { received_ns: now_ns, answered_ns: now_ns },
                    _ if number < work.number => return Vec::new(),
                    _ if number == work.number => work.answer.clone().unwrap_or(Answer::UnderWay),
                    order => {
                        (work.number, work.answer) = (number, None);
                        return self.own_order(now_ns, order);
                    }
                }
            }
            (Order::Beat, _) => return Vec::new(),
            (Order::Release, _) => Answer::Done,
            (_, Some(work)) => Answer::Refused(Refusal::Busy(work.run.clone())),
            (Order::Enlist, None) if self.ending => Answer::Refused(Refusal::Ending),
            (Order::Enlist, None) => {
                let (answer, stage) = (Some(Answer::Done), Stage::Idle);
                self.work = Some(Enlisted { run: run.clone(), heard_ns: now_ns, number, answer, stage });
                self.left = None;
                return vec![Action::Say(format!("works for run {run}")), self.send(&run, number, Answer::Done)];
            }
            (_, None) => {
                let left = self.left.as_ref().filter(|(left, _)| *left == run);
                Answer::Refused(left.map_or(Refusal::NotEnlisted, |(_, why)| why.clone()))
            }
        };
        vec![self.send(&run, number, answer)]
    }

    /// An order of the run that it works for.
    fn own_order(&mut self, now_ns: u64, order: Order) -> Vec<Action> {
        let Some(work) = &mut self.work else { return Vec::new() };
        let answer = match (order, &work.stage) {
            (Order::Enlist, _) => Answer::Done,
            (Order::Open(jobs), Stage::Idle | Stage::Ended(_)) => {
                work.stage = Stage::Opening;
                return vec![Action::Open(jobs)];
            }
            (Order::Jobs(Command::End { .. }), Stage::Ended(_)) => Answer::Done,
            (Order::Jobs(command), _) => return self.command(now_ns, command),
            (Order::Counts(from), Stage::Ended(counts)) => Answer::part_of(counts, from),
            (Order::Release, _) => {
                let done = self.answer(Answer::Done);
                let Some(Enlisted { run, stage, .. }) = self.work.take() else { return done };
                let mut actions = self.end_jobs(&stage);
                actions.push(Action::Say(format!("run {run} is over")));
                actions.extend(done);
                return actions;
            }
            _ => Answer::Refused(Refusal::Unfit),
        };
        self.answer(answer)
    }

    fn command(&mut self, now_ns: u64, command: Command) -> Vec<Action> {
        let Some(work) = &mut self.work else { return Vec::new() };
        let next = match (command, &work.stage) {
            (Command::Start { .. }, Stage::Open) => Stage::Running,
            (Command::Window { .. }, Stage::Running) => Stage::Window,
            (Command::End { .. }, Stage::Opening | Stage::Open | Stage::Running | Stage::Window) => Stage::Ending,
            _ => return self.answer(Answer::Refused(Refusal::Unfit)),
        };
        let due_ns = command.due_ns();
        if let Some(due_ns) = due_ns.filter(|due_ns| now_ns >= *due_ns) {
            return self.answer(Answer::Refused(Refusal::Late { by_ms: (now_ns - due_ns) / 1_000_000 }));
        }
        work.stage = next;
        let mut actions = vec![Action::Jobs(command)];
        if due_ns.is_some() {
            actions.extend(self.answer(Answer::Done));
        }
        actions
    }

    fn jobs_said(&mut self, said: Answer) -> Vec<Action> {
        if matches!(said, Answer::Progress { .. } | Answer::Closed(_)) {
            return self.run().map(|run| self.send(run, 0, said)).into_iter().collect();
        }
        let Some(work) = &mut self.work else {
            // Of a run that it left.
            self.ending &= !is_last(&said);
            return Vec::new();
        };
        let (stage, answer) = match (said, &work.stage) {
            (opened @ Answer::Opened(_), Stage::Opening) => (Stage::Open, opened),
            (refused @ Answer::Refused(_), Stage::Opening) => (Stage::Idle, refused),
            // It was told to end meanwhile: there is nothing to count.
            (Answer::Refused(_), Stage::Ending) => (Stage::Ended(String::new()), Answer::Done),
            (Answer::Counts(counts), Stage::Ending) => (Stage::Ended(counts), Answer::Done),
            (Answer::Counts(counts), _) => {
                // By themselves: all were lost. The coordinator will ask.
                work.stage = Stage::Ended(counts);
                return Vec::new();
            }
            _ => return Vec::new(),
        };
        work.stage = stage;
        self.answer(answer)
    }

    fn send(&self, run: &str, number: u64, answer: Answer) -> Action {
        Action::Send(Box::new(Message::new(run, number, &self.presence.id, answer)))
    }

    /// Answers the last order of the run. The answer is kept, in case the order is repeated.
    fn answer(&mut self, answer: Answer) -> Vec<Action> {
        let Some(work) = &mut self.work else { return Vec::new() };
        work.answer = Some(answer.clone());
        vec![Action::Send(Box::new(Message::new(&work.run, work.number, &self.presence.id, answer)))]
    }
}
