//! A link of our own between a database and a replica: a relay of byte streams, whose one-way delay can be changed while it is in
//! use. It connects to the database by a Unix socket, and the replica to it by another or, if it knows no such way, at the loopback
//! address ([`listener`]).
//!
//! Each connection has two [`Queue`]s, one per direction, each with a thread that receives and one that sends. A piece is due
//! its delay after the moment in which it was received. The probes that measure the round trip are connections of the same kind
//! ([`Prober`]).
//!
//! A relay passes 1 GiB/s and more. Its memory is bounded: what is under way at that rate, at most 1 GiB and usually little,
//! because a log is written more slowly.

mod listener;
mod probe;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use loadline_storage::now_ns;

use listener::Listener;
pub(crate) use probe::Prober;

/// Most bytes of a read.
const READ: usize = 256 << 10;
/// Bytes per ns for which a queue suffices: 1 GiB/s.
const FAST: f64 = 1.073_741_824;
/// Bytes that may wait besides those under way, and the most of both, however long the link is.
const BESIDES: u64 = 8 << 20;
const MOST: u64 = 1 << 30;
/// Pause between two looks whether a full queue has become shorter.
const FULL: Duration = Duration::from_millis(1);
/// Empty buffers of a direction that are kept.
const SPARES: usize = 8;
/// Memory of a piece beside its bytes.
const PIECE: usize = size_of::<Piece>() + 16;

/// A listening relay. Dropping it closes its connections and removes its socket.
pub struct Relay {
    socket: Option<PathBuf>,
    link: Arc<Shared>,
    /// Other end ends the listener.
    wake: UnixStream,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    /// One-way delay, ns.
    delay_ns: Arc<AtomicU64>,
    /// Of all connections but probes.
    bytes: Arc<AtomicU64>,
    /// Set when it is dropped.
    stopping: AtomicBool,
    open: Mutex<Vec<Weak<Ends>>>,
}

struct Ends([UnixStream; 2]);

impl Ends {
    fn close(&self) {
        for end in &self.0 {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

impl Relay {
    /// Listens at `socket`, and connects each that comes to `server`.
    pub fn start(socket: &Path, server: &Path) -> io::Result<Relay> {
        let mut relay = Relay::new(Listener::at(socket)?, server)?;
        relay.socket = Some(socket.to_owned());
        Ok(relay)
    }

    /// Listens at a port of the loopback address, which is returned, and connects each that comes to `server` if it is a
    /// process of the user `uid`.
    pub(crate) fn on_loopback(uid: u32, server: &Path) -> io::Result<(Relay, u16)> {
        let (listener, port) = Listener::on_loopback(uid)?;
        Ok((Relay::new(listener, server)?, port))
    }

    fn new(listening: Listener, server: &Path) -> io::Result<Relay> {
        let (wake, woken) = UnixStream::pair()?;
        let link = Arc::new(Shared {
            delay_ns: Arc::default(),
            bytes: Arc::default(),
            stopping: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let (shared, server) = (Arc::clone(&link), server.to_owned());
        let accept = move || {
            loop {
                let mut waits = [&listening.as_fd(), &woken.as_fd()].map(|fd| PollFd::new(*fd, PollFlags::POLLIN));
                let _ = poll(&mut waits, PollTimeout::NONE);
                if shared.stopping.load(Ordering::Acquire) {
                    return;
                }
                // A server that is not there: the client sees a closed connection and tries again.
                if let (Ok(client), Ok(server)) = (listening.accept(), UnixStream::connect(&server)) {
                    let _ = shared.join(client, server, Some(Arc::clone(&shared.bytes)));
                }
            }
        };
        let listener = std::thread::Builder::new().name("link".into()).spawn(accept)?;
        Ok(Relay { socket: None, link, wake, listener: Some(listener) })
    }

    /// Changes the one-way delay, at once and in both directions; what is under way arrives as it would have.
    pub fn set_delay(&self, delay: Duration) {
        self.link.delay_ns.store(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Bytes received so far, both directions together, without probes.
    pub(crate) fn bytes(&self) -> u64 {
        self.link.bytes.load(Ordering::Relaxed)
    }

    /// Closes all connections; new ones may come.
    pub(crate) fn close_all(&self) {
        let open = self.link.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().filter_map(Weak::upgrade).for_each(|ends| ends.close());
    }

    pub(crate) fn prober(&self) -> io::Result<Prober> {
        Prober::start(|near, far| self.link.join(near, far, None))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.link.stopping.store(true, Ordering::Release);
        let _ = self.wake.shutdown(Shutdown::Both);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        self.close_all();
        if let Some(socket) = &self.socket {
            let _ = std::fs::remove_file(socket);
        }
    }
}

impl Shared {
    /// Relays between two ends until one of them closes.
    fn join(&self, near: UnixStream, far: UnixStream, bytes: Option<Arc<AtomicU64>>) -> io::Result<()> {
        let ends = Arc::new(Ends([near, far]));
        for from in [0, 1] {
            let pump = || -> io::Result<()> {
                let thread = |name: &str| std::thread::Builder::new().name(name.into());
                let ((pieces, due), (empty, spares)) = (channel(), sync_channel(SPARES));
                let held = Arc::new(AtomicUsize::new(0));
                let (of_sender, sent) = (Arc::clone(&ends), Arc::clone(&held));
                thread("link out").spawn(move || {
                    send(&of_sender.0[1 - from], &due, &empty, &sent);
                    // Everything that was received has been sent, or cannot be.
                    of_sender.close();
                })?;
                let queue = Queue { pieces, spares, held };
                let (ends, delay_ns, bytes) = (Arc::clone(&ends), Arc::clone(&self.delay_ns), bytes.clone());
                thread("link in")
                    .spawn(move || receive(&ends.0[from], &ends.0[1 - from], &queue, &delay_ns, bytes.as_deref()))?;
                Ok(())
            };
            if let Err(e) = pump() {
                ends.close();
                return Err(e);
            }
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|ends| ends.strong_count() > 0);
        open.push(Arc::downgrade(&ends));
        if self.stopping.load(Ordering::Acquire) {
            ends.close();
        }
        Ok(())
    }
}

/// Bytes received in one read.
struct Piece {
    due_ns: u64,
    /// The first `len` bytes are its own.
    bytes: Vec<u8>,
    len: usize,
}

/// The pieces of one direction of a connection that are under way, in order.
struct Queue {
    pieces: Sender<Piece>,
    /// Buffers of pieces that were sent.
    spares: Receiver<Vec<u8>>,
    /// Memory of the pieces, bytes, until they are sent. The thread that sends has it as well.
    held: Arc<AtomicUsize>,
}

impl Queue {
    /// A buffer of [`READ`] bytes.
    fn buffer(&self) -> Vec<u8> {
        self.spares.try_recv().unwrap_or_else(|_| vec![0; READ])
    }

    /// Adds a piece; waits while the others hold more than a fast link of this delay has under way. `false`: nothing can be sent.
    fn push(&self, piece: Piece, delay_ns: u64) -> bool {
        // A read need not fill its buffer.
        let under_way = (delay_ns as f64 * 2.0 * FAST) as u64;
        let capacity = under_way.saturating_add(BESIDES).min(MOST);
        while self.held.load(Ordering::Acquire) as u64 > capacity {
            if Arc::strong_count(&self.held) == 1 {
                return false;
            }
            std::thread::sleep(FULL);
        }
        self.held.fetch_add(piece.bytes.len() + PIECE, Ordering::AcqRel);
        self.pieces.send(piece).is_ok()
    }
}

/// Receives until the end closes, or nothing can be sent any more.
fn receive(mut from: &UnixStream, mut to: &UnixStream, queue: &Queue, delay_ns: &AtomicU64, bytes: Option<&AtomicU64>) {
    let (mut buffer, mut due_ns) = (queue.buffer(), 0);
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let received_ns = now_ns();
        if let Some(bytes) = bytes {
            bytes.fetch_add(n as u64, Ordering::Relaxed);
        }
        let delay_ns = delay_ns.load(Ordering::Relaxed);
        // Without a delay and with nothing under way, two changes of threads are saved.
        if delay_ns == 0 && queue.held.load(Ordering::Acquire) == 0 {
            if to.write_all(&buffer[..n]).is_err() {
                return;
            }
            continue;
        }
        // Small pieces are copied, so that each does not take a whole buffer.
        let bytes = if n * 4 < READ { buffer[..n].to_vec() } else { std::mem::replace(&mut buffer, queue.buffer()) };
        // In order: one that is due earlier waits for those before it.
        due_ns = received_ns.saturating_add(delay_ns).max(due_ns);
        if !queue.push(Piece { due_ns, bytes, len: n }, delay_ns) {
            return;
        }
    }
}

/// Sends each piece when it is due.
fn send(mut to: &UnixStream, pieces: &Receiver<Piece>, spares: &SyncSender<Vec<u8>>, held: &AtomicUsize) {
    // The system may otherwise wake this thread 50 µs late. Fails only on systems without it.
    let _ = nix::sys::prctl::set_timerslack(1);
    for Piece { due_ns, bytes, len } in pieces {
        std::thread::sleep(Duration::from_nanos(due_ns.saturating_sub(now_ns())));
        if to.write_all(&bytes[..len]).is_err() {
            return;
        }
        held.fetch_sub(bytes.len() + PIECE, Ordering::AcqRel);
        if bytes.len() == READ {
            let _ = spares.try_send(bytes);
        }
    }
}
