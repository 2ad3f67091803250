//! Opens a session: socket, encryption, authentication, session settings.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use loadline_workload::{Commit, Instrument};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::SCRAM_SHA_256;
use postgres_protocol::message::frontend;
use rustls::ClientConfig;

use super::cancel::CancelKey;
use super::config::{Address, Config, default_host};
use super::hindrance::hindrance;
use super::knowledge::KNOWLEDGE;
use super::ledger::Ledger;
use super::pgpass::{self, Lookup, PgpassEntry};
use super::protocol::ServerError;
use super::scram::{Exchange, KnownKeys, Wrong};
use super::wire::Connection;
use super::{flavours, parallel, refusal, tls};
use crate::env::{Env, of_target};
use crate::error::TargetError;
use crate::flavour::Recognised;
use crate::patience::{HASTY, PATIENCE, Patience, told, unanswered, waited_for};
use crate::request::{AskPassword, OpenRequest};
use crate::role::Canceller;
use crate::secret::Secret;
use crate::stream::{Socket, Stream};
use crate::tcp::{Names, Peer};
use crate::tls::SslMode;
use crate::work::Work;

const NAMES: Names =
    Names { listen: "listen_addresses", timeout: "connect_timeout", verify_ca: "sslmode=verify-ca", ca: "sslrootcert" };

/// Settings of every session that fix the format of its answers. They are sent in the startup message: that costs no
/// transaction, and they override the settings of role and database.
const FORMAT_SETTINGS: [(&str, &str); 3] =
    [("client_encoding", "UTF8"), ("DateStyle", "ISO"), ("client_min_messages", "warning")];

/// Settings of every session but [`SessionRole::Inspect`]: turn off timeouts and JIT, which would disturb a measurement.
const WORK_SETTINGS: [(&str, &str); 6] = [
    ("jit", "off"),
    // The database's default may be stricter: conflicting transactions would then fail.
    ("default_transaction_isolation", "read committed"),
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("idle_session_timeout", "0"),
];

/// A session that writes changed blocks itself, because no free buffer is left, starts their write-out after 32 of them,
/// as checkpointer and background writer do by default, and waits while the device's queue is full. Without it the
/// operating system takes blocks at the speed of memory, and the figure is none of the device.
const WRITE_THROUGH: (&str, &str) = ("backend_flush_after", "32");

/// Purpose of a session; shown in its application name.
#[derive(Debug, Clone, Copy)]
pub(super) enum SessionRole {
    /// Reads the server's settings, so it does not change any.
    Inspect,
    /// Administration.
    Admin,
    /// Holds the lock.
    Lock,
    /// Reads counters.
    Observer,
    /// Runs transactions; `nowait`: commits do not wait; `workers`: parallel workers of its queries; `writes_through`:
    /// changed blocks that the session writes must soon reach the device; `scripts`: it runs a user's scripts, whose session
    /// settings are the server's own.
    Job { job: u32, nowait: bool, workers: u32, writes_through: bool, scripts: Option<ScriptAccess> },
}

impl SessionRole {
    /// Of `job`, which runs `work`.
    pub(super) fn job(work: &Work, job: u32) -> SessionRole {
        SessionRole::Job {
            job,
            nowait: work.program.commit == Commit::Nowait,
            workers: work.parallel_workers().unwrap_or(1),
            writes_through: work.workload.has(Instrument::Device) && work.program.writes(),
            scripts: work
                .workload
                .scripts
                .as_ref()
                .map(|of| if of.allow_writes { ScriptAccess::Write } else { ScriptAccess::Read }),
        }
    }
}

/// What the scripts of a job's session may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptAccess {
    Read,
    Write,
}

/// How to reach one node.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) config: Config,
    tls: Option<Arc<ClientConfig>>,
    /// The password typed by the user, so that it is asked once and not for each session.
    asked: Arc<Mutex<Option<Secret>>>,
    ask: AskPassword,
    /// Of the password, once a session has derived them.
    keys: KnownKeys,
    /// Set when the user wants to stop.
    pub(super) interrupted: Arc<AtomicBool>,
    pub(super) recognised: Recognised,
    /// Prefix of the application names of this run's sessions.
    pub(super) name: String,
    /// loadline's own commits on its server.
    pub(super) ledger: Ledger,
}

impl Endpoint {
    /// For the node at `url`. What it leaves out comes from `env`.
    pub(super) fn new(url: &str, request: &OpenRequest, env: Env<'_>) -> Result<Endpoint, TargetError> {
        let config = Config::parse(url, env)?;
        let encrypted = config.sslmode != SslMode::Disable && matches!(config.address, Address::Tcp(_));
        let tls = if encrypted { Some(tls::client_config(&config, env)?) } else { None };
        // PostgreSQL truncates names to 63 bytes: the suffix that distinguishes sessions must fit.
        let name = config.application_name.as_deref().unwrap_or("loadline");
        let name = format!("{} {}", clip(name, 16), clip(&request.run, 32)).trim().to_owned();
        let (ask, interrupted) = (Arc::clone(&request.ask_password), Arc::clone(&request.interrupted));
        Ok(Endpoint {
            config,
            tls,
            asked: Arc::default(),
            ask,
            keys: KnownKeys::default(),
            interrupted,
            recognised: Recognised::default(),
            name,
            ledger: Ledger::default(),
        })
    }

    /// The same for another private server.
    pub(super) fn at(&self, url: &str) -> Result<Endpoint, TargetError> {
        let config = Config::parse(url, of_target(true))?;
        Ok(Endpoint { config, recognised: Recognised::default(), ledger: Ledger::default(), ..self.clone() })
    }

    /// The same, if it leads to a server whose own commits are counted in `ledger`.
    pub(super) fn with_books_in(&self, ledger: Ledger) -> Endpoint {
        Endpoint { ledger, ..self.clone() }
    }

    /// Prefix of the application names of the job sessions.
    pub(super) fn job_prefix(&self) -> String {
        format!("{} job ", self.name)
    }

    /// Opens a session.
    pub(super) fn connect(&self, role: SessionRole) -> Result<Connection, TargetError> {
        match self.attempt(role, self.config.sslmode) {
            // As libpq does: `prefer` falls back to a connection without encryption.
            Err((e, true)) if self.config.sslmode == SslMode::Prefer => {
                self.attempt(role, SslMode::Disable).map_err(|(_, _)| e)
            }
            other => other.map_err(|(e, _)| e),
        }
        .map_err(|e| match e {
            // Before the session is open it cannot be lost: the server is unreachable.
            TargetError::Lost(text) => TargetError::Unreachable(text),
            e => e,
        })
    }

    /// Tries once; the flag of the error says whether the TLS handshake failed.
    fn attempt(&self, role: SessionRole, mode: SslMode) -> Result<Connection, (TargetError, bool)> {
        let stream = self.stream(mode)?;
        let mut connection = Connection::new(stream, self.config.place(), self.ledger.clone());
        let connecting = Patience::new(&self.interrupted, self.config.connect_timeout, unanswered());
        connection.wait_with(Some(connecting)).map_err(|e| (e, false))?;
        self.start_session(&mut connection, role).map_err(|e| (e, false))?;
        Ok(connection)
    }

    fn stream(&self, mode: SslMode) -> Result<Stream, (TargetError, bool)> {
        let plain = |e| (e, false);
        match &self.config.address {
            Address::Unix(dir) => {
                let path = dir.join(format!(".s.PGSQL.{}", self.config.port));
                let s = UnixStream::connect(&path).map_err(|e| plain(no_socket(dir, &path, &e)))?;
                Ok(Stream::unix(s))
            }
            Address::Tcp(host) => {
                let tcp = self.peer().connect(host, self.config.port, self.config.connect_timeout).map_err(plain)?;
                match &self.tls {
                    Some(tls) if mode != SslMode::Disable => self.encrypt(tcp, host, tls, mode),
                    _ => Ok(Stream::Plain(tcp)),
                }
            }
        }
    }

    fn peer(&self) -> Peer {
        Peer { place: self.config.place(), names: &NAMES }
    }

    fn encrypt(
        &self,
        mut tcp: Socket,
        host: &str,
        tls: &Arc<ClientConfig>,
        mode: SslMode,
    ) -> Result<Stream, (TargetError, bool)> {
        let mut request = BytesMut::new();
        frontend::ssl_request(&mut request);
        let mut answer = [0];
        tcp.write_all(&request)
            .and_then(|()| tcp.read_exact(&mut answer))
            .map_err(|e| (self.peer().unreachable(&e), false))?;
        if answer != *b"S" {
            return if mode == SslMode::Prefer {
                Ok(Stream::Plain(tcp))
            } else {
                let place = self.config.place();
                Err((
                    TargetError::Refused(format!(
                        "{place} offers no encryption, but sslmode requires it: set ssl = on at the server, or use sslmode=prefer"
                    )),
                    false,
                ))
            };
        }
        self.peer().encrypt(tcp, host, tls).map_err(|e| (e, true))
    }

    #[expect(clippy::too_many_lines)]
    fn start_session(&self, c: &mut Connection, role: SessionRole) -> Result<(), TargetError> {
        let name = match role {
            SessionRole::Inspect | SessionRole::Admin => format!("{} admin", self.name),
            SessionRole::Lock => format!("{} lock", self.name),
            SessionRole::Observer => format!("{} observer", self.name),
            SessionRole::Job { job, .. } => format!("{}{job}", self.job_prefix()),
        };
        let mut parameters =
            vec![("user", self.config.user.as_str()), ("database", &self.config.database), ("application_name", &name)];
        parameters.extend(FORMAT_SETTINGS);
        let own = match role {
            SessionRole::Inspect => false,
            SessionRole::Job { scripts, .. } => scripts.is_none(),
            _ => true,
        };
        if own {
            parameters.extend(WORK_SETTINGS);
        }
        if let SessionRole::Job { scripts: Some(ScriptAccess::Read), .. } = role {
            parameters.push(("default_transaction_read_only", "on"));
        }
        if let Some(options) = &self.config.options {
            parameters.push(("options", options));
        }
        // The server counts commits of parallel workers, so loadline's own queries use none.
        let parallel = match role {
            SessionRole::Inspect | SessionRole::Job { scripts: Some(_), .. } => Vec::new(),
            SessionRole::Job { workers, .. } => parallel::settings(workers),
            _ => parallel::settings(1),
        };
        parameters.extend(parallel.iter().map(|(name, value)| (*name, value.as_str())));
        if let SessionRole::Job { nowait: true, .. } = role {
            parameters.push(("synchronous_commit", "off"));
        }
        if matches!(role, SessionRole::Admin | SessionRole::Lock) {
            // What loadline prepares need not reach a standby, which may be away.
            parameters.push(("synchronous_commit", "local"));
        }
        if let SessionRole::Job { writes_through: true, .. } = role {
            parameters.push(WRITE_THROUGH);
        }
        c.put(|out| frontend::startup_message(parameters, out))?;
        c.send()?;
        self.authenticate(c)?;
        loop {
            let incoming = c.next()?;
            let body = c.body(incoming);
            match (incoming.tag, body) {
                (b'K', [a, b, d, e, rest @ ..]) => {
                    let pid = u32::from_be_bytes([*a, *b, *d, *e]);
                    let secret = rest.first_chunk::<4>().map_or(0, |s| u32::from_be_bytes(*s));
                    c.key =
                        CancelKey { address: Some(self.config.address.clone()), port: self.config.port, pid, secret };
                }
                (b'E', body) => return Err(refusal::explain(&ServerError::parse(body), &self.config, None)),
                (b'Z', _) => break,
                _ => {}
            }
        }
        // The first session of each node.
        if matches!(role, SessionRole::Inspect) {
            self.recognised.or_ask(|| flavours::recognise(c, &self.config.place()))?;
        }
        c.version.check(&c.version_text)?;
        c.canceller = self.canceller(c, role);
        let at_most = self.config.connect_timeout * PATIENCE;
        c.wait_with(Some(Patience::new(&self.interrupted, at_most, c.canceller.clone())))?;
        if !matches!(role, SessionRole::Inspect) {
            for sql in KNOWLEDGE.texts.session_settings.all(c.version) {
                c.query(sql)?;
            }
        }
        if matches!(role, SessionRole::Observer | SessionRole::Job { .. }) {
            for sql in KNOWLEDGE.texts.io_timing.all(c.version) {
                c.query(sql)?;
            }
        }
        Ok(())
    }

    /// From now on `c` waits as long as for a connection at most, whatever the server does.
    pub(super) fn wait_briefly(&self, c: &mut Connection) -> Result<(), TargetError> {
        let (asked, own) = (c.canceller.clone(), "the server's own work: does the device of its log answer?");
        let call = asked.clone().asking(move || asked.hindrance().or_else(|| Some(waited_for(own))));
        c.wait_with(Some(Patience::new(&self.interrupted, self.config.connect_timeout, call)))
    }

    /// Ends a call of `c`: shuts its socket down, and asks the server to cancel, because a busy one does not notice that. Asks
    /// through another session what the server does; nobody asks about the one that asks.
    fn canceller(&self, c: &mut Connection, role: SessionRole) -> Canceller {
        let (mut endpoint, key, pid, shut) = (self.clone(), c.key.clone(), c.key.pid, c.shutter());
        endpoint.config.connect_timeout = endpoint.config.connect_timeout.min(HASTY);
        let asked = move || {
            let mut c = endpoint.connect(SessionRole::Inspect)?;
            let found = hindrance(&mut c, pid);
            // Its commits are none of the jobs', also if it asks within a window.
            c.publish().and(found)
        };
        let cancel = move || {
            shut();
            key.cancel();
        };
        let ends = Canceller::new(cancel);
        match role {
            SessionRole::Inspect => ends.asking(|| unanswered().hindrance()),
            _ => ends.asking(move || told(asked())),
        }
    }

    fn authenticate(&self, c: &mut Connection) -> Result<(), TargetError> {
        let mut scram: Option<Exchange> = None;
        let mut note = None;
        let asks_for = |what: &str| TargetError::Refused(format!("{} asks for {what}", self.config.place()));
        let wrong = |e: Wrong| TargetError::Refused(format!("{}: {e}", self.config.place()));
        loop {
            let incoming = c.next()?;
            let body = c.body(incoming).to_vec();
            match incoming.tag {
                b'R' => {}
                b'E' => return Err(refusal::explain(&ServerError::parse(&body), &self.config, note.as_deref())),
                // Negotiation of protocol options, of which we send none.
                b'v' => continue,
                _ => {
                    return Err(TargetError::Refused(format!(
                        "{} does not speak PostgreSQL's protocol",
                        self.config.place()
                    )));
                }
            }
            let Some((kind, data)) = body.split_first_chunk::<4>() else {
                return Err(asks_for("an authentication that is cut off"));
            };
            match u32::from_be_bytes(*kind) {
                0 => return Ok(()),
                3 => {
                    let password = self.password(&mut note)?;
                    c.put(|out| frontend::password_message(password.expose().as_bytes(), out))?;
                }
                5 => {
                    let salt = *data.first_chunk::<4>().ok_or_else(|| asks_for("an md5 password without a salt"))?;
                    let password = self.password(&mut note)?;
                    let hash = md5_hash(self.config.user.as_bytes(), password.expose().as_bytes(), salt);
                    c.put(|out| frontend::password_message(hash.as_bytes(), out))?;
                }
                10 => {
                    if !data.split(|b| *b == 0).any(|m| m == SCRAM_SHA_256.as_bytes()) {
                        let methods = String::from_utf8_lossy(data);
                        return Err(asks_for(&format!("'{methods}', which loadline does not support")));
                    }
                    let password = self.password(&mut note)?;
                    let exchange = Exchange::new(password).map_err(wrong)?;
                    c.put(|out| frontend::sasl_initial_response(SCRAM_SHA_256, exchange.first().as_bytes(), out))?;
                    scram = Some(exchange);
                }
                11 | 12 => {
                    let exchange = scram.as_mut().ok_or_else(|| asks_for("a SASL answer out of order"))?;
                    if u32::from_be_bytes(*kind) == 12 {
                        // The server proves here that it knows the password too.
                        exchange.finish(data).map_err(wrong)?;
                        continue;
                    }
                    let answer = exchange.answer(data, &self.keys).map_err(wrong)?;
                    c.put(|out| frontend::sasl_response(answer.as_bytes(), out))?;
                }
                7 | 9 => {
                    return Err(asks_for("Kerberos (GSSAPI, SSPI), which loadline does not support: use a password"));
                }
                other => {
                    return Err(asks_for(&format!("authentication method {other}, which loadline does not support")));
                }
            }
            c.send()?;
        }
    }

    /// The password from the URL or the environment, else the password file, else the user.
    fn password(&self, note: &mut Option<String>) -> Result<Secret, TargetError> {
        let config = &self.config;
        if let Some(password) = &config.password {
            return Ok(password.clone());
        }
        let hosts = match &config.address {
            Address::Tcp(host) => vec![host.clone()],
            Address::Unix(dir) if *dir == Path::new(&default_host()) => {
                vec!["localhost".into(), dir.display().to_string()]
            }
            Address::Unix(dir) => vec![dir.display().to_string()],
        };
        let lookup = Lookup { hosts, port: config.port, database: &config.database, user: &config.user };
        match config.passfile.as_deref().map(|path| pgpass::look_up(path, &lookup)) {
            Some(PgpassEntry::Password(password)) => return Ok(password),
            Some(PgpassEntry::Ignored(why)) => *note = Some(why),
            Some(PgpassEntry::Nothing) | None => {}
        }
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.is_none() {
            *asked = (self.ask)(&format!("user {} at {}", config.user, config.place()));
        }
        asked.clone().ok_or_else(|| {
            let note = note.as_ref().map_or(String::new(), |n| format!(" ({n})"));
            TargetError::Refused(format!(
                "{} requires a password for user '{}' and none is given: set PGPASSWORD or add a line to ~/.pgpass{note}",
                config.place(),
                config.user
            ))
        })
    }
}

fn no_socket(dir: &Path, path: &Path, e: &io::Error) -> TargetError {
    let shown = path.display();
    let others: Vec<String> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|f| f.file_name().to_str()?.strip_prefix(".s.PGSQL.")?.parse::<u16>().ok())
        .map(|port| port.to_string())
        .collect();
    let what = match e.kind() {
        io::ErrorKind::NotFound if !dir.is_dir() => format!("there is no folder '{}'", dir.display()),
        io::ErrorKind::NotFound if others.is_empty() => {
            format!("there is no socket '{shown}': no server runs there, or its unix_socket_directories differs")
        }
        io::ErrorKind::NotFound => {
            format!("there is no socket '{shown}'; servers there have the ports {}", others.join(", "))
        }
        io::ErrorKind::ConnectionRefused => {
            format!("the socket '{shown}' exists, but no server answers: start the server")
        }
        io::ErrorKind::PermissionDenied => format!("this user has no permission for the socket '{shown}'"),
        _ => format!("the socket '{shown}' cannot be used: {e}"),
    };
    TargetError::Unreachable(what)
}

/// The first `bytes` characters of `text`; others than printable ASCII become `_`, because PostgreSQL replaces them too.
fn clip(text: &str, bytes: usize) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() { c } else { '_' }).take(bytes).collect()
}
