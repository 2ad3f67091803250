//! Opens a session: socket, encryption, authentication, settings.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use rustls::ClientConfig;

use super::config::Config;
use super::knowledge::{KNOWLEDGE, SUPPORTED, Version, refusal};
use super::member::Member;
use super::own_sessions::{OwnSessions, hindrance};
use super::protocol::{self, CLIENT_BASE, CLIENT_CONNECT_WITH_DB, CLIENT_SSL, Greeting, ServerError};
use super::wire::Connection;
use crate::error::{Cause, Meaning, TargetError, unless_refused};
use crate::flavour::{self, Basis, FLAVOURS, Flavour, Recognised};
use crate::patience::{ENDING, HASTY, PATIENCE, Patience, told};
use crate::request::{Env, OpenRequest, Secret, of_target};
use crate::role::Canceller;
use crate::stream::Stream;
use crate::tcp::{Address, Names, Peer};
use crate::tls::{self, SslMode};

const NAMES: Names =
    Names { listen: "bind_address", timeout: "connect-timeout", verify_ca: "ssl-mode=verify-ca", ca: "ssl-ca" };

const DENIED: u16 = 1045;
/// Access denied to a user who needs the socket of an operating system user instead of a password.
const DENIED_NO_PASSWORD: u16 = 1698;

/// Parameters with which a session connects.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) config: Config,
    tls: Option<Arc<ClientConfig>>,
    /// The password that the user typed; asked for once, not for each session.
    asked: Arc<OnceLock<Secret>>,
    pub(super) request: Arc<OpenRequest>,
    pub(super) sessions: OwnSessions,
    of_jobs: bool,
    pub(super) is_proxy: bool,
    /// The member of a cluster to which each must lead.
    node: Option<Member>,
    pub(super) recognised: Recognised,
}

impl Endpoint {
    /// For the server at `url`. What it leaves out comes from `env`.
    pub(super) fn new(url: &str, request: &OpenRequest, env: Env<'_>) -> Result<Endpoint, TargetError> {
        let config = Config::parse(url, env)?;
        let encrypted = config.ssl_mode != SslMode::Disable && matches!(config.address, Address::Tcp(..));
        let roots = || tls::roots(config.ssl_ca.as_deref(), "ssl-ca");
        let tls = encrypted.then(|| tls::client_config(config.ssl_mode, config.ssl_ca.is_some(), roots)).transpose()?;
        Ok(Endpoint {
            config,
            tls,
            asked: Arc::default(),
            request: Arc::new(request.clone()),
            sessions: OwnSessions::default(),
            of_jobs: false,
            is_proxy: false,
            node: None,
            recognised: Recognised::default(),
        })
    }

    /// This endpoint for jobs, whose sessions are recorded in `sessions`, and lead to `node` if it is one of a cluster.
    pub(super) fn for_jobs(&self, sessions: &OwnSessions, node: Option<&Member>) -> Endpoint {
        Endpoint { sessions: sessions.clone(), of_jobs: true, node: node.cloned(), ..self.clone() }
    }

    /// The proxy at `url` before this server, for jobs.
    pub(super) fn via(&self, url: &str, request: &OpenRequest) -> Result<Endpoint, TargetError> {
        let proxy = Endpoint::new(url, request, of_target(false))?;
        Ok(Endpoint { is_proxy: true, ..proxy.for_jobs(&self.sessions, None) })
    }

    /// Opens a session with the server's settings in at most this time; no password is asked for.
    pub(super) fn connect_within(&self, at_most: Duration) -> Result<Connection, TargetError> {
        let mut endpoint = self.clone();
        endpoint.config.connect_timeout = endpoint.config.connect_timeout.min(at_most);
        endpoint.attempt().map_err(|(e, _)| e)
    }

    /// Ends a call of `c`: its socket is shut down, then another session kills its session, because a busy server does not notice
    /// that. Asks through another session what the server does.
    fn canceller(&self, c: &mut Connection) -> Canceller {
        let (asked, session, shut) = (Arc::new(self.clone()), c.session, c.stream.shutter());
        let endpoint = Arc::clone(&asked);
        let cancel = move || {
            shut();
            // It may have ended already.
            let _ = endpoint.connect_within(ENDING).and_then(|mut c| c.run(&format!("KILL {session}")));
        };
        let ask = move || asked.connect_within(HASTY).and_then(|mut c| hindrance(&mut c, session));
        Canceller::new(cancel).asking(move || told(ask()))
    }

    /// Opens a session. Asks for a missing password if the server wants one. No file is read, whatever the server requests:
    /// [`Connection::load_local`] sends rows.
    pub(super) fn connect(&self) -> Result<Connection, TargetError> {
        let retry = |(e, code)| match code {
            DENIED | DENIED_NO_PASSWORD if self.ask() => self.attempt().map_err(|(e, _)| e),
            _ => Err(e),
        };
        let mut c = self.attempt().or_else(retry)?;
        c.canceller = self.canceller(&mut c);
        let at_most = self.config.connect_timeout * PATIENCE;
        c.wait_with(Some(Patience::new(&self.request.interrupted, at_most, c.canceller.clone())))?;
        self.recognised.or_ask(|| recognise(&mut c, &self.config.place()))?;
        KNOWLEDGE.session.all(c.version.release).try_for_each(|sql| c.run(sql))?;
        if c.version.is_mariadb() {
            // Not every server has a query cache.
            unless_refused(c.run("SET SESSION query_cache_type = OFF"))?;
        }
        if let Some(node) = &self.node {
            node.check_place(&mut c, &self.config.place())?;
        }
        Ok(c)
    }

    /// Connects once with the known password. An error comes with the server's error number, or 0.
    fn attempt(&self) -> Result<Connection, (TargetError, u16)> {
        let mut c = Connection::new(self.stream().map_err(|e| (e, 0))?, self.config.place());
        let connecting = Patience::new(&self.request.interrupted, self.config.connect_timeout, c.canceller.clone());
        let started = c.wait_with(Some(connecting)).and_then(|()| self.start_session(&mut c));
        match started {
            Ok(()) => {
                if self.is_proxy {
                    // The greeting is the proxy's.
                    let own = c.number("SELECT CONNECTION_ID()").map_err(|e| (e, 0))?;
                    c.session = own.map_or(c.session, |id| id as u32);
                }
                self.sessions.add(c.session, self.of_jobs, None);
                Ok(c)
            }
            // There was no session yet to lose.
            Err(TargetError::Lost(text)) => Err((TargetError::Unreachable(text), 0)),
            Err(e) => Err((e, c.last_code)),
        }
    }

    fn stream(&self) -> Result<Stream, TargetError> {
        match &self.config.address {
            Address::Unix(path) => Stream::connect_unix(path, self.config.connect_timeout).map_err(|e| {
                let advice = match e.kind() {
                    io::ErrorKind::NotFound => "there is no such socket: is the server running?",
                    io::ErrorKind::ConnectionRefused => "no server answers there: start it",
                    io::ErrorKind::PermissionDenied => "this user may not use it",
                    io::ErrorKind::WouldBlock => "no answer in time: is the server stopped?",
                    _ => "name another with ?socket=/path",
                };
                TargetError::Unreachable(format!("the socket '{}' cannot be used: {e}; {advice}", path.display()))
            }),
            Address::Tcp(host, port) => {
                Ok(Stream::Plain(self.peer().connect(host, *port, self.config.connect_timeout)?))
            }
        }
    }

    fn peer(&self) -> Peer {
        Peer { place: self.config.place(), names: &NAMES }
    }

    fn start_session(&self, c: &mut Connection) -> Result<(), TargetError> {
        let place = self.config.place();
        let first = c.packet()?;
        if first.first() == Some(&0xff) {
            return Err(self.refusal(c, &ServerError::parse(&first)));
        }
        let greeting = Greeting::parse(&first).ok_or_else(|| {
            TargetError::Unreachable(format!("the service at {place} does not speak MariaDB's or MySQL's protocol"))
        })?;
        c.version = Version::parse(&greeting.version);
        // Other products give old versions of MySQL here, so it is not yet said to be one.
        if c.version.is_mariadb() {
            c.version.check(&place)?;
        }
        c.session = greeting.session;
        let mut capabilities = CLIENT_BASE | if self.config.database.is_some() { CLIENT_CONNECT_WITH_DB } else { 0 };
        let mut safe = matches!(self.config.address, Address::Unix(_));
        if let (Some(tls), Address::Tcp(host, _)) = (&self.tls, &self.config.address) {
            if greeting.capabilities & CLIENT_SSL != 0 {
                capabilities |= CLIENT_SSL;
                protocol::packet(&mut c.out, c.number, &protocol::ssl_request(capabilities));
                let number = c.number.wrapping_add(1);
                c.send()?;
                c.encrypt(|socket| self.peer().encrypt(socket, host, tls))?;
                c.number = number;
                safe = true;
            } else if self.config.ssl_mode != SslMode::Prefer {
                return Err(refusal("no-encryption", &[("place", &place)]));
            }
        }
        self.authenticate(c, &greeting, capabilities, safe)
    }

    /// `safe`: the connection is local or encrypted, so a cleartext password may be sent.
    fn authenticate(
        &self,
        c: &mut Connection,
        greeting: &Greeting,
        capabilities: u32,
        safe: bool,
    ) -> Result<(), TargetError> {
        let known = matches!(greeting.plugin.as_str(), "mysql_native_password" | "caching_sha2_password");
        let mut plugin = if known { greeting.plugin.clone() } else { "mysql_native_password".to_owned() };
        let mut nonce = greeting.nonce.clone();
        let answer = self.answer(&plugin, &nonce, safe)?;
        let login = protocol::login(capabilities, &self.config.user, &answer, self.config.database.as_deref(), &plugin);
        protocol::packet(&mut c.out, c.number, &login);
        c.send()?;
        loop {
            let body = c.packet()?;
            let answer = match (body.first(), body.get(1)) {
                (Some(0), _) => return Ok(()),
                (Some(0xff), _) => return Err(self.refusal(c, &ServerError::parse(&body))),
                (Some(0xfe), _) => {
                    let mut r = protocol::Reader(&body[1..]);
                    plugin = r.until_zero().unwrap_or_default();
                    nonce = r.0.to_vec();
                    nonce.truncate(20);
                    self.answer(&plugin, &nonce, safe)?
                }
                // caching_sha2_password: 3 is success from the server's cache, 4 requests the cleartext password.
                (Some(1), Some(3)) => continue,
                (Some(1), Some(4)) => self.cleartext(&plugin, safe)?,
                _ => {
                    let parts = [("place", &*self.config.place()), ("plugin", &plugin), ("known", protocol::KNOWN)];
                    return Err(refusal("unknown-request", &parts));
                }
            };
            protocol::packet(&mut c.out, c.number, &answer);
            c.send()?;
        }
    }

    /// The client's answer by authentication method `plugin`.
    fn answer(&self, plugin: &str, nonce: &[u8], safe: bool) -> Result<Vec<u8>, TargetError> {
        let answer = |algorithm| {
            let of = |password: &Secret| protocol::password_answer(algorithm, password.expose().as_bytes(), nonce);
            self.password().map_or_else(Vec::new, of)
        };
        match plugin {
            // The server asks the operating system who we are.
            "unix_socket" | "auth_socket" => Ok(Vec::new()),
            "mysql_native_password" => Ok(answer(&SHA1_FOR_LEGACY_USE_ONLY)),
            "caching_sha2_password" => Ok(answer(&SHA256)),
            "mysql_clear_password" => self.cleartext(plugin, safe),
            other => {
                let parts = [("place", &*self.config.place()), ("user", &self.config.user), ("plugin", other)];
                Err(refusal("unknown-plugin", &[&parts[..], &[("known", protocol::KNOWN)]].concat()))
            }
        }
    }

    /// The cleartext password and a zero byte, if the connection is `safe`.
    fn cleartext(&self, plugin: &str, safe: bool) -> Result<Vec<u8>, TargetError> {
        if safe {
            return Ok([self.password().map_or("", Secret::expose).as_bytes(), &[0]].concat());
        }
        Err(refusal("no-cleartext", &[("place", &self.config.place()), ("plugin", plugin)]))
    }

    /// The password of URL, environment or option file, else the typed one.
    fn password(&self) -> Option<&Secret> {
        self.config.password.as_ref().or_else(|| self.asked.get())
    }

    /// Asks for the password, at most once; returns whether there is a new one.
    fn ask(&self) -> bool {
        let ask = || (self.request.ask_password)(&format!("user {} at {}", self.config.user, self.config.place()));
        self.password().is_none() && ask().map(|given| self.asked.set(given)).is_some()
    }

    fn refusal(&self, c: &mut Connection, error: &ServerError) -> TargetError {
        c.last_code = error.code;
        let (user, place) = (&self.config.user, self.config.place());
        let note = self.config.note.as_ref().map_or(String::new(), |n| format!(" ({n})"));
        let code = error.code.to_string();
        let denied = matches!(error.code, DENIED | DENIED_NO_PASSWORD);
        let code = if denied && self.password().is_none() { "no password" } else { &code };
        let advice = Meaning::advice(&KNOWLEDGE.errors, code, "").unwrap_or_default();
        let advice = advice.replace("{user}", user).replace("{note}", &note);
        TargetError::connection(error.refusal(), format!("{place} refuses the connection: {error}; {advice}"))
    }
}

/// Counters that every MySQL and MariaDB has, and that loadline's figures are compared with.
const COUNTERS: [&str; 3] = ["Handler_commit", "Innodb_data_fsyncs", "Innodb_page_size"];

/// The flavour of the server; `None` for the originals.
fn recognise(c: &mut Connection, place: &str) -> Result<Option<&'static Flavour>, TargetError> {
    // Not every product has every variable.
    let mut said = |sql: &str| unless_refused(c.value(sql)).map(Option::unwrap_or_default);
    let (version, comment) = (said("SELECT VERSION()")?, said("SELECT @@GLOBAL.version_comment")?);
    let aurora = !said("SELECT @@GLOBAL.aurora_version")?.is_empty();
    let known =
        if aurora { Some(&FLAVOURS.aurora) } else { flavour::recognised(&[&c.version.text, &version, &comment]) };
    let counted = match c.shown("GLOBAL STATUS", COUNTERS) {
        Err(TargetError::Server(e)) => match e.cause {
            Cause::FullDisk | Cause::Limit | Cause::Sessions | Cause::Privilege => {
                return Err(refusal("no-counters", &[("place", place), ("error", &e.text)]));
            }
            // A server of another kind does not know the statement.
            Cause::NotAllowed | Cause::Other => BTreeMap::new(),
        },
        counted => counted?,
    };
    let lacks: Vec<&str> = COUNTERS.into_iter().filter(|name| !counted.contains_key(*name)).collect();
    let refused = |name: &str| {
        let lacks = match lacks.is_empty() {
            true => flavour::OTHER_ENGINE.to_owned(),
            false => format!("lacks its counters {}", lacks.join(", ")),
        };
        flavour::refused(name, &format!("{version}, {comment}"), place, "MySQL", &lacks, SUPPORTED)
    };
    if let Some(flavour) = known.filter(|flavour| flavour.basis == Basis::Other) {
        return Err(refused(&flavour.name));
    }
    c.version.check(place)?;
    if lacks.is_empty() { Ok(known) } else { Err(refused("a product that loadline does not know")) }
}
