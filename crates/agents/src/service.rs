//! `loadline agent`: waits at the hub for work, and does it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use loadline_database::machine::{boot_id, host_name};
use loadline_storage::now_ns;

use crate::agent::{Action, Agent, Event};
use crate::hub::{Hub, HubError, HubOptions};
use crate::jobs::{Jobs, JobsEvent, OpenTarget};
use crate::lease::CANCEL_AFTER_NS;
use crate::link::{Link, Received};
use crate::message::{Answer, Message, Order, PROTOCOL, Presence, TO_ALL, to_agent, to_run};
use crate::pack::part_bytes;

/// Longest wait for anything, so that a signal is noticed.
const LOOK_NS: u64 = 100_000_000;
/// How long another agent of the same name has to say so, ns.
const SAME_NAME_NS: u64 = 500_000_000;

/// Why an agent ends.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The hub.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// The name is taken.
    #[error("there is an agent with the name {name} already: process {process} on {host}; choose another --name")]
    SameName {
        /// The name.
        name: String,
        /// Its process.
        process: u32,
        /// Its machine.
        host: String,
    },
}

/// What comes to the agent's thread.
enum In {
    Heard(Received),
    Jobs(JobsEvent),
}

/// An id that nobody else has.
#[must_use]
pub fn new_id() -> String {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    read("/proc/sys/kernel/random/uuid").unwrap_or_else(|| format!("{}-{}", std::process::id(), now_ns()))
}

/// This process as an agent that runs at most `most_jobs`, and `most_sessions` on servers.
#[must_use]
pub fn presence(name: &str, version: &str, most_jobs: u32, most_sessions: u32) -> Presence {
    Presence {
        id: new_id(),
        name: name.to_owned(),
        version: version.to_owned(),
        protocol: PROTOCOL,
        host: host(),
        machine: boot_id(),
        process: std::process::id(),
        private: false,
        cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        most_jobs,
        most_sessions,
        starting: false,
        busy: None,
    }
}

/// Name of this machine.
#[must_use]
pub fn host() -> String {
    Some(host_name()).filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

/// Works until `interrupted`. `say` tells the user what happens.
///
/// # Errors
/// [`ServiceError`].
pub fn serve(
    options: &HubOptions,
    mut presence: Presence,
    interrupted: &Arc<AtomicBool>,
    say: &mut dyn FnMut(&str),
) -> Result<(), ServiceError> {
    let (inbox, events) = channel();
    let heard = inbox.clone();
    let subjects = vec![TO_ALL.to_owned(), to_agent(&presence.id), to_run(&presence.id)];
    let hub = Hub::connect(options, subjects, move |received| drop(heard.send(In::Heard(received))))?;
    presence.private = hub.private;
    alone(&hub, &presence, &events)?;
    say(&format!("agent {} waits for work at {} (nats-server {})", presence.name, redacted(options), hub.version));
    let mut agent = Agent::new(presence);
    let (mut jobs, mut troubles): (Option<Jobs>, u64) = (None, 0);
    let opened = OpenTarget::default();
    let mut run_over = Arc::new(AtomicBool::new(false));
    let mut ending_until_ns = None;
    loop {
        if interrupted.load(Ordering::Relaxed) && ending_until_ns.is_none() {
            if let Some(jobs) = jobs.as_ref().filter(|_| agent.run().is_some()) {
                jobs.end(true);
                ending_until_ns = Some(now_ns() + CANCEL_AFTER_NS);
            } else {
                return Ok(());
            }
        }
        let now = now_ns();
        if ending_until_ns.is_some_and(|until| now >= until) {
            return Ok(());
        }
        if hub.troubles() != troubles {
            troubles = hub.troubles();
            say(&hub.trouble(0).unwrap_or_default());
        }
        let due_ns = agent.due_ns().map_or(LOOK_NS, |due| due.saturating_sub(now).min(LOOK_NS));
        let event = events.recv_timeout(Duration::from_nanos(due_ns));
        let now = now_ns();
        let actions = match &event {
            // The time at which it came, not that at which this thread got to it.
            Ok(In::Heard(Received { at_ns, bytes })) => agent.on(*at_ns, Event::Message(bytes)),
            Ok(In::Jobs(JobsEvent::Opened(test, outcome))) => agent.on(now, Event::Opened(*test, outcome.clone())),
            Ok(In::Jobs(JobsEvent::Progress(progress))) => agent.on(now, Event::Progress(*progress)),
            Ok(In::Jobs(JobsEvent::Closed(test))) => agent.on(now, Event::Closed(*test)),
            Ok(In::Jobs(JobsEvent::Ended(test, parts))) => {
                jobs = None;
                if ending_until_ns.is_some() {
                    return Ok(());
                }
                agent.on(now, Event::Ended(*test, parts.clone()))
            }
            Err(_) => agent.on(now, Event::Time),
        };
        if agent.run().is_none() && jobs.is_none() {
            // The connections of a run end with it.
            opened.lock().unwrap_or_else(PoisonError::into_inner).take();
            run_over = Arc::default();
        }
        for action in actions {
            match action {
                Action::Send(message) => send(&hub, *message),
                Action::Say(text) => say(&text),
                Action::Open(order) => {
                    let (test, tell) = (order.test, inbox.clone());
                    let part_bytes = part_bytes(hub.most_bytes);
                    match Jobs::open(*order, part_bytes, &opened, &run_over, move |event| {
                        drop(tell.send(In::Jobs(event)))
                    }) {
                        Ok(of) => jobs = Some(of),
                        Err(e) => {
                            let why = (crate::message::Why::Work, format!("no thread can be started: {e}"));
                            let _ = inbox.send(In::Jobs(JobsEvent::Opened(test, Err(why))));
                        }
                    }
                }
                Action::Start(start_ns, window_ns) => jobs.iter().for_each(|jobs| jobs.start(start_ns, window_ns)),
                Action::Window(open_ns, close_ns) => jobs.iter().for_each(|jobs| jobs.set_window(open_ns, close_ns)),
                Action::End { urgent } => jobs.iter().for_each(|jobs| jobs.end(urgent)),
            }
        }
    }
}

fn redacted(options: &HubOptions) -> String {
    loadline_database::redact(&options.url)
}

fn send(hub: &Hub, mut message: Message<Answer>) {
    if let Answer::Pong { answered_ns, .. } = &mut message.body {
        *answered_ns = now_ns();
    }
    hub.publish(to_run(&message.run), message.bytes());
}

/// Refuses if another agent has this name. Of several that start at a time, the one with the smallest id stays: each answers the
/// others, and asks again halfway, so that it is heard by one that came after its first question.
fn alone(hub: &Hub, presence: &Presence, events: &Receiver<In>) -> Result<(), ServiceError> {
    let (begin_ns, mut asked) = (now_ns(), 0);
    let here = Presence { starting: true, ..presence.clone() };
    while now_ns() < begin_ns + SAME_NAME_NS {
        if now_ns() >= begin_ns + asked * SAME_NAME_NS / 2 {
            asked += 1;
            hub.publish(TO_ALL.to_owned(), Message::new(&presence.id, asked, "", Order::Roll).bytes());
        }
        let Ok(In::Heard(Received { bytes, .. })) = events.recv_timeout(Duration::from_nanos(LOOK_NS / 2)) else {
            continue;
        };
        if let Ok(Message { run, number, body: Order::Roll, .. }) = Message::<Order>::read(&bytes) {
            send(hub, Message::new(&run, number, &presence.id, Answer::Here(here.clone())));
        }
        let Ok(Message { body: Answer::Here(other), .. }) = Message::<Answer>::read(&bytes) else { continue };
        if other.name == presence.name && other.id != presence.id && (!other.starting || other.id < presence.id) {
            let Presence { name, process, host, .. } = other;
            return Err(ServiceError::SameName { name, process, host });
        }
    }
    Ok(())
}

/// The coordinator's side of the hub.
pub struct HubLink {
    hub: Hub,
    inbox: Receiver<Received>,
    interrupted: Arc<AtomicBool>,
}

impl HubLink {
    /// Connects, to hear what is said to `asker`.
    ///
    /// # Errors
    /// [`HubError`].
    pub fn connect(options: &HubOptions, asker: &str, interrupted: Arc<AtomicBool>) -> Result<HubLink, HubError> {
        let (heard, inbox) = channel();
        let hub = Hub::connect(options, vec![to_run(asker)], move |received| drop(heard.send(received)))?;
        Ok(HubLink { hub, inbox, interrupted })
    }

    /// Whether nobody between here and the hub can read what is said.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.hub.private
    }
}

impl Link for HubLink {
    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn send(&mut self, agent: Option<&str>, order: &Message<Order>) {
        let subject = agent.map_or_else(|| TO_ALL.to_owned(), to_agent);
        self.hub.publish(subject, order.bytes());
    }

    fn receive(&mut self, until_ns: u64) -> Option<Received> {
        let left_ns = until_ns.saturating_sub(now_ns());
        self.inbox.recv_timeout(Duration::from_nanos(left_ns.min(LOOK_NS))).ok()
    }

    fn part_bytes(&self) -> usize {
        part_bytes(self.hub.most_bytes)
    }

    fn beat(&mut self, run: Option<&str>) {
        self.hub.beat(run);
    }

    fn trouble(&self, since_ns: u64) -> Option<String> {
        self.hub.trouble(since_ns)
    }

    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
