//! The socket of a session, encrypted or not.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{self as sys, AddressFamily, SockFlag, SockType, UnixAddr, setsockopt, sockopt};
use rustls::{ClientConnection, StreamOwned};

use crate::patience::{PIECE, Patience};

/// A byte stream to the server. It blocks.
pub(crate) enum Stream {
    Plain(Socket),
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
}

/// A socket that waits for its server.
#[derive(Clone)]
pub(crate) struct Socket {
    // Shared with the one who may shut it down, not copied: a copy would be one more open file for each session. What is done
    // with it is the same for all families.
    file: Arc<UnixStream>,
    unix: bool,
    timeout: Option<Duration>,
    patience: Option<Patience>,
}

impl Socket {
    fn new(file: UnixStream, unix: bool) -> Socket {
        Socket { file: Arc::new(file), unix, timeout: None, patience: None }
    }

    /// Connects over TCP within `limit`; sends each write at once.
    pub(crate) fn connect(address: SocketAddr, limit: Duration) -> io::Result<Socket> {
        let socket = TcpStream::connect_timeout(&address, limit)?;
        socket.set_nodelay(true)?;
        // A job waits without a limit: a connection that the network drops silently ends after two minutes.
        setsockopt(&socket, sockopt::KeepAlive, &true)?;
        setsockopt(&socket, sockopt::TcpKeepIdle, &60)?;
        setsockopt(&socket, sockopt::TcpKeepInterval, &10)?;
        setsockopt(&socket, sockopt::TcpKeepCount, &6)?;
        Ok(Socket::new(OwnedFd::from(socket).into(), false))
    }

    /// Limits how long a read or a write may block; `None`: no limit.
    pub(crate) fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        (self.timeout, self.patience) = (timeout, None);
        self.file.set_read_timeout(timeout).and(self.file.set_write_timeout(timeout))
    }

    /// Repeats `step` until it gets on or patience ends.
    #[inline]
    fn repeat(&mut self, mut step: impl FnMut(&Socket) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            let done = step(self);
            let Some(patience) = &mut self.patience else { return done };
            if patience.ends(&done)? {
                return done;
            }
        }
    }

    /// Waits until a Unix socket has data.
    ///
    /// A thread that blocks in recv(2) on a Unix socket also wakes up when the *other* side reads what we sent: the
    /// kernel signals free buffer space to all waiters on the socket. That costs one useless wake-up and two context
    /// switches per transaction. A wait for POLLIN ends only when data arrive.
    fn wait(&self) -> io::Result<()> {
        // poll can wait 24 days at most.
        let limit = self.timeout.map_or(PollTimeout::NONE, |t| PollTimeout::try_from(t).unwrap_or(PollTimeout::MAX));
        match poll(&mut [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)], limit)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(()),
        }
    }
}

impl Read for Socket {
    #[inline]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.repeat(|socket| {
            if socket.unix {
                socket.wait()?;
            }
            (&*socket.file).read(buf)
        })
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.repeat(|socket| (&*socket.file).write(buf))
    }

    fn flush(&mut self) -> io::Result<()> {
        // Sockets are not buffered.
        Ok(())
    }
}

impl Stream {
    pub(crate) fn unix(socket: UnixStream) -> Stream {
        Stream::Plain(Socket::new(socket, true))
    }

    /// Connects to the Unix socket at `path` within `limit`: at the full queue of a stopped server connect(2) would wait for ever.
    pub(crate) fn connect_unix(path: &Path, limit: Duration) -> io::Result<Stream> {
        let file = UnixStream::from(sys::socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?);
        file.set_write_timeout(Some(limit))?;
        sys::connect(file.as_raw_fd(), &UnixAddr::new(path)?)?;
        file.set_write_timeout(None)?;
        Ok(Stream::unix(file))
    }

    fn socket(&mut self) -> &mut Socket {
        match self {
            Stream::Plain(s) => s,
            Stream::Tls(s) => &mut s.sock,
        }
    }

    /// Waits with `patience` from now on; `None`: blocks, which costs nothing.
    pub(crate) fn wait_with(&mut self, patience: Option<Patience>) -> io::Result<()> {
        let socket = self.socket();
        socket.set_timeout(patience.as_ref().map(|_| PIECE))?;
        socket.patience = patience;
        Ok(())
    }

    /// A function that shuts the socket down from another thread, if it is still open: a blocked read then ends at once.
    pub(crate) fn shutter(&mut self) -> impl Fn() + Send + Sync + 'static {
        let socket = Arc::downgrade(&self.socket().file);
        // An error means that the socket is already closed.
        move || drop(socket.upgrade().map(|socket| socket.shutdown(Shutdown::Both)))
    }
}

/// Input buffer of a stream: `bytes[start..end]` is not processed yet.
pub(crate) struct Input {
    pub(crate) bytes: Vec<u8>,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The last read took all the space: more may have come.
    filled: bool,
}

impl Input {
    /// Initial size: larger than the answers of short transactions. Many sessions share the caches of a CPU.
    const SMALL: usize = 2 * 1024;
    /// Size once a read has filled it.
    const SIZE: usize = 16 * 1024;

    pub(crate) fn new() -> Input {
        Input { bytes: vec![0; Self::SMALL], start: 0, end: 0, filled: false }
    }

    /// Reads once more, after making space for a message of `len` bytes.
    pub(crate) fn fill(&mut self, stream: &mut impl Read, len: usize) -> io::Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.start + len > self.bytes.len() || self.end == self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if len > self.bytes.len() {
                // Grows step by step, so a wrong length does not allocate much memory.
                self.bytes.resize((self.bytes.len() * 2).min(len.next_multiple_of(Self::SIZE)), 0);
            }
        }
        if self.filled && self.bytes.len() < Self::SIZE {
            self.bytes.resize(Self::SIZE, 0);
        }
        loop {
            match stream.read(&mut self.bytes[self.end..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    self.end += read?;
                    self.filled = self.end == self.bytes.len();
                    return Ok(());
                }
            }
        }
    }
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(s) => s.read(buf),
            Stream::Tls(s) => s.read(buf),
        }
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(s) => s.write(buf),
            Stream::Tls(s) => s.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(s) => s.flush(),
            Stream::Tls(s) => s.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

    use super::*;
    use crate::error::TargetError;
    use crate::patience::{given_up, waited_for};
    use crate::role::Canceller;

    /// Why a read of a session is given up whose server answers after `answer_s`, if it is, and after how long.
    fn gives_up(interrupted: bool, asked: Option<TargetError>, answer_s: u64) -> (Option<String>, Duration) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut stream = Stream::unix(ours);
        let call = Canceller::new(|| ()).asking(move || asked.clone());
        let patience = Patience::new(&Arc::new(AtomicBool::new(interrupted)), Duration::from_millis(2_500), call);
        stream.wait_with(Some(patience)).unwrap();
        let begin = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_secs(answer_s));
                let _ = theirs.write_all(b"answer");
            });
            let read = stream.read(&mut [0; 16]);
            (read.err().and_then(|e| given_up(&e, "x")).map(|e| e.to_string()), begin.elapsed())
        })
    }

    #[test]
    fn a_dropped_connection_is_noticed() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = Socket::connect(listener.local_addr().unwrap(), Duration::from_secs(5)).unwrap();
        assert!(sys::getsockopt(&*socket.file, sockopt::KeepAlive).unwrap());
        assert_eq!(sys::getsockopt(&*socket.file, sockopt::TcpKeepIdle).unwrap(), 60);
    }

    #[test]
    fn a_full_queue_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        // Linux queues one more than this.
        sys::listen(&listener, sys::Backlog::new(1).unwrap()).unwrap();
        let streams = [0; 3].map(|_| Stream::connect_unix(&path, Duration::from_millis(100)));
        let errors = streams.each_ref().map(|stream| stream.as_ref().err().map(io::Error::kind));
        assert_eq!(errors, [None, None, Some(io::ErrorKind::WouldBlock)]);
    }

    #[test]
    fn a_session_that_was_given_up_says_why_again() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut stream = Stream::unix(ours);
        let shut = stream.shutter();
        let call = Canceller::new(shut).asking(|| Some(waited_for("a lock of session 7")));
        stream.wait_with(Some(Patience::new(&Arc::default(), Duration::from_millis(300), call))).unwrap();
        let full = [0; 1 << 16];
        // What TLS does: the first error is dropped, and the socket is shut down when the next call comes.
        while stream.write(&full).is_ok() {}
        let again = stream.write(&full).unwrap_err();
        assert!(given_up(&again, "x").is_some_and(|why| why.to_string().contains("session 7")), "{again}");
    }

    #[test]
    fn a_server_that_works_is_waited_for_and_one_that_waits_is_not() {
        let lock = Some(waited_for("a lock of session 7"));
        // Whether it was interrupted, what the server says, when it answers, and why the read ends.
        let cases = [
            (false, None, 4, None),
            (false, lock, 6, Some("a lock of session 7")),
            (true, None, 6, Some("interrupted")),
        ];
        std::thread::scope(|scope| {
            let reads = cases.map(|(is, asked, s, says)| (scope.spawn(move || gives_up(is, asked, s)), says));
            for (read, says) in reads {
                let (why, took) = read.join().unwrap();
                assert!(took >= Duration::from_secs(2) && why.is_some() == says.is_some(), "{why:?} {took:?}");
                assert!(says.is_none_or(|says| why.unwrap().contains(says)), "{says:?}");
            }
        });
    }
}
