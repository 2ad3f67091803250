//! Asks a server whether it accepts sessions.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use postgres_protocol::message::frontend;

use super::SUPERUSER;
use crate::error::TargetError;
use crate::postgres::ledger::Ledger;
use crate::postgres::protocol::ServerError;
use crate::postgres::wire::Connection;
use crate::stream::Stream;
use crate::temp::instance::Progress;

/// SQLSTATE `cannot_connect_now`: the server starts, stops or recovers.
const STARTING: &str = "57P03";

/// Opens a session at `socket` and closes it.
pub(super) fn progress(socket: &Path) -> Progress {
    match UnixStream::connect(socket).and_then(Stream::unix) {
        Ok(stream) => ask(stream, socket).unwrap_or_else(|e| Progress::Waiting(e.to_string())),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            Progress::Hopeless(format!("its socket '{}' cannot be used: {e}", socket.display()))
        }
        Err(e) => Progress::Waiting(e.to_string()),
    }
}

fn ask(mut stream: Stream, socket: &Path) -> Result<Progress, TargetError> {
    let local = |e: io::Error| TargetError::Local(e.to_string());
    stream.set_timeout(Some(Duration::from_secs(5))).map_err(local)?;
    let mut c = Connection::new(stream, socket.display().to_string(), Ledger::default());
    let parameters = [("user", SUPERUSER), ("database", "postgres"), ("application_name", "loadline start")];
    c.put(|out| frontend::startup_message(parameters, out))?;
    c.send()?;
    loop {
        let incoming = c.next()?;
        match (incoming.tag, c.body(incoming)) {
            (b'Z', _) => return Ok(Progress::Ready),
            (b'E', body) => {
                let error = ServerError::parse(body);
                return Ok(match error.code.as_str() {
                    STARTING => Progress::Waiting("it is still starting".to_owned()),
                    _ => Progress::Hopeless(error.to_string()),
                });
            }
            (b'R', body) if body != [0; 4] => {
                let why = "it asks for a password, which a private server never does";
                return Ok(Progress::Hopeless(why.to_owned()));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
    }

    #[test]
    fn answers() {
        let answer = |bytes: Vec<u8>| {
            let (own, mut server) = UnixStream::pair().unwrap();
            server.write_all(&bytes).unwrap();
            server.shutdown(std::net::Shutdown::Write).unwrap();
            ask(Stream::unix(own).unwrap(), Path::new("/x"))
        };
        let ready = [message(b'R', &[0; 4]), message(b'S', b"a\0b\0"), message(b'Z', b"I")].concat();
        assert!(matches!(answer(ready), Ok(Progress::Ready)));
        let starting = message(b'E', b"SFATAL\0C57P03\0Mstarting up\0\0");
        assert!(matches!(answer(starting), Ok(Progress::Waiting(_))));
        let full = answer(message(b'E', b"SFATAL\0C53300\0Mtoo many clients\0\0"));
        assert!(matches!(full, Ok(Progress::Hopeless(why)) if why.contains("too many clients")));
        assert!(matches!(answer(message(b'R', &[0, 0, 0, 3])), Ok(Progress::Hopeless(_))));
        assert!(answer(b"HTTP/1.1 400".to_vec()).is_err());
        assert!(answer(Vec::new()).is_err());
    }
}
