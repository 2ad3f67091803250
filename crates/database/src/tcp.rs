//! TCP connections to a server, with or without TLS.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::error::TargetError;
use crate::stream::{Socket, Stream};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Unix(PathBuf),
    /// Host name or IP address, and port.
    Tcp(String, u16),
}

impl Address {
    /// Whether it names this machine. The server may be elsewhere, behind a tunnel or a container's port.
    pub(crate) fn is_near(&self) -> bool {
        matches!(self, Address::Unix(_)) || matches!(self, Address::Tcp(host, _) if is_loopback(host))
    }

    /// The address, if it is one of this machine.
    pub(crate) fn here(&self) -> Option<Address> {
        if matches!(self, Address::Tcp(host, _) if !is_here(host)) { None } else { Some(self.clone()) }
    }
}

/// A product's names in error messages: the server's setting of its addresses, and URL parameters.
pub(crate) struct Names {
    pub(crate) listen: &'static str,
    pub(crate) timeout: &'static str,
    pub(crate) verify_ca: &'static str,
    pub(crate) ca: &'static str,
}

/// Whether the host is this machine by its name or address.
fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether `host` is this machine, by whatever name or address: the system would send from there as well. Nothing is sent.
fn is_here(host: &str) -> bool {
    let own = |at: SocketAddr| {
        let any: IpAddr = if at.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect(at).ok()?;
        Some(socket.local_addr().ok()?.ip() == at.ip())
    };
    // The port matters not.
    is_loopback(host) || (host, 9).to_socket_addrs().is_ok_and(|mut all| all.any(|at| own(at) == Some(true)))
}

pub(crate) struct Peer {
    pub(crate) place: String,
    pub(crate) names: &'static Names,
}

impl Peer {
    /// Connects within `timeout`, which also limits reads and writes from then on.
    pub(crate) fn connect(&self, host: &str, port: u16, timeout: Duration) -> Result<Socket, TargetError> {
        let addresses = (host, port).to_socket_addrs().map_err(|e| {
            TargetError::Unreachable(format!("the host name '{host}' cannot be resolved: {e}. Check its spelling"))
        })?;
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in addresses {
            let connected = Socket::connect(address, timeout);
            match connected.and_then(|mut socket| socket.set_timeout(Some(timeout)).map(|()| socket)) {
                Ok(socket) => return Ok(socket),
                Err(e) => last = e,
            }
        }
        Err(self.unreachable(&last))
    }

    pub(crate) fn unreachable(&self, e: &io::Error) -> TargetError {
        let Names { listen, timeout, .. } = self.names;
        let (why, advice) = match e.kind() {
            io::ErrorKind::ConnectionRefused => {
                (e.to_string(), format!("no server listens there: check host and port, and the server's {listen}"))
            }
            // The system says of a socket that waited that its resource is temporarily unavailable.
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => (
                "no answer in time".to_owned(),
                format!(
                    "check host, port and firewall, and whether the server is stopped, or set a longer {timeout}=SECONDS"
                ),
            ),
            _ => (e.to_string(), "check host, port and network".to_owned()),
        };
        TargetError::Unreachable(format!("{} cannot be reached: {why}; {advice}", self.place))
    }

    pub(crate) fn encrypt(&self, mut tcp: Socket, host: &str, tls: &Arc<ClientConfig>) -> Result<Stream, TargetError> {
        let name = ServerName::try_from(host.to_owned()).map_err(|e| self.no_encryption(&e.to_string()))?;
        let session = ClientConnection::new(Arc::clone(tls), name);
        let mut session = session.map_err(|e| self.no_encryption(&e.to_string()))?;
        while session.is_handshaking() {
            session.complete_io(&mut tcp).map_err(|e| self.no_encryption(&e.to_string()))?;
        }
        Ok(Stream::Tls(Box::new(StreamOwned::new(session, tcp))))
    }

    fn no_encryption(&self, e: &str) -> TargetError {
        let Names { verify_ca, ca, .. } = self.names;
        let what = e.to_ascii_lowercase();
        let advice = if what.contains("name") {
            format!(". Its certificate is issued to another name: use that name, or {verify_ca}")
        } else if what.contains("issuer") || what.contains("certificate") {
            format!(". Give the certificate of the authority with {ca}=PATH")
        } else {
            String::new()
        };
        TargetError::Refused(format!("the TLS handshake with {} failed: {e}{advice}", self.place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_answer_is_said_without_the_words_of_a_socket() {
        let names = &Names { listen: "listen_addresses", timeout: "connect_timeout", verify_ca: "", ca: "" };
        let peer = Peer { place: "db1:5432".to_owned(), names };
        let of = |code| peer.unreachable(&io::Error::from_raw_os_error(code)).to_string();
        let silent = of(11);
        assert!(silent.starts_with("db1:5432 cannot be reached: no answer in time; check host"), "{silent}");
        assert!(of(111).contains("Connection refused") && of(111).contains("listen_addresses"), "{}", of(111));
    }
}
