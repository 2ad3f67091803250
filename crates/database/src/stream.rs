//! The socket of a session, encrypted or not.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use loadline_fibers::Ready;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::SocketError;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, connect, getsockopt, socket};
use rustls::{ClientConnection, StreamOwned};

/// A byte stream to the server. It blocks, or in a fiber lets others run meanwhile.
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
    /// `None` on a thread of its own.
    shared: Option<OnLoop>,
}

/// Of a socket on a thread that it shares with others.
struct OnLoop {
    ready: Ready,
    /// The last read took all there was: the loop will report what comes.
    drained: bool,
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

    fn never_blocks(&self) -> io::Result<()> {
        match self {
            Kind::Unix(s) => s.set_nonblocking(true),
            Kind::Tcp(s) => s.set_nonblocking(true),
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
    /// Of the fiber that runs now, or of this thread.
    ///
    /// # Errors
    /// When its loop cannot watch it.
    pub(crate) fn new(kind: Kind) -> io::Result<Socket> {
        let ready = Ready::watch(kind.as_fd()).transpose()?;
        if ready.is_some() {
            kind.never_blocks()?;
        }
        Ok(Socket::of(kind, ready))
    }

    fn of(kind: Kind, ready: Option<Ready>) -> Socket {
        let shared = ready.map(|ready| OnLoop { ready, drained: false });
        Socket { kind: Arc::new(kind), timeout: None, shared }
    }

    /// Connects over TCP within `limit`. In a fiber others run meanwhile.
    ///
    /// # Errors
    /// Those of connect(2), and `TimedOut`.
    pub(crate) fn connect(address: SocketAddr, limit: Duration) -> io::Result<Socket> {
        if !loadline_fibers::active() {
            return Socket::new(Kind::Tcp(TcpStream::connect_timeout(&address, limit)?));
        }
        let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(family, SockType::Stream, flags, SockProtocol::Tcp)?;
        let ready = Ready::watch(&fd).transpose()?;
        match connect(fd.as_raw_fd(), &SockaddrStorage::from(address)) {
            Err(Errno::EINPROGRESS) => {
                let done = ready.as_ref().map_or(Ok(false), |ready| ready.writable(fd.as_fd(), Some(limit)))?;
                if !done {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                match getsockopt(&fd, SocketError)? {
                    0 => {}
                    errno => return Err(io::Error::from_raw_os_error(errno)),
                }
            }
            other => other?,
        }
        Ok(Socket::of(Kind::Tcp(TcpStream::from(fd)), ready))
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
            _ if self.shared.is_some() => Ok(()),
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
        let Some(OnLoop { ready, drained }) = &mut self.shared else {
            if let Kind::Unix(_) = *self.kind {
                self.wait()?;
            }
            return self.kind.read(buf);
        };
        loop {
            if *drained && !ready.readable_to(buf, self.timeout)? {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            match self.kind.read(buf) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => *drained = true,
                Err(e) => return Err(e),
                Ok(n) => {
                    *drained = n < buf.len();
                    return Ok(n);
                }
            }
        }
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let Some(OnLoop { ready, drained }) = &mut self.shared else { return self.kind.write(buf) };
        loop {
            ready.sends();
            match self.kind.write(buf) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if !ready.writable(self.kind.as_fd(), self.timeout)? {
                        return Err(e);
                    }
                }
                Err(e) => {
                    // Why it was closed may be there already.
                    *drained = false;
                    return Err(e);
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        // Sockets are not buffered.
        Ok(())
    }
}

impl Stream {
    /// Over a Unix socket.
    ///
    /// # Errors
    /// As [`Socket::new`].
    pub(crate) fn unix(socket: UnixStream) -> io::Result<Stream> {
        Socket::new(Kind::Unix(socket)).map(Stream::Plain)
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_fiber_connects_and_hears_of_a_port_that_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut on_loop = loadline_fibers::Loop::new(1).unwrap();
        on_loop.spawn(move || {
            let limit = Duration::from_secs(10);
            let mut ours = Socket::connect(address, limit).unwrap();
            let (mut theirs, _) = listener.accept().unwrap();
            ours.write_all(b"to").unwrap();
            theirs.read_exact(&mut [0; 2]).unwrap();
            theirs.write_all(b"back").unwrap();
            ours.read_exact(&mut [0; 4]).unwrap();
            ours.set_timeout(Some(Duration::from_millis(20))).unwrap();
            assert_eq!(ours.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            drop((listener, theirs));
            let refused = Socket::connect(address, limit).err().unwrap();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
            // A panic would end the fiber in silence.
            DONE.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        on_loop.run(|| false, || false).unwrap();
        assert!(DONE.load(std::sync::atomic::Ordering::Relaxed));
    }

    static DONE: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
}
