//! The agent as a state machine: orders, the time and what its jobs do go in, actions come out. No clock, no thread, no I/O, so
//! that the simulation drives what runs.

use crate::lease::Lease;
use crate::message::{Answer, JobsOrder, Message, MessageError, Opened, Order, Presence, Progress, Why};
use crate::pack::unpack;

/// What happens to an agent.
#[derive(Debug)]
pub enum Event<'a> {
    /// A message came.
    Message(&'a [u8]),
    /// The sessions of a test are open, or could not be opened.
    Opened(u64, Result<Opened, (Why, String)>),
    /// How far the jobs are, before the window is set.
    Progress(Progress),
    /// All jobs of a test have passed the window end.
    Closed(u64),
    /// The jobs of a test have ended. Holds what they counted, in parts.
    Ended(u64, Vec<String>),
    /// Time has passed.
    Time,
}

/// What an agent does.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Sends an answer.
    Send(Box<Message<Answer>>),
    /// Opens the sessions of these jobs.
    Open(Box<JobsOrder>),
    /// Starts the jobs at this time; the window has this length, ns.
    Start(u64, u64),
    /// Sets the window: its start and its end, ns.
    Window(u64, u64),
    /// Ends the jobs; sessions that are still busy after the time of a lease are cancelled if it is `urgent`.
    End {
        /// Whether nobody waits for what they counted.
        urgent: bool,
    },
    /// Tells the user.
    Say(String),
}

/// Where the jobs of a test are.
#[derive(Debug, Clone, PartialEq)]
enum Stage {
    /// Sessions are being opened, by the order of this number.
    Opening(u64),
    /// They are open.
    Open(Opened),
    Running,
    /// The window is set.
    Window,
    /// The jobs are being ended, by the order of this number.
    Ending(u64),
    /// They have ended and counted this.
    Ended(Vec<String>),
}

#[derive(Debug)]
struct Enlisted {
    run: String,
    lease: Lease,
    test: Option<(u64, Stage)>,
    /// The user's workload file for the next test, packed, as far as it has come.
    file: String,
    /// The last answer, in case its order is repeated.
    last: Option<Message<Answer>>,
}

/// An agent.
#[derive(Debug)]
pub struct Agent {
    presence: Presence,
    work: Option<Enlisted>,
    /// Why it left a run, if it did so by itself.
    left: Option<(String, String)>,
    /// Jobs that were told to end and have not, of a run that it left.
    ending: bool,
}

impl Agent {
    /// An agent that is free.
    #[must_use]
    pub fn new(presence: Presence) -> Agent {
        Agent { presence, work: None, left: None, ending: false }
    }

    /// When [`Event::Time`] is due at the latest, ns.
    #[must_use]
    pub fn due_ns(&self) -> Option<u64> {
        self.work.as_ref().map(|work| work.lease.ends_ns())
    }

    /// The run that it works for.
    #[must_use]
    pub fn run(&self) -> Option<&str> {
        self.work.as_ref().map(|work| work.run.as_str())
    }

    /// Handles an event of the time `now_ns` on the agent's clock.
    #[must_use]
    pub fn on(&mut self, now_ns: u64, event: Event<'_>) -> Vec<Action> {
        let mut actions = self.end_of_lease(now_ns);
        actions.extend(match event {
            Event::Message(bytes) => self.message(now_ns, bytes),
            Event::Opened(test, outcome) => self.opened(test, outcome),
            Event::Progress(progress) => self.unasked(progress.test, Answer::Progress(progress)),
            Event::Closed(test) => self.unasked(test, Answer::Closed(test)),
            Event::Ended(test, parts) => self.ended(test, parts),
            Event::Time => Vec::new(),
        });
        actions
    }

    fn end_of_lease(&mut self, now_ns: u64) -> Vec<Action> {
        let Some(work) = self.work.take_if(|work| work.lease.is_over(now_ns)) else { return Vec::new() };
        let silent = format!("nothing was heard of run {} for {:.1} s", work.run, work.lease.silent_s(now_ns));
        let mut actions = self.end_jobs(work.test, true);
        let ended = if actions.is_empty() { "" } else { ": its jobs are ended" };
        actions.push(Action::Say(format!("{silent}{ended}")));
        self.left = Some((work.run, silent));
        actions
    }

    /// Ends the jobs of a test that is left.
    fn end_jobs(&mut self, test: Option<(u64, Stage)>, urgent: bool) -> Vec<Action> {
        match test {
            Some((_, Stage::Ended(_))) | None => Vec::new(),
            Some(_) => {
                self.ending = true;
                vec![Action::End { urgent }]
            }
        }
    }

    fn message(&mut self, now_ns: u64, bytes: &[u8]) -> Vec<Action> {
        match Message::read(bytes) {
            Ok(order) => self.order(now_ns, order),
            // Whoever asks in another version gets to know that there is an agent of this one.
            Err(MessageError::Protocol { run, number, .. }) => vec![self.here(&run, number)],
            Err(MessageError::Other(_)) => Vec::new(),
        }
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
                vec![self.refusal(&run, number, Why::Busy, "it still ends the jobs of another run")]
            }
            (Order::Enlist, None) => {
                self.work = Some(Enlisted {
                    run: run.clone(),
                    lease: Lease::new(now_ns),
                    test: None,
                    file: String::new(),
                    last: None,
                });
                self.left = None;
                let say = Action::Say(format!("works for run {run}"));
                vec![say, self.answer(&run, number, Answer::Done)]
            }
            (order, Some(work)) if work.run == run => {
                work.lease.renew(now_ns);
                // Orders come one after the other: one of the same or of a smaller number is a repetition.
                match &work.last {
                    Some(last) if last.number == number => return vec![Action::Send(Box::new(last.clone()))],
                    Some(last) if last.number > number => return Vec::new(),
                    _ => {}
                }
                self.own_order(now_ns, number, order)
            }
            (Order::Release, _) => vec![self.answer(&run, number, Answer::Done)],
            (_, Some(work)) => {
                let text = format!("it works for run {}", work.run);
                vec![self.refusal(&run, number, Why::Busy, &text)]
            }
            (_, None) => {
                let why = self.left.as_ref().filter(|(left, _)| *left == run).map(|(_, why)| why.as_str());
                let text = why.unwrap_or("it does not work for this run: it was started anew").to_owned();
                vec![self.refusal(&run, number, Why::NotEnlisted, &text)]
            }
        }
    }

    /// An order of the run that it works for.
    fn own_order(&mut self, now_ns: u64, number: u64, order: Order) -> Vec<Action> {
        let Some(work) = &mut self.work else { return Vec::new() };
        let run = work.run.clone();
        let stage = |of: u64| work.test.as_ref().filter(|(test, _)| *test == of).map(|(_, stage)| stage.clone());
        let late = |at: u64| format!("the order came {:.0} ms too late", now_ns.saturating_sub(at) as f64 / 1e6);
        match order {
            Order::Ping => {
                // Not kept as the last answer: a repeated one would tell old times.
                let pong = Answer::Pong { received_ns: now_ns, answered_ns: now_ns };
                vec![Action::Send(Box::new(Message::new(&run, number, &self.presence.id, pong)))]
            }
            Order::File { part, text } => {
                if part == 0 {
                    work.file.clear();
                }
                work.file.push_str(&text);
                vec![self.answer(&run, number, Answer::Done)]
            }
            Order::Open(mut jobs) => match &work.test {
                Some((test, Stage::Opening(_))) if *test == jobs.test => {
                    work.test = Some((jobs.test, Stage::Opening(number)));
                    Vec::new()
                }
                Some((test, Stage::Open(opened))) if *test == jobs.test => {
                    let opened = Answer::Opened(opened.clone());
                    vec![self.answer(&run, number, opened)]
                }
                Some((_, Stage::Ended(_))) | None => {
                    if let Some(file) = &mut jobs.file {
                        match unpack(work.file.as_bytes()) {
                            Ok(text) => file.text = text,
                            Err(e) => {
                                let text = format!("the workload file {} did not come whole: {e}", file.name);
                                return vec![self.refuse(&run, number, Why::Work, &text)];
                            }
                        }
                    }
                    work.test = Some((jobs.test, Stage::Opening(number)));
                    vec![Action::Open(jobs)]
                }
                Some(_) => vec![self.refuse(&run, number, Why::Work, "the jobs of the test before have not ended")],
            },
            Order::Start { test, start_ns, window_ns } => match stage(test) {
                Some(Stage::Open(_)) if now_ns >= start_ns => {
                    vec![self.refuse(&run, number, Why::Late, &late(start_ns))]
                }
                Some(Stage::Open(_)) => {
                    work.test = Some((test, Stage::Running));
                    vec![Action::Start(start_ns, window_ns), self.answer(&run, number, Answer::Done)]
                }
                _ => vec![self.refuse(&run, number, Why::Work, "it has no open sessions of this test")],
            },
            Order::Window { test, open_ns, close_ns } => match stage(test) {
                Some(Stage::Running) if now_ns >= open_ns => {
                    vec![self.refuse(&run, number, Why::Late, &late(open_ns))]
                }
                Some(Stage::Running) => {
                    work.test = Some((test, Stage::Window));
                    vec![Action::Window(open_ns, close_ns), self.answer(&run, number, Answer::Done)]
                }
                _ => vec![self.refuse(&run, number, Why::Work, "its jobs do not run")],
            },
            Order::Stop { test } => match stage(test) {
                Some(Stage::Ending(_)) => {
                    work.test = Some((test, Stage::Ending(number)));
                    Vec::new()
                }
                Some(Stage::Ended(parts)) => vec![self.answer(&run, number, Answer::Ended(parts.len()))],
                Some(_) => {
                    work.test = Some((test, Stage::Ending(number)));
                    vec![Action::End { urgent: false }]
                }
                None => vec![self.refuse(&run, number, Why::Work, "it does not run this test")],
            },
            Order::Part { test, part } => {
                let found = match stage(test) {
                    Some(Stage::Ended(parts)) => parts.into_iter().nth(part),
                    _ => None,
                };
                vec![match found {
                    Some(part) => self.answer(&run, number, Answer::Part(part)),
                    None => self.refuse(&run, number, Why::Work, "it has no such part of what was counted"),
                }]
            }
            Order::Release => {
                let test = work.test.take();
                self.work = None;
                let mut actions = self.end_jobs(test, true);
                actions.push(Action::Say(format!("run {run} is over")));
                actions.push(Action::Send(Box::new(Message::new(&run, number, &self.presence.id, Answer::Done))));
                actions
            }
            Order::Enlist => vec![self.answer(&run, number, Answer::Done)],
            Order::Roll | Order::Beat => Vec::new(),
        }
    }

    fn opened(&mut self, test: u64, outcome: Result<Opened, (Why, String)>) -> Vec<Action> {
        let Some(work) = &mut self.work else {
            self.ending &= outcome.is_ok();
            return Vec::new();
        };
        let (run, stage) = match &work.test {
            Some((of, stage)) if *of == test => (work.run.clone(), stage.clone()),
            _ => return Vec::new(),
        };
        match (stage, outcome) {
            (Stage::Opening(number), Ok(opened)) => {
                work.test = Some((test, Stage::Open(opened.clone())));
                vec![self.answer(&run, number, Answer::Opened(opened))]
            }
            (Stage::Opening(number), Err((why, text))) => {
                work.test = None;
                vec![self.refuse(&run, number, why, &text)]
            }
            // It was told to end meanwhile: there is nothing to count.
            (Stage::Ending(number), Err(_)) => {
                work.test = Some((test, Stage::Ended(Vec::new())));
                vec![self.answer(&run, number, Answer::Ended(0))]
            }
            _ => Vec::new(),
        }
    }

    fn ended(&mut self, test: u64, parts: Vec<String>) -> Vec<Action> {
        self.ending = false;
        let Some(work) = &mut self.work else { return Vec::new() };
        let run = work.run.clone();
        match &work.test {
            Some((of, Stage::Ending(number))) if *of == test => {
                let (number, count) = (*number, parts.len());
                work.test = Some((test, Stage::Ended(parts)));
                vec![self.answer(&run, number, Answer::Ended(count))]
            }
            Some((of, _)) if *of == test => {
                // By themselves: all were lost. The coordinator will ask.
                work.test = Some((test, Stage::Ended(parts)));
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn unasked(&self, test: u64, answer: Answer) -> Vec<Action> {
        let Some(work) = self.work.as_ref().filter(|w| w.test.as_ref().is_some_and(|(of, _)| *of == test)) else {
            return Vec::new();
        };
        vec![Action::Send(Box::new(Message::new(&work.run, 0, &self.presence.id, answer)))]
    }

    fn here(&self, run: &str, number: u64) -> Action {
        let presence = Presence { busy: self.run().map(str::to_owned), ..self.presence.clone() };
        Action::Send(Box::new(Message::new(run, number, &self.presence.id, Answer::Here(presence))))
    }

    fn refusal(&self, run: &str, number: u64, why: Why, text: &str) -> Action {
        let answer = Answer::Refused { why, text: text.to_owned() };
        Action::Send(Box::new(Message::new(run, number, &self.presence.id, answer)))
    }

    /// A refusal that is kept, in case its order is repeated.
    fn refuse(&mut self, run: &str, number: u64, why: Why, text: &str) -> Action {
        self.answer(run, number, Answer::Refused { why, text: text.to_owned() })
    }

    fn answer(&mut self, run: &str, number: u64, answer: Answer) -> Action {
        let message = Message::new(run, number, &self.presence.id, answer);
        if let Some(work) = self.work.as_mut().filter(|work| work.run == run) {
            work.last = Some(message.clone());
        }
        Action::Send(Box::new(message))
    }
}
