//! Asks a server whether it accepts sessions: sends a startup message and reads the whole answer.
//!
//! Source: PostgreSQL documentation, `Frontend/Backend Protocol`, chapters `Message Flow` and
//! `Message Formats`.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use crate::postgres::protocol::{self, ServerError};

/// The server's answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProbeAnswer {
    /// A session was opened and closed.
    Ready,
    /// It is still starting.
    Starting,
    /// It refuses, with its reason.
    Refused(String),
}

/// SQLSTATE `cannot_connect_now`: the server starts, stops or recovers.
const STARTING: &str = "57P03";
/// Maximum size of an answer, bytes.
const MAX_ANSWER: usize = 1 << 20;

/// Opens a session as `user` and closes it.
///
/// # Errors
/// When no server listens, or the answer is not PostgreSQL's protocol.
pub(super) fn ask(socket: &Path, user: &str) -> io::Result<ProbeAnswer> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    let mut startup = BytesMut::new();
    let parameters = [("user", user), ("database", "postgres"), ("application_name", "loadline start")];
    frontend::startup_message(parameters, &mut startup)?;
    stream.write_all(&startup)?;
    let answer = read_answer(&mut stream)?;
    if answer == ProbeAnswer::Ready {
        // Terminate. An error means that the server closed the connection before.
        let _ = stream.write_all(&[b'X', 0, 0, 0, 4]);
    }
    Ok(answer)
}

fn read_answer(stream: &mut impl Read) -> io::Result<ProbeAnswer> {
    loop {
        let mut head = [0_u8; 5];
        stream.read_exact(&mut head)?;
        let header = protocol::header(&head).ok().flatten().filter(|(_, length)| *length <= MAX_ANSWER);
        let odd = || io::Error::new(io::ErrorKind::InvalidData, "the answer is not PostgreSQL's protocol");
        let (kind, length) = header.ok_or_else(odd)?;
        let mut body = vec![0; length.saturating_sub(head.len())];
        stream.read_exact(&mut body)?;
        match kind {
            b'Z' => return Ok(ProbeAnswer::Ready),
            b'E' => return Ok(refusal(&body)),
            b'R' if body != [0; 4] => {
                return Ok(ProbeAnswer::Refused(
                    "it asks for a password, which a private server never does".to_owned(),
                ));
            }
            _ => {}
        }
    }
}

fn refusal(body: &[u8]) -> ProbeAnswer {
    let error = ServerError::parse(body);
    match error.code.as_str() {
        STARTING => ProbeAnswer::Starting,
        _ if error.message.is_empty() => ProbeAnswer::Refused("no reason given".to_owned()),
        _ => ProbeAnswer::Refused(error.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
    }

    #[test]
    fn answers() {
        let read = |bytes: Vec<u8>| read_answer(&mut bytes.as_slice());
        let ready = [message(b'R', &[0; 4]), message(b'S', b"a\0b\0"), message(b'Z', b"I")].concat();
        assert_eq!(read(ready).unwrap(), ProbeAnswer::Ready);
        assert_eq!(read(message(b'E', b"SFATAL\0C57P03\0Mstarting up\0\0")).unwrap(), ProbeAnswer::Starting);
        let full = message(b'E', b"SFATAL\0C53300\0Mtoo many clients\0\0");
        assert_eq!(read(full).unwrap(), ProbeAnswer::Refused("too many clients".into()));
        assert!(matches!(read(message(b'R', &[0, 0, 0, 3])).unwrap(), ProbeAnswer::Refused(_)));
        assert!(read(b"HTTP/1.1 400".to_vec()).is_err());
        assert!(read(Vec::new()).is_err());
    }
}
