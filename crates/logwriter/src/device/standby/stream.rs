//! The connection between a log and its standby: TCP, or a Unix socket if the address is an absolute path.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use crate::device::DeviceError;

/// A connected byte stream.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Connects to `host:port` or to the socket at an absolute path. No read or write takes longer than `timeout`.
    pub(super) fn connect(address: &str, timeout: Duration) -> io::Result<Stream> {
        let stream = if address.starts_with('/') {
            Stream::Unix(UnixStream::connect(address)?)
        } else {
            Stream::Tcp(connect_tcp(address, timeout)?)
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

fn connect_tcp(address: &str, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for place in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&place, timeout) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = e,
        }
    }
    Err(last)
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
    /// Listens at `host:port` (on an address that other hosts can reach only with `allow_remote`), or at a new socket
    /// at an absolute path.
    pub(super) fn bind(address: &str, allow_remote: bool) -> Result<Listener, DeviceError> {
        let failed = |action, source| DeviceError::Io {
            action,
            what: format!("standby at {address}"),
            source,
            advice: "Name an address of this host and a free port".to_owned(),
        };
        if address.starts_with('/') {
            let listener = UnixListener::bind(address).map_err(|e| failed("start", e))?;
            return Ok(Listener::Unix(listener, address.into()));
        }
        let places: Vec<_> = address.to_socket_addrs().map_err(|e| failed("find", e))?.collect();
        if let Some(place) = places.iter().find(|place| !allow_remote && !is_loopback(place.ip())) {
            return Err(DeviceError::Unsupported {
                what: format!("standby at {address}"),
                wish: format!("listen on {}", place.ip()),
                why: "other hosts can reach it there, and there is no password".to_owned(),
                advice: "Listen on 127.0.0.1, or allow remote connections on a trusted network".to_owned(),
            });
        }
        TcpListener::bind(places.as_slice()).map(Listener::Tcp).map_err(|e| failed("start", e))
    }

    /// Its address, with the port that it got.
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

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}
