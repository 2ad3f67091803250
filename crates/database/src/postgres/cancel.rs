//! Cancels the query of a session.

use std::io::Write;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::config::Address;

/// Identifies a session to the server, to cancel its query through another connection.
#[derive(Debug, Clone, Default)]
pub(super) struct CancelKey {
    pub(super) address: Option<Address>,
    pub(super) port: u16,
    /// Process id of the session's server process.
    pub(super) pid: u32,
    pub(super) secret: u32,
}

impl CancelKey {
    /// Asks the server to cancel. The server does not answer, so nothing is returned.
    pub(super) fn cancel(&self) {
        let mut request = BytesMut::new();
        frontend::cancel_request(self.pid.cast_signed(), self.secret.cast_signed(), &mut request);
        let timeout = Duration::from_secs(2);
        match &self.address {
            Some(Address::Unix(dir)) => {
                if let Ok(mut s) = UnixStream::connect(dir.join(format!(".s.PGSQL.{}", self.port))) {
                    let _ = s.set_write_timeout(Some(timeout)).and_then(|()| s.write_all(&request));
                }
            }
            Some(Address::Tcp(host)) => {
                let address = (host.as_str(), self.port).to_socket_addrs().ok().and_then(|mut a| a.next());
                if let Some(Ok(mut s)) = address.map(|a| TcpStream::connect_timeout(&a, timeout)) {
                    let _ = s.set_write_timeout(Some(timeout)).and_then(|()| s.write_all(&request));
                }
            }
            None => {}
        }
    }
}
