//! Where a relay listens: at a Unix socket, or at a port of the loopback address that is open to one user's processes only.
//!
//! Everybody on the machine can connect to a port, and the server behind the relay lets in whoever comes. So the owner of each
//! connection is looked up in `/proc/net/tcp` (proc(5)).

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

pub(super) enum Listener {
    Socket(UnixListener),
    /// With the user whose processes may connect.
    Port(TcpListener, u32),
}

impl Listener {
    /// At a free port of the loopback address, which is returned.
    pub(super) fn on_loopback(uid: u32) -> io::Result<(Listener, u16)> {
        let listening = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listening.local_addr()?.port();
        Ok((Listener::Port(listening, uid), port))
    }

    pub(super) fn accept(&self) -> io::Result<UnixStream> {
        match self {
            Listener::Socket(listening) => listening.accept().map(|(client, _)| client),
            Listener::Port(listening, uid) => {
                let (client, theirs) = listening.accept()?;
                let table = std::fs::read_to_string("/proc/net/tcp")?;
                if owner_in(&table, theirs, client.local_addr()?) != Some(*uid) {
                    return Err(io::ErrorKind::PermissionDenied.into());
                }
                // As a database's own connections do.
                client.set_nodelay(true)?;
                // What a relay does with a stream is the same for both kinds: read, write, shutdown.
                Ok(UnixStream::from(OwnedFd::from(client)))
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Socket(listening) => listening.as_fd(),
            Listener::Port(listening, _) => listening.as_fd(),
        }
    }
}

/// User of the end at `theirs` of the connection with `ours`; `None` if it has closed that already, which then counts as root's.
fn owner_in(table: &str, theirs: SocketAddr, ours: SocketAddr) -> Option<u32> {
    let (theirs, ours) = (shown(theirs)?, shown(ours)?);
    table.lines().find_map(|line| {
        // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
        let mut fields = line.split_whitespace().skip(1);
        let ends = (fields.next()?, fields.next()?);
        let state = fields.next()?;
        let (uid, inode) = (fields.nth(3)?, fields.nth(1)?);
        // ESTABLISHED.
        let is_open = ends == (&*theirs, &*ours) && state == "01" && inode != "0";
        is_open.then(|| uid.parse().ok()).flatten()
    })
}

/// An address as the table has it: the bytes of the IPv4 address as a number of this machine, and the port.
fn shown(address: SocketAddr) -> Option<String> {
    match address {
        SocketAddr::V4(v4) => Some(format!("{:08X}:{:04X}", u32::from_ne_bytes(v4.ip().octets()), v4.port())),
        SocketAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn a_port_is_open_to_one_user() {
        let uid = nix::unistd::getuid().as_raw();
        for (allowed, welcome) in [(uid, true), (uid + 1, false)] {
            let (listener, port) = Listener::on_loopback(allowed).unwrap();
            let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
            let accepted = listener.accept();
            assert_eq!(accepted.is_ok(), welcome, "{allowed}: {accepted:?}");
            if let Ok(mut server) = accepted {
                server.write_all(b"hello").unwrap();
                let mut said = [0; 5];
                client.read_exact(&mut said).unwrap();
                assert_eq!(&said, b"hello");
            }
        }
    }

    #[test]
    fn only_open_connections_have_an_owner() {
        let line = |state: &str, inode: &str| {
            format!(
                "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                 0: 0100007F:A2F4 0100007F:1F90 {state} 00000000:00000000 00:00000000 00000000   104        0 {inode} 1 0"
            )
        };
        let [theirs, ours] = ["127.0.0.1:41716", "127.0.0.1:8080"].map(|a| a.parse().unwrap());
        assert_eq!(owner_in(&line("01", "777"), theirs, ours), Some(104));
        assert_eq!(owner_in(&line("01", "777"), ours, theirs), None, "the other end");
        for (state, inode) in [("06", "0"), ("01", "0"), ("08", "777")] {
            assert_eq!(owner_in(&line(state, inode), theirs, ours), None, "{state} {inode}");
        }
    }
}
