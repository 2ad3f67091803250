//! A session in PostgreSQL's protocol: bytes in, bytes out.
//!
//! <https://www.postgresql.org/docs/current/protocol-message-formats.html>

use super::statement::Does;

/// Requests in place of a start: encryption by TLS or GSSAPI, and the end of another session's statement.
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
const CANCEL: u32 = 80_877_102;
/// Longest message that is taken, bytes.
const LONGEST: usize = 1 << 26;
/// What a row holds: one value of so many bytes.
const VALUE: [u8; 100] = [b'x'; 100];
/// Type oid of `bytea`.
const BYTEA: i32 = 17;
/// In the application name of job sessions.
const OF_A_JOB: &[u8] = b" job ";

/// What a session does with what it was sent.
pub(super) enum Step {
    /// The message is not whole yet.
    Wait,
    /// It took this many bytes and has answered; `executed`: it was a statement.
    Answered { used: usize, executed: bool },
    /// The session is one for the server behind.
    PassOn,
    /// The client ended it, or does not speak the protocol.
    Close,
}

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    id: u32,
    started: bool,
    in_transaction: bool,
    /// Prepared statements. There are few.
    statements: Vec<(Box<[u8]>, Does)>,
    /// That of the portal.
    bound: Does,
    /// After an error, messages are skipped until Sync.
    failed: bool,
}

/// Appends a message.
fn message(out: &mut Vec<u8>, tag: u8, body: &[&[u8]]) {
    out.push(tag);
    let len = 4 + body.iter().map(|part| part.len()).sum::<usize>();
    out.extend_from_slice(&(len as u32).to_be_bytes());
    body.iter().for_each(|part| out.extend_from_slice(part));
}

/// The text up to a zero byte, and what follows.
fn text(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = body.iter().position(|b| *b == 0)?;
    Some((body.get(..end)?, body.get(end + 1..)?))
}

impl Session {
    pub(super) fn new(id: u32) -> Session {
        Session {
            id,
            started: false,
            in_transaction: false,
            statements: Vec::new(),
            bound: Does::Nothing,
            failed: false,
        }
    }

    /// Answers the message at the start of `input`, if it is whole. `behind`: whether there is a server for other sessions.
    pub(super) fn answer(&mut self, input: &[u8], behind: bool, out: &mut Vec<u8>) -> Step {
        let head = usize::from(self.started);
        let Some(len) = input.get(head..).and_then(|rest| rest.first_chunk::<4>()) else { return Step::Wait };
        let len = u32::from_be_bytes(*len) as usize;
        if !(4..=LONGEST).contains(&len) {
            return Step::Close;
        }
        let Some(body) = input.get(head + 4..head + len) else { return Step::Wait };
        let used = head + len;
        if !self.started {
            return self.start(body, used, behind, out);
        }
        match input.first() {
            Some(b'X') => Step::Close,
            Some(tag) => match self.message(*tag, body, out) {
                Some(executed) => Step::Answered { used, executed },
                None => Step::Close,
            },
            None => Step::Wait,
        }
    }

    fn start(&mut self, body: &[u8], used: usize, behind: bool, out: &mut Vec<u8>) -> Step {
        let Some((code, parameters)) = body.split_first_chunk::<4>() else { return Step::Close };
        match u32::from_be_bytes(*code) {
            SSL | GSS => {
                out.push(b'N');
                return Step::Answered { used, executed: false };
            }
            CANCEL if behind => return Step::PassOn,
            CANCEL => return Step::Close,
            version if version >> 16 == 3 => {}
            _ => return Step::Close,
        }
        if behind && !parameters.windows(OF_A_JOB.len()).any(|w| w == OF_A_JOB) {
            return Step::PassOn;
        }
        self.started = true;
        message(out, b'R', &[&[0; 4]]);
        for (name, value) in [("server_version", "17.0"), ("client_encoding", "UTF8"), ("integer_datetimes", "on")] {
            message(out, b'S', &[name.as_bytes(), &[0], value.as_bytes(), &[0]]);
        }
        message(out, b'K', &[&self.id.to_be_bytes(), &[0; 4]]);
        self.ready(out);
        Step::Answered { used, executed: false }
    }

    fn ready(&self, out: &mut Vec<u8>) {
        message(out, b'Z', &[if self.in_transaction { b"T" } else { b"I" }]);
    }

    fn error(&mut self, out: &mut Vec<u8>, code: &str, what: &str) {
        self.failed = true;
        message(out, b'E', &[b"SERROR\0VERROR\0C", code.as_bytes(), b"\0M", what.as_bytes(), b"\0\0"]);
    }

    /// Answers one message; says whether it executed a statement. `None` if it is none of the protocol.
    fn message(&mut self, tag: u8, body: &[u8], out: &mut Vec<u8>) -> Option<bool> {
        if self.failed && !matches!(tag, b'S' | b'Q') {
            return Some(false);
        }
        match tag {
            b'P' => {
                let (name, rest) = text(body)?;
                let (sql, _) = text(rest)?;
                self.statements.retain(|(known, _)| **known != *name);
                self.statements.push((name.into(), Does::of(sql)));
                message(out, b'1', &[]);
            }
            b'B' => {
                let (_portal, rest) = text(body)?;
                let (name, _) = text(rest)?;
                match self.known(name) {
                    Some(does) => {
                        self.bound = does;
                        message(out, b'2', &[]);
                    }
                    None => self.error(out, "26000", "the peer knows no prepared statement of this name"),
                }
            }
            b'D' => {
                let (kind, rest) = body.split_first()?;
                let of_statement = *kind == b'S';
                let does = if of_statement { self.known(text(rest)?.0).unwrap_or(Does::Nothing) } else { self.bound };
                if of_statement {
                    message(out, b't', &[&[0; 2]]);
                }
                if does == Does::Returns { describe(out) } else { message(out, b'n', &[]) }
            }
            b'E' => {
                self.execute(self.bound, out);
                return Some(true);
            }
            b'C' => message(out, b'3', &[]),
            b'S' => {
                self.failed = false;
                self.ready(out);
            }
            b'Q' => {
                let does = Does::of(text(body)?.0);
                if does == Does::Returns {
                    describe(out);
                }
                self.execute(does, out);
                self.failed = false;
                self.ready(out);
                return Some(true);
            }
            // Flush: all is sent at once anyway.
            b'H' => {}
            _ => return None,
        }
        Some(false)
    }

    fn known(&self, name: &[u8]) -> Option<Does> {
        self.statements.iter().find(|(known, _)| **known == *name).map(|(_, does)| *does)
    }

    fn execute(&mut self, does: Does, out: &mut Vec<u8>) {
        let tag = match does {
            Does::Returns => {
                message(out, b'D', &[&1_u16.to_be_bytes(), &(VALUE.len() as u32).to_be_bytes(), &VALUE]);
                "SELECT 1"
            }
            Does::Changes(tag) => tag,
            Does::Begins => {
                self.in_transaction = true;
                "BEGIN"
            }
            Does::Ends(tag) => {
                self.in_transaction = false;
                tag
            }
            Does::Sets => "SET",
            Does::Nothing => return message(out, b'I', &[]),
            Does::Unknown => return self.error(out, "0A000", "the scripted peer has no answer to this statement"),
        };
        message(out, b'C', &[tag.as_bytes(), &[0]]);
    }
}

/// RowDescription of one column.
fn describe(out: &mut Vec<u8>) {
    // No table; type; variable size; no modifier; text.
    let column =
        [&[0; 6][..], &BYTEA.to_be_bytes(), &(-1_i16).to_be_bytes(), &(-1_i32).to_be_bytes(), &[0; 2]].concat();
    message(out, b'T', &[&1_u16.to_be_bytes(), b"value\0", &column]);
}
