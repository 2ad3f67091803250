//! Sessions that are passed on to the real server behind the peer. They are few: each has two threads.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use crate::socket::Socket;

/// Sends `first` to the server, and then all that each side says to the other, until one of them ends.
pub(crate) fn pass_on(client: Socket, mut server: UnixStream, first: &[u8]) -> io::Result<()> {
    client.set_blocking()?;
    server.write_all(first)?;
    let (from_client, from_server) = (client.again()?, server.try_clone()?);
    spawn(from_client, Socket::Unix(server))?;
    spawn(Socket::Unix(from_server), client)
}

fn spawn(mut from: Socket, mut to: Socket) -> io::Result<()> {
    let copy = move || {
        // A connection that breaks ends, as one that is closed.
        let _ = io::copy(&mut from, &mut to);
        to.shutdown(Shutdown::Write);
        from.shutdown(Shutdown::Read);
    };
    std::thread::Builder::new().name("passed on".to_owned()).stack_size(64 << 10).spawn(copy).map(drop)
}
