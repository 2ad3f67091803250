//! A blocking session with one output and one input buffer, both reused.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::BytesMut;
use loadline_workload::Arg;
use postgres_protocol::message::frontend;

use super::knowledge::{KNOWLEDGE, release};
use super::protocol::{self, ServerError};
use super::sql::{SCHEMA, own};
use crate::descriptor::Release;
use crate::error::{Cause, TABLE_GONE, TargetError};
use crate::patience::{self, Patience};
use crate::role::Canceller;
use crate::stream::{Input, Stream};

/// Messages of the timing loop: Execute of the unnamed portal, all rows; Flush; Sync.
const EXECUTE: &[u8] = b"E\0\0\0\x09\0\0\0\0\0";
pub(super) const FLUSH: &[u8] = b"H\0\0\0\x04";
pub(super) const SYNC: &[u8] = b"S\0\0\0\x04";

pub(super) type Row = Vec<Option<String>>;

/// Values of a row by their place, from 0.
pub(super) trait Values {
    fn value(&self, at: usize) -> Option<&str>;

    /// Empty for NULL.
    fn text(&self, at: usize) -> String {
        self.value(at).unwrap_or_default().to_owned()
    }

    fn is_true(&self, at: usize) -> bool {
        self.value(at) == Some("t")
    }

    fn number<T: FromStr>(&self, at: usize) -> Option<T> {
        self.value(at)?.parse().ok()
    }
}

impl Values for Row {
    fn value(&self, at: usize) -> Option<&str> {
        self.get(at)?.as_deref()
    }
}

/// Commits of loadline's own work (administration, probes, the end of a CALL) that a server's counters already
/// include. They are subtracted from `xact_commit`.
pub(super) type Ledger = Arc<AtomicU64>;

pub(super) struct Connection {
    pub(super) stream: Stream,
    /// Output buffer, sent by [`Self::send`].
    pub(super) out: Vec<u8>,
    input: Input,
    /// Transaction status of the last `ReadyForQuery`: idle (`I`), in a transaction (`T`), or in a failed one (`E`).
    status: u8,
    pub(super) version: Release,
    pub(super) version_text: String,
    /// Process id of its server process, and the secret with which another connection cancels its query.
    pub(super) pid: u32,
    pub(super) secret: i32,
    /// Ends a call, and asks what the server does for this session, once it is open.
    pub(super) canceller: Canceller,
    place: String,
    /// Whether it has sent texts of users' scripts: their tables are not loadline's.
    pub(super) is_scripted: bool,
    /// Commits of this session that are loadline's own work and not yet in the ledger.
    pub(super) own_commits: u64,
    pub(super) ledger: Ledger,
}

/// A message from the server; its body stays in the connection's buffer until the next read.
#[derive(Clone, Copy)]
pub(super) struct Incoming {
    pub(super) tag: u8,
    start: usize,
    end: usize,
}

impl Connection {
    /// A session on `stream`; `place` names the server in messages, `ledger` counts loadline's own commits there.
    pub(super) fn new(stream: Stream, place: String, ledger: Ledger) -> Connection {
        Connection {
            stream,
            out: Vec::with_capacity(4096),
            input: Input::new(),
            status: b'I',
            version: release(""),
            version_text: String::new(),
            pid: 0,
            secret: 0,
            canceller: patience::unanswered(),
            place,
            is_scripted: false,
            // The server counts the login as a transaction.
            own_commits: 1,
            ledger,
        }
    }

    #[inline]
    pub(super) fn send(&mut self) -> Result<(), TargetError> {
        let sent = self.stream.write_all(&self.out).and_then(|()| self.stream.flush());
        self.out.clear();
        sent.map_err(|e| self.lost(&e))
    }

    /// The next message that is not a notice.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Incoming, TargetError> {
        loop {
            let Input { bytes, start, end, .. } = &mut self.input;
            match protocol::header(&bytes[*start..*end]) {
                Ok(Some((tag, len))) if *end - *start >= len => {
                    let incoming = Incoming { tag, start: *start + 5, end: *start + len };
                    *start += len;
                    // Notices, parameters and notifications may come at any time.
                    if !matches!(tag, b'N' | b'S' | b'A') {
                        return Ok(incoming);
                    }
                    if tag == b'S' {
                        self.note_parameter(incoming);
                    }
                }
                Ok(Some((_, len))) => self.fill(len)?,
                Ok(None) => self.fill(5)?,
                Err(len) => return Err(self.not_spoken(format_args!("a message of {len} bytes"))),
            }
        }
    }

    /// Body of `incoming`, valid until the next call of [`Self::next`].
    #[inline]
    pub(super) fn body(&self, incoming: Incoming) -> &[u8] {
        &self.input.bytes[incoming.start..incoming.end]
    }

    #[cold]
    pub(super) fn not_spoken(&self, what: impl Display) -> TargetError {
        TargetError::Lost(format!("the server at {} does not speak PostgreSQL's protocol ({what})", self.place))
    }

    fn fill(&mut self, len: usize) -> Result<(), TargetError> {
        self.input.fill(&mut self.stream, len).map_err(|e| self.lost(&e))
    }

    fn note_parameter(&mut self, incoming: Incoming) {
        let body = String::from_utf8_lossy(self.body(incoming)).into_owned();
        if let Some(version) = body.strip_prefix("server_version\0") {
            self.version_text = version.trim_end_matches('\0').to_owned();
            self.version = release(&self.version_text);
        }
    }

    fn lost(&mut self, e: &io::Error) -> TargetError {
        if let Some(given_up) = patience::given_up(e, &self.place) {
            return given_up;
        }
        // A server that closes the session first sends the reason; the failed write left it unread.
        if matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
            let mut rest = [0; 2048];
            let n = self.stream.read(&mut rest).unwrap_or(0);
            if let Ok(Some((b'E', len))) = protocol::header(&rest[..n]) {
                return self.ended_by_server(&ServerError::parse(rest.get(5..len.min(n)).unwrap_or_default()));
            }
        }
        let how = match e.kind() {
            io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
            _ => e.to_string(),
        };
        TargetError::Lost(format!(
            "the session with {} is lost: {how}. The reason may be in the server's log",
            self.place
        ))
    }

    fn ended_by_server(&self, error: &ServerError) -> TargetError {
        let text = format!("the session with {} was ended by the server: {error}", self.place);
        TargetError::lost(text, error.refusal().cause == Cause::FullDisk)
    }

    /// Parses an `ErrorResponse`; `Err` if it ended the session.
    #[cold]
    pub(super) fn server_error(&self, incoming: Incoming) -> Result<TargetError, TargetError> {
        let error = ServerError::parse(self.body(incoming));
        if error.is_fatal() {
            return Err(self.ended_by_server(&error));
        }
        // Undefined table or schema, of loadline's own.
        let is_unknown = matches!(error.code.as_str(), "42P01" | "3F000");
        let is_gone = is_unknown && error.message.contains(SCHEMA) && !self.is_scripted;
        Ok(if is_gone { error.failure().with(TABLE_GONE) } else { error.failure() })
    }

    /// Reads up to `ReadyForQuery` and passes every other message to `on`; returns the first error. A COPY gets no rows.
    #[inline]
    pub(super) fn until_ready(&mut self, mut on: impl FnMut(u8, &[u8])) -> Result<(), TargetError> {
        let mut error = None;
        loop {
            let incoming = self.next()?;
            match incoming.tag {
                b'Z' => {
                    self.status = self.body(incoming).first().copied().unwrap_or(b'I');
                    return error.map_or(Ok(()), Err);
                }
                b'E' => {
                    let e = self.server_error(incoming)?;
                    error.get_or_insert(e);
                }
                b'G' => {
                    on(b'G', self.body(incoming));
                    self.put(|out| frontend::copy_fail("there are no rows", out))?;
                    self.send()?;
                }
                tag => on(tag, self.body(incoming)),
            }
        }
    }

    /// As [`Self::until_ready`], for loadline's own work: its commit is subtracted from the counters.
    pub(super) fn until_own_ready(&mut self, on: impl FnMut(u8, &[u8])) -> Result<(), TargetError> {
        let done = self.until_ready(on);
        if done.is_ok() && self.is_idle() {
            self.own_commits += 1;
        }
        done
    }

    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.status == b'I'
    }

    /// Appends a message to [`Self::out`]. It is copied, so not for the timing loop.
    pub(super) fn put(&mut self, message: impl FnOnce(&mut BytesMut) -> io::Result<()>) -> Result<(), TargetError> {
        let mut bytes = BytesMut::new();
        if let Err(e) = message(&mut bytes) {
            self.out.clear();
            return Err(TargetError::Usage(format!("this cannot be sent to PostgreSQL: {e}")));
        }
        self.out.extend_from_slice(&bytes);
        Ok(())
    }

    /// Appends a run of the prepared statement `name`, with values and results in binary or text form, to [`Self::out`]. With
    /// [`frontend::bind`] that takes twice the time, 0.1 µs more of each transaction.
    #[inline]
    pub(super) fn call<'a>(&mut self, name: &str, binary: bool, values: impl ExactSizeIterator<Item = Arg<'a>>) {
        let (out, format) = (&mut self.out, [0, 1, 0, u8::from(binary)]);
        let length = out.len() + 1;
        out.extend_from_slice(b"B\0\0\0\0\0");
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        out.extend_from_slice(&format);
        out.extend_from_slice(&(values.len() as u16).to_be_bytes());
        for value in values {
            match value {
                Arg::Int(i) => {
                    out.extend_from_slice(&8_u32.to_be_bytes());
                    out.extend_from_slice(&i.to_be_bytes());
                }
                Arg::Bytes(bytes) => {
                    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
                    out.extend_from_slice(bytes);
                }
            }
        }
        out.extend_from_slice(&format);
        let bytes = ((out.len() - length) as u32).to_be_bytes();
        out[length..length + 4].copy_from_slice(&bytes);
        out.extend_from_slice(EXECUTE);
    }

    #[inline]
    pub(super) fn send_and_sync(&mut self) -> Result<(), TargetError> {
        self.out.extend_from_slice(SYNC);
        self.send()
    }

    /// Runs `sql` (one or more statements without parameters) and returns all rows.
    pub(super) fn query(&mut self, sql: &str) -> Result<Vec<Row>, TargetError> {
        self.put(|out| frontend::query(sql, out))?;
        self.send()?;
        self.text_rows()
    }

    pub(super) fn query_with(&mut self, sql: &str, values: &[&str]) -> Result<Vec<Row>, TargetError> {
        self.put(|out| frontend::parse("", sql, [], out))?;
        self.send_bound("", values)
    }

    pub(super) fn send_bound(&mut self, name: &str, values: &[&str]) -> Result<Vec<Row>, TargetError> {
        self.call(name, false, values.iter().map(|v| Arg::Bytes(v.as_bytes())));
        self.send_and_sync()?;
        self.text_rows()
    }

    /// Reads the rows of loadline's own query.
    pub(super) fn text_rows(&mut self) -> Result<Vec<Row>, TargetError> {
        let mut rows = Vec::new();
        self.until_own_ready(|tag, body| {
            if tag == b'D' {
                rows.push(protocol::texts(body));
            }
        })?;
        Ok(rows)
    }

    /// The first row of a query; empty if there is none.
    pub(super) fn row(&mut self, sql: &str) -> Result<Row, TargetError> {
        Ok(self.query(sql)?.into_iter().next().unwrap_or_default())
    }

    /// The single value of a query; `None` for NULL or no row.
    pub(super) fn value(&mut self, sql: &str) -> Result<Option<String>, TargetError> {
        Ok(self.row(sql)?.into_iter().next().flatten())
    }

    /// The single number of a query; `None` for anything else.
    pub(super) fn number<T: FromStr>(&mut self, sql: &str) -> Result<Option<T>, TargetError> {
        Ok(self.row(sql)?.number(0))
    }

    /// Prepares statements (name, text, parameter types) in one round trip; an error comes with the number of the one that is refused.
    pub(super) fn prepare(&mut self, statements: &[(&str, &str, &[u32])]) -> Result<(), (usize, TargetError)> {
        let mut prepared = 0;
        let mut each = statements.iter();
        let put = each
            .try_for_each(|(name, sql, types)| self.put(|out| frontend::parse(name, sql, types.iter().copied(), out)));
        let sent = put.and_then(|()| self.send_and_sync());
        // ParseComplete.
        let done = sent.and_then(|()| self.until_own_ready(|tag, _| prepared += usize::from(tag == b'1')));
        done.map_err(|e| (prepared, e))
    }

    pub(super) fn book(&mut self) {
        self.ledger.fetch_add(std::mem::take(&mut self.own_commits), Ordering::Relaxed);
    }

    /// Publishes this session's work in the server's counters, then adds its own commits to the ledger.
    pub(super) fn publish(&mut self) -> Result<(), TargetError> {
        if let Some(sql) = KNOWLEDGE.texts.flush.at(self.version) {
            self.query(&own(sql))?;
        }
        self.book();
        Ok(())
    }

    /// Waits for the server with `patience` from now on; `None`: blocks, as a job does.
    pub(super) fn wait_with(&mut self, patience: Option<Patience>) -> Result<(), TargetError> {
        self.stream.wait_with(patience).map_err(|e| self.lost(&e))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Terminate avoids a line in the server's log; errors do not matter.
        let mut message = BytesMut::new();
        frontend::terminate(&mut message);
        let _ = self.stream.write_all(&message).and_then(|()| self.stream.flush());
    }
}
