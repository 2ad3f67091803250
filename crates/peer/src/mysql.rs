//! A session in MySQL's protocol: bytes in, bytes out. Every message of the client is one packet below 16 MiB.
//!
//! <https://mariadb.com/kb/en/clientserver-protocol/>

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::statement::{Does, Step};

/// What a peer without a server behind it says that it is.
pub(crate) const VERSION: &str = "10.11.0-MariaDB-scripted";
/// LONG_PASSWORD, FOUND_ROWS, CONNECT_WITH_DB, LOCAL_FILES, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, MULTI_RESULTS,
/// PS_MULTI_RESULTS, PLUGIN_AUTH.
const CAPABILITIES: u32 =
    0x0001 | 0x0002 | CONNECT_WITH_DB | 0x0080 | 0x0200 | 0x2000 | 0x8000 | 0x0002_0000 | 0x0004_0000 | 0x0008_0000;
const CONNECT_WITH_DB: u32 = 0x0008;
/// SERVER_STATUS_AUTOCOMMIT and SERVER_STATUS_IN_TRANS.
const AUTOCOMMIT: u16 = 2;
const IN_TRANSACTION: u16 = 1;
/// What a row holds: one value of so many bytes.
const VALUE: [u8; 100] = [b'x'; 100];
/// Most of a session's own past that is kept for the server behind, bytes.
const MOST_ASIDE: usize = 16 << 10;
/// A server behind that says nothing for this long is given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    logged_in: bool,
    in_transaction: bool,
    /// Prepared statements and the number of their parameters. The id is the position, from 1.
    statements: Vec<Does>,
    /// The client's packets so far: the login, and what the script has answered since. What would be passed on to the server
    /// behind; given up once the session has shown to be a job's.
    aside: Vec<u8>,
}

/// Appends a packet.
fn packet(out: &mut Vec<u8>, number: &mut u8, body: &[&[u8]]) {
    let len: usize = body.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&(len as u32).to_le_bytes()[..3]);
    out.push(*number);
    *number = number.wrapping_add(1);
    body.iter().for_each(|part| out.extend_from_slice(part));
}

/// The packet at the start of `input`: its number and its body.
fn whole(input: &[u8]) -> Option<(u8, &[u8])> {
    let ([a, b, c, number], rest) = input.split_first_chunk::<4>()?;
    Some((*number, rest.get(..u32::from_le_bytes([*a, *b, *c, 0]) as usize)?))
}

/// Definition of the only column: BLOB, binary.
fn definition(out: &mut Vec<u8>, number: &mut u8) {
    let fixed = [12, 63, 0, 255, 255, 0, 0, 0xfc, 0x90, 0, 0, 0, 0];
    packet(out, number, &[b"\x03def\0\0\0\x05value\0", &fixed]);
}

impl Session {
    pub(crate) fn new() -> Session {
        Session { logged_in: false, in_transaction: false, statements: Vec::new(), aside: Vec::new() }
    }

    /// The server's first message.
    pub(crate) fn greet(id: u32, version: &str, out: &mut Vec<u8>) {
        let [low_a, low_b, high_a, high_b] = CAPABILITIES.to_le_bytes();
        packet(
            out,
            &mut 0,
            &[
                &[10],
                version.as_bytes(),
                &[0],
                &id.to_le_bytes(),
                b"12345678\0",
                // utf8mb4, the status, length of the nonce and its zero byte, reserved.
                &[low_a, low_b, 45, 2, 0, high_a, high_b, 21],
                &[0; 10],
                b"123456789012\0mysql_native_password\0",
            ],
        );
    }

    /// The client's packets so far.
    pub(crate) fn take_aside(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.aside)
    }

    fn status(&self) -> [u8; 2] {
        (AUTOCOMMIT | if self.in_transaction { IN_TRANSACTION } else { 0 }).to_le_bytes()
    }

    fn ok(&self, out: &mut Vec<u8>, number: &mut u8, rows: u32) {
        let mut affected = Vec::with_capacity(4);
        match rows {
            0..=250 => affected.push(rows as u8),
            _ => {
                affected.push(0xfd);
                affected.extend_from_slice(&rows.to_le_bytes()[..3]);
            }
        }
        packet(out, number, &[&[0], &affected, &[0], &self.status(), &[0; 2]]);
    }

    fn end(&self, out: &mut Vec<u8>, number: &mut u8) {
        packet(out, number, &[&[0xfe, 0, 0], &self.status()]);
    }

    /// Answers the packet at the start of `input`, if it is whole. `behind`: whether there is a server for other sessions.
    pub(crate) fn answer(&mut self, input: &[u8], rows: u32, behind: bool, out: &mut Vec<u8>) -> Step {
        let Some((number, body)) = whole(input) else { return Step::Wait };
        let used = body.len() + 4;
        let mut number = number.wrapping_add(1);
        let number = &mut number;
        let answered = |executed| Step::Answered { used, executed };
        if !self.logged_in {
            self.logged_in = true;
            if behind {
                self.aside.extend_from_slice(&input[..used]);
            }
            self.ok(out, number, 0);
            return answered(false);
        }
        let Some((command, text)) = body.split_first() else { return Step::Close };
        match command {
            // COM_QUIT.
            0x01 => return Step::Close,
            // COM_QUERY.
            0x03 => {
                let does = Does::of(text);
                // Once a statement is prepared it is a job's session, before that what it asks may need a real server.
                let unknown = behind && self.statements.is_empty();
                match does {
                    Does::Returns | Does::Changes(_) | Does::Nothing | Does::Unknown if unknown => return Step::PassOn,
                    _ if unknown && self.aside.len() + used > MOST_ASIDE => return Step::PassOn,
                    _ if unknown => self.aside.extend_from_slice(&input[..used]),
                    _ => {}
                }
                self.execute(does, false, rows, out, number);
                return answered(true);
            }
            // COM_STMT_PREPARE.
            0x16 => {
                self.aside = Vec::new();
                let does = Does::of(text);
                self.statements.push(does);
                let columns = u8::from(does == Does::Returns);
                let parameters = parameters(text);
                let id = (self.statements.len() as u32).to_le_bytes();
                packet(out, number, &[&[0], &id, &[columns, 0], &parameters.to_le_bytes(), &[0; 3]]);
                for count in [usize::from(parameters), usize::from(columns)].into_iter().filter(|count| *count > 0) {
                    (0..count).for_each(|_| definition(out, number));
                    self.end(out, number);
                }
            }
            // COM_STMT_EXECUTE.
            0x17 => {
                let id = text.first_chunk::<4>().map_or(0, |id| u32::from_le_bytes(*id)) as usize;
                let does = id.checked_sub(1).and_then(|n| self.statements.get(n)).copied().unwrap_or(Does::Unknown);
                self.execute(does, true, rows, out, number);
                return answered(true);
            }
            // COM_STMT_CLOSE, without an answer. Its place is kept, because the ids are places.
            0x19 => {}
            // COM_SET_OPTION.
            0x1b => self.end(out, number),
            // COM_INIT_DB, COM_PING, COM_STMT_RESET, COM_RESET_CONNECTION.
            0x02 | 0x0e | 0x1a | 0x1f => self.ok(out, number, 0),
            _ => self.refuse(out, number),
        }
        answered(false)
    }

    fn refuse(&self, out: &mut Vec<u8>, number: &mut u8) {
        // ER_UNKNOWN_COM_ERROR.
        packet(out, number, &[&[0xff], &1047_u16.to_le_bytes(), b"#08S01the scripted peer has no answer to this"]);
    }

    fn execute(&mut self, does: Does, binary: bool, rows: u32, out: &mut Vec<u8>, number: &mut u8) {
        match does {
            Does::Returns => {
                packet(out, number, &[&[1]]);
                definition(out, number);
                self.end(out, number);
                // A binary row has a zero byte and which values are NULL.
                let head: &[u8] = if binary { &[0, 0] } else { &[] };
                (0..rows).for_each(|_| packet(out, number, &[head, &[VALUE.len() as u8], &VALUE]));
                self.end(out, number);
            }
            Does::Changes(_) => self.ok(out, number, rows),
            Does::Begins | Does::Commits | Does::RollsBack => {
                self.in_transaction = does == Does::Begins;
                self.ok(out, number, 0);
            }
            Does::Sets => self.ok(out, number, 0),
            Does::Nothing | Does::Unknown => self.refuse(out, number),
        }
    }
}

/// Number of `?` outside of quotes.
fn parameters(sql: &[u8]) -> u16 {
    let (mut quote, mut count) = (None, 0);
    for b in sql {
        match (quote, b) {
            (None, b'?') => count += 1,
            (None, b'\'' | b'"' | b'`') => quote = Some(*b),
            (Some(open), b) if open == *b => quote = None,
            _ => {}
        }
    }
    count
}

fn read_packet(server: &mut UnixStream) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 4];
    server.read_exact(&mut head)?;
    let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    server.read_exact(&mut body)?;
    Ok((head[3], body))
}

fn connect(path: &Path) -> io::Result<(UnixStream, Vec<u8>)> {
    let mut server = UnixStream::connect(path)?;
    server.set_read_timeout(Some(PATIENCE))?;
    let (_, greeting) = read_packet(&mut server)?;
    Ok((server, greeting))
}

/// The version in the greeting of the server at `path`.
pub(crate) fn version_of(path: &Path) -> io::Result<String> {
    let (_, greeting) = connect(path)?;
    match greeting.split_first() {
        Some((10, rest)) => Ok(rest.iter().take_while(|b| **b != 0).map(|b| char::from(*b)).collect()),
        _ => Err(io::Error::other("it does not speak MySQL's protocol")),
    }
}

/// A session with the server at `path`, as the user of the login and without a password, in the state in which `aside` left the
/// scripted one.
pub(crate) fn log_in(path: &Path, aside: &[u8]) -> io::Result<UnixStream> {
    let unclear = || io::Error::other("the client's login is not understood");
    let (number, login) = whole(aside).ok_or_else(unclear)?;
    let (fixed, rest) = login.split_at_checked(32).ok_or_else(unclear)?;
    let (capabilities, fixed) = fixed.split_first_chunk::<4>().ok_or_else(unclear)?;
    let capabilities = u32::from_le_bytes(*capabilities) & CAPABILITIES;
    let end = rest.iter().position(|b| *b == 0).ok_or_else(unclear)?;
    let (user, rest) = rest.split_at_checked(end + 1).ok_or_else(unclear)?;
    let database = match rest.split_first() {
        Some((len, rest)) if capabilities & CONNECT_WITH_DB != 0 => {
            rest.get(usize::from(*len)..).ok_or_else(unclear)?
        }
        _ => &[],
    };
    let database = database.split_inclusive(|b| *b == 0).next().unwrap_or_default();
    let (mut server, _) = connect(path)?;
    let mut out = Vec::new();
    packet(
        &mut out,
        &mut number.clone(),
        &[&capabilities.to_le_bytes(), fixed, user, &[0], database, b"mysql_native_password\0"],
    );
    server.write_all(&out)?;
    loop {
        let (number, answer) = read_packet(&mut server)?;
        match answer.first() {
            Some(0) => break,
            // Another method: that of a user of the operating system, or an empty password, both of which send nothing.
            Some(0xfe) => {
                let mut out = Vec::new();
                packet(&mut out, &mut number.wrapping_add(1), &[]);
                server.write_all(&out)?;
            }
            _ => return Err(io::Error::other(String::from_utf8_lossy(&answer).into_owned())),
        }
    }
    let mut rest = aside.get(login.len() + 4..).unwrap_or_default();
    while let Some((_, body)) = whole(rest) {
        let (sent, after) = rest.split_at(body.len() + 4);
        server.write_all(sent)?;
        // Only statements without rows are aside: one packet.
        read_packet(&mut server)?;
        rest = after;
    }
    server.set_read_timeout(None)?;
    Ok(server)
}
