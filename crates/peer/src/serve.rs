//! The event loop: one per thread, over all sessions that it has accepted.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::socket::{Listener, Socket};
use crate::statement::Step;
use crate::{Counts, Options, PeerError, Protocol, behind, mysql, postgres};

/// Marks of the events that are no session's: those have their file descriptor.
const ACCEPT: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
/// Clients that are accepted in a row before the others are served.
const ACCEPTED_AT_ONCE: usize = 64;
/// Time between looks whether the peer shall end, ms.
const LOOK_MS: u16 = 100;
/// Pause after a client that could not be accepted.
const PAUSE: Duration = Duration::from_millis(10);
/// Longest unread message of a client, bytes.
const LONGEST: usize = 1 << 26;

enum Speech {
    Postgres(postgres::Session),
    Mysql(mysql::Session),
}

struct Session {
    socket: Socket,
    speech: Speech,
    /// Of all that had its file descriptor.
    number: u64,
    /// The beginning of a message.
    rest: Vec<u8>,
    /// Answers that could not be sent yet, or are not due.
    out: Vec<u8>,
    /// Whether answers wait for their time.
    waits: bool,
    /// Whether answers wait for space in the socket.
    blocked: bool,
}

/// A thread's sessions.
pub(crate) struct Server {
    epoll: Epoll,
    timer: TimerFd,
    listener: Listener,
    /// By file descriptor.
    sessions: Vec<Option<Box<Session>>>,
    /// When which session's answers are due, in order.
    due: VecDeque<(Instant, RawFd, u64)>,
    protocol: Protocol,
    delay: Duration,
    rows: u32,
    behind: Option<PathBuf>,
    version: String,
    stop: Arc<AtomicBool>,
    counts: Arc<Counts>,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Server {
    pub(crate) fn new(
        listener: Listener,
        options: &Options,
        version: &str,
        stop: &Arc<AtomicBool>,
        counts: &Arc<Counts>,
    ) -> Result<Server, PeerError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(io::Error::from)?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)
            .map_err(io::Error::from)?;
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, ACCEPT)).map_err(io::Error::from)?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER)).map_err(io::Error::from)?;
        Ok(Server {
            epoll,
            timer,
            listener,
            sessions: Vec::new(),
            due: VecDeque::new(),
            protocol: options.protocol,
            delay: options.delay,
            rows: options.rows,
            behind: options.behind.clone(),
            version: version.to_owned(),
            stop: Arc::clone(stop),
            counts: Arc::clone(counts),
            input: vec![0; 1 << 16],
            output: Vec::new(),
        })
    }

    /// Serves until the peer shall end.
    pub(crate) fn run(mut self) {
        let mut events = vec![EpollEvent::empty(); 1024];
        while !self.stop.load(Ordering::Relaxed) {
            let count = match self.epoll.wait(&mut events, LOOK_MS) {
                Ok(count) => count,
                Err(nix::Error::EINTR) => 0,
                Err(_) => return,
            };
            for event in events.iter().take(count) {
                match event.data() {
                    ACCEPT => self.accept(),
                    TIMER => self.send_due(),
                    fd => self.serve(fd as RawFd, event.events()),
                }
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTED_AT_ONCE {
            let socket = match self.listener.accept() {
                Ok(socket) => socket,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                // No free file descriptor, for example: the client waits, and the loop comes back to it.
                Err(_) => return std::thread::sleep(PAUSE),
            };
            let number = self.counts.opened.fetch_add(1, Ordering::Relaxed) + 1;
            self.counts.open.fetch_add(1, Ordering::Relaxed);
            let speech = match self.protocol {
                Protocol::Postgres => Speech::Postgres(postgres::Session::new(number as u32)),
                Protocol::Mysql => {
                    mysql::Session::greet(number as u32, &self.version, &mut self.output);
                    Speech::Mysql(mysql::Session::new())
                }
            };
            let fd = socket.as_raw_fd();
            let added = self.epoll.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, fd as u64));
            let at = fd as usize;
            if self.sessions.len() <= at {
                self.sessions.resize_with(at + 1, || None);
            }
            let mut session = Box::new(Session {
                socket,
                speech,
                number,
                rest: Vec::new(),
                out: Vec::new(),
                waits: false,
                blocked: false,
            });
            session.out.append(&mut self.output);
            let open = added.is_ok() && self.send(&mut session).is_ok();
            self.keep(fd, session, open);
        }
    }

    /// Puts a session back, or ends it.
    fn keep(&mut self, fd: RawFd, session: Box<Session>, open: bool) {
        if !open {
            self.counts.open.fetch_sub(1, Ordering::Relaxed);
        } else if let Some(place) = self.sessions.get_mut(fd as usize) {
            *place = Some(session);
        }
    }

    fn take(&mut self, fd: RawFd) -> Option<Box<Session>> {
        self.sessions.get_mut(fd as usize)?.take()
    }

    fn serve(&mut self, fd: RawFd, events: EpollFlags) {
        let Some(mut session) = self.take(fd) else { return };
        let mut open = true;
        if events.contains(EpollFlags::EPOLLOUT) && !session.waits {
            open = self.send(&mut session).is_ok();
        }
        if open && events.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR) {
            match self.read(&mut session) {
                Ok(Then::Stay) => {}
                Ok(Then::Close) | Err(_) => open = false,
                Ok(Then::PassOn) => {
                    self.pass_on(*session);
                    return;
                }
            }
        }
        self.keep(fd, session, open);
    }

    /// Reads once and answers what is whole.
    fn read(&mut self, session: &mut Session) -> io::Result<Then> {
        let read = match session.socket.read(&mut self.input) {
            Ok(0) => return Ok(Then::Close),
            Ok(read) => read,
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(Then::Stay);
            }
            Err(e) => return Err(e),
        };
        let mut kept = std::mem::take(&mut session.rest);
        let mut bytes = self.input.get(..read).unwrap_or_default();
        if !kept.is_empty() {
            kept.extend_from_slice(bytes);
            bytes = &kept;
        }
        let (mut executed, behind) = (0, self.behind.is_some());
        let then = loop {
            let step = match &mut session.speech {
                Speech::Postgres(s) => s.answer(bytes, self.rows, behind, &mut self.output),
                Speech::Mysql(s) => s.answer(bytes, self.rows, behind, &mut self.output),
            };
            match step {
                Step::Answered { used, executed: one } => {
                    bytes = bytes.get(used..).unwrap_or_default();
                    executed += u64::from(one);
                }
                Step::Wait if bytes.len() > LONGEST => break Then::Close,
                Step::Wait => break Then::Stay,
                Step::PassOn => break Then::PassOn,
                Step::Close => break Then::Close,
            }
        };
        // What is kept is of its own size, not of the largest read.
        session.rest = bytes.to_vec();
        self.counts.statements.fetch_add(executed, Ordering::Relaxed);
        if session.out.is_empty() {
            std::mem::swap(&mut session.out, &mut self.output);
        } else {
            session.out.append(&mut self.output);
        }
        if executed > 0 && !self.delay.is_zero() {
            self.delay(session);
        }
        if !session.waits {
            self.send(session)?;
        }
        Ok(then)
    }

    /// Sends what can be sent now; the rest when there is space.
    fn send(&mut self, session: &mut Session) -> io::Result<()> {
        let mut sent = 0;
        while let Some(rest) = session.out.get(sent..).filter(|rest| !rest.is_empty()) {
            match session.socket.write(rest) {
                Ok(n) => sent += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        let blocked = sent < session.out.len();
        if blocked {
            session.out.drain(..sent);
        } else {
            // A session that waits for its client needs no buffer; the loop takes it back.
            let mut buffer = std::mem::take(&mut session.out);
            buffer.clear();
            if self.output.capacity() < buffer.capacity() {
                self.output = buffer;
            }
        }
        if blocked != session.blocked {
            session.blocked = blocked;
            let events = if blocked { EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT } else { EpollFlags::EPOLLIN };
            let mut event = EpollEvent::new(events, session.socket.as_raw_fd() as u64);
            self.epoll.modify(&session.socket, &mut event)?;
        }
        Ok(())
    }

    fn delay(&mut self, session: &mut Session) {
        if session.waits {
            return;
        }
        session.waits = true;
        let at = Instant::now() + self.delay;
        if self.due.is_empty() {
            self.wake_at(at);
        }
        self.due.push_back((at, session.socket.as_raw_fd(), session.number));
    }

    fn wake_at(&self, at: Instant) {
        // A timer of 0 would never fire.
        let left = at.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        // It cannot fail: the time is in range.
        let _ = self.timer.set(Expiration::OneShot(TimeSpec::from_duration(left)), TimerSetTimeFlags::empty());
    }

    /// Sends all answers whose time has come, and sets the timer for the next.
    fn send_due(&mut self) {
        let _ = self.timer.wait();
        while let Some((at, fd, number)) = self.due.front().copied() {
            if at > Instant::now() {
                return self.wake_at(at);
            }
            self.due.pop_front();
            let Some(mut session) = self.take(fd) else { continue };
            let mut open = true;
            // Another client may have the file descriptor meanwhile.
            if session.number == number {
                session.waits = false;
                open = self.send(&mut session).is_ok();
            }
            self.keep(fd, session, open);
        }
    }

    /// Gives a session to the server behind.
    fn pass_on(&self, session: Session) {
        self.counts.open.fetch_sub(1, Ordering::Relaxed);
        let Session { socket, speech, rest, .. } = session;
        let Some(path) = self.behind.clone() else { return };
        // Its epoll registration ends with the last handle of the socket, which the threads have.
        let _ = self.epoll.delete(&socket);
        let connect = move || {
            let server = match speech {
                Speech::Postgres(_) => std::os::unix::net::UnixStream::connect(&path),
                Speech::Mysql(mut s) => mysql::log_in(&path, &s.take_aside()),
            };
            // A client whose server does not answer sees its session end.
            let _ = server.and_then(|server| behind::pass_on(socket, server, &rest));
        };
        let _ = std::thread::Builder::new().name("connects".to_owned()).spawn(connect);
    }
}

/// What becomes of a session after a read.
enum Then {
    Stay,
    PassOn,
    Close,
}
