//! Messages of the server in PostgreSQL's frontend/backend protocol 3.0, read where they lie in the input buffer. What it is sent
//! comes from [`postgres_protocol::message::frontend`].
//!
//! <https://www.postgresql.org/docs/current/protocol-message-formats.html>

use fallible_iterator::FallibleIterator;
use postgres_protocol::types;

use super::knowledge::KNOWLEDGE;
use crate::error::{Refusal, TargetError};

pub(super) const BYTEA: u32 = 17;
pub(super) const INT8: u32 = 20;
pub(super) const TIMESTAMPTZ: u32 = 1184;

/// Maximum message size, bytes: PostgreSQL never sends more than 1 GiB.
const MAX_MESSAGE: usize = 1 << 30;

/// Tag and total length of the message at the start of `bytes`; `None` if more bytes are needed.
#[inline]
pub(super) fn header(bytes: &[u8]) -> Result<Option<(u8, usize)>, usize> {
    let [tag, a, b, c, d, ..] = *bytes else { return Ok(None) };
    let len = u32::from_be_bytes([a, b, c, d]) as usize;
    if (4..=MAX_MESSAGE).contains(&len) { Ok(Some((tag, len + 1))) } else { Err(len) }
}

/// The rows of a command tag: `UPDATE 3`, `INSERT 0 3`; 0 for a tag without a number.
#[inline]
pub(super) fn rows_of_tag(tag: &[u8]) -> u64 {
    let tag = tag.strip_suffix(&[0]).unwrap_or(tag);
    let digits = tag.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    tag[tag.len() - digits..].iter().fold(0_u64, |n, b| n.wrapping_mul(10).wrapping_add(u64::from(b - b'0')))
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ServerError {
    pub(super) severity: String,
    pub(super) code: String,
    pub(super) message: String,
    pub(super) detail: String,
}

impl ServerError {
    /// Parses the body of an `ErrorResponse`; missing fields stay empty.
    pub(super) fn parse(body: &[u8]) -> ServerError {
        let mut error = ServerError::default();
        for field in body.split(|b| *b == 0) {
            let Some((tag, text)) = field.split_first() else { continue };
            let text = String::from_utf8_lossy(text).into_owned();
            match tag {
                b'V' => error.severity = text,
                b'S' if error.severity.is_empty() => error.severity = text,
                b'C' => error.code = text,
                b'M' => error.message = text,
                b'D' => error.detail = text,
                _ => {}
            }
        }
        error
    }

    /// Of a statement. Could not serialize and deadlock: the transaction is rolled back.
    pub(super) fn failure(&self) -> TargetError {
        match self.code.as_str() {
            "40001" | "40P01" => TargetError::Conflict(self.to_string()),
            _ => self.refusal().into(),
        }
    }

    pub(super) fn refusal(&self) -> Refusal {
        Refusal { cause: KNOWLEDGE.causes.cause(&self.code), code: self.code.clone(), text: self.to_string() }
    }

    pub(super) fn is_fatal(&self) -> bool {
        self.severity == "FATAL" || self.severity == "PANIC"
    }
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.severity, self.code, self.message)?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, " ({})", self.detail) }
    }
}

/// The columns of a `DataRow`; `None` for NULL and for truncated data.
pub(super) fn columns(body: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let (count, mut rest) = match *body {
        [a, b, ref rest @ ..] => (u16::from_be_bytes([a, b]), rest),
        _ => (0, body),
    };
    (0..count).map(move |_| {
        let (len, after) = rest.split_first_chunk::<4>()?;
        rest = after;
        let len = usize::try_from(i32::from_be_bytes(*len)).ok()?;
        let (value, after) = rest.split_at_checked(len)?;
        rest = after;
        Some(value)
    })
}

pub(super) fn texts(body: &[u8]) -> Vec<Option<String>> {
    columns(body).map(|c| c.map(|c| String::from_utf8_lossy(c).into_owned())).collect()
}

/// Names of the columns in a `RowDescription`: after each come 18 bytes of its type.
pub(super) fn names(body: &[u8]) -> Vec<String> {
    let mut rest = body.get(2..).unwrap_or_default();
    let next = || {
        let name = rest.split(|b| *b == 0).next()?;
        rest = rest.get(name.len() + 19..)?;
        Some(String::from_utf8_lossy(name).into_owned())
    };
    std::iter::from_fn(next).collect()
}

/// Parses a one-dimensional binary array of `timestamptz` without NULLs: µs since 2000. `None` for anything else.
pub(super) fn timestamps(bytes: &[u8]) -> Option<Vec<i64>> {
    let array = types::array_from_sql(bytes).ok()?;
    let is_one = matches!(array.dimensions().count(), Ok(0 | 1)) && [0, TIMESTAMPTZ].contains(&array.element_type());
    let values = array.values().map(|value| types::timestamp_from_sql(value.unwrap_or_default()));
    if is_one { values.collect().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tags_give_their_rows() {
        for (tag, rows) in [("UPDATE 3\0", 3), ("INSERT 0 12\0", 12), ("BEGIN\0", 0), ("", 0), ("SELECT 480", 480)] {
            assert_eq!(rows_of_tag(tag.as_bytes()), rows, "{tag}");
        }
    }

    #[test]
    fn names_of_columns_are_read_also_in_another_encoding() {
        let zeros = [0; 19];
        let body = [b"\0\x02bcd", &zeros[..], b"\xe9", &zeros].concat();
        assert_eq!(names(&body), ["bcd", "\u{fffd}"]);
    }

    #[test]
    fn errors_are_read() {
        let body = b"SFEHLER\0VERROR\0C40001\0Mcould not serialize\0Dbecause\0Fx.c\0\0";
        let e = ServerError::parse(body);
        assert_eq!(e.to_string(), "ERROR 40001: could not serialize (because)");
        assert!(!e.is_fatal());
    }

    #[test]
    fn arrays_of_times_are_read() {
        let mut bytes: Vec<u8> = [1, 0, 1184, 2, 1].iter().flat_map(|n: &i32| n.to_be_bytes()).collect();
        for us in [5_i64, -7] {
            bytes.extend_from_slice(&8_u32.to_be_bytes());
            bytes.extend_from_slice(&us.to_be_bytes());
        }
        assert_eq!(timestamps(&bytes), Some(vec![5, -7]));
        assert_eq!(timestamps(&bytes[..bytes.len() - 1]), None);
        assert_eq!(timestamps(&[0; 12]), Some(Vec::new()));
    }

    proptest! {
        #[test]
        fn nothing_from_the_wire_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = header(&bytes);
            let _ = rows_of_tag(&bytes);
            let _ = ServerError::parse(&bytes).to_string();
            let _ = names(&bytes);
            let _ = columns(&bytes).map(|c| c.map(<[u8]>::len)).collect::<Vec<_>>();
            let _ = timestamps(&bytes);
            let _ = crate::postgres::procedure::parse(&bytes);
        }
    }
}
