//! A link of our own between a database and a replica: a relay of byte streams, whose delay, jitter and bandwidth can be
//! changed while it is in use. It connects to the database by a Unix socket, and the replica to it by another or, if it knows
//! no such way, at the loopback address ([`door`]).
//!
//! Each connection has two threads, one per direction ([`pass`]). A piece is due its delay after the moment in which it was
//! received; a direction of the link is shared by its connections ([`Way`]). The probes that measure the round trip are
//! connections of the same kind ([`Prober`]).
//!
//! A relay passes 1 GiB/s and more. Its memory is bounded: what is under way at that rate, at most 1 GiB and usually little,
//! because a log is written more slowly.

mod door;
mod probe;
#[cfg(test)]
mod tests;
mod way;

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll, ppoll};
use nix::sys::time::TimeSpec;

use crate::error::TargetError;
use crate::role::Link;
use loadline_storage::now_ns;

use door::Listener;
pub(crate) use probe::Prober;
use way::{READ, Way};

/// A longer wait is not slept through, so that a closed connection ends.
const NAP: Duration = Duration::from_millis(20);
/// Memory of a piece beside its bytes.
const PIECE: usize = size_of::<Piece>() + 16;

/// A listening relay. Dropping it closes its connections and removes its socket.
pub struct Relay {
    /// Removed with it.
    socket: Option<PathBuf>,
    link: Arc<Shared>,
    /// Its other end ends the listener.
    wake: UnixStream,
    listener: Option<JoinHandle<()>>,
}

/// Links whose round trips are measured.
pub(crate) struct WatchedLinks(Vec<(Arc<Relay>, Prober)>);

impl WatchedLinks {
    pub(crate) fn watch(links: Vec<Arc<Relay>>) -> Result<WatchedLinks, TargetError> {
        let failed = |e: io::Error| TargetError::Local(format!("the link's round trip cannot be measured: {e}"));
        let watched = |link: Arc<Relay>| link.prober().map(|prober| (link, prober)).map_err(failed);
        Ok(WatchedLinks(links.into_iter().map(watched).collect::<Result<_, _>>()?))
    }

    /// As [`crate::role::ReplicaWatch::round_trips_ns`].
    pub(crate) fn round_trips_ns(&self) -> Vec<u64> {
        self.0.iter().flat_map(|(_, prober)| prober.take()).collect()
    }

    /// As [`crate::role::ReplicaWatch::link_bytes`].
    pub(crate) fn bytes(&self) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.iter().map(|(link, _)| link.bytes()).sum())
    }
}

/// What the connections share.
struct Shared {
    /// To the server, and back.
    ways: [Arc<Way>; 2],
    /// Of all connections but probes.
    bytes: Arc<AtomicU64>,
    /// Set when it is dropped.
    stopping: AtomicBool,
    open: Mutex<Vec<Weak<Ends>>>,
}

/// The two ends of a connection.
struct Ends {
    ends: [UnixStream; 2],
    closed: AtomicBool,
}

impl Ends {
    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for end in &self.ends {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

impl Relay {
    /// Listens at `socket`, and connects each that comes to `server`.
    pub fn start(socket: &Path, server: &Path) -> io::Result<Relay> {
        let mut relay = Relay::of(Listener::at(socket)?, server)?;
        relay.socket = Some(socket.to_owned());
        Ok(relay)
    }

    /// Listens at a port of the loopback address, which is returned, and connects each that comes to `server` if it is a
    /// process of the user `uid`.
    pub(crate) fn on_loopback(uid: u32, server: &Path) -> io::Result<(Relay, u16)> {
        let (listener, port) = Listener::on_loopback(uid)?;
        Ok((Relay::of(listener, server)?, port))
    }

    fn of(listening: Listener, server: &Path) -> io::Result<Relay> {
        let (wake, woken) = UnixStream::pair()?;
        let link = Arc::new(Shared {
            ways: [0, 1].map(|seed| Arc::new(Way::new(seed))),
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

    /// Changes the link, at once and in both directions; what is under way arrives as it would have.
    pub fn set(&self, link: Link) {
        for way in &self.link.ways {
            way.set(link);
        }
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

    /// Begins to measure round trips.
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
        let ends = Arc::new(Ends { ends: [near, far], closed: AtomicBool::new(false) });
        let [out, back] = &self.ways;
        for (way, from, to) in [(out, 0, 1), (back, 1, 0)] {
            let (ends_of_thread, way, bytes) = (Arc::clone(&ends), Arc::clone(way), bytes.clone());
            let started = std::thread::Builder::new().name("link".into()).spawn(move || {
                pass(&ends_of_thread, [from, to], &way, bytes.as_deref());
                // Everything that was received has been sent, or cannot be.
                ends_of_thread.close();
            });
            if let Err(e) = started {
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

/// What was received in one read.
struct Piece {
    /// When it is due, ns.
    due_ns: u64,
    /// The first `len` bytes are its own.
    bytes: Vec<u8>,
    len: usize,
}

/// Passes on what arrives at the end `from`, each piece when it is due, until that end closes and everything has been sent, or
/// nothing can be sent any more.
fn pass(ends: &Ends, [from, to]: [usize; 2], way: &Way, bytes: Option<&AtomicU64>) {
    // The system may otherwise wake this thread 50 µs late. Fails only on systems without it.
    let _ = nix::sys::prctl::set_timerslack(1);
    let [mut from, mut to] = [&ends.ends[from], &ends.ends[to]];
    // Under way, in order, and the memory that they take.
    let (mut pieces, mut held) = (VecDeque::<Piece>::new(), 0);
    let (mut buffer, mut spare) = (vec![0; READ], Vec::new());
    let (mut ended, mut last_due_ns) = (false, 0);
    loop {
        let left = pieces.front().map(|piece| Duration::from_nanos(piece.due_ns.saturating_sub(now_ns())));
        match left {
            Some(Duration::ZERO) => {
                let Some(piece) = pieces.pop_front() else { return };
                held -= piece.bytes.len() + PIECE;
                if to.write_all(&piece.bytes[..piece.len]).is_err() {
                    return;
                }
                if piece.bytes.len() == READ && spare.len() < 8 {
                    spare.push(piece.bytes);
                }
                continue;
            }
            Some(left) if ended || held > way.capacity() => {
                std::thread::sleep(left.min(NAP));
                if ends.closed.load(Ordering::Acquire) {
                    return;
                }
                continue;
            }
            None if ended => return,
            _ => {}
        }
        let mut waits = [PollFd::new(from.as_fd(), PollFlags::POLLIN)];
        // If nothing has arrived, a piece is soon due: the system may end this wait late by a few thousandths of it.
        if let Some(left) = left.map(|left| TimeSpec::from(left - left / 128))
            && !ppoll(&mut waits, Some(left), None).is_ok_and(|arrived| arrived > 0)
        {
            continue;
        }
        let n = match from.read(&mut buffer[..way.read_bytes()]) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            read => read.unwrap_or(0),
        };
        let received_ns = now_ns();
        if let Some(bytes) = bytes {
            bytes.fetch_add(n as u64, Ordering::Relaxed);
        }
        if n == 0 {
            ended = true;
        } else if pieces.is_empty() && way.is_plain() {
            if to.write_all(&buffer[..n]).is_err() {
                return;
            }
        } else {
            // Small pieces are copied, so that each does not take a whole buffer.
            let bytes = if n * 4 < READ {
                buffer[..n].to_vec()
            } else {
                std::mem::replace(&mut buffer, spare.pop().unwrap_or_else(|| vec![0; READ]))
            };
            // In order: one that is due earlier waits for those before it.
            last_due_ns = way.due(received_ns, n).max(last_due_ns);
            held += bytes.len() + PIECE;
            pieces.push_back(Piece { due_ns: last_due_ns, bytes, len: n });
        }
    }
}
