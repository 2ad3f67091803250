//! Sockets of both kinds.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};

use nix::sys::socket::{Backlog, listen};

use crate::{Listen, PeerError};

/// The peer's socket. It does not block.
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    pub(crate) fn open(at: &Listen) -> Result<Listener, PeerError> {
        let opened = || -> io::Result<Listener> {
            let listener = match at {
                Listen::Unix(path) => Listener::Unix(UnixListener::bind(path)?),
                Listen::Tcp(address) => Listener::Tcp(TcpListener::bind(address)?),
            };
            match &listener {
                Listener::Unix(l) => l.set_nonblocking(true)?,
                Listener::Tcp(l) => l.set_nonblocking(true)?,
            }
            // Thousands connect at a time: as many may wait as the system allows (net.core.somaxconn).
            listen(&listener, Backlog::MAXALLOWABLE)?;
            Ok(listener)
        };
        let place = match at {
            Listen::Unix(path) => path.display().to_string(),
            Listen::Tcp(address) => address.to_string(),
        };
        opened().map_err(|source| PeerError::Listen { place, source })
    }

    /// The same socket for another thread.
    pub(crate) fn again(&self) -> io::Result<Listener> {
        Ok(match self {
            Listener::Unix(l) => Listener::Unix(l.try_clone()?),
            Listener::Tcp(l) => Listener::Tcp(l.try_clone()?),
        })
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Listener::Unix(_) => None,
            Listener::Tcp(l) => l.local_addr().ok(),
        }
    }

    /// The next client, if there is one. Its socket does not block.
    pub(crate) fn accept(&self) -> io::Result<Socket> {
        Ok(match self {
            Listener::Unix(l) => {
                let (socket, _) = l.accept()?;
                socket.set_nonblocking(true)?;
                Socket::Unix(socket)
            }
            Listener::Tcp(l) => {
                let (socket, _) = l.accept()?;
                socket.set_nonblocking(true)?;
                socket.set_nodelay(true)?;
                Socket::Tcp(socket)
            }
        })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix(l) => l.as_fd(),
            Listener::Tcp(l) => l.as_fd(),
        }
    }
}

/// A client's socket.
pub(crate) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    pub(crate) fn set_blocking(&self) -> io::Result<()> {
        match self {
            Socket::Unix(s) => s.set_nonblocking(false),
            Socket::Tcp(s) => s.set_nonblocking(false),
        }
    }

    pub(crate) fn again(&self) -> io::Result<Socket> {
        Ok(match self {
            Socket::Unix(s) => Socket::Unix(s.try_clone()?),
            Socket::Tcp(s) => Socket::Tcp(s.try_clone()?),
        })
    }

    pub(crate) fn shutdown(&self, how: std::net::Shutdown) {
        // It may be closed already.
        let _ = match self {
            Socket::Unix(s) => s.shutdown(how),
            Socket::Tcp(s) => s.shutdown(how),
        };
    }
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(s) => s.read(bytes),
            Socket::Tcp(s) => s.read(bytes),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(s) => s.write(bytes),
            Socket::Tcp(s) => s.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(s) => s.as_fd(),
            Socket::Tcp(s) => s.as_fd(),
        }
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}
