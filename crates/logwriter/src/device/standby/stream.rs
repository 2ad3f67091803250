//! The connection between a log and its standby: TCP, or a Unix socket if the address is an absolute path. What is done with it
//! is the same for both.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Connects to an IP address and port, or to the socket at an absolute path. No read or write takes longer than `timeout`.
pub(super) fn connect(address: &str, timeout: Duration) -> io::Result<UnixStream> {
    let stream = if address.starts_with('/') {
        UnixStream::connect(address)?
    } else {
        let address = address.parse::<SocketAddr>().map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
        of_tcp(TcpStream::connect_timeout(&address, timeout)?)?
    };
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    Ok(stream)
}

/// Sends what is written without waiting for more.
fn of_tcp(stream: TcpStream) -> io::Result<UnixStream> {
    stream.set_nodelay(true)?;
    Ok(OwnedFd::from(stream).into())
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

    pub(super) fn accept(&self) -> io::Result<UnixStream> {
        match self {
            Listener::Tcp(listener) => of_tcp(listener.accept()?.0),
            Listener::Unix(listener, _) => Ok(listener.accept()?.0),
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
