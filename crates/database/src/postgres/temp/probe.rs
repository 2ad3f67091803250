//! Asks a server whether it takes sessions: a start-up message, and its answer to the end.
//!
//! Source: PostgreSQL documentation, «Frontend/Backend Protocol», chapters «Message Flow» and
//! «Message Formats».

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use crate::postgres::protocol::{self, ServerError};

/// What the server answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A session was opened and closed.
    Ready,
    /// It is still starting.
    Starting,
    /// It will not have us, for the reason it gives.
    Refused(String),
}

/// SQLSTATE `cannot_connect_now`: the server starts, stops or recovers.
const STARTING: &str = "57P03";
/// No answer to a start-up is longer.
const LONGEST: usize = 1 << 20;

/// Opens a session as `user` and closes it.
///
/// # Errors
/// When nobody listens, or the answer is no such protocol.
pub(super) fn ask(socket: &Path, user: &str) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    let mut startup = BytesMut::new();
    let parameters = [("user", user), ("database", "postgres"), ("application_name", "loadline start")];
    frontend::startup_message(parameters, &mut startup)?;
    stream.write_all(&startup)?;
    let answer = read_answer(&mut stream)?;
    if answer == Answer::Ready {
        // Terminate. The server closes then; that it may have done so before does not matter.
        let _ = stream.write_all(&[b'X', 0, 0, 0, 4]);
    }
    Ok(answer)
}

fn read_answer(stream: &mut impl Read) -> io::Result<Answer> {
    loop {
        let mut head = [0_u8; 5];
        stream.read_exact(&mut head)?;
        let header = protocol::header(&head).ok().flatten().filter(|(_, length)| *length <= LONGEST);
        let odd = || io::Error::new(io::ErrorKind::InvalidData, "the answer is not PostgreSQL's protocol");
        let (kind, length) = header.ok_or_else(odd)?;
        let mut body = vec![0; length.saturating_sub(head.len())];
        stream.read_exact(&mut body)?;
        match kind {
            b'Z' => return Ok(Answer::Ready),
            b'E' => return Ok(refusal(&body)),
            b'R' if body != [0; 4] => {
                return Ok(Answer::Refused("it asks for a password, which a private server never does".to_owned()));
            }
            _ => {}
        }
    }
}

fn refusal(body: &[u8]) -> Answer {
    let error = ServerError::parse(body);
    match error.code.as_str() {
        STARTING => Answer::Starting,
        _ if error.message.is_empty() => Answer::Refused("no reason given".to_owned()),
        _ => Answer::Refused(error.message),
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
        assert_eq!(read(ready).unwrap(), Answer::Ready);
        assert_eq!(read(message(b'E', b"SFATAL\0C57P03\0Mstarting up\0\0")).unwrap(), Answer::Starting);
        let full = message(b'E', b"SFATAL\0C53300\0Mtoo many clients\0\0");
        assert_eq!(read(full).unwrap(), Answer::Refused("too many clients".into()));
        assert!(matches!(read(message(b'R', &[0, 0, 0, 3])).unwrap(), Answer::Refused(_)));
        assert!(read(b"HTTP/1.1 400".to_vec()).is_err());
        assert!(read(Vec::new()).is_err());
    }
}
