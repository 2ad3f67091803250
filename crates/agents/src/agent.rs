//! An agent: orders, the time and what its jobs do go in, actions come out. No clock, no thread, no I/O, so that the simulation
//! drives what runs.

use crate::lease::Lease;
use crate::message::{
    Answer, Command, JobsOrder, Message, MessageError, Opened, Order, Presence, Progress, Reader, Why,
};

/// What happens to an agent.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// A piece of a message came.
    Message(&'a [u8]),
    /// Something happened to its jobs.
    Jobs(JobsEvent),
    /// Time has passed.
    Time,
}

/// What happens to jobs.
#[derive(Debug)]
pub(crate) enum JobsEvent {
    /// Their sessions are open, or could not be opened.
    Opened(Result<Opened, (Why, String)>),
    /// How far they are, until the window is set.
    Progress(Progress),
    /// All have passed the window end.
    Closed,
    /// They have ended, and counted this.
    Ended(String),
}

/// What an agent does.
#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    /// Sends an answer.
    Send(Box<Message<Answer>>),
    /// Opens the sessions of these jobs.
    Open(Box<JobsOrder>),
    /// Tells the jobs what they do next.
    Jobs(Command),
    /// Tells the user.
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
    /// The window is set.
    Window,
    Ending,
    /// They have ended and counted this.
    Ended(String),
}

#[derive(Debug)]
struct Enlisted {
    run: String,
    lease: Lease,
    /// Number of the last order.
    number: u64,
    /// The answer to it, in case it is repeated; `None`: it is under way.
    answer: Option<Answer>,
    /// Number of the last test.
    test: u64,
    stage: Stage,
}

/// An agent.
#[derive(Debug)]
pub(crate) struct Agent {
    presence: Presence,
    reader: Reader,
    work: Option<Enlisted>,
    /// Why it left a run, if it did so by itself.
    left: Option<(String, String)>,
    /// Jobs that were told to end and have not, of a run that it left.
    ending: bool,
}

impl Agent {
    /// An agent that is free.
    pub(crate) fn new(presence: Presence) -> Agent {
        Agent { presence, reader: Reader::default(), work: None, left: None, ending: false }
    }

    /// When [`Event::Time`] is due at the latest, ns.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.work.as_ref().map(|work| work.lease.ends_ns())
    }

    /// The run that it works for.
    pub(crate) fn run(&self) -> Option<&str> {
        self.work.as_ref().map(|work| work.run.as_str())
    }

    /// Handles an event of the time `now_ns` on the agent's clock.
    pub(crate) fn on(&mut self, now_ns: u64, event: Event<'_>) -> Vec<Action> {
        let mut actions = self.end_of_lease(now_ns);
        actions.extend(match event {
            Event::Message(piece) => match self.reader.read(piece) {
                Ok(Some(order)) => self.order(now_ns, order),
                // Whoever asks in another version gets to know that there is an agent of this one.
                Err(MessageError::Protocol(order)) => vec![self.here(&order.run, order.number)],
                Ok(None) | Err(MessageError::Other) => Vec::new(),
            },
            Event::Jobs(event) => self.jobs_event(event),
            Event::Time => Vec::new(),
        });
        actions
    }

    fn end_of_lease(&mut self, now_ns: u64) -> Vec<Action> {
        let Some(work) = self.work.take_if(|work| work.lease.is_over(now_ns)) else { return Vec::new() };
        let silent = format!("nothing was heard of run {} for {:.1} s", work.run, work.lease.silent_s(now_ns));
        let mut actions = self.end_jobs(&work.stage);
        let ended = if actions.is_empty() { "" } else { ": its jobs are ended" };
        actions.push(Action::Say(format!("{silent}{ended}")));
        self.left = Some((work.run, silent));
        actions
    }

    /// Ends the jobs of a run that is left.
    fn end_jobs(&mut self, stage: &Stage) -> Vec<Action> {
        if matches!(stage, Stage::Idle | Stage::Ended(_)) {
            return Vec::new();
        }
        self.ending = true;
        vec![Action::Jobs(Command::End { urgent: true })]
    }

    fn order(&mut self, now_ns: u64, order: Message<Order>) -> Vec<Action> {
        let Message { run, number, body, .. } = order;
        match (body, &mut self.work) {
            (Order::Roll, _) => vec![self.here(&run, number)],
            (Order::Beat, Some(work)) if work.run == run => {
                work.lease.renew(now_ns);
                Vec::new()
            }
            (Order::Beat, _) => Vec::new(),
            (Order::Enlist, None) if self.ending => {
                self.refuse(&run, number, Why::Busy, "it still ends the jobs of another run".to_owned())
            }
            (Order::Enlist, None) => {
                let (lease, answer, stage) = (Lease::new(now_ns), Some(Answer::Done), Stage::Idle);
                self.work = Some(Enlisted { run: run.clone(), lease, number, answer, test: 0, stage });
                self.left = None;
                vec![Action::Say(format!("works for run {run}")), self.send(&run, number, Answer::Done)]
            }
            (order, Some(work)) if work.run == run => {
                work.lease.renew(now_ns);
                if order == Order::Ping {
                    // Not kept as the last answer: a repeated one would tell old times.
                    return vec![self.send(&run, number, Answer::Pong { received_ns: now_ns, answered_ns: now_ns })];
                }
                if number > work.number {
                    (work.number, work.answer) = (number, None);
                    return self.own_order(now_ns, order);
                }
                if number < work.number {
                    return Vec::new();
                }
                let answer = work.answer.clone().unwrap_or(Answer::UnderWay);
                vec![self.send(&run, number, answer)]
            }
            (Order::Release, _) => vec![self.send(&run, number, Answer::Done)],
            (_, Some(work)) => {
                let text = format!("it works for run {}", work.run);
                self.refuse(&run, number, Why::Busy, text)
            }
            (_, None) => {
                let why = self.left.as_ref().filter(|(left, _)| *left == run).map(|(_, why)| why.clone());
                let text = why.unwrap_or_else(|| "it does not work for this run: it was started anew".to_owned());
                self.refuse(&run, number, Why::NotEnlisted, text)
            }
        }
    }

    /// An order of the run that it works for.
    fn own_order(&mut self, now_ns: u64, order: Order) -> Vec<Action> {
        let Some(work) = &mut self.work else { return Vec::new() };
        match (order, &work.stage) {
            (Order::Enlist, _) => self.answer(Answer::Done),
            (Order::Open(jobs), Stage::Idle | Stage::Ended(_)) => {
                (work.test, work.stage) = (jobs.test, Stage::Opening);
                vec![Action::Open(jobs)]
            }
            (Order::Jobs(command), _) => self.command(now_ns, command),
            (Order::Counts, Stage::Ended(counts)) => {
                let counts = Answer::Counts(counts.clone());
                self.answer(counts)
            }
            (Order::Release, _) => {
                let done = self.answer(Answer::Done);
                let Some(Enlisted { run, stage, .. }) = self.work.take() else { return done };
                let mut actions = self.end_jobs(&stage);
                actions.push(Action::Say(format!("run {run} is over")));
                actions.extend(done);
                actions
            }
            _ => self.unfit(),
        }
    }

    /// What its jobs do next.
    fn command(&mut self, now_ns: u64, command: Command) -> Vec<Action> {
        let Some(work) = &mut self.work else { return Vec::new() };
        let next = match (command, &work.stage) {
            (Command::Start { .. }, Stage::Open) => Stage::Running,
            (Command::Window { .. }, Stage::Running) => Stage::Window,
            (Command::End { .. }, Stage::Ended(_)) => return self.answer(Answer::Done),
            (Command::End { .. }, Stage::Opening | Stage::Open | Stage::Running | Stage::Window) => Stage::Ending,
            _ => return self.unfit(),
        };
        if let Some(due_ns) = command.due_ns().filter(|due_ns| now_ns >= *due_ns) {
            let late_ms = (now_ns - due_ns) as f64 / 1e6;
            return self.answer(Answer::Refused(Why::Late, format!("the order came {late_ms:.0} ms too late")));
        }
        work.stage = next;
        let mut actions = vec![Action::Jobs(command)];
        if command.due_ns().is_some() {
            actions.extend(self.answer(Answer::Done));
        }
        actions
    }

    fn jobs_event(&mut self, event: JobsEvent) -> Vec<Action> {
        let Some(work) = &mut self.work else {
            // Of a run that it left: the jobs are gone once they have ended, or if they never were.
            self.ending &= !matches!(event, JobsEvent::Ended(_) | JobsEvent::Opened(Err(_)));
            return Vec::new();
        };
        let test = work.test;
        let (stage, answer) = match (event, &work.stage) {
            (JobsEvent::Progress(progress), _) => return self.unasked(Answer::Progress { test, progress }),
            (JobsEvent::Closed, _) => return self.unasked(Answer::Closed(test)),
            (JobsEvent::Opened(Ok(opened)), Stage::Opening) => (Stage::Open, Answer::Opened(opened)),
            (JobsEvent::Opened(Err((why, text))), Stage::Opening) => (Stage::Idle, Answer::Refused(why, text)),
            // It was told to end meanwhile: there is nothing to count.
            (JobsEvent::Opened(Err(_)), Stage::Ending) => (Stage::Ended(String::new()), Answer::Done),
            (JobsEvent::Ended(counts), Stage::Ending) => (Stage::Ended(counts), Answer::Done),
            (JobsEvent::Ended(counts), _) => {
                // By themselves: all were lost. The coordinator will ask.
                work.stage = Stage::Ended(counts);
                return Vec::new();
            }
            (JobsEvent::Opened(_), _) => return Vec::new(),
        };
        work.stage = stage;
        self.answer(answer)
    }

    fn send(&self, run: &str, number: u64, answer: Answer) -> Action {
        Action::Send(Box::new(Message::new(run, number, &self.presence.id, answer)))
    }

    fn here(&self, run: &str, number: u64) -> Action {
        let presence = Presence { busy: self.run().map(str::to_owned), ..self.presence.clone() };
        self.send(run, number, Answer::Here(presence))
    }

    fn refuse(&self, run: &str, number: u64, why: Why, text: String) -> Vec<Action> {
        vec![self.send(run, number, Answer::Refused(why, text))]
    }

    fn unasked(&self, answer: Answer) -> Vec<Action> {
        self.run().map(|run| self.send(run, 0, answer)).into_iter().collect()
    }

    fn unfit(&mut self) -> Vec<Action> {
        self.answer(Answer::Refused(Why::Work, "the order does not fit where its jobs are".to_owned()))
    }

    /// Answers the last order of the run. The answer is kept, in case the order is repeated.
    fn answer(&mut self, answer: Answer) -> Vec<Action> {
        let Some(work) = &mut self.work else { return Vec::new() };
        work.answer = Some(answer.clone());
        vec![Action::Send(Box::new(Message::new(&work.run, work.number, &self.presence.id, answer)))]
    }
}
