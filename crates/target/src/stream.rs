//! The socket of a session, encrypted or not.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};

/// A blocking byte stream to the server.
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// The socket under a stream, for another thread.
enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    /// Limits how long a read or a write may block; `None` for ever.
    pub(crate) fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(s) => s.set_read_timeout(timeout).and(s.set_write_timeout(timeout)),
            Stream::Tcp(s) => s.set_read_timeout(timeout).and(s.set_write_timeout(timeout)),
            Stream::Tls(s) => s.sock.set_read_timeout(timeout).and(s.sock.set_write_timeout(timeout)),
        }
    }

    /// What shuts the socket down from another thread: a read that blocks then ends at once.
    pub(crate) fn shutter(&self) -> io::Result<Arc<dyn Fn() + Send + Sync>> {
        let socket = match self {
            Stream::Unix(s) => Socket::Unix(s.try_clone()?),
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
            Stream::Unix(s) => s.write(buf),
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
