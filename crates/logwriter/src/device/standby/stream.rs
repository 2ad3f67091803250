//! The connection between a log and its standby: TCP, or a Unix socket if the address is an absolute path.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A connected byte stream.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Connects to an IP address and port, or to the socket at an absolute path. No read or write takes longer than
    /// `timeout`.
    pub(super) fn connect(address: &str, timeout: Duration) -> io::Result<Stream> {
        let stream = if address.starts_with('/') {
            Stream::Unix(UnixStream::connect(address)?)
        } else {
            let address = address.parse::<SocketAddr>().map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
            Stream::Tcp(TcpStream::connect_timeout(&address, timeout)?)
        };
        stream.send_at_once()?;
        match &stream {
            Stream::Tcp(s) => s.set_read_timeout(Some(timeout)).and_then(|()| s.set_write_timeout(Some(timeout))),
            Stream::Unix(s) => s.set_read_timeout(Some(timeout)).and_then(|()| s.set_write_timeout(Some(timeout))),
        }?;
        Ok(stream)
    }

    /// Sends what is written without waiting for more.
    pub(super) fn send_at_once(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nodelay(true),
            Stream::Unix(_) => Ok(()),
        }
    }

    pub(super) fn try_clone(&self) -> io::Result<Stream> {
        match self {
            Stream::Tcp(stream) => stream.try_clone().map(Stream::Tcp),
            Stream::Unix(stream) => stream.try_clone().map(Stream::Unix),
        }
    }

    /// Ends it for both sides. Best effort: the other side may be gone.
    pub(super) fn close(&self) {
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(into),
            Stream::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where a standby listens. Dropping it removes a Unix socket.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens at a new Unix socket, or at a free port of 127.0.0.1.
    pub(super) fn bind(socket: Option<&Path>) -> io::Result<Listener> {
        match socket {
            Some(path) => UnixListener::bind(path).map(|listener| Listener::Unix(listener, path.to_owned())),
            None => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map(Listener::Tcp),
        }
    }

    /// Address, with the port that it got.
    pub(super) fn address(&self) -> io::Result<String> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().map(|address| address.to_string()),
            Listener::Unix(_, path) => Ok(path.display().to_string()),
        }
    }

    pub(super) fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Tcp(listener) => listener.accept().map(|(stream, _)| Stream::Tcp(stream)),
            Listener::Unix(listener, _) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}
