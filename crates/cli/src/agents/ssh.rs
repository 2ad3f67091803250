//! `loadline agents ssh`: an agent on each of several hosts, by the system's OpenSSH, each with a tunnel back to the hub.

mod names;
mod remote;

use std::collections::BTreeMap;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use loadline_model::format::counted;
use sha2::{Digest, Sha256};

use super::hub::Hub;
use crate::exit::{self, Failure};
use crate::hub_args::{CA_VARIABLE, CREDS_VARIABLE, nkey, text_of};
use crate::{output, secrets, signals};
use remote::{Copied, Event, Handle, Shared};

/// Time for a host to answer.
const ANSWER: Duration = Duration::from_secs(30);
/// Time for agents to end before their connections are cut.
const END: Duration = Duration::from_secs(3);
/// Time for the hub to take a connection.
const HUB: Duration = Duration::from_secs(5);

/// `loadline agents ssh`.
#[derive(Debug, Args)]
pub(crate) struct SshArgs {
    /// Hosts as ssh knows them: host, user@host, ssh://user@host:port; the same host twice has two agents
    #[arg(required = true, value_name = "HOST", value_parser = names::host, value_hint = ValueHint::Hostname)]
    hosts: Vec<String>,
    /// Hub as this machine reaches it; the hosts reach it through their connection, so it may listen at 127.0.0.1 only
    #[arg(
        long,
        value_name = "URL",
        env = "LOADLINE_HUB",
        hide_env_values = true,
        default_value = "nats://127.0.0.1:4222"
    )]
    hub: String,
    /// Seed of an nkey that the hub knows; it travels to the hosts as the URL does [default: the environment variable
    /// LOADLINE_HUB_NKEY, which holds the seed itself]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    hub_nkey: Option<PathBuf>,
    /// Credentials of a user of the hub (.creds); they travel as well [default: the environment variable LOADLINE_HUB_CREDS, which
    /// holds the text itself]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    hub_creds: Option<PathBuf>,
    /// Certificates by which the hosts check the hub's, for 127.0.0.1 (PEM) [default: the environment variable LOADLINE_HUB_CA, which
    /// holds the text itself]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    hub_ca: Option<PathBuf>,
    /// Copy this program to ~/.cache/loadline/VERSION of each host, if there is another there
    #[arg(long, conflicts_with = "binary")]
    copy: bool,
    /// Program on the hosts
    #[arg(long, value_name = "PATH", default_value = "loadline", value_parser = program)]
    binary: String,
    /// Private key for ssh
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    identity: Option<PathBuf>,
    /// OpenSSH's client
    #[arg(long, value_name = "PROGRAM", default_value = "ssh", value_hint = ValueHint::ExecutablePath)]
    ssh: PathBuf,
}

/// A path in one line: it is passed as one.
fn program(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::is_control) {
        return Err(format!("'{}' is no path of a program", text.escape_debug()));
    }
    Ok(text.to_owned())
}

/// A host of the command.
struct Host {
    /// The agent's name.
    name: String,
    handle: Handle,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No answer yet.
    Called,
    /// The program is copied or started.
    Answered,
    Runs,
    /// Ended as it should.
    Ended,
    /// Ended with an error of its own.
    Failed,
    /// Not reached, not started or lost.
    Lost,
}

impl State {
    fn is_over(self) -> bool {
        matches!(self, State::Ended | State::Failed | State::Lost)
    }
}

/// Starts the agents and waits until they end, or Ctrl-C ends them.
pub(super) fn ssh(args: &SshArgs) -> Result<u8, Failure> {
    // From the environment it was not seen before.
    secrets::keep(std::iter::once(args.hub.as_str()));
    let hub: Hub = args.hub.parse().map_err(|e: String| Failure::usage(e))?;
    check_hub(&hub)?;
    let copy = args.copy.then(own_program).transpose()?;
    let shared = Arc::new(Shared {
        ssh: args.ssh.clone(),
        identity: args.identity.clone(),
        hub,
        secrets: [
            nkey(args.hub_nkey.as_deref())?,
            text_of("--hub-creds", args.hub_creds.as_deref(), CREDS_VARIABLE)?,
            text_of("--hub-ca", args.hub_ca.as_deref(), CA_VARIABLE)?,
        ]
        .map(|text| text.unwrap_or_default().trim().replace('\n', remote::NEW_LINE)),
        program: args.binary.clone(),
        copy,
    });
    let interrupted = Arc::new(AtomicBool::new(false));
    let left = "agents whose connection is not closed yet end by themselves".to_owned();
    signals::interruptible(&interrupted, left)?;
    let (sender, events) = channel();
    let mut hosts = Vec::new();
    for (n, (host, name)) in args.hosts.iter().zip(names::names(&args.hosts)).enumerate() {
        let sender = sender.clone();
        // If nobody listens any more, the command is about to end.
        let tell = move |event| drop(sender.send((n, event)));
        match remote::start(host, &name, &shared, tell) {
            Ok(handle) => hosts.push(Host { name, handle, state: State::Called }),
            Err(e) => {
                let ssh = args.ssh.display();
                end(&mut hosts, &events);
                return Err(Failure {
                    code: exit::TARGET,
                    message: format!(
                        "'{ssh}' cannot be run ({e}): apt-get install openssh-client, or name it with --ssh"
                    ),
                });
            }
        }
    }
    let code = watch(&mut hosts, &events, &interrupted);
    end(&mut hosts, &events);
    Ok(code)
}

/// Refuses a hub that is not there: the agents would only say so one by one.
fn check_hub(hub: &Hub) -> Result<(), Failure> {
    if hub.is_encrypted() && !matches!(hub.host.as_str(), "127.0.0.1" | "localhost" | "::1") {
        return Err(Failure::usage(format!(
            "the agents reach the hub at 127.0.0.1, the end of their tunnel, and would refuse the certificate of '{}': use nats://, \
             because ssh encrypts the way to the hosts, or run this on the hub's machine",
            hub.host
        )));
    }
    let reach = || -> std::io::Result<()> {
        let mut last = std::io::Error::other("the name has no address");
        for address in (hub.host.as_str(), hub.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, HUB) {
                Ok(_) => return Ok(()),
                Err(e) => last = e,
            }
        }
        Err(last)
    };
    reach().map_err(|e| Failure {
        code: exit::TARGET,
        message: format!("no hub answers at {hub}: {e}; start one with: nats-server -a 127.0.0.1 -p {}", hub.port),
    })
}

/// This program.
fn own_program() -> Result<Copied, Failure> {
    let read = || std::env::current_exe().and_then(std::fs::read);
    let bytes = read().map_err(|e| Failure::failed(format!("this program cannot be read: {e}")))?;
    let sum = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    Ok(Copied { bytes, sum })
}

/// Tells what happens, until all agents have ended, one cannot be started, or the user wants to stop. Returns the exit code.
fn watch(hosts: &mut [Host], events: &Receiver<(usize, Event)>, interrupted: &AtomicBool) -> u8 {
    let deadline = Instant::now() + ANSWER;
    let mut all_run = false;
    loop {
        if interrupted.load(Ordering::Relaxed) {
            output::say("interrupted: ending the agents");
            return exit::INTERRUPTED;
        }
        if Instant::now() > deadline {
            for host in hosts.iter_mut().filter(|h| h.state == State::Called) {
                output::say(&format!("{}: no answer within {} s", host.name, ANSWER.as_secs()));
                host.state = State::Lost;
            }
        }
        match events.recv_timeout(Duration::from_millis(50)) {
            Ok((n, event)) => take(hosts, n, event),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return exit::FAILED,
        }
        // All are waited for, so that one try names all that fail.
        if !all_run && hosts.iter().all(|h| h.state == State::Runs || h.state.is_over()) {
            if hosts.iter().any(|h| h.state == State::Lost) {
                output::say("not all agents could be started: ending those that were");
                return exit::TARGET;
            }
            all_run = true;
            let running = hosts.iter().filter(|h| h.state == State::Runs).count();
            output::say(&format!("{} running; Ctrl-C ends them", counted(running, "agent")));
        }
        if hosts.iter().all(|h| h.state.is_over()) {
            let worst = |state| hosts.iter().any(|h| h.state == state);
            return if worst(State::Lost) { exit::TARGET } else { u8::from(worst(State::Failed)) };
        }
    }
}

/// Notes and tells one event.
fn take(hosts: &mut [Host], n: usize, event: Event) {
    let running = hosts.iter().filter(|h| h.state == State::Runs).count();
    let Some(host) = hosts.get_mut(n) else { return };
    let was_running = host.state == State::Runs;
    let (state, text) = match event {
        Event::Answered => (State::Answered, None),
        Event::Started { port, copied } => {
            let copied = if copied { "; program copied" } else { "" };
            (State::Runs, Some(format!("agent started, hub at port {port} there{copied}")))
        }
        Event::Said(line) => (host.state, Some(line)),
        Event::Ended(0) => (State::Ended, Some("the agent has ended".to_owned())),
        Event::Ended(code) => (State::Failed, Some(format!("the agent ended with exit code {code}"))),
        Event::Failed(why) if was_running => {
            (State::Lost, Some(format!("{why}; {} left", counted(running - 1, "agent"))))
        }
        Event::Failed(why) => (State::Lost, Some(why)),
    };
    if !host.state.is_over() || state == host.state {
        host.state = state;
    }
    if let Some(text) = text {
        output::say(&format!("{}: {text}", host.name));
    }
}

/// Ends the agents that still run: by the end of their input, and after a while by that of their connection.
fn end(hosts: &mut [Host], events: &Receiver<(usize, Event)>) {
    for host in hosts.iter() {
        host.handle.end();
        // There is no agent yet that could end in order.
        if matches!(host.state, State::Called | State::Answered) {
            host.handle.kill();
        }
    }
    let deadline = Instant::now() + END;
    let mut open: BTreeMap<usize, &mut Host> =
        hosts.iter_mut().enumerate().filter(|(_, h)| !h.state.is_over()).collect();
    while !open.is_empty() {
        match events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((n, Event::Ended(_) | Event::Failed(_))) => drop(open.remove(&n)),
            Ok((n, Event::Said(line))) => {
                if let Some(host) = open.get(&n) {
                    output::say(&format!("{}: {line}", host.name));
                }
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    for host in open.values() {
        output::say(&format!("{}: does not end; its connection is cut", host.name));
    }
    hosts.iter().for_each(|h| h.handle.kill());
}
