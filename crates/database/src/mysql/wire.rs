//! A blocking session with one reused buffer per direction.

use std::collections::BTreeMap;
use std::io::{self, Write};

use loadline_workload::Arg;

use super::knowledge::Version;
use super::protocol::{self, MAX_PAYLOAD, MORE_RESULTS, Reader, Row, ServerError};
use crate::error::{Refusal, TABLE_GONE, TargetError};
use crate::patience::{self, Patience};
use crate::role::Canceller;
use crate::stream::{Input, Socket, Stream};

pub(super) struct Prepared {
    id: u32,
    /// Whether the server knows the types of its parameters.
    typed: bool,
    pub(super) columns: u16,
}

pub(super) struct Connection {
    pub(super) stream: Stream,
    /// Packets that the next [`Self::send`] sends.
    pub(super) out: Vec<u8>,
    input: Input,
    /// Number of the login's next packet.
    pub(super) number: u8,
    pub(super) version: Version,
    /// The server's id of this session.
    pub(super) session: u32,
    /// Ends a call, and asks what the server does for this session, once it is open.
    pub(super) canceller: Canceller,
    place: String,
    /// Names of the columns of the last [`Self::query`].
    pub(super) names: Vec<String>,
    /// Number of the server's last error.
    pub(super) last_code: u16,
}

impl Connection {
    /// Wraps a stream; `place` names the server in messages.
    pub(super) fn new(stream: Stream, place: String) -> Connection {
        Connection {
            stream,
            out: Vec::with_capacity(4096),
            input: Input::new(),
            number: 0,
            version: Version::parse(""),
            session: 0,
            canceller: patience::unanswered(),
            place,
            names: Vec::new(),
            last_code: 0,
        }
    }

    /// Encrypts the stream with `f`. Bytes that came before would be read as if they were encrypted: they are an error.
    pub(super) fn encrypt(&mut self, f: impl FnOnce(Socket) -> Result<Stream, TargetError>) -> Result<(), TargetError> {
        if self.input.start != self.input.end {
            return Err(self.protocol_error("unencrypted bytes before encryption"));
        }
        if let Stream::Plain(socket) = &self.stream {
            self.stream = f(socket.clone())?;
        }
        Ok(())
    }

    /// Waits for the server with `patience` from now on; `None`: blocks, as a job does.
    pub(super) fn wait_with(&mut self, patience: Option<Patience>) -> Result<(), TargetError> {
        self.stream.wait_with(patience).map_err(|e| self.lost(&e))
    }

    fn lost(&self, e: &io::Error) -> TargetError {
        let lost = || TargetError::Lost(format!("the session with {} is lost: {e}", self.place));
        patience::given_up(e, &self.place).unwrap_or_else(lost)
    }

    fn protocol_error(&self, what: &str) -> TargetError {
        TargetError::Lost(format!("the service at {} does not speak MariaDB's protocol ({what})", self.place))
    }

    /// Sends [`Self::out`] in one write.
    #[inline]
    pub(super) fn send(&mut self) -> Result<(), TargetError> {
        let sent = self.stream.write_all(&self.out).and_then(|()| self.stream.flush());
        self.out.clear();
        sent.map_err(|e| self.ended(&e))
    }

    /// Why nothing more can be sent: what the server said before it closed the session, as of a packet above `max_allowed_packet`
    /// (error 1153), or else `e`.
    #[cold]
    fn ended(&mut self, e: &io::Error) -> TargetError {
        let is_closed = matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset);
        while let Some(body) = is_closed.then(|| self.next().ok()).flatten() {
            if self.input.bytes.get(body.0) == Some(&0xff) {
                return self.error(body);
            }
        }
        self.lost(e)
    }

    /// The payload of the next packet, as a range of the buffer.
    #[inline]
    fn next(&mut self) -> Result<(usize, usize), TargetError> {
        loop {
            let Input { bytes, start, end, .. } = &mut self.input;
            let (have, mut needed) = (&bytes[*start..*end], 4);
            if let [a, b, c, number, ..] = *have {
                let length = u32::from_le_bytes([a, b, c, 0]) as usize;
                if length >= MAX_PAYLOAD {
                    return Err(self.protocol_error(&format!("a packet of {length} bytes")));
                }
                needed += length;
                if have.len() >= needed {
                    let body = (*start + 4, *start + needed);
                    *start += needed;
                    self.number = number.wrapping_add(1);
                    return Ok(body);
                }
            }
            self.fill(needed)?;
        }
    }

    /// A copy of the next payload.
    pub(super) fn packet(&mut self) -> Result<Vec<u8>, TargetError> {
        let (start, end) = self.next()?;
        Ok(self.input.bytes[start..end].to_vec())
    }

    fn fill(&mut self, len: usize) -> Result<(), TargetError> {
        self.input.fill(&mut self.stream, len).map_err(|e| self.lost(&e))
    }

    /// Classifies an error packet.
    #[cold]
    fn error(&mut self, body: (usize, usize)) -> TargetError {
        let error = ServerError::parse(&self.input.bytes[body.0..body.1]);
        self.last_code = error.code;
        match error.code {
            // Shutdown in progress, killed, timed out: the session is gone.
            1053 | 1927 | 4031 | 1079 => TargetError::Lost(format!("{} ended the session: {error}", self.place)),
            // A deadlock, also with a change of another node of a cluster, and a row that was changed since it was read: the
            // whole transaction is rolled back.
            1213 | 1020 => TargetError::Conflict(error.to_string()),
            // The storage engine's words for the same at a COMMIT (HA_ERR_LOCK_DEADLOCK).
            1180 if error.message.contains("error 149") => TargetError::Conflict(error.to_string()),
            // The node has left its cluster, or lost its majority.
            1047 => Refusal { text: format!("{} is not ready: {error}", self.place), ..error.refusal() }.into(),
            // No such table or database.
            1146 | 1049 => TargetError::from(error.refusal()).with(TABLE_GONE),
            _ => error.refusal().into(),
        }
    }

    /// The payload of the next packet of an answer, as [`Self::next`], unless it is an error.
    #[inline]
    fn next_answer(&mut self) -> Result<(usize, usize), TargetError> {
        let body = self.next()?;
        if self.input.bytes.get(body.0) == Some(&0xff) {
            return Err(self.error(body));
        }
        Ok(body)
    }

    /// Reads an answer without a result set; returns the affected rows.
    #[inline]
    pub(super) fn read_ok(&mut self) -> Result<u64, TargetError> {
        let body = self.next_answer()?;
        if self.input.bytes.get(body.0) != Some(&0) {
            return Err(self.protocol_error("unexpected rows"));
        }
        let (rows, status) = self.parsed(body, protocol::ok, "a truncated answer")?;
        if status & MORE_RESULTS != 0 {
            self.read_results(&mut Vec::new())?;
        }
        Ok(rows)
    }

    #[inline]
    fn parsed<T>(
        &self,
        (start, end): (usize, usize),
        parse: impl FnOnce(&[u8]) -> Option<T>,
        wrong: &str,
    ) -> Result<T, TargetError> {
        parse(&self.input.bytes[start..end]).ok_or_else(|| self.protocol_error(wrong))
    }

    /// Reads the answer to a prepared statement with `columns` columns; returns the number of affected or
    /// fetched rows.
    #[inline]
    pub(super) fn read_answer(&mut self, columns: u16) -> Result<u64, TargetError> {
        if columns == 0 {
            return self.read_ok();
        }
        self.next_answer()?;
        self.skip_definitions(columns)?;
        let mut rows = 0;
        loop {
            let body = self.next_answer()?;
            // EOF: a row begins with 0 in this protocol.
            if self.is_eof(body) {
                return Ok(rows);
            }
            rows += 1;
        }
    }

    #[inline]
    fn is_eof(&self, (start, end): (usize, usize)) -> bool {
        self.input.bytes.get(start) == Some(&0xfe) && end - start < 9
    }

    pub(super) fn query(&mut self, sql: &str) -> Result<Vec<Row>, TargetError> {
        protocol::query(&mut self.out, sql);
        self.send()?;
        let mut rows = Vec::new();
        self.read_results(&mut rows)?;
        Ok(rows)
    }

    /// Runs a statement whose rows do not matter.
    pub(super) fn run(&mut self, sql: &str) -> Result<(), TargetError> {
        self.query(sql).map(drop)
    }

    fn read_results(&mut self, rows: &mut Vec<Row>) -> Result<(), TargetError> {
        loop {
            let body = self.next_answer()?;
            let status = match self.input.bytes.get(body.0) {
                Some(0) => self.parsed(body, protocol::ok, "a truncated answer")?.1,
                Some(0xfb) => return Err(self.protocol_error("a request for a local file")),
                _ => {
                    let columns = |body: &[u8]| Reader(body).length().filter(|n| (1..=4096).contains(n));
                    let columns = self.parsed(body, columns, "no columns")?;
                    self.read_rows(columns as usize, rows)?
                }
            };
            if status & MORE_RESULTS == 0 {
                return Ok(());
            }
        }
    }

    /// Executes a LOAD DATA LOCAL INFILE of the file `name`, and sends what `more` appends to the buffer until
    /// it appends nothing. Returns the number of added rows.
    pub(super) fn load_local(
        &mut self,
        sql: &str,
        name: &str,
        mut more: impl FnMut(&mut Vec<u8>),
    ) -> Result<u64, TargetError> {
        protocol::query(&mut self.out, sql);
        self.send()?;
        let body = self.next_answer()?;
        let asked = |body: &[u8]| body.strip_prefix(&[0xfb]).filter(|asked| *asked == name.as_bytes()).map(drop);
        self.parsed(body, asked, "no request for the announced rows")?;
        let mut number = self.number;
        loop {
            let start = protocol::open(&mut self.out, number);
            more(&mut self.out);
            protocol::close(&mut self.out, start);
            // An empty packet ends it.
            let ended = self.out.len() == start;
            number = number.wrapping_add(1);
            self.send()?;
            if ended {
                return self.read_ok();
            }
        }
    }

    /// Reads the names of the columns and adds the rows; returns the status after them.
    fn read_rows(&mut self, columns: usize, rows: &mut Vec<Row>) -> Result<u16, TargetError> {
        self.names.clear();
        for _ in 0..columns {
            let (start, end) = self.next()?;
            self.names.push(protocol::column_name(&self.input.bytes[start..end]).unwrap_or_default());
        }
        self.next()?;
        loop {
            let body = self.next_answer()?;
            if self.is_eof(body) {
                // Its mark and the number of warnings, then the status.
                let status = |body: &[u8]| Reader(body.get(3..)?).number(2);
                return self.parsed(body, status, "a truncated answer").map(|status| status as u16);
            }
            rows.push(self.parsed(body, |body| protocol::text_row(body, columns), "a truncated row")?);
        }
    }

    /// Definitions of parameters or columns, and the EOF after them.
    fn skip_definitions(&mut self, n: u16) -> Result<(), TargetError> {
        if n > 0 {
            for _ in 0..=n {
                self.next()?;
            }
        }
        Ok(())
    }

    /// The first value of the first row, as text.
    pub(super) fn value(&mut self, sql: &str) -> Result<Option<String>, TargetError> {
        Ok(self.query(sql)?.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
    }

    pub(super) fn number(&mut self, sql: &str) -> Result<Option<f64>, TargetError> {
        Ok(self.value(sql)?.and_then(|v| v.parse().ok()))
    }

    /// Name and value of each row.
    pub(super) fn pairs(&mut self, sql: &str) -> Result<Vec<(String, String)>, TargetError> {
        let pair = |row: Row| {
            let mut values = row.into_iter().map(Option::unwrap_or_default);
            Some((values.next()?, values.next()?))
        };
        Ok(self.query(sql)?.into_iter().filter_map(pair).collect())
    }

    /// Rows of `SHOW {what}` with these names, for example of `GLOBAL STATUS`.
    pub(super) fn shown<S: AsRef<str>>(
        &mut self,
        what: &str,
        names: impl IntoIterator<Item = S>,
    ) -> Result<BTreeMap<String, String>, TargetError> {
        let names: Vec<String> = names.into_iter().map(|name| format!("'{}'", name.as_ref())).collect();
        let shown = self.pairs(&format!("SHOW {what} WHERE Variable_name IN ({})", names.join(", ")))?;
        Ok(shown.into_iter().collect())
    }

    pub(super) fn prepare(&mut self, sql: &str) -> Result<Prepared, TargetError> {
        protocol::command(&mut self.out, protocol::PREPARE, sql.as_bytes());
        self.send()?;
        let body = self.next_answer()?;
        let head = |body: &[u8]| {
            let mut r = Reader(body.get(1..)?);
            Some((r.number(4)? as u32, r.number(2)? as u16, r.number(2)? as u16))
        };
        let (id, columns, parameters) = self.parsed(body, head, "a truncated answer")?;
        self.skip_definitions(parameters)?;
        self.skip_definitions(columns)?;
        Ok(Prepared { id, typed: false, columns })
    }

    pub(super) fn close_statement(&mut self, statement: Prepared) -> Result<(), TargetError> {
        protocol::command(&mut self.out, protocol::CLOSE, &statement.id.to_le_bytes());
        self.send()
    }

    #[inline]
    pub(super) fn put_execute(&mut self, statement: &mut Prepared, args: &[Arg<'_>]) {
        protocol::execute(&mut self.out, statement.id, !statement.typed, args);
        statement.typed = true;
    }

    /// Executes a prepared statement; returns the number of affected or fetched rows.
    pub(super) fn execute(&mut self, statement: &mut Prepared, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        self.put_execute(statement, args);
        self.send()?;
        self.read_answer(statement.columns)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn bytes_before_encryption_are_an_error() {
        for more in [0, 1] {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            theirs.write_all(&[1, 0, 0, 0, 10, 0][..5 + more]).unwrap();
            let mut c = Connection::new(Stream::unix(ours), "here".to_owned());
            assert_eq!(c.packet().unwrap(), [10]);
            assert_eq!(c.encrypt(|socket| Ok(Stream::Plain(socket))).is_ok(), more == 0);
        }
    }
}
