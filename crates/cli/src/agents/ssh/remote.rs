//! One host: the connection, what is said over it, and why it failed.
//!
//! What runs there is a constant script (`remote.sh`). All that differs, secrets included, it reads from its standard input, so
//! nothing is in a command line, and nothing needs quoting. The script watches that input: when the connection or this process
//! ends, however it ends, the input ends, and the script ends the agent.
//!
//! | from here | from there |
//! | --- | --- |
//! | version | `loadline-host` system, machine, checksum of the copied program |
//! | size of what is copied, or 0; its checksum; the bytes | `loadline-copied` |
//! | agent's name; program, or an empty line for the copied one; the hub's URL, its nkey, credentials, certificates | `loadline-started` |
//! | | the agent's output; `loadline-ended` and its exit code |
//! | the end, to end the agent | |

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::super::hub::Hub;
use crate::hub_args::{HUB_VARIABLE, NKEY_VARIABLE};

/// The script, without single quotes: it is passed between such.
const SCRIPT: &str = include_str!("remote.sh");
/// A new line within a line that the script reads.
pub(super) const NEW_LINE: &str = "\x1e";
/// Time to connect; ssh's own for the network, ours for the rest of it.
const CONNECT: Duration = Duration::from_secs(10);
/// Time from the last answer of ssh to the tunnel's port.
const TUNNEL: Duration = Duration::from_secs(10);
/// Time for what was said last, once the connection has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// What ssh says when the tunnel stands.
const TUNNEL_STANDS: &str = "Allocated port ";

/// What all hosts share.
pub(super) struct Shared {
    pub(super) ssh: PathBuf,
    pub(super) identity: Option<PathBuf>,
    pub(super) hub: Hub,
    /// Seed of an nkey, credentials of a user and certificates for the hub, each in a line; empty without.
    pub(super) secrets: [String; 3],
    /// Program on the hosts.
    pub(super) program: String,
    pub(super) copy: Option<Copied>,
}

/// The program that is copied.
pub(super) struct Copied {
    pub(super) bytes: Vec<u8>,
    /// SHA-256, in hexadecimal digits.
    pub(super) sum: String,
}

/// What happens on a host.
#[derive(Debug)]
pub(super) enum Event {
    /// The host answers.
    Answered,
    /// Its agent runs: with the tunnel's port there, and whether the program was copied.
    Started { port: u16, copied: bool },
    /// A line of ssh or the agent.
    Said(String),
    /// The agent ended, with this exit code.
    Ended(i32),
    /// It could not be started, or the connection was lost.
    Failed(String),
}

/// A connection, for whoever wants to end it.
#[derive(Clone)]
pub(super) struct Handle {
    child: Arc<Mutex<Option<Child>>>,
    input: Sender<Input>,
}

enum Input {
    Line(String),
    /// The program that is copied.
    Program,
    End,
}

impl Handle {
    /// Ends the agent's input, and so the agent.
    pub(super) fn end(&self) {
        // A writer that has ended has closed the input already.
        let _ = self.input.send(Input::End);
    }

    /// Ends ssh.
    pub(super) fn kill(&self) {
        if let Some(child) = self.child().as_mut() {
            // It may have ended.
            let _ = child.kill();
        }
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, line: &str) {
        let _ = self.input.send(Input::Line(format!("{line}\n")));
    }

    /// Waits for ssh, which has closed its output. `None`: ended by a signal.
    fn code(&self) -> io::Result<Option<i32>> {
        loop {
            match self.child().as_mut().map(Child::try_wait).transpose()?.flatten() {
                Some(status) => return Ok(status.code()),
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

/// Starts an agent on `host` over a connection of its own. What happens is told to `tell`; [`Event::Ended`] or
/// [`Event::Failed`] is the last.
pub(super) fn start(
    host: &str,
    name: &str,
    shared: &Arc<Shared>,
    tell: impl Fn(Event) + Send + Sync + 'static,
) -> io::Result<Handle> {
    let mut command = Command::new(&shared.ssh);
    // No question on the terminal, no connection shared with another session, and a tunnel or nothing.
    for option in [
        "BatchMode=yes", "ExitOnForwardFailure=yes", "ControlMaster=no", "ControlPath=none", "LogLevel=INFO",
        "ServerAliveInterval=5", "ServerAliveCountMax=3",
    ] {
        command.args(["-o", option]);
    }
    command.arg("-o").arg(format!("ConnectTimeout={}", CONNECT.as_secs()));
    command.arg("-T").arg("-R").arg(format!("127.0.0.1:0:{}", shared.hub.place()));
    if let Some(identity) = &shared.identity {
        command.arg("-i").arg(identity);
    }
    command.args(["--", host]).arg(format!("exec sh -c '{}'", SCRIPT.replace('\n', " ")));
    command.env_remove(HUB_VARIABLE).env_remove(NKEY_VARIABLE);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Ctrl-C is for this process, which then ends the agents in order.
    command.process_group(0);
    let mut child = command.spawn()?;
    let none = || io::Error::other("ssh has no pipes");
    let (stdin, stdout, stderr) = (
        child.stdin.take().ok_or_else(none)?,
        child.stdout.take().ok_or_else(none)?,
        child.stderr.take().ok_or_else(none)?,
    );
    let (input, inputs) = channel();
    let handle = Handle { child: Arc::new(Mutex::new(Some(child))), input };
    let tell = Arc::new(tell);
    let (said, errors) = channel();
    let spawn = |what: &str, work: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new().name(what.to_owned()).spawn(work).map(drop)
    };
    let program = Arc::clone(shared);
    spawn("input", Box::new(move || write(stdin, &inputs, &program)))?;
    let runs = Arc::new(AtomicBool::new(false));
    let (teller, told) = (Arc::clone(&tell), Arc::clone(&runs));
    spawn("errors", Box::new(move || read_errors(stderr, &said, &told, &*teller)))?;
    let (host, name, shared) = (host.to_owned(), name.to_owned(), Arc::clone(shared));
    let connection = Connection { handle: handle.clone(), name, host, shared, runs };
    spawn(
        "output",
        Box::new(move || {
            let ended = connection.serve(BufReader::new(stdout), &errors, &*tell);
            // What was said last comes before the end: until its reader is done.
            let until = Instant::now() + LAST_WORDS;
            while errors.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
            tell(ended);
        }),
    )?;
    Ok(handle)
}

/// Writes what is sent, and closes the input at its end.
fn write(mut stdin: ChildStdin, inputs: &Receiver<Input>, shared: &Shared) {
    for input in inputs {
        let bytes = match &input {
            Input::Line(line) => line.as_bytes(),
            Input::Program => shared.copy.as_ref().map_or(&[][..], |program| &program.bytes),
            Input::End => return,
        };
        if stdin.write_all(bytes).is_err() {
            return;
        }
    }
}

/// A line of ssh's standard error.
enum Line {
    Port(u16),
    Other(String),
}

/// Reads ssh's messages, and then the agent's: collected until it runs, told from then on.
fn read_errors(stderr: impl io::Read, said: &Sender<Line>, runs: &AtomicBool, tell: &(impl Fn(Event) + ?Sized)) {
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        let port = line.strip_prefix(TUNNEL_STANDS).and_then(|rest| rest.split(' ').next()?.parse().ok());
        match port {
            Some(port) => drop(said.send(Line::Port(port))),
            None if line.is_empty() => {}
            None if runs.load(Ordering::Acquire) => tell(Event::Said(line)),
            None => drop(said.send(Line::Other(line))),
        }
    }
}

struct Connection {
    handle: Handle,
    name: String,
    host: String,
    shared: Arc<Shared>,
    /// Whether the agent runs.
    runs: Arc<AtomicBool>,
}

impl Connection {
    /// Speaks with the script until the connection ends; returns how.
    fn serve(&self, mut out: impl BufRead, errors: &Receiver<Line>, tell: &(impl Fn(Event) + ?Sized)) -> Event {
        let mut collected = Vec::new();
        let copied = match self.introduce(&mut out, errors, tell) {
            Ok(copied) => copied,
            Err(why) => return self.failed(why, collected, errors),
        };
        let port = match self.port(&mut collected, errors) {
            Ok(port) => port,
            Err(why) => return self.failed(Some(why), collected, errors),
        };
        let program = if self.shared.copy.is_some() { "" } else { &self.shared.program };
        let [nkey, creds, ca] = &self.shared.secrets;
        for line in [&self.name, program, &self.shared.hub.through(port).url(), nkey, creds, ca] {
            self.handle.send(line);
        }
        match next(&mut out, &["loadline-started", "loadline-missing"]) {
            Some(line) if line.starts_with("loadline-started") => tell(Event::Started { port, copied }),
            Some(_) => {
                let program = &self.shared.program;
                let why = format!(
                    "there is no program '{program}': copy this one with --copy, or name its path with --binary"
                );
                return self.failed(Some(why), Vec::new(), errors);
            }
            None => return self.failed(None, collected, errors),
        }
        self.runs.store(true, Ordering::Release);
        collected.extend(errors.try_iter().filter_map(text));
        collected.into_iter().for_each(|line| tell(Event::Said(line)));
        for line in out.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if let Some(code) = line.strip_prefix("loadline-ended ").and_then(|code| code.parse().ok()) {
                // ssh itself would wait for the hub to close what came through the tunnel.
                self.handle.kill();
                return Event::Ended(code);
            }
            if !line.is_empty() {
                tell(Event::Said(line));
            }
        }
        // ssh has said why.
        let _ = self.handle.code();
        Event::Failed("the connection is lost".to_owned())
    }

    /// Says which version this is, and copies the program if it is another there. Returns whether it did.
    fn introduce(
        &self,
        out: &mut impl BufRead,
        errors: &Receiver<Line>,
        tell: &(impl Fn(Event) + ?Sized),
    ) -> Result<bool, Option<String>> {
        self.handle.send(env!("CARGO_PKG_VERSION"));
        let line = next(out, &["loadline-host"]).ok_or(None)?;
        tell(Event::Answered);
        let mut words = line.split(' ').skip(1);
        let (system, machine, sum) =
            (words.next().unwrap_or(""), words.next().unwrap_or(""), words.next().unwrap_or(""));
        let Some(program) = self.shared.copy.as_ref() else {
            self.handle.send("0\n-");
            return Ok(false);
        };
        let (own_system, own_machine) = ("Linux", std::env::consts::ARCH);
        if (system, machine) != (own_system, own_machine) {
            return Err(Some(format!(
                "it is {system} on {machine}, and this program is for {own_system} on {own_machine}: install loadline there and \
                 leave out --copy"
            )));
        }
        if sum == program.sum {
            self.handle.send("0\n-");
            return Ok(false);
        }
        self.handle.send(&format!("{}\n{}", program.bytes.len(), program.sum));
        let _ = self.handle.input.send(Input::Program);
        match next(out, &["loadline-copied", "loadline-not-copied"]) {
            Some(line) if line == "loadline-copied" => Ok(true),
            Some(_) => {
                let said = rest_of(errors).join("; ");
                Err(Some(format!("the program could not be copied to ~/.cache/loadline ({said})")))
            }
            None => Err(None),
        }
    }

    /// The tunnel's port on the host.
    fn port(&self, collected: &mut Vec<String>, errors: &Receiver<Line>) -> Result<u16, String> {
        let deadline = Instant::now() + TUNNEL;
        while let Ok(line) = errors.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            match line {
                Line::Port(port) => return Ok(port),
                Line::Other(line) => collected.push(line),
            }
        }
        Err("ssh named no port for the tunnel to the hub".to_owned())
    }

    /// It could not be started: why, in the words of ssh if nothing else is known.
    fn failed(&self, why: Option<String>, mut collected: Vec<String>, errors: &Receiver<Line>) -> Event {
        self.handle.end();
        let why = why.unwrap_or_else(|| {
            // ssh closes its output last.
            let _ = self.handle.code();
            collected.extend(rest_of(errors));
            reason(&collected, &self.host)
        });
        self.handle.kill();
        let _ = self.handle.code();
        Event::Failed(why)
    }
}

/// The next line that begins with one of `marks`, after whatever the host's login says.
fn next(out: &mut impl BufRead, marks: &[&str]) -> Option<String> {
    let mut lines =
        out.split(b'\n').map_while(Result::ok).map(|line| String::from_utf8_lossy(&line).trim_end().to_owned());
    lines.find(|line| marks.iter().any(|mark| line.starts_with(mark)))
}

fn text(line: Line) -> Option<String> {
    match line {
        Line::Other(line) => Some(line),
        Line::Port(_) => None,
    }
}

/// What ssh has still to say, which has ended.
fn rest_of(errors: &Receiver<Line>) -> Vec<String> {
    let mut lines = Vec::new();
    while let Ok(line) = errors.recv_timeout(Duration::from_millis(500)) {
        lines.extend(text(line));
    }
    lines
}

/// Why ssh failed, with advice.
pub(super) fn reason(lines: &[String], host: &str) -> String {
    let said = lines.join("; ");
    let advice = [
        (
            "REMOTE HOST IDENTIFICATION HAS CHANGED",
            "its host key is another than the known one: find out why before you go on",
        ),
        ("Host key verification failed", "its host key is unknown: connect once by hand and check it"),
        ("Permission denied", "name a key with --identity, or load it into ssh-agent: no password is asked for"),
        ("Could not resolve hostname", "no such host"),
        ("kex_exchange_identification", "its ssh server takes no more connections at a time (MaxStartups)"),
        ("Connection refused", "no ssh server answers there"),
        ("timed out", "it does not answer"),
        ("No route to host", "it cannot be reached"),
        ("remote port forwarding failed", "its ssh server allows no tunnel: AllowTcpForwarding must be yes or remote"),
        ("administratively prohibited", "its ssh server allows no tunnel: AllowTcpForwarding must be yes or remote"),
    ];
    let known = advice.iter().find(|(mark, _)| said.contains(mark));
    match (known, said.is_empty()) {
        (Some(("Host key verification failed", advice)), _) => format!("{advice}: ssh {host} ({said})"),
        (Some((_, advice)), _) => format!("{advice} ({said})"),
        (None, false) => format!("ssh says: {said}"),
        (None, true) => "ssh ended and said nothing".to_owned(),
    }
}
