//! `loadline serve`: stored runs and runs that go on, in a browser. Read only.
//!
//! What a browser sends is a name, never a path: a run is looked up among the folders that [`runs::Runs`] found, and all else that an
//! address has is a number or a word of ours. [`access`] decides who may ask, [`pages`] answers, [`events`] sends what is new.

mod access;
mod events;
mod list;
mod metrics;
mod pages;
mod runs;
mod shell;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::{get, post};
use loadline_report::RunData;
use tokio::sync::Semaphore;

use access::Access;
use runs::Runs;

/// Pages made at a time: the machine may be measuring.
const PAGES_AT_A_TIME: usize = 2;
/// Browsers that follow runs at a time.
const MOST_FOLLOWED: usize = 64;

/// What to serve and to whom.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The folder that holds the runs.
    pub dir: PathBuf,
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Token that a browser must know; needed unless only this machine can connect.
    pub token: Option<String>,
    /// Names of this machine by which browsers may ask, besides its addresses and `localhost`.
    pub names: Vec<String>,
    /// Ends as well once standard input does: a server that another loadline started ends with it.
    pub until_stdin_ends: bool,
    /// Adds what an audit finds in imported runs, as in a report.
    pub audited: fn(RunData) -> RunData,
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Others could connect, and there is no token.
    #[error(
        "{0} can be reached from other machines: write a token of 16 characters or more into a file and give --token-file FILE, or set \
         LOADLINE_TOKEN; or listen on 127.0.0.1, the default"
    )]
    NoToken(SocketAddr),
    /// A token that can be guessed.
    #[error("the token has {0} characters: 16 are the least, such as `openssl rand -hex 16` prints")]
    ShortToken(usize),
    /// The folder cannot be read.
    #[error("'{}' is no folder that can be read: name the folder that holds the runs", .0.display())]
    NoFolder(PathBuf),
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}{hint}", hint = if .1.kind() == std::io::ErrorKind::AddrInUse {
        "; choose another port with --listen 127.0.0.1:PORT, 0 for any that is free" } else { "" })]
    Listen(SocketAddr, std::io::Error),
    /// The server ended by an error.
    #[error("the server ended: {0}")]
    Failed(std::io::Error),
}

/// What all requests share.
struct Served {
    runs: Runs,
    access: Access,
    /// Permits to make a page.
    making: Semaphore,
    /// Permits to follow a run.
    following: Arc<Semaphore>,
    /// Runs that `/metrics` follows.
    followed: Mutex<metrics::Followed>,
}

/// Serves until SIGINT or SIGTERM. Calls `ready` with the address once it listens.
///
/// # Errors
/// [`ServeError`].
pub fn serve(options: ServeOptions, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    match &options.token {
        None if !options.listen.ip().is_loopback() => return Err(ServeError::NoToken(options.listen)),
        Some(token) if token.chars().count() < 16 => return Err(ServeError::ShortToken(token.chars().count())),
        _ => {}
    }
    let dir = std::fs::canonicalize(&options.dir).map_err(|_| ServeError::NoFolder(options.dir.clone()))?;
    if std::fs::read_dir(&dir).is_err() {
        return Err(ServeError::NoFolder(options.dir));
    }
    let served = Arc::new(Served {
        runs: Runs::new(dir, options.audited),
        access: Access::new(options.token.as_deref(), options.names),
        making: Semaphore::new(PAGES_AT_A_TIME),
        following: Arc::new(Semaphore::new(MOST_FOLLOWED)),
        followed: Mutex::default(),
    });
    // Best effort. Threads of the runtime inherit it.
    let _ = loadline_storage::run_only_when_idle();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Failed)?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(options.listen).await;
        let listener = listener.map_err(|e| ServeError::Listen(options.listen, e))?;
        ready(listener.local_addr().map_err(ServeError::Failed)?);
        // Before anybody asks: the manifests of ten thousand runs take a while the first time.
        let first = Arc::clone(&served);
        drop(tokio::task::spawn_blocking(move || first.runs.list()));
        let ended = axum::serve(listener, router(served)).into_future();
        // Browsers that follow a run never hang up: they are not waited for.
        tokio::select! {
            ended = ended => ended.map_err(ServeError::Failed),
            () = stopped() => Ok(()),
            () = stdin_ended(options.until_stdin_ends) => Ok(()),
        }
    })
}

/// Waits for SIGINT or SIGTERM.
pub(crate) async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! { _ = interrupt.recv() => (), _ = terminate.recv() => () }
}

/// Waits for the end of standard input if `wanted`, else for ever.
pub(crate) async fn stdin_ended(wanted: bool) {
    if !wanted {
        return std::future::pending().await;
    }
    let (over, ended) = tokio::sync::oneshot::channel();
    // A thread of its own, which the runtime does not wait for.
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = over.send(());
    });
    let _ = ended.await;
}

fn router(served: Arc<Served>) -> Router {
    let file = |kind: &'static str, text: &'static str| {
        get(move || async move { ([(header::CONTENT_TYPE, kind)], text).into_response() })
    };
    Router::new()
        .route("/", get(pages::list))
        .route("/compare", get(pages::compare))
        .route("/side-by-side", get(pages::side_by_side))
        .route("/trend", get(pages::trend))
        .route("/forecast", get(pages::forecast))
        .route("/runs/{run}/", get(pages::run))
        .route("/runs/{run}/live", get(pages::live))
        .route("/runs/{run}/events", get(events::events))
        .route("/runs/{run}/{page}", get(pages::part))
        .route("/metrics", get(metrics::metrics))
        .route("/login", get(access::login_page).merge(post(access::login)))
        .route("/serve.js", file("text/javascript; charset=utf-8", include_str!("serve/serve.js")))
        .route("/serve.css", file("text/css; charset=utf-8", include_str!("serve/serve.css")))
        .route("/favicon.ico", get(|| async { StatusCode::NO_CONTENT }))
        .fallback(|| async { shell::problem(StatusCode::NOT_FOUND, "There is no such page.") })
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&served), access::guard))
        .with_state(served)
}
