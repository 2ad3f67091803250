//! `loadline agent`: waits at the hub for work, and does it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use loadline_database::machine::{boot_id, host_name};
use loadline_storage::now_ns;

use crate::agent::{Action, Agent, CANCEL_AFTER_NS, Event, is_last};
use crate::coordinator::AgentsError;
use crate::hub::{Hub, HubOptions, LOOK_NS};
use crate::jobs::{OpenTarget, open};
use crate::message::{
    Answer, Command, JobsOrder, Message, PROTOCOL, Presence, Received, Refusal, TO_ALL, to_agent, to_run,
};

/// An id that nobody else has.
pub fn new_id() -> String {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    read("/proc/sys/kernel/random/uuid").unwrap_or_else(|| format!("{}-{}", std::process::id(), now_ns()))
}

/// This process as an agent that runs at most `most_jobs`, and `most_sessions` on servers.
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

pub fn host() -> String {
    Some(host_name()).filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

/// Works until `interrupted`. `say` tells the user what happens.
pub fn serve(
    options: &HubOptions,
    mut presence: Presence,
    interrupted: &Arc<AtomicBool>,
    say: &mut dyn FnMut(&str),
) -> Result<(), AgentsError> {
    let (inbox, events) = channel();
    let heard = inbox.clone();
    let subjects = [TO_ALL.to_owned(), to_agent(&presence.id)];
    let hear = move |Received { at_ns, bytes }| drop(heard.send((at_ns, Event::Message(bytes))));
    let hub = Hub::connect(options, &subjects, hear)?;
    presence.private = hub.private;
    let url = loadline_database::redact(&options.url);
    say(&format!("agent {} waits for work at {url}", presence.name));
    let agent = Agent::new(presence);
    let mut service =
        Service { hub, inbox, agent, jobs: None, opened: OpenTarget::default(), run_over: Arc::default() };
    let mut end_ns = None;
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
        let due_ns = service.agent.due_ns().map_or(LOOK_NS, |due| due.saturating_sub(now).min(LOOK_NS));
        let event = events.recv_timeout(Duration::from_nanos(due_ns));
        let (at_ns, event) = event.unwrap_or_else(|_| (now_ns(), Event::Time));
        service.handle(at_ns, event, say);
    }
}

struct Service {
    hub: Hub,
    /// For what happens to the jobs, and when.
    inbox: Sender<(u64, Event)>,
    agent: Agent,
    jobs: Option<Sender<Command>>,
    opened: OpenTarget,
    /// Set once nothing of the run may wait any longer.
    run_over: Arc<AtomicBool>,
}

impl Service {
    /// Handles what came at `at_ns`, which may be before this thread got to it.
    fn handle(&mut self, at_ns: u64, event: Event, say: &mut dyn FnMut(&str)) {
        if matches!(&event, Event::Jobs(said) if is_last(said)) {
            self.jobs = None;
        }
        let actions = self.agent.on(at_ns, event);
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
        let tell = move |said| drop(inbox.send((now_ns(), Event::Jobs(said))));
        let refuse = tell.clone();
        match open(order, &self.opened, &self.run_over, tell) {
            Ok(jobs) => self.jobs = Some(jobs),
            Err(e) => refuse(Answer::Refused(Refusal::Work(format!("no thread can be started: {e}")))),
        }
    }

    fn command(&self, command: Command) {
        let Some(jobs) = &self.jobs else { return };
        if command == (Command::End { urgent: true }) {
            self.run_over.store(true, Ordering::Relaxed);
        }
        let _ = jobs.send(command);
    }
}

fn send(hub: &Hub, mut message: Message<Answer>) {
    if let Answer::Pong { answered_ns, .. } = &mut message.body {
        *answered_ns = now_ns();
    }
    hub.publish(&to_run(&message.run), &message);
}
