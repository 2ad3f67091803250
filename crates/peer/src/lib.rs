//! A scripted server: speaks PostgreSQL's or MySQL's protocol to any number of sessions, and does no work. For tests and
//! benches of the client: what loadline itself costs with 10,000 sessions cannot be seen beside a server that needs a process
//! for each.
//!
//! It answers what job sessions send: the login, prepared statements, transactions, simple statements. A statement that
//! returns rows gets [`Options::rows`] of them, one that changes rows says that it changed as many. Nothing is stored, so
//! figures against it are of the client only.
//!
//! All else that loadline asks a server (version, settings, tables, counters) is too much for a script. With
//! [`Options::behind`] such sessions are passed on to a real server: `loadline run --driver client` then works against the peer,
//! and its tests are invalid, as they must be, because the real server has seen no commit. PostgreSQL's job sessions are known by
//! their application name, MySQL's by what they send first; the ids of MySQL's sessions are then the peer's, not the server's. The
//! in-database driver has no script.
//!
//! Read `serve.rs` next: a few threads, each with an event loop; `postgres.rs` and `mysql.rs` are pure functions of bytes.

mod behind;
mod limit;
mod mysql;
mod postgres;
mod serve;
mod socket;
mod statement;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub use limit::raise_open_files;
use serve::Server;
use socket::Listener;

/// The protocol that a peer speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// PostgreSQL's, version 3.
    Postgres,
    /// MySQL's and MariaDB's, version 10.
    Mysql,
}

/// Where a peer listens.
#[derive(Debug, Clone)]
pub enum Listen {
    /// A Unix socket of this path. Made by the peer, and removed when it ends.
    Unix(PathBuf),
    /// An address; port 0 is one that is free. A client has some 28,000 ports for one address.
    Tcp(SocketAddr),
}

/// What a peer does.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its protocol.
    pub protocol: Protocol,
    /// Where it listens.
    pub listen: Listen,
    /// Time from a statement to its answer.
    pub delay: Duration,
    /// Rows that each statement returns or changes.
    pub rows: u32,
    /// Socket of a real server of the same protocol for all sessions that are no job's.
    pub behind: Option<PathBuf>,
    /// Threads that serve the sessions, at least 1.
    pub threads: usize,
}

impl Options {
    /// A peer at `listen` that answers at once with one row, on one thread.
    #[must_use]
    pub fn new(protocol: Protocol, listen: Listen) -> Options {
        Options { protocol, listen, delay: Duration::ZERO, rows: 1, behind: None, threads: 1 }
    }
}

/// Why a peer cannot start.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// The socket cannot be made.
    #[error("the peer cannot listen at {place}: {source}")]
    Listen {
        /// Where.
        place: String,
        /// Why.
        source: io::Error,
    },
    /// The real server behind it does not answer as one of its protocol.
    #[error("the server behind the peer, '{path}', does not answer: {source}")]
    Behind {
        /// Its socket.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The system refused what its event loops need.
    #[error("the peer's event loop cannot start: {0}")]
    Loop(#[from] io::Error),
}

/// What its sessions have done.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) opened: AtomicU64,
    pub(crate) open: AtomicU64,
    pub(crate) statements: AtomicU64,
}

/// A running peer. It ends when this is dropped.
#[derive(Debug)]
pub struct Peer {
    stop: Arc<AtomicBool>,
    counts: Arc<Counts>,
    threads: Vec<JoinHandle<()>>,
    listen: Listen,
    address: Option<SocketAddr>,
}

impl Peer {
    /// Listens and serves.
    ///
    /// # Errors
    /// [`PeerError`].
    pub fn start(options: &Options) -> Result<Peer, PeerError> {
        let listener = Listener::open(&options.listen)?;
        let address = listener.address();
        let version = match (&options.behind, options.protocol) {
            (Some(path), Protocol::Mysql) => mysql::version_of(path)
                .map_err(|source| PeerError::Behind { path: path.display().to_string(), source })?,
            _ => mysql::VERSION.to_owned(),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let counts = Arc::new(Counts::default());
        let mut peer = Peer {
            stop: Arc::clone(&stop),
            counts: Arc::clone(&counts),
            threads: Vec::new(),
            listen: options.listen.clone(),
            address,
        };
        for n in 0..options.threads.max(1) {
            let server = Server::new(listener.again()?, options, &version, &stop, &counts)?;
            let thread = std::thread::Builder::new().name(format!("peer {n}")).spawn(move || server.run())?;
            peer.threads.push(thread);
        }
        Ok(peer)
    }

    /// Its address, if it listens at one.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Sessions that have been opened.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.counts.opened.load(Ordering::Relaxed)
    }

    /// Sessions that are open now.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.counts.open.load(Ordering::Relaxed)
    }

    /// Statements that have been executed, those of transactions (BEGIN, COMMIT) included.
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.counts.statements.load(Ordering::Relaxed)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing more to end.
            let _ = thread.join();
        }
        if let Listen::Unix(path) = &self.listen {
            let _ = std::fs::remove_file(path);
        }
    }
}
