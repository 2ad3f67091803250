//! A link of our own between a database and a replica: a relay of byte streams, whose one-way delay can be changed while it is in
//! use. It connects to the database by a Unix socket, and the replica to it by another or at the loopback address ([`listener`]);
//! a replica in this process has a pair of streams.
//!
//! Each direction of a connection has a thread (`pump`). A piece is due its delay after it was received. Probes that measure the
//! round trip are connections of the same kind ([`Prober`]). A relay passes 1 GiB/s and holds what is under way at that rate, 1 GiB at most.

mod listener;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use loadline_storage::now_ns;

use listener::Listener;

const READ: usize = 256 << 10;
/// Bytes per ns for which a queue suffices: 1 GiB/s.
const FAST: f64 = 1.073_741_824;
/// Bytes that may wait besides those under way, and the most of both, however long the link is.
const BESIDES: u64 = 8 << 20;
const MOST: u64 = 1 << 30;
/// Memory of a piece beside its bytes.
const PIECE: u64 = size_of::<(u64, Vec<u8>)>() as u64 + 16;

/// Time between the return of a probe and the next one.
const PAUSE: Duration = Duration::from_millis(10);
/// Round trips that are kept at most until somebody asks.
const KEPT: usize = 1 << 20;

/// A relay. Dropping it closes its connections and removes its socket.
#[derive(Default)]
pub struct Relay {
    socket: Option<PathBuf>,
    link: Arc<Shared>,
    /// The thread that listens, if one does, and the stream whose end ends it.
    listener: Option<(JoinHandle<()>, UnixStream)>,
}

#[derive(Default)]
struct Shared {
    delay_ns: AtomicU64,
    /// Of all connections but probes.
    bytes: AtomicU64,
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
        Relay::new(Listener::Socket(UnixListener::bind(socket)?), Some(socket), server)
    }

    /// Listens at a port of the loopback address, which is returned, and connects each that comes to `server` if it is a
    /// process of the user `uid`.
    pub(crate) fn on_loopback(uid: u32, server: &Path) -> io::Result<(Relay, u16)> {
        let (listener, port) = Listener::on_loopback(uid)?;
        Ok((Relay::new(listener, None, server)?, port))
    }

    fn new(listening: Listener, socket: Option<&Path>, server: &Path) -> io::Result<Relay> {
        let (wake, woken) = UnixStream::pair()?;
        let link = Arc::<Shared>::default();
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
                    let _ = shared.join(client, server, true);
                }
            }
        };
        let listener = std::thread::Builder::new().name("link".into()).spawn(accept)?;
        Ok(Relay { socket: socket.map(Path::to_owned), link, listener: Some((listener, wake)) })
    }

    /// Both ends of a connection within this process.
    pub(crate) fn pair(&self) -> io::Result<[UnixStream; 2]> {
        self.link.pair(true)
    }

    /// Changes the one-way delay, at once and in both directions; what is under way arrives as it would have.
    pub fn set_delay(&self, delay: Duration) {
        self.link.delay_ns.store(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Bytes received so far, both directions together, without probes.
    pub(crate) fn bytes(&self) -> u64 {
        self.link.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn close_all(&self) {
        let open = self.link.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().filter_map(Weak::upgrade).for_each(|ends| ends.close());
    }

    pub(crate) fn prober(&self) -> io::Result<Prober> {
        Prober::start(self.link.pair(false)?)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.link.stopping.store(true, Ordering::Release);
        if let Some((listener, wake)) = self.listener.take() {
            let _ = wake.shutdown(Shutdown::Both);
            let _ = listener.join();
        }
        self.close_all();
        if let Some(socket) = &self.socket {
            let _ = std::fs::remove_file(socket);
        }
    }
}

impl Shared {
    fn pair(self: &Arc<Shared>, counts: bool) -> io::Result<[UnixStream; 2]> {
        let ((near, near_end), (far, far_end)) = (UnixStream::pair()?, UnixStream::pair()?);
        self.join(near_end, far_end, counts)?;
        Ok([near, far])
    }

    /// Relays between two ends until one of them closes. `counts`: their bytes are counted.
    fn join(self: &Arc<Shared>, near: UnixStream, far: UnixStream, counts: bool) -> io::Result<()> {
        let ends = Arc::new(Ends([near, far]));
        for from in [0, 1] {
            let (of_pump, shared) = (Arc::clone(&ends), Arc::clone(self));
            let spawned = std::thread::Builder::new().name("link".into()).spawn(move || {
                let [from, to] = [from, 1 - from].map(|end| &of_pump.0[end]);
                // One that fails has lost an end.
                let _ = shared.pump(from, to, counts);
                of_pump.close();
            });
            if let Err(e) = spawned {
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

    /// Passes on what `from` receives, in order, until it closes and all has been sent, or nothing can be sent any more.
    fn pump(&self, mut from: &UnixStream, mut to: &UnixStream, counts: bool) -> io::Result<()> {
        // A timeout of poll(2) may be a thousandth late.
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::empty())?;
        let mut buffer = vec![0; READ];
        let (mut under_way, mut held, mut is_open) = (VecDeque::<(u64, Vec<u8>)>::new(), 0, true);
        while is_open || !under_way.is_empty() {
            if let Some((due_ns, piece)) = under_way.front() {
                if *due_ns <= now_ns() {
                    to.write_all(piece)?;
                    held -= piece.len() as u64 + PIECE;
                    under_way.pop_front();
                    continue;
                }
                timer.set(
                    Expiration::OneShot(Duration::from_nanos(*due_ns).into()),
                    TimerSetTimeFlags::TFD_TIMER_ABSTIME,
                )?;
                // What a fast link of this delay has under way, both there and back.
                let capacity = ((self.delay_ns.load(Ordering::Relaxed) as f64 * 2.0 * FAST) as u64)
                    .saturating_add(BESIDES)
                    .min(MOST);
                let reads = if is_open && held <= capacity { PollFlags::POLLIN } else { PollFlags::empty() };
                let mut waits = [PollFd::new(timer.as_fd(), PollFlags::POLLIN), PollFd::new(from.as_fd(), reads)];
                match poll(&mut waits[..if reads.is_empty() { 1 } else { 2 }], PollTimeout::NONE) {
                    Err(Errno::EINTR) => continue,
                    Err(e) => return Err(e.into()),
                    Ok(_) if waits[0].any() == Some(true) => continue,
                    Ok(_) => {}
                }
            }
            let n = match from.read(&mut buffer) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            let (received_ns, delay_ns) = (now_ns(), self.delay_ns.load(Ordering::Relaxed));
            is_open = n > 0;
            if counts {
                self.bytes.fetch_add(n as u64, Ordering::Relaxed);
            }
            if delay_ns == 0 && under_way.is_empty() {
                to.write_all(&buffer[..n])?;
            } else if is_open {
                // In order: one that is due earlier waits for those before it.
                let before_ns = under_way.back().map_or(0, |(due_ns, _)| *due_ns);
                under_way.push_back((received_ns.saturating_add(delay_ns).max(before_ns), buffer[..n].to_vec()));
                held += n as u64 + PIECE;
            }
        }
        Ok(())
    }
}

pub(crate) struct Prober {
    ends: [UnixStream; 2],
    round_trips_ns: Arc<Mutex<Vec<u64>>>,
}

impl Prober {
    /// Probes the connection with these ends.
    fn start([mut near, far]: [UnixStream; 2]) -> io::Result<Prober> {
        let ends = [near.try_clone()?, far.try_clone()?];
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        thread("link echo").spawn(move || {
            let _ = io::copy(&mut &far, &mut &far);
        })?;
        let round_trips_ns = Arc::<Mutex<Vec<u64>>>::default();
        let kept = Arc::clone(&round_trips_ns);
        thread("link probe").spawn(move || {
            let mut message = [0];
            loop {
                let sent = now_ns();
                if near.write_all(&message).is_err() || near.read_exact(&mut message).is_err() {
                    return;
                }
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() < KEPT {
                    kept.push(now_ns() - sent);
                }
                drop(kept);
                std::thread::sleep(PAUSE);
            }
        })?;
        Ok(Prober { ends, round_trips_ns })
    }

    /// Round trips since the last call, ns.
    pub(crate) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut self.round_trips_ns.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        for end in &self.ends {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}
