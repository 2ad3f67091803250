//! A scripted server: speaks PostgreSQL's protocol to any number of sessions, and does no work. What loadline itself costs with
//! 10,000 sessions cannot be seen beside a server that needs a process for each.
//!
//! It answers what job sessions send: the login, prepared statements, transactions, simple statements. A statement that
//! returns rows gets one, one that changes rows says that it changed one. Nothing is stored, so figures against it are of the
//! client only.
//!
//! All else that loadline asks a server (version, settings, tables, counters) is too much for a script. With a server behind it,
//! such sessions are passed on: `loadline run --driver client` then works against the peer, and its tests are invalid, as they
//! must be, because the real server has seen no commit. Job sessions are known by their application name. The in-database driver
//! has no script.
//!
//! Read `peer/postgres.rs` next: a session is a pure function of bytes.

mod postgres;
mod statement;
#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{Backlog, listen};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf, copy_bidirectional};
use tokio::net::{UnixListener, UnixStream};

use crate::arena::Outcome;
use postgres::{Session, Step};

/// Pause after a client that could not be accepted.
const PAUSE: Duration = Duration::from_millis(10);

/// Options of the scripted server.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Listen at this Unix socket; PostgreSQL's clients expect the name .s.PGSQL.PORT
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Socket of a real server, to which all sessions but those of jobs are passed on
    #[arg(long, value_name = "PATH")]
    behind: Option<PathBuf>,
    /// Sessions for which the limit of open files must suffice
    #[arg(long, default_value_t = 100_000)]
    sessions: u32,
}

/// Serves until the process is ended; says once a second what has changed.
pub(crate) fn run(args: &Args) -> Outcome<()> {
    // Beside the sessions: libraries, the event loop, those that are passed on.
    if let Err(why) = raise_open_files(u64::from(args.sessions) + 100) {
        eprintln!("loadline-bench: {why}");
    }
    let peer = Peer::start(&args.socket, args.behind.clone())?;
    println!("listening");
    let mut said = (0, 0);
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let now = (peer.open(), peer.statements());
        if said != now {
            said = now;
            println!("{} sessions open, {} opened, {} statements", now.0, peer.opened(), now.1);
        }
    }
}

/// A peer, which serves until the process ends.
struct Peer(Arc<Counts>);

/// What its sessions have done.
#[derive(Debug, Default)]
struct Counts {
    opened: AtomicU64,
    open: AtomicU64,
    statements: AtomicU64,
}

impl Peer {
    /// Listens at `socket` and serves, on one thread.
    fn start(socket: &Path, behind: Option<PathBuf>) -> io::Result<Peer> {
        let place =
            |e: io::Error| io::Error::new(e.kind(), format!("the peer cannot listen at {}: {e}", socket.display()));
        let listener = std::os::unix::net::UnixListener::bind(socket).map_err(place)?;
        listener.set_nonblocking(true)?;
        // Thousands connect at a time: as many may wait as the system allows (net.core.somaxconn).
        listen(&listener, Backlog::MAXALLOWABLE)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let counts = Arc::<Counts>::default();
        let peer = Peer(Arc::clone(&counts));
        let accept = move || runtime.block_on(accept(listener, behind.map(Arc::from), counts));
        std::thread::Builder::new().name("peer".to_owned()).spawn(accept)?;
        Ok(peer)
    }

    /// Sessions that have been opened.
    fn opened(&self) -> u64 {
        self.0.opened.load(Ordering::Relaxed)
    }

    /// Sessions of the script that are open now.
    fn open(&self) -> u64 {
        self.0.open.load(Ordering::Relaxed)
    }

    /// Statements that have been executed, those of transactions (BEGIN, COMMIT) included.
    fn statements(&self) -> u64 {
        self.0.statements.load(Ordering::Relaxed)
    }
}

async fn accept(
    listener: std::os::unix::net::UnixListener,
    behind: Option<Arc<Path>>,
    counts: Arc<Counts>,
) -> io::Result<()> {
    let listener = UnixListener::from_std(listener)?;
    loop {
        // No free file descriptor, for example: the client waits, and the loop comes back to it.
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (behind, counts) = (behind.clone(), Arc::clone(&counts));
        tokio::spawn(async move {
            let number = counts.opened.fetch_add(1, Ordering::Relaxed) + 1;
            counts.open.fetch_add(1, Ordering::Relaxed);
            let mut socket = socket;
            let passed_on = answer(&mut socket, number as u32, behind.is_some(), &counts).await;
            counts.open.fetch_sub(1, Ordering::Relaxed);
            // A client whose server does not answer sees its session end, as one that breaks off.
            if let (Ok(Some(first)), Some(behind)) = (passed_on, behind) {
                let _ = pass_on(socket, &behind, &first).await;
            }
        });
    }
}

/// Answers a session until it ends. Returns what it has said so far if it is one for the server behind.
async fn answer(socket: &mut UnixStream, number: u32, behind: bool, counts: &Counts) -> io::Result<Option<Vec<u8>>> {
    let mut session = Session::new(number);
    let (mut input, mut output) = (Vec::new(), Vec::new());
    while read(socket, &mut input).await? > 0 {
        let mut done = 0;
        loop {
            match session.answer(input.get(done..).unwrap_or_default(), behind, &mut output) {
                Step::Answered { used, executed } => {
                    done += used;
                    counts.statements.fetch_add(u64::from(executed), Ordering::Relaxed);
                }
                Step::Wait => break,
                Step::PassOn => return Ok(Some(input.split_off(done))),
                Step::Close => return Ok(None),
            }
        }
        input.drain(..done);
        socket.write_all(&output).await?;
        output.clear();
    }
    Ok(None)
}

/// Reads once; returns the number of bytes. The buffer is that of a poll: sessions that wait have none.
async fn read(socket: &mut UnixStream, input: &mut Vec<u8>) -> io::Result<usize> {
    poll_fn(|cx| {
        let mut bytes = [0; 4096];
        let mut piece = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut *socket).poll_read(cx, &mut piece))?;
        input.extend_from_slice(piece.filled());
        Poll::Ready(Ok(piece.filled().len()))
    })
    .await
}

/// Sends `first` to the server, and then all that each side says to the other, until one of them ends.
async fn pass_on(mut client: UnixStream, behind: &Path, first: &[u8]) -> io::Result<()> {
    let mut server = UnixStream::connect(behind).await?;
    server.write_all(first).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

/// Raises this process's limit of open files as far as it may; returns the limit.
///
/// # Errors
/// What stands in the way and what to do, if it stays below `wanted`.
pub(crate) fn raise_open_files(wanted: u64) -> Result<u64, String> {
    let failed = |e: nix::Error| format!("the limit of open files cannot be read: {e}");
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(failed)?;
    let most = std::fs::read_to_string("/proc/sys/fs/nr_open").ok().and_then(|most| most.trim().parse().ok());
    let raised = most.is_some_and(|most| setrlimit(Resource::RLIMIT_NOFILE, most, most).is_ok());
    if !raised {
        // Without the privilege to raise the hard limit, the soft one can be raised to it.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE).map_err(failed)?;
    if limit >= wanted {
        return Ok(limit);
    }
    Err(format!(
        "{wanted} open files are needed and {limit} are allowed: raise 'ulimit -n' (and, as root, sysctl fs.nr_open), or take fewer sessions"
    ))
}
