//! The socket of a session, encrypted or not.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustls::{ClientConnection, StreamOwned};

/// A blocking byte stream to the server.
pub(crate) enum Stream {
    Unix(Local),
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A Unix socket that waits in poll(2) before it reads.
///
/// A thread that blocks in recv(2) on a Unix socket also wakes up when the *other* side reads what we sent: the
/// kernel signals free buffer space to all waiters on the socket. That costs one useless wake-up and two context
/// switches per transaction. A wait for POLLIN ends only when data arrive.
pub(crate) struct Local {
    socket: UnixStream,
    timeout: PollTimeout,
}

impl Local {
    pub(crate) fn new(socket: UnixStream) -> Local {
        Local { socket, timeout: PollTimeout::NONE }
    }

    fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        // poll can wait 24 days at most.
        self.timeout = timeout.map_or(PollTimeout::NONE, |t| PollTimeout::try_from(t).unwrap_or(PollTimeout::MAX));
        self.socket.set_write_timeout(timeout)
    }

    #[inline]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], self.timeout)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            _ => self.socket.read(buf),
        }
    }
}

/// A second handle of a stream's socket, for another thread.
enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    /// Limits how long a read or a write may block; `None`: no limit.
    pub(crate) fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(s) => s.set_timeout(timeout),
            Stream::Tcp(s) => s.set_read_timeout(timeout).and(s.set_write_timeout(timeout)),
            Stream::Tls(s) => s.sock.set_read_timeout(timeout).and(s.sock.set_write_timeout(timeout)),
        }
    }

    /// A function that shuts the socket down from another thread: a blocked read then ends at once.
    pub(crate) fn shutter(&self) -> io::Result<Arc<dyn Fn() + Send + Sync>> {
        let socket = match self {
            Stream::Unix(s) => Socket::Unix(s.socket.try_clone()?),
            Stream::Tcp(s) => Socket::Tcp(s.try_clone()?),
            Stream::Tls(s) => Socket::Tcp(s.sock.try_clone()?),
        };
        // An error means that the socket is already closed.
        Ok(Arc::new(move || {
            let _ = match &socket {
                Socket::Unix(s) => s.shutdown(Shutdown::Both),
                Socket::Tcp(s) => s.shutdown(Shutdown::Both),
            };
        }))
    }
}

/// Input buffer of a stream: `bytes[start..end]` is not processed yet.
pub(crate) struct Input {
    pub(crate) bytes: Vec<u8>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Input {
    /// Initial size: larger than any answer in the timing loop.
    const SIZE: usize = 16 * 1024;

    pub(crate) fn new() -> Input {
        Input { bytes: vec![0; Self::SIZE], start: 0, end: 0 }
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
        loop {
            match stream.read(&mut self.bytes[self.end..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    self.end += read?;
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
            Stream::Unix(s) => s.read(buf),
            Stream::Tcp(s) => s.read(buf),
            Stream::Tls(s) => s.read(buf),
        }
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(s) => s.socket.write(buf),
            Stream::Tcp(s) => s.write(buf),
            Stream::Tls(s) => s.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            // Sockets are not buffered.
            Stream::Unix(_) | Stream::Tcp(_) => Ok(()),
            Stream::Tls(s) => s.flush(),
        }
    }
}
