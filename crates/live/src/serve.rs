//! `loadline serve`: stored runs and runs that go on, in a browser. Read only.
//!
//! A browser sends a name, never a path: a run is looked up among the folders that [`runs::Runs`] found, and all else that an
//! address has is a number or a word of ours. [`access`] decides who may ask, [`pages`] answers. A page of a run that goes on asks again each second.

mod access;
mod http;
mod list;
mod pages;
mod runs;
mod shell;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loadline_report::RunData;

use access::Access;
use http::{Answer, Request};
use pages::PageError;
use runs::{RunError, Runs};
pub use runs::{period, read_run};

use crate::now::{Follower, Now};

/// Runs that are followed from one request to the next.
const MOST_FOLLOWED: usize = 64;
/// Connections at a time; more are closed at once.
const MOST_CONNECTIONS: usize = 256;
const STOP_WITHIN: Duration = Duration::from_millis(200);
/// Nobody is admitted for this time after a connection could not be accepted.
const REFUSED_FOR: Duration = Duration::from_millis(100);

#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The folder that holds the runs.
    pub dir: PathBuf,
    /// Token that a browser must know; needed unless only this machine can connect.
    pub token: Option<String>,
    /// Names of this machine by which browsers may ask, besides its addresses and `localhost`.
    pub names: Vec<String>,
    /// Adds what an audit finds in imported runs, as in a report.
    pub audited: fn(RunData) -> RunData,
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(
        "{0} can be reached from other machines: set LOADLINE_TOKEN to a token of 16 characters or more (`serve` has --token-file FILE \
         as well), or listen on 127.0.0.1"
    )]
    NoToken(SocketAddr),
    #[error("the token has {0} characters: 16 are the least, such as `openssl rand -hex 16` prints")]
    ShortToken(usize),
    #[error("'{}' is no folder that can be read: name the folder that holds the runs", .0.display())]
    NoFolder(PathBuf),
    #[error("cannot listen on {0}: {1}{hint}", hint = if .1.kind() == std::io::ErrorKind::AddrInUse {
        "; choose another port with --listen 127.0.0.1:PORT, 0 for any that is free" } else { "" })]
    Listen(SocketAddr, std::io::Error),
    #[error("the server ended: {0}")]
    Failed(std::io::Error),
}

/// Shared state of all requests.
struct Served {
    runs: Runs,
    access: Access,
    /// Held by who makes a page, one at a time: the machine may be measuring.
    making: Mutex<()>,
    /// The runs that were asked for as they stand, by name.
    followed: Mutex<BTreeMap<String, Follower>>,
}

impl Served {
    /// Result of `of` for the run `id` as it stands.
    fn look<T>(&self, id: &str, of: impl FnOnce(&Now) -> T) -> Result<T, RunError> {
        let path = self.runs.path(id)?;
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if followed.len() >= MOST_FOLLOWED && !followed.contains_key(id) {
            // Those that are asked for again are read again.
            followed.clear();
        }
        Ok(of(followed.entry(id.to_owned()).or_insert_with(|| Follower::new(&path)).look()))
    }
}

/// Listens on `listen`, for what asks with `token`.
pub fn listen(listen: SocketAddr, token: Option<&str>) -> Result<TcpListener, ServeError> {
    check(listen, token)?;
    TcpListener::bind(listen).map_err(|e| ServeError::Listen(listen, e))
}

fn check(listen: SocketAddr, token: Option<&str>) -> Result<(), ServeError> {
    match token.map(|token| token.chars().count()) {
        None if !listen.ip().is_loopback() => Err(ServeError::NoToken(listen)),
        Some(length) if length < 16 => Err(ServeError::ShortToken(length)),
        _ => Ok(()),
    }
}

/// Serves what comes to `listener`, made by [`listen`], until `stop` is set: the caller ends the process then. Calls `ready` once it does.
pub fn serve(
    options: ServeOptions,
    listener: TcpListener,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<(), ServeError> {
    check(listener.local_addr().map_err(ServeError::Failed)?, options.token.as_deref())?;
    let dir = std::fs::canonicalize(&options.dir).and_then(|dir| std::fs::read_dir(&dir).map(|_| dir));
    let served = Arc::new(Served {
        runs: Runs::new(dir.map_err(|_| ServeError::NoFolder(options.dir))?, options.audited),
        access: Access::new(options.token.as_deref(), options.names),
        making: Mutex::default(),
        followed: Mutex::default(),
    });
    // Best effort. Threads inherit it.
    let _ = loadline_storage::run_only_when_idle();
    // Before anybody asks: the manifests of ten thousand runs take a while the first time.
    let first = Arc::clone(&served);
    std::thread::spawn(move || first.runs.list());
    let accepting = std::thread::Builder::new().spawn(move || accept(&served, &listener));
    accepting.map_err(ServeError::Failed)?;
    ready();
    // Who asks just now is not waited for.
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(STOP_WITHIN);
    }
    Ok(())
}

fn accept(served: &Arc<Served>, listener: &TcpListener) {
    let connections = Arc::new(());
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Too many open files, say: what waits still waits, and asking at once would take a CPU.
            std::thread::sleep(REFUSED_FOR);
            continue;
        };
        if Arc::strong_count(&connections) <= MOST_CONNECTIONS {
            let (served, connection) = (Arc::clone(served), Arc::clone(&connections));
            // Without a thread the connection is closed.
            let _ = std::thread::Builder::new().spawn(move || {
                answer(&served, stream);
                drop(connection);
            });
        }
    }
}

fn answer(served: &Arc<Served>, mut stream: TcpStream) {
    let (answer, with_body) = match http::read(&mut stream) {
        Ok(None) => return,
        Err(status) => (shell::problem(status, "This is no request that is understood here."), true),
        Ok(Some(request)) => {
            let answer = served.access.refusal(&request).unwrap_or_else(|| {
                let made = catch_unwind(AssertUnwindSafe(|| route(served, &request)));
                made.unwrap_or(Err(PageError::Defect)).unwrap_or_else(PageError::answer)
            });
            (answer, request.method != "HEAD")
        }
    };
    // Who asked may have hung up.
    let _ = http::write(&mut stream, access::guarded(answer), with_body);
}

fn route(served: &Arc<Served>, request: &Request) -> Result<Answer, PageError> {
    let file = |kind: &str, text: &str| Ok(Answer::new(kind, text.as_bytes().to_vec()));
    let parts = request.parts().ok_or_else(|| PageError::Asked("this address is no text".to_owned()))?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let query = request.query.as_str();
    match parts.as_slice() {
        ["login"] if request.method == "POST" => return Ok(served.access.login(&request.body)),
        ["login"] => return Ok(access::token_form(200, "")),
        ["serve.js"] => return file("text/javascript; charset=utf-8", include_str!("serve/serve.js")),
        ["serve.css"] => return file("text/css; charset=utf-8", include_str!("serve/serve.css")),
        ["favicon.ico"] => return Ok(Answer { status: 204, headers: Vec::new(), body: Vec::new() }),
        // It takes little, and comes at a given time.
        ["metrics"] => return pages::metrics(served),
        _ => {}
    }
    let _making = served.making.lock().unwrap_or_else(PoisonError::into_inner);
    let page = match parts.as_slice() {
        [""] => pages::list(served, query)?,
        ["compare"] => pages::compare(served, query)?,
        ["side-by-side"] => pages::side_by_side(served, query)?,
        ["trend"] => pages::trend(served, query)?,
        ["example"] => pages::example()?,
        ["forecast"] => pages::forecast(served, query)?,
        ["runs", id, ""] => pages::run(served, id)?,
        ["runs", id, "live"] => pages::live(served, id)?,
        ["runs", id, page] => return pages::part(served, id, page),
        _ => return Ok(shell::problem(404, "There is no such page.")),
    };
    Ok(Answer::html(200, page))
}
