//! The hub: a NATS server, spoken to by a thread of its own; the only file that knows NATS. To a coordinator it is a [`Link`], which
//! tests simulate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use futures_util::stream::{SelectAll, StreamExt, select_all};
use loadline_storage::now_ns;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::agent::BEAT_NS;
use crate::message::{Message, NEEDED, Order, Received, TO_ALL, to_agent, to_run};

/// How long the first connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// Time between two attempts to connect again.
const AGAIN: Duration = Duration::from_millis(200);
/// How long what was said last may take to get out.
const FLUSH: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub struct HubOptions {
    /// `nats://host:port`, `tls://host:port`, with a token or a user and a password in it, if so.
    pub url: String,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    #[error("{0}")]
    Usage(String),
    /// It does not answer, or refuses: its URL without secrets, and why.
    #[error("the hub {0} {1}")]
    Unreachable(String, String),
}

pub(crate) struct Hub {
    /// Subjects and messages to them.
    out: Option<UnboundedSender<(String, Vec<u8>)>>,
    thread: Option<JoinHandle<()>>,
    state: Arc<Mutex<State>>,
    /// Whether nobody between here and the hub can read what is said: TLS, or the same machine.
    pub(crate) private: bool,
}

/// Messages to send, and the last fault of the connection.
#[derive(Debug, Default)]
struct State {
    /// The run of which is said that it goes on.
    run: Option<String>,
    last: Option<Trouble>,
}

#[derive(Debug)]
struct Trouble {
    from_ns: u64,
    /// `None`: the hub is away.
    until_ns: Option<u64>,
    /// Refusal of the hub; `None`: the connection broke.
    refusal: Option<String>,
}

impl State {
    fn away(&self) -> bool {
        self.last.as_ref().is_some_and(|last| last.until_ns.is_none())
    }

    fn note(&mut self, refusal: Option<String>) {
        if !self.away() {
            let now = now_ns();
            self.last = Some(Trouble { from_ns: now, until_ns: refusal.is_some().then_some(now), refusal });
        }
    }
}

/// The state of a connection, also after a panic.
fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    /// Connects, and listens to these subjects: what comes is handed to `on`.
    pub(crate) fn connect(
        options: &HubOptions,
        subjects: &[String],
        on: impl Fn(Received) + Send + 'static,
    ) -> Result<Hub, HubError> {
        loadline_database::choose_cryptography();
        let state = Arc::new(Mutex::new(State::default()));
        let usage = |e: std::io::Error| HubError::Usage(format!("no thread can be started for the hub: {e}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(usage)?;
        let (client, heard, private) = match runtime.block_on(connect(options, subjects, Arc::clone(&state))) {
            Ok(connected) => connected,
            Err(e) => {
                // A name that does not resolve is looked for in a thread that nothing ends.
                runtime.shutdown_background();
                return Err(e);
            }
        };
        let (out, orders) = unbounded_channel();
        let of_thread = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name("hub".to_owned())
            .spawn(move || runtime.block_on(talk(&client, heard, orders, &of_thread, on)))
            .map_err(usage)?;
        Ok(Hub { out: Some(out), thread: Some(thread), state, private })
    }

    /// Sends. What cannot be sent because the hub is away is lost: it would come too late.
    pub(crate) fn publish<B: Serialize>(&self, subject: &str, message: &Message<B>) {
        if let Some(out) = self.out.as_ref()
            && !locked(&self.state).away()
        {
            let _ = out.send((subject.to_owned(), message.bytes()));
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.out = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Address of a hub.
fn address(url: &str) -> Result<ServerAddr, HubError> {
    let known = ["nats://", "tls://"].iter().any(|scheme| url.starts_with(scheme));
    let server = url.parse().ok().filter(|server: &ServerAddr| known && !server.host().is_empty());
    server.ok_or_else(|| {
        HubError::Usage(format!(
            "'{}' is no URL of a hub: write nats://HOST:PORT or tls://HOST:PORT, with a token@ or user:password@ before HOST if the hub \
             asks for one",
            loadline_database::redact(url)
        ))
    })
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

type Heard = SelectAll<async_nats::Subscriber>;

async fn connect(
    options: &HubOptions,
    subjects: &[String],
    state: Arc<Mutex<State>>,
) -> Result<(Client, Heard, bool), HubError> {
    let server = address(&options.url)?;
    let url = loadline_database::redact(&options.url);
    let unreachable = |why: String| HubError::Unreachable(url.clone(), why);
    let (host, tls) = (server.host().to_owned(), options.url.starts_with("tls://"));
    let mut with = ConnectOptions::new()
        .name(&options.name)
        .connection_timeout(CONNECT)
        .require_tls(tls)
        // Only the hub that was named: another one may be reached in another way.
        .ignore_discovered_servers()
        .max_reconnects(None)
        .reconnect_delay_callback(|_| AGAIN)
        .subscription_capacity(1 << 16)
        .event_callback(move |event| {
            let mut state = locked(&state);
            match event {
                Event::Connected => {
                    if let Some(last) = &mut state.last {
                        last.until_ns.get_or_insert_with(now_ns);
                    }
                }
                Event::Disconnected | Event::Closed => state.note(None),
                Event::ServerError(e) => state.note(Some(format!("the hub says: {e}"))),
                Event::SlowConsumer(_) => {
                    state.note(Some("messages of the hub came faster than they were read".to_owned()))
                }
                // The server asks to be left, and closes soon.
                _ => {}
            }
            async {}
        });
    match (server.username(), server.password()) {
        (Some(user), Some(password)) => {
            with = with.user_and_password(decoded(user), decoded(password));
        }
        (Some(token), None) => with = with.token(decoded(token)),
        _ => {}
    }
    let connecting = tokio::time::timeout(CONNECT, with.connect(server)).await;
    let client = connecting
        .map_err(|_| unreachable(format!("did not answer within {} s", CONNECT.as_secs())))?
        .map_err(|e| unreachable(refusal(&e)))?;
    let most = client.server_info().max_payload;
    if most < NEEDED {
        return Err(unreachable(format!("takes messages of {most} bytes, {NEEDED} are needed: raise max_payload")));
    }
    let mut heard = Vec::new();
    for subject in subjects {
        let subscribed = client.subscribe(subject.clone()).await;
        heard.push(subscribed.map_err(|e| unreachable(format!("refuses to be listened to at {subject}: {e}")))?);
    }
    // So that nothing that is said from now on is missed.
    client.flush().await.map_err(|e| unreachable(format!("took no message: {e}")))?;
    let private = tls || client.server_info().tls_required || is_loopback(&host);
    Ok((client, select_all(heard), private))
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn refusal(error: &async_nats::ConnectError) -> String {
    use async_nats::ConnectErrorKind as K;
    match error.kind() {
        K::AuthorizationViolation => {
            "refuses: the token, or the user and the password, in its URL is missing or wrong".to_owned()
        }
        // An unknown certificate is told as an error of input and output.
        K::Tls | K::Io if error.kind() == K::Tls || error.to_string().contains("certificate") => {
            format!(
                "cannot be spoken to by TLS ({error}); if its certificate is by an authority of your own, name that one's file in SSL_CERT_FILE"
            )
        }
        K::TimedOut => format!("did not answer within {} s", CONNECT.as_secs()),
        _ => format!("cannot be reached: {error}"),
    }
}

/// Hears and says until nobody says anything any more.
async fn talk(
    client: &Client,
    mut heard: Heard,
    mut orders: UnboundedReceiver<(String, Vec<u8>)>,
    state: &Mutex<State>,
    on: impl Fn(Received),
) {
    let mut beats = tokio::time::interval(Duration::from_nanos(BEAT_NS));
    beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            message = heard.next() => match message {
                Some(message) => on(Received { at_ns: now_ns(), bytes: message.payload.to_vec() }),
                None => break,
            },
            order = orders.recv() => {
                let Some((subject, bytes)) = order else { break };
                let length = bytes.len();
                if let Err(e) = client.publish(subject, bytes.into()).await {
                    locked(state).note(Some(format!("a message of {length} bytes could not be sent: {e}")));
                }
            }
            _ = beats.tick() => {
                let run = locked(state).run.clone();
                if let Some(run) = run {
                    let _ = client.publish(TO_ALL, Message::new(&run, 0, "", Order::Beat).bytes().into()).await;
                }
            }
        }
    }
    let _ = tokio::time::timeout(FLUSH, client.flush()).await;
}

/// Longest wait for anything, so that a signal is noticed.
pub(crate) const LOOK_NS: u64 = 100_000_000;

/// A coordinator's side of the hub.
pub(crate) trait Link {
    fn now_ns(&self) -> u64;

    /// Sends an order to the agent with this id, or to all. What cannot be sent is lost.
    fn send(&mut self, agent: Option<&str>, order: &Message<Order>);

    /// Next event for this coordinator; waits for it until `until_ns` at most.
    fn receive(&mut self, until_ns: u64) -> Option<Received>;

    /// From now on says once a second that this run goes on, until `None` is given. It does not depend on [`Link::receive`].
    fn beat(&mut self, run: Option<&str>);

    /// Fault of the hub now, or since `since_ns`.
    fn trouble(&self, _since_ns: u64) -> Option<String> {
        None
    }

    fn interrupted(&self) -> bool {
        false
    }
}

/// A coordinator's connection to the hub.
pub struct HubLink {
    pub(crate) hub: Hub,
    inbox: Receiver<Received>,
    interrupted: Arc<AtomicBool>,
}

impl HubLink {
    /// Connects, to hear what is said to `asker`.
    pub fn connect(options: &HubOptions, asker: &str, interrupted: Arc<AtomicBool>) -> Result<HubLink, HubError> {
        let (heard, inbox) = channel();
        let hub = Hub::connect(options, &[to_run(asker)], move |received| drop(heard.send(received)))?;
        Ok(HubLink { hub, inbox, interrupted })
    }
}

impl Link for HubLink {
    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn send(&mut self, agent: Option<&str>, order: &Message<Order>) {
        self.hub.publish(&agent.map_or_else(|| TO_ALL.to_owned(), to_agent), order);
    }

    fn receive(&mut self, until_ns: u64) -> Option<Received> {
        let left_ns = until_ns.saturating_sub(now_ns());
        self.inbox.recv_timeout(Duration::from_nanos(left_ns.min(LOOK_NS))).ok()
    }

    fn beat(&mut self, run: Option<&str>) {
        locked(&self.hub.state).run = run.map(str::to_owned);
    }

    fn trouble(&self, since_ns: u64) -> Option<String> {
        let state = locked(&self.hub.state);
        let last = state.last.as_ref()?;
        let seconds = |until_ns: u64| until_ns.saturating_sub(last.from_ns) as f64 / 1e9;
        Some(match (&last.refusal, last.until_ns) {
            (_, Some(until_ns)) if until_ns <= since_ns => return None,
            (Some(what), _) => what.clone(),
            (None, Some(until_ns)) => format!("the connection to the hub was broken for {:.1} s", seconds(until_ns)),
            (None, None) => format!("the connection to the hub broke {:.1} s ago", seconds(now_ns())),
        })
    }

    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
