//! Opens a session: socket, encryption, authentication, session settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use loadline_workload::{Commit, Instrument};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;
use rustls::ClientConfig;

use super::config::Config;
use super::knowledge::{KNOWLEDGE, NEWEST, OLDEST, check, refusal};
use super::protocol::ServerError;
use super::sql;
use super::wire::{Connection, Ledger, Values};
use crate::descriptor::fill;
use crate::error::{Meaning, TargetError};
use crate::flavour::{self, Basis, FLAVOURS, Flavour, Recognised};
use crate::patience::{HASTY, PATIENCE, Patience, told, unanswered, waited_for};
use crate::request::{Env, OpenRequest, Secret, of_target};
use crate::role::Canceller;
use crate::stream::{Socket, Stream};
use crate::tcp::{Address, Names, Peer};
use crate::tls::{self, SslMode};
use crate::work::Work;

const NAMES: Names =
    Names { listen: "listen_addresses", timeout: "connect_timeout", verify_ca: "sslmode=verify-ca", ca: "sslrootcert" };

/// Purpose of a session; shown in its application name.
#[derive(Clone, Copy)]
pub(super) enum SessionRole<'a> {
    /// Reads the server's settings, so it does not change any.
    Inspect,
    Admin,
    Lock,
    Observer,
    /// Runs transactions of this work, as the job of this number.
    Job(&'a Work, u32),
}

impl SessionRole<'_> {
    fn settings(self) -> Vec<&'static BTreeMap<String, String>> {
        let known = &KNOWLEDGE.sessions;
        let mut lists = vec![&known.every];
        match self {
            SessionRole::Inspect => {}
            SessionRole::Observer => lists.push(&known.measuring),
            SessionRole::Admin | SessionRole::Lock => lists.extend([&known.measuring, &known.preparing]),
            SessionRole::Job(work, _) => {
                match &work.workload.scripts {
                    None => lists.push(&known.measuring),
                    Some(scripts) if !scripts.allow_writes => lists.push(&known.reading),
                    Some(_) => {}
                }
                if work.program.commit == Commit::Nowait {
                    lists.push(&known.nowait);
                }
                if work.workload.has(Instrument::Device) && work.program.writes() {
                    lists.push(&known.writing_through);
                }
            }
        }
        lists
    }

    /// Most parallel workers of a query, with the session itself; `None`: as the server says. It counts commits of workers, so
    /// loadline's own queries use none.
    fn workers(self) -> Option<u32> {
        match self {
            SessionRole::Inspect => None,
            SessionRole::Job(work, _) if work.workload.scripts.is_some() => None,
            SessionRole::Job(work, _) => Some(work.parallel_workers().unwrap_or(1)),
            _ => Some(1),
        }
    }
}

#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) config: Config,
    pub(super) request: Arc<OpenRequest>,
    /// Whether its sessions are as behind a pooler: with the server's own settings, and without prepared statements, which it loses.
    pub(super) is_plain: bool,
    /// Whether each login reaches the server, which counts it as a transaction; not so at a pooler.
    pub(super) logs_in: bool,
    /// Settings that sessions have otherwise than direct ones, of a proxy or pooler.
    pub(super) unlike: Vec<String>,
    tls: Option<Arc<ClientConfig>>,
    /// The password typed by the user, so that it is asked once and not for each session.
    asked: Arc<Mutex<Option<Secret>>>,
    pub(super) recognised: Recognised,
    /// Prefix of the application names of this run's sessions.
    pub(super) name: String,
    pub(super) ledger: Ledger,
}

impl Endpoint {
    /// For the node at `url`. What it leaves out comes from `env`.
    pub(super) fn new(url: &str, request: &OpenRequest, env: Env<'_>) -> Result<Endpoint, TargetError> {
        let config = Config::parse(url, env)?;
        let encrypted = config.sslmode != SslMode::Disable && matches!(config.address, Address::Tcp(..));
        let own = || env("HOME").map(|home| PathBuf::from(home).join(".postgresql/root.crt")).filter(|p| p.is_file());
        let authorities = match config.sslrootcert.as_deref() {
            // Those of the operating system.
            Some("system") => None,
            Some(path) => Some(PathBuf::from(path)),
            None => own(),
        };
        let roots = || tls::roots(authorities.as_deref(), "sslrootcert");
        let named = config.sslrootcert.is_some();
        let tls = encrypted.then(|| tls::client_config(config.sslmode, named, roots)).transpose()?;
        // PostgreSQL truncates names to 63 bytes: the suffix that distinguishes sessions must fit.
        let name = config.application_name.as_deref().unwrap_or("loadline");
        let name = format!("{} {}", clip(name, 16), clip(&request.run, 32)).trim().to_owned();
        Ok(Endpoint {
            config,
            request: Arc::new(request.clone()),
            is_plain: false,
            logs_in: true,
            unlike: Vec::new(),
            tls,
            asked: Arc::default(),
            recognised: Recognised::default(),
            name,
            ledger: Ledger::default(),
        })
    }

    /// The proxy or pooler at `url` before this server. What jobs do there is counted here.
    pub(super) fn via(&self, url: &str, request: &OpenRequest) -> Result<Endpoint, TargetError> {
        // Sessions that a pooler keeps open are none of the jobs that go another way.
        let name = format!("{} via {:08x}", clip(&self.name, 40), loadline_storage::now_ns() as u32);
        let ledger = Arc::clone(&self.ledger);
        let endpoint = Endpoint::new(url, request, of_target(false))?;
        Ok(Endpoint { logs_in: false, is_plain: true, name, ledger, ..endpoint })
    }

    /// The endpoint with plain sessions.
    pub(super) fn plain(&self) -> Endpoint {
        Endpoint { is_plain: true, ..self.clone() }
    }

    pub(super) fn job_prefix(&self) -> String {
        format!("{} job ", self.name)
    }

    pub(super) fn connect(&self, role: SessionRole) -> Result<Connection, TargetError> {
        let mut before = String::new();
        let opened = self.stream(self.config.sslmode, &mut before).and_then(|stream| {
            let mut c = Connection::new(stream, self.config.place(), Arc::clone(&self.ledger));
            let connecting = Patience::new(&self.request.interrupted, self.config.connect_timeout, unanswered());
            c.wait_with(Some(connecting)).and_then(|()| self.start_session(&mut c, role)).map(|()| c)
        });
        opened.map_err(|e| match e.with(&before) {
            // Before the session is open it cannot be lost: the server is unreachable.
            TargetError::Lost(text) => TargetError::Unreachable(text),
            e => e,
        })
    }

    /// Runs `f` in a session of its own, as loadline's own work.
    pub(super) fn session<T>(
        &self,
        role: SessionRole,
        f: impl FnOnce(&mut Connection) -> Result<T, TargetError>,
    ) -> Result<T, TargetError> {
        let mut c = self.connect(role)?;
        let done = f(&mut c);
        // A failed step may have committed before: publish in both cases.
        let published = c.publish();
        done.and_then(|done| published.map(|()| done))
    }

    /// `before` gets the reason of a failed handshake.
    fn stream(&self, mode: SslMode, before: &mut String) -> Result<Stream, TargetError> {
        let timeout = self.config.connect_timeout;
        let (host, port) = match &self.config.address {
            Address::Unix(path) => return Stream::connect_unix(path, timeout).map_err(|e| no_socket(path, &e)),
            Address::Tcp(host, port) => (host, *port),
        };
        let mut tcp = self.peer().connect(host, port, timeout)?;
        let Some(tls) = &self.tls else { return Ok(Stream::Plain(tcp)) };
        if mode == SslMode::Disable || !self.encrypts(&mut tcp, mode)? {
            return Ok(Stream::Plain(tcp));
        }
        match self.peer().encrypt(tcp, host, tls) {
            // As libpq does: `prefer` falls back to a connection without encryption.
            Err(e) if mode == SslMode::Prefer => {
                *before = format!("; before that: {e}");
                self.stream(SslMode::Disable, before)
            }
            stream => stream,
        }
    }

    fn peer(&self) -> Peer {
        Peer { place: self.config.place(), names: &NAMES }
    }

    /// Asks for encryption; `false` if the server offers none and need not.
    fn encrypts(&self, tcp: &mut Socket, mode: SslMode) -> Result<bool, TargetError> {
        let mut request = BytesMut::new();
        frontend::ssl_request(&mut request);
        let mut answer = [0];
        let answered = tcp.write_all(&request).and_then(|()| tcp.read_exact(&mut answer));
        answered.map_err(|e| self.peer().unreachable(&e))?;
        match (answer[0], mode) {
            (b'S', _) => Ok(true),
            (_, SslMode::Prefer) => Ok(false),
            _ => Err(refusal("no-encryption", &[("place", &self.config.place())])),
        }
    }

    fn start_session(&self, c: &mut Connection, role: SessionRole) -> Result<(), TargetError> {
        let purpose = match role {
            // A pooler would set another name before each transaction of another session.
            _ if self.is_plain => "job 0".to_owned(),
            SessionRole::Lock => "lock".to_owned(),
            SessionRole::Inspect | SessionRole::Admin => "admin".to_owned(),
            SessionRole::Observer => "observer".to_owned(),
            SessionRole::Job(_, job) => format!("job {job}"),
        };
        let name = format!("{} {purpose}", self.name);
        let workers = if self.is_plain { None } else { role.workers() };
        let parallel = workers.map_or_else(Vec::new, sql::parallel_settings);
        // A pooler refuses most, and sets the others anew before each transaction if the server writes them otherwise (`ISO, MDY`).
        let lists = if self.is_plain { Vec::new() } else { role.settings() };
        let lists = lists.into_iter().flatten();
        let mut parameters =
            vec![("user", self.config.user.as_str()), ("database", &self.config.database), ("application_name", &name)];
        // Settings in the startup message cost no transaction, and override those of role and database.
        parameters.extend(lists.map(|(name, value)| (name.as_str(), value.as_str())));
        parameters.extend(parallel.iter().map(|(name, value)| (*name, value.as_str())));
        parameters.extend(self.config.options.as_deref().map(|options| ("options", options)));
        c.put(|out| frontend::startup_message(parameters, out))?;
        c.send()?;
        self.log_in(c)?;
        if !self.logs_in {
            // The server did not count the login.
            c.own_commits = 0;
        }
        // The first session of each node.
        if matches!(role, SessionRole::Inspect) {
            self.recognised.or_ask(|| recognise(c, &self.config.place()))?;
        }
        check(c.version, &c.version_text)?;
        c.canceller = self.canceller(c, role);
        let at_most = self.config.connect_timeout * PATIENCE;
        c.wait_with(Some(Patience::new(&self.request.interrupted, at_most, c.canceller.clone())))?;
        let texts = &KNOWLEDGE.texts;
        let is_timed = matches!(role, SessionRole::Observer | SessionRole::Job(..));
        let is_set = !matches!(role, SessionRole::Inspect);
        for (is_set, texts) in [(is_set, &texts.session_settings), (is_timed, &texts.io_timing)] {
            if is_set && !self.is_plain {
                texts.all(c.version).try_for_each(|sql| c.query(sql).map(drop))?;
            }
        }
        Ok(())
    }

    /// From now on `c` waits as long as for a connection at most, whatever the server does.
    pub(super) fn wait_briefly(&self, c: &mut Connection) -> Result<(), TargetError> {
        let (asked, own) = (c.canceller.clone(), "the server's own work: does the device of its log answer?");
        let call = asked.clone().asking(move || asked.hindrance().or_else(|| Some(waited_for(own))));
        c.wait_with(Some(Patience::new(&self.request.interrupted, self.config.connect_timeout, call)))
    }

    /// Ends a call of `c`: shuts its socket down, and asks the server to cancel, because a busy one does not notice that. Another
    /// session asks what the server does; nobody asks about that one.
    fn canceller(&self, c: &mut Connection, role: SessionRole) -> Canceller {
        let (mut endpoint, pid, secret, shut) = (self.clone(), c.pid, c.secret, c.stream.shutter());
        endpoint.config.connect_timeout = endpoint.config.connect_timeout.min(HASTY);
        let endpoint = Arc::new(endpoint);
        let cancelled = Arc::clone(&endpoint);
        // Its commits are none of the jobs', also if it asks within a window.
        let asked = move || endpoint.session(SessionRole::Inspect, |c| hindrance(c, pid));
        let cancel = move || {
            shut();
            let mut request = BytesMut::new();
            frontend::cancel_request(pid.cast_signed(), secret, &mut request);
            // The server does not answer.
            let _ = cancelled.stream(SslMode::Disable, &mut String::new()).map(|mut stream| stream.write_all(&request));
        };
        let ends = Canceller::new(cancel);
        match role {
            SessionRole::Inspect => ends.asking(|| unanswered().hindrance()),
            _ => ends.asking(move || told(asked())),
        }
    }

    /// Authenticates, and reads what the server says of the session.
    fn log_in(&self, c: &mut Connection) -> Result<(), TargetError> {
        let (mut scram, mut note) = (None::<ScramSha256>, None);
        let place = self.config.place();
        let refused = |what: &str| TargetError::Refused(format!("{place} asks for {what}"));
        let wrong = |e: io::Error| TargetError::Refused(format!("{place}: password exchange: {e}"));
        let out_of_order = || refused("a SASL answer out of order");
        loop {
            let incoming = c.next()?;
            let body = c.body(incoming).to_vec();
            // Of what asks for a password, its method.
            let (number, rest) =
                body.split_first_chunk().map_or((u32::MAX, &[][..]), |(n, of)| (u32::from_be_bytes(*n), of));
            let four: [u8; 4] = rest.first_chunk().copied().unwrap_or_default();
            match (incoming.tag, number) {
                (b'E', _) => return Err(self.refused(&ServerError::parse(&body), note.as_deref())),
                // Negotiation of protocol options, of which loadline sends none; the end of authentication.
                (b'v', _) | (b'R', 0) => continue,
                (b'K', pid) if rest.len() >= 4 => {
                    (c.pid, c.secret) = (pid, i32::from_be_bytes(four));
                    continue;
                }
                (b'Z', _) => return Ok(()),
                (b'R', 3) => {
                    let password = self.password(&mut note)?;
                    c.put(|out| frontend::password_message(password.expose().as_bytes(), out))?;
                }
                (b'R', 5) if rest.len() >= 4 => {
                    let password = self.password(&mut note)?;
                    let hash = md5_hash(self.config.user.as_bytes(), password.expose().as_bytes(), four);
                    c.put(|out| frontend::password_message(hash.as_bytes(), out))?;
                }
                (b'R', 10) => {
                    let methods = String::from_utf8_lossy(rest);
                    let methods: Vec<&str> = methods.split_terminator('\0').filter(|name| !name.is_empty()).collect();
                    if !methods.contains(&SCRAM_SHA_256) {
                        let methods = methods.join(", ");
                        return Err(refused(&format!("'{methods}', which loadline does not support")));
                    }
                    let password = self.password(&mut note)?;
                    let exchange = ScramSha256::new(password.expose().as_bytes(), ChannelBinding::unsupported());
                    c.put(|out| frontend::sasl_initial_response(SCRAM_SHA_256, exchange.message(), out))?;
                    scram = Some(exchange);
                }
                (b'R', 11) => {
                    let exchange = scram.as_mut().ok_or_else(out_of_order)?;
                    exchange.update(rest).map_err(wrong)?;
                    c.put(|out| frontend::sasl_response(exchange.message(), out))?;
                }
                (b'R', 12) => {
                    // The server proves here that it knows the password too.
                    scram.as_mut().ok_or_else(out_of_order)?.finish(rest).map_err(wrong)?;
                    continue;
                }
                (b'R', 5 | u32::MAX) => return Err(c.not_spoken("a message that is cut off")),
                (b'R', 2 | 7 | 9) => {
                    return Err(refused("Kerberos (GSSAPI, SSPI), which loadline does not support: use a password"));
                }
                (b'R', method) => {
                    return Err(refused(&format!("authentication method {method}, which loadline does not support")));
                }
                _ => return Err(c.not_spoken("a message out of order")),
            }
            c.send()?;
        }
    }

    /// The password from the URL or the environment, else the password file, else the user.
    fn password(&self, note: &mut Option<String>) -> Result<Secret, TargetError> {
        let config = &self.config;
        let of_file = || {
            config.password_of_file().unwrap_or_else(|why| {
                *note = Some(why);
                None
            })
        };
        if let Some(password) = config.password.clone().or_else(of_file) {
            return Ok(password);
        }
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.is_none() {
            *asked = (self.request.ask_password)(&format!("user {} at {}", config.user, config.place()));
        }
        asked.clone().ok_or_else(|| {
            let note = note.as_ref().map_or(String::new(), |n| format!(" ({n})"));
            refusal("no-password", &[("place", &config.place()), ("user", &config.user), ("note", &note)])
        })
    }

    /// Why the server refuses the connection, with advice; `note` is on the password file.
    fn refused(&self, error: &ServerError, note: Option<&str>) -> TargetError {
        let Config { address, user, database, .. } = &self.config;
        let how = if matches!(address, Address::Unix(_)) { "local" } else { "host" };
        let note = note.map_or(String::new(), |n| format!(" ({n})"));
        let parts = [("user", user.as_str()), ("database", database), ("how", how), ("note", &note)];
        let advice = fill(Meaning::advice(&KNOWLEDGE.errors, &error.code, &error.message).unwrap_or_default(), &parts);
        let place = self.config.place();
        TargetError::connection(error.refusal(), format!("{place} refuses the connection: {error}; {advice}"))
    }
}

/// The flavour of the server; `None` for the original.
fn recognise(c: &mut Connection, place: &str) -> Result<Option<&'static Flavour>, TargetError> {
    let version = match c.value("SELECT version()") {
        Err(TargetError::Server(e)) => e.text,
        other => other?.unwrap_or_default(),
    };
    let known = flavour::recognised(&[&version]);
    let supported = format!("PostgreSQL {OLDEST} to {NEWEST}");
    let refused = |name: &str| flavour::refused(name, &version, place, "PostgreSQL", flavour::OTHER_ENGINE, &supported);
    match known {
        Some(flavour) if flavour.basis == Basis::Other => return Err(refused(&flavour.name)),
        None if !version.starts_with("PostgreSQL ") => return Err(refused("a product that loadline does not know")),
        _ => {}
    }
    let aurora = c.value("SELECT 1 FROM pg_proc WHERE proname = 'aurora_version' LIMIT 1")?.is_some();
    Ok(if aurora { Some(&FLAVOURS.aurora) } else { known })
}

/// Asks in session `c` what the server process `pid` waits for, if that is not the server's own work.
fn hindrance(c: &mut Connection, pid: u32) -> Result<Option<TargetError>, TargetError> {
    let row = c.row(&KNOWLEDGE.queries.text("hindrance", &[("pid", &pid.to_string())]))?;
    let (event, names) = (row.text(0), row.text(1));
    let [standbys, holder] = [(2, "none"), (3, "unknown")].map(|(at, none)| row.value(at).unwrap_or(none));
    let parts = [("event", event.as_str()), ("names", &names), ("standbys", standbys), ("holder", holder)];
    let waits = Meaning::advice(&KNOWLEDGE.hindrances, &event, "");
    Ok(waits.map(|text| waited_for(fill(text, &parts))))
}

/// The error for a socket that cannot be used, with the other servers' in its folder.
fn no_socket(path: &Path, e: &io::Error) -> TargetError {
    let (dir, shown) = (path.parent().unwrap_or(path), path.display());
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let port = |name: OsString| name.to_str()?.strip_prefix(".s.PGSQL.")?.parse::<u16>().ok();
    let ports: Vec<String> = files.filter_map(|f| port(f.file_name())).map(|port| port.to_string()).collect();
    let advice = match e.kind() {
        io::ErrorKind::NotFound if !dir.is_dir() => &format!("; there is no folder '{}'", dir.display()),
        io::ErrorKind::NotFound if ports.is_empty() => "; no server runs there, or its unix_socket_directories differs",
        io::ErrorKind::NotFound => &format!("; servers there have the ports {}", ports.join(", ")),
        io::ErrorKind::PermissionDenied => "; this user may not use it",
        io::ErrorKind::ConnectionRefused => "; no server answers: start it",
        io::ErrorKind::WouldBlock => "; no answer in time: is the server stopped?",
        _ => "",
    };
    TargetError::Unreachable(format!("the socket '{shown}' cannot be used: {e}{advice}"))
}

/// The first `bytes` characters of `text`; others than printable ASCII become `_`, because PostgreSQL replaces them too.
fn clip(text: &str, bytes: usize) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() { c } else { '_' }).take(bytes).collect()
}
