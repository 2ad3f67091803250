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
/// A thread that blocks in recv(2) on a Unix socket is also woken when the *other* side has read what we
/// sent (the kernel tells writers of the room, and wakes whoever waits on the socket): one wake-up and
/// two switches for nothing in each transaction. A wait for POLLIN is woken by data alone.
pub(crate) struct Local {
    socket: UnixStream,
    timeout: PollTimeout,
}

impl Local {
    pub(crate) fn new(socket: UnixStream) -> Local {
        Local { socket, timeout: PollTimeout::NONE }
    }

    fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        // Longer than poll can wait (24 days) is as good as for ever.
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

/// The socket under a stream, for another thread.
enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    /// Limits how long a read or a write may block; `None` for ever.
    pub(crate) fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(s) => s.set_timeout(timeout),
            Stream::Tcp(s) => s.set_read_timeout(timeout).and(s.set_write_timeout(timeout)),
            Stream::Tls(s) => s.sock.set_read_timeout(timeout).and(s.sock.set_write_timeout(timeout)),
        }
    }

    /// What shuts the socket down from another thread: a read that blocks then ends at once.
    pub(crate) fn shutter(&self) -> io::Result<Arc<dyn Fn() + Send + Sync>> {
        let socket = match self {
            Stream::Unix(s) => Socket::Unix(s.socket.try_clone()?),
            Stream::Tcp(s) => Socket::Tcp(s.try_clone()?),
            Stream::Tls(s) => Socket::Tcp(s.sock.try_clone()?),
        };
        // A socket that is closed already needs no shutting down.
        Ok(Arc::new(move || {
            let _ = match &socket {
                Socket::Unix(s) => s.shutdown(Shutdown::Both),
                Socket::Tcp(s) => s.shutdown(Shutdown::Both),
            };
        }))
    }
}

/// What has been read from a stream: `bytes[start..end]` has not been used yet.
pub(crate) struct Input {
    pub(crate) bytes: Vec<u8>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Input {
    /// Room for a read: more than any answer of the hot path.
    const ROOM: usize = 16 * 1024;

    pub(crate) fn new() -> Input {
        Input { bytes: vec![0; Self::ROOM], start: 0, end: 0 }
    }

    /// Reads more, so that a message of `len` bytes fits in.
    ///
    /// # Errors
    /// Those of the stream, and its end.
    pub(crate) fn fill(&mut self, stream: &mut Stream, len: usize) -> io::Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.start + len > self.bytes.len() || self.end == self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if len > self.bytes.len() {
                // Grown step by step, so that a wrong length does not take memory that is not needed.
                self.bytes.resize((self.bytes.len() * 2).min(len.next_multiple_of(Self::ROOM)), 0);
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
            // Sockets hold nothing back.
            Stream::Unix(_) | Stream::Tcp(_) => Ok(()),
            Stream::Tls(s) => s.flush(),
        }
    }
}
