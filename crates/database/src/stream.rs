//! The socket of a session, encrypted or not.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustls::{ClientConnection, StreamOwned};

/// A byte stream to the server. It blocks.
pub(crate) enum Stream {
    Plain(Socket),
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
}

/// A socket of the operating system.
pub(crate) enum Kind {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// A socket that waits for its server.
pub(crate) struct Socket {
    // Shared with the one who may shut it down, not copied: a copy would be one more open file for each session.
    kind: Arc<Kind>,
    timeout: Option<Duration>,
}

impl Kind {
    fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Kind::Unix(s) => (&mut &*s).read(buf),
            Kind::Tcp(s) => (&mut &*s).read(buf),
        }
    }

    fn write(&self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Kind::Unix(s) => (&mut &*s).write(buf),
            Kind::Tcp(s) => (&mut &*s).write(buf),
        }
    }
}

impl AsFd for Kind {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Kind::Unix(s) => s.as_fd(),
            Kind::Tcp(s) => s.as_fd(),
        }
    }
}

impl Socket {
    fn new(kind: Kind) -> Socket {
        Socket { kind: Arc::new(kind), timeout: None }
    }

    /// Connects over TCP within `limit`.
    ///
    /// # Errors
    /// Those of connect(2), and `TimedOut`.
    pub(crate) fn connect(address: SocketAddr, limit: Duration) -> io::Result<Socket> {
        TcpStream::connect_timeout(&address, limit).map(|socket| Socket::new(Kind::Tcp(socket)))
    }

    /// Sends each write at once.
    pub(crate) fn set_nodelay(&self) -> io::Result<()> {
        match &*self.kind {
            Kind::Unix(_) => Ok(()),
            Kind::Tcp(s) => s.set_nodelay(true),
        }
    }

    /// Limits how long a read or a write may block; `None`: no limit.
    pub(crate) fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.timeout = timeout;
        match &*self.kind {
            Kind::Unix(s) => s.set_write_timeout(timeout),
            Kind::Tcp(s) => s.set_read_timeout(timeout).and(s.set_write_timeout(timeout)),
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
        match poll(&mut [PollFd::new(self.kind.as_fd(), PollFlags::POLLIN)], limit)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(()),
        }
    }
}

impl Read for Socket {
    #[inline]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Kind::Unix(_) = *self.kind {
            self.wait()?;
        }
        self.kind.read(buf)
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.kind.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        // Sockets are not buffered.
        Ok(())
    }
}

impl Stream {
    /// Over a Unix socket.
    pub(crate) fn unix(socket: UnixStream) -> Stream {
        Stream::Plain(Socket::new(Kind::Unix(socket)))
    }

    fn socket(&mut self) -> &mut Socket {
        match self {
            Stream::Plain(s) => s,
            Stream::Tls(s) => &mut s.sock,
        }
    }

    /// Limits how long a read or a write may block; `None`: no limit.
    pub(crate) fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket().set_timeout(timeout)
    }

    /// A function that shuts the socket down from another thread, if it is still open: a blocked read then ends at once.
    pub(crate) fn shutter(&self) -> Arc<dyn Fn() + Send + Sync> {
        let socket = match self {
            Stream::Plain(s) => Arc::downgrade(&s.kind),
            Stream::Tls(s) => Arc::downgrade(&s.sock.kind),
        };
        // An error means that the socket is already closed.
        Arc::new(move || {
            let _ = match socket.upgrade().as_deref() {
                Some(Kind::Unix(s)) => s.shutdown(Shutdown::Both),
                Some(Kind::Tcp(s)) => s.shutdown(Shutdown::Both),
                None => Ok(()),
            };
        })
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
    ///
    /// # Errors
    /// Those of the stream, and end of stream.
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
