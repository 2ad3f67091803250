//! Messages of the client/server protocol, as far as loadline needs them.
//!
//! <https://mariadb.com/kb/en/clientserver-protocol/>,
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html>

use loadline_workload::Arg;
use ring::digest::{Algorithm, SHA256, digest};

use super::knowledge::KNOWLEDGE;
use crate::error::{Cause, Refusal};

/// Longest payload of a packet, bytes; a longer one takes several packets.
pub(super) const MAX_PAYLOAD: usize = 0xff_ffff;

pub(super) const CLIENT_SSL: u32 = 0x0800;
pub(super) const CLIENT_CONNECT_WITH_DB: u32 = 0x0008;
/// Capabilities of every session: LONG_PASSWORD, LOCAL_FILES (LOAD DATA LOCAL INFILE), PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION,
/// MULTI_RESULTS, PLUGIN_AUTH.
pub(super) const CLIENT_BASE: u32 = 0x0001 | 0x0080 | 0x0200 | 0x2000 | 0x8000 | 0x0002_0000 | 0x0008_0000;
/// `SERVER_MORE_RESULTS_EXISTS` in a status.
pub(super) const MORE_RESULTS: u16 = 0x0008;

/// utf8mb4_general_ci: texts of statements. Payloads are bound as binary strings.
const CHARSET: u8 = 45;

pub(super) struct Greeting {
    pub(super) version: String,
    pub(super) session: u32,
    pub(super) capabilities: u32,
    pub(super) nonce: Vec<u8>,
    pub(super) plugin: String,
}

impl Greeting {
    /// Reads a greeting of protocol version 10; `None` if it is something else.
    pub(super) fn parse(body: &[u8]) -> Option<Greeting> {
        let mut r = Reader(body);
        if r.number(1)? != 10 {
            return None;
        }
        let version = r.until_zero()?;
        let session = r.number(4)? as u32;
        let mut nonce = r.take(8)?.to_vec();
        r.take(1)?;
        let low = r.number(2)? as u32;
        // Character set and status.
        r.take(3)?;
        let high = r.number(2)? as u32;
        let length = r.number(1)? as usize;
        r.take(10)?;
        let rest = length.saturating_sub(8).max(13).min(r.0.len());
        nonce.extend_from_slice(r.take(rest)?);
        nonce.truncate(20);
        let plugin = r.until_zero().unwrap_or_default();
        Some(Greeting { version, session, capabilities: low | high << 16, nonce, plugin })
    }
}

/// Body of the request for encryption: the beginning of a [`login`].
pub(super) fn ssl_request(capabilities: u32) -> Vec<u8> {
    let mut body = capabilities.to_le_bytes().to_vec();
    body.extend_from_slice(&(MAX_PAYLOAD as u32 + 1).to_le_bytes());
    body.push(CHARSET);
    body.extend_from_slice(&[0; 23]);
    body
}

pub(super) fn login(capabilities: u32, user: &str, answer: &[u8], database: Option<&str>, plugin: &str) -> Vec<u8> {
    let database = database.map(|name| [name.as_bytes(), &[0]].concat()).unwrap_or_default();
    let answer = [&[answer.len() as u8], answer].concat();
    [&ssl_request(capabilities), user.as_bytes(), &[0], &answer, &database, plugin.as_bytes(), &[0]].concat()
}

pub(super) struct ServerError {
    pub(super) code: u16,
    pub(super) message: String,
}

impl ServerError {
    /// Reads an error packet; before the login it has no SQLSTATE.
    pub(super) fn parse(body: &[u8]) -> ServerError {
        let mut r = Reader(body);
        let code = r.take(1).and_then(|_| r.number(2)).unwrap_or(0) as u16;
        let text = match r.0 {
            [b'#', _, _, _, _, _, text @ ..] => text,
            text => text,
        };
        ServerError { code, message: String::from_utf8_lossy(text).into_owned() }
    }

    /// For an error that leaves the session usable.
    pub(super) fn refusal(&self) -> Refusal {
        let code = self.code.to_string();
        // ENOSPC and EDQUOT.
        let full = matches!(self.os_error(), Some(28 | 122));
        let cause = if full { Cause::FullDisk } else { KNOWLEDGE.causes.cause(&code) };
        Refusal { cause, code, text: self.to_string() }
    }

    /// The number that the operating system gave the server, which no field of the packet has: `(errno: 28 "…")`,
    /// `(OS errno 28 - …)`, `Got error 28 from storage engine`. `None` for numbers of storage engines.
    fn os_error(&self) -> Option<u16> {
        let text = match self.code {
            // Errors of files: reading, writing, closing, creating.
            3 | 11 | 20 | 1005 | 1026 => self.message.rsplit('(').next()?,
            1030 => &self.message,
            _ => return None,
        };
        let number = text.split(|c: char| !c.is_ascii_digit()).find_map(|n| n.parse().ok())?;
        // In 1030 it may be a number of the storage engine's, from 120 on.
        (self.code != 1030 || number < 120).then_some(number)
    }
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (error {})", self.message, self.code)
    }
}

/// Affected rows and status of an OK packet.
#[inline]
pub(super) fn ok(body: &[u8]) -> Option<(u64, u16)> {
    let mut r = Reader(body);
    r.take(1)?;
    let rows = r.length()?;
    r.length()?;
    Some((rows, r.number(2)? as u16))
}

/// Appends the header of a packet; [`close`] fills in the length.
#[inline]
pub(super) fn open(out: &mut Vec<u8>, number: u8) -> usize {
    out.extend_from_slice(&[0, 0, 0, number]);
    out.len()
}

/// Closes the packet whose payload begins at `start`. Payloads are far below [`MAX_PAYLOAD`].
#[inline]
pub(super) fn close(out: &mut [u8], start: usize) {
    let length = (out.len() - start) as u32;
    if let Some(head) = out.get_mut(start - 4..start - 1) {
        head.copy_from_slice(&length.to_le_bytes()[..3]);
    }
}

pub(super) fn packet(out: &mut Vec<u8>, number: u8, body: &[u8]) {
    let start = open(out, number);
    out.extend_from_slice(body);
    close(out, start);
}

/// Commands of which the rest of the packet is a text or a number. [`CLOSE`], of a prepared statement, has no answer.
const QUERY: u8 = 0x03;
pub(super) const PREPARE: u8 = 0x16;
pub(super) const CLOSE: u8 = 0x19;

pub(super) fn command(out: &mut Vec<u8>, command: u8, body: &[u8]) {
    let start = open(out, 0);
    out.push(command);
    out.extend_from_slice(body);
    close(out, start);
}

pub(super) fn query(out: &mut Vec<u8>, sql: &str) {
    command(out, QUERY, sql.as_bytes());
}

/// COM_STMT_EXECUTE. `typed` sends the types of the parameters, which the server remembers.
#[inline]
pub(super) fn execute(out: &mut Vec<u8>, statement: u32, typed: bool, args: &[Arg<'_>]) {
    let start = open(out, 0);
    out.push(0x17);
    out.extend_from_slice(&statement.to_le_bytes());
    // No cursor; one iteration.
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
    if !args.is_empty() {
        // No value is NULL.
        out.resize(out.len() + args.len().div_ceil(8), 0);
        out.push(u8::from(typed));
        if typed {
            for arg in args {
                // MYSQL_TYPE_LONGLONG and MYSQL_TYPE_BLOB (binary: no character set is applied).
                out.extend_from_slice(match arg {
                    Arg::Int(_) => &[0x08, 0],
                    Arg::Bytes(_) => &[0xfc, 0],
                });
            }
        }
        for arg in args {
            match arg {
                Arg::Int(i) => out.extend_from_slice(&i.to_le_bytes()),
                Arg::Bytes(bytes) => {
                    put_length(out, bytes.len() as u64);
                    out.extend_from_slice(bytes);
                }
            }
        }
    }
    close(out, start);
}

/// A length in one, three, four or nine bytes.
#[inline]
fn put_length(out: &mut Vec<u8>, n: u64) {
    let (mark, bytes): (&[u8], usize) = match n {
        0..=250 => (&[], 1),
        251..=0xffff => (&[0xfc], 2),
        0x1_0000..=0xff_ffff => (&[0xfd], 3),
        _ => (&[0xfe], 8),
    };
    out.extend_from_slice(mark);
    out.extend_from_slice(&n.to_le_bytes()[..bytes]);
}

/// A row in text form; `None` is NULL.
pub(super) type Row = Vec<Option<String>>;

pub(super) fn text_row(body: &[u8], columns: usize) -> Option<Row> {
    let mut r = Reader(body);
    (0..columns)
        .map(|_| match r.0 {
            [0xfb, rest @ ..] => {
                r.0 = rest;
                Some(None)
            }
            _ => r.text().map(Some),
        })
        .collect()
}

/// The name in a column's definition, after its catalogue, database, and two names of its table.
pub(super) fn column_name(body: &[u8]) -> Option<String> {
    let mut r = Reader(body);
    (0..4).try_for_each(|_| r.text().map(drop))?;
    r.text()
}

/// Reads numbers and texts from the front of a body; `None` if it is too short.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub(super) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    pub(super) fn number(&mut self, bytes: usize) -> Option<u64> {
        Some(self.take(bytes)?.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    /// See [`put_length`].
    #[inline]
    pub(super) fn length(&mut self) -> Option<u64> {
        match self.number(1)? {
            0xfc => self.number(2),
            0xfd => self.number(3),
            0xfe => self.number(8),
            n => Some(n).filter(|n| *n <= 250),
        }
    }

    fn text(&mut self) -> Option<String> {
        let n = usize::try_from(self.length()?).ok()?;
        Some(String::from_utf8_lossy(self.take(n)?).into_owned())
    }

    pub(super) fn until_zero(&mut self) -> Option<String> {
        let end = self.0.iter().position(|b| *b == 0)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

/// Authentication methods that loadline supports, for messages.
pub(super) const KNOWN: &str = "mysql_native_password, caching_sha2_password, unix_socket, mysql_clear_password";

/// The answer to the challenge `nonce` by `mysql_native_password` (SHA-1), hash(password) xor hash(nonce, hash(hash(password))), and by
/// `caching_sha2_password` (SHA-256), where the nonce comes last.
pub(super) fn password_answer(algorithm: &'static Algorithm, password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let hash = |parts: [&[u8]; 2]| digest(algorithm, &parts.concat());
    let once = hash([password, b""]);
    let twice = hash([once.as_ref(), b""]);
    let last = if *algorithm == SHA256 { [twice.as_ref(), nonce] } else { [nonce, twice.as_ref()] };
    once.as_ref().iter().zip(hash(last).as_ref()).map(|(a, b)| a ^ b).collect()
}

#[cfg(test)]
mod tests {
    use ring::digest::SHA1_FOR_LEGACY_USE_ONLY;

    use super::*;

    #[test]
    fn executions_are_laid_out_as_documented() {
        let mut out = Vec::new();
        execute(&mut out, 7, true, &[Arg::Bytes(b"ab"), Arg::Int(1)]);
        let body =
            [&[0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0xfc, 0, 8, 0, 2][..], b"ab", &1_i64.to_le_bytes()].concat();
        assert_eq!(out, [&[body.len() as u8, 0, 0, 0][..], &body].concat());
    }

    #[test]
    fn lengths_come_back() {
        for n in [0, 250, 251, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000, u64::MAX] {
            let mut out = Vec::new();
            put_length(&mut out, n);
            assert_eq!(Reader(&out).length(), Some(n));
        }
    }

    proptest::proptest! {
        #[test]
        fn no_message_of_a_server_panics(body: Vec<u8>, columns in 0_usize..20) {
            let _ = Greeting::parse(&body);
            let _ = ServerError::parse(&body);
            let _ = ok(&body);
            let _ = text_row(&body, columns);
        }
    }

    /// A server stores hash(hash(password)) only and checks the answer against it.
    #[test]
    fn the_server_can_check_the_answer() {
        let nonce: &[u8] = &[7; 20];
        for algorithm in [&SHA1_FOR_LEGACY_USE_ONLY, &SHA256] {
            let hash = |bytes: &[u8]| digest(algorithm, bytes).as_ref().to_vec();
            let stored = hash(&hash(b"secret"));
            let asked =
                if *algorithm == SHA256 { [&stored[..], nonce].concat() } else { [nonce, &stored[..]].concat() };
            let answer = password_answer(algorithm, b"secret", nonce);
            let once: Vec<u8> = answer.iter().zip(hash(&asked)).map(|(a, b)| a ^ b).collect();
            assert_eq!(hash(&once), stored);
        }
    }
}
