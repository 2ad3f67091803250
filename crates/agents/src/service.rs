//! `loadline agent`: waits at the hub for work, and does it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use loadline_database::machine::{boot_id, host_name};
use loadline_storage::now_ns;

use crate::agent::{Action, Agent, CANCEL_AFTER_NS, Event, JobsEvent};
use crate::hub::{Hub, HubError, HubOptions};
use crate::jobs::{Jobs, OpenTarget};
use crate::link::LOOK_NS;
use crate::message::{
    Answer, Command, JobsOrder, Message, Order, PROTOCOL, Presence, Reader, Received, Refusal, TO_ALL, to_agent, to_run,
};

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
        cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        most_jobs,
        most_sessions,
        ..Presence::default()
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
    let subjects = [TO_ALL.to_owned(), to_agent(&presence.id), to_run(&presence.id)];
    let hub = Hub::connect(options, &subjects, move |received| drop(heard.send(In::Heard(received))))?;
    presence.private = hub.about.private;
    presence.starting = true;
    let mut agent = Agent::new(presence);
    check_name(&hub, &mut agent, &events)?;
    agent.presence.starting = false;
    let (name, url) = (&agent.presence.name, loadline_database::redact(&options.url));
    say(&format!("agent {name} waits for work at {url} (nats-server {})", hub.about.version));
    let mut service =
        Service { hub, inbox, agent, jobs: None, opened: OpenTarget::default(), run_over: Arc::default() };
    let (mut troubles, mut end_ns) = (0, None);
    loop {
        let now = now_ns();
        if interrupted.load(Ordering::Relaxed) && end_ns.is_none() {
            if service.jobs.is_none() || service.agent.run().is_none() {
                return Ok(());
            }
            service.command(Command::End { urgent: true });
            end_ns = Some(now + CANCEL_AFTER_NS);
        }
        if end_ns.is_some_and(|end_ns| now >= end_ns || service.jobs.is_none()) {
            return Ok(());
        }
        if service.hub.troubles() != troubles {
            troubles = service.hub.troubles();
            say(&service.hub.trouble(0).unwrap_or_default());
        }
        let due_ns = service.agent.due_ns().map_or(LOOK_NS, |due| due.saturating_sub(now).min(LOOK_NS));
        service.handle(events.recv_timeout(Duration::from_nanos(due_ns)).ok(), say);
    }
}

/// An agent, its hub and its jobs.
struct Service {
    hub: Hub,
    /// For what happens to the jobs.
    inbox: Sender<In>,
    agent: Agent,
    jobs: Option<Jobs>,
    opened: OpenTarget,
    /// Set once nothing of the run may wait any longer.
    run_over: Arc<AtomicBool>,
}

impl Service {
    fn handle(&mut self, event: Option<In>, say: &mut dyn FnMut(&str)) {
        let now = now_ns();
        let actions = match event {
            // The time at which it came, not that at which this thread got to it.
            Some(In::Heard(Received { at_ns, bytes })) => self.agent.on(at_ns, Event::Message(&bytes)),
            Some(In::Jobs(event)) => {
                if event.is_last() {
                    self.jobs = None;
                }
                self.agent.on(now, Event::Jobs(event))
            }
            None => self.agent.on(now, Event::Time),
        };
        if self.agent.run().is_none() && self.jobs.is_none() {
            // The connections of a run end with it.
            self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
            self.run_over = Arc::default();
        }
        for action in actions {
            match action {
                Action::Send(message) => send(&self.hub, *message),
                Action::Say(text) => say(&text),
                Action::Open(order) => self.open(*order),
                Action::Jobs(command) => self.command(command),
            }
        }
    }

    fn open(&mut self, order: JobsOrder) {
        let inbox = self.inbox.clone();
        let tell = move |event| drop(inbox.send(In::Jobs(event)));
        match Jobs::open(order, &self.opened, &self.run_over, tell) {
            Ok(jobs) => self.jobs = Some(jobs),
            Err(e) => {
                let why = Refusal::Work(format!("no thread can be started: {e}"));
                let _ = self.inbox.send(In::Jobs(JobsEvent::Opened(Err(why))));
            }
        }
    }

    fn command(&self, command: Command) {
        self.jobs.iter().for_each(|jobs| jobs.tell(command));
    }
}

fn send(hub: &Hub, mut message: Message<Answer>) {
    if let Answer::Pong { answered_ns, .. } = &mut message.body {
        *answered_ns = now_ns();
    }
    hub.publish(&to_run(&message.run), &message);
}

/// Refuses if another agent has this name. Of several that start at a time, the one with the smallest id stays: each answers the
/// others, and asks again halfway, so that it is heard by one that came after its first question.
fn check_name(hub: &Hub, agent: &mut Agent, events: &Receiver<In>) -> Result<(), ServiceError> {
    let (begin_ns, mut asked, mut reader) = (now_ns(), 0, Reader::default());
    let Presence { id, name, .. } = agent.presence.clone();
    while now_ns() < begin_ns + SAME_NAME_NS {
        if now_ns() >= begin_ns + asked * SAME_NAME_NS / 2 {
            asked += 1;
            hub.publish(TO_ALL, &Message::new(&id, asked, "", Order::Roll));
        }
        let heard = events.recv_timeout(Duration::from_nanos(LOOK_NS / 2));
        let Ok(In::Heard(Received { at_ns, bytes })) = heard else { continue };
        for action in agent.on(at_ns, Event::Message(&bytes)) {
            if let Action::Send(answer) = action {
                send(hub, *answer);
            }
        }
        let Some(Message { body: Answer::Here(other), .. }) = reader.read(&bytes) else { continue };
        if other.name == name && other.id != id && (!other.starting || other.id < id) {
            let Presence { process, host, .. } = other;
            return Err(ServiceError::SameName { name, process, host });
        }
    }
    Ok(())
}
