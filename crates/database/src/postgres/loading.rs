//! Loads rows by COPY in several sessions.

use loadline_workload::{Datum, LogicalType, Table};
use postgres_protocol::message::frontend;

use super::knowledge::KNOWLEDGE;
use super::protocol;
use super::schema;
use super::wire::{Connection, Row};
use crate::data_set::LoadSession;
use crate::error::TargetError;
use crate::loading::{Batch, rows};
use crate::work::Work;

/// Copied rows are sent in chunks of this size: small enough for the CPU caches of both sides, and the server works on
/// one chunk while the next is generated.
const COPY_CHUNK: usize = 32 * 1024;

impl LoadSession for Connection {
    fn rows(&mut self, sql: &str) -> Result<Vec<Row>, TargetError> {
        self.query(sql)
    }

    fn run(&mut self, sql: &str) -> Result<(), TargetError> {
        self.query(sql).map(drop)
    }

    fn ensure(&mut self) -> Result<(), TargetError> {
        schema::ensure(self)
    }

    fn insert(&mut self, work: &Work, table: &Table, batches: &[Batch]) -> Result<(), TargetError> {
        copy(self, work, table, batches)
    }

    fn path(&self) -> &'static str {
        "COPY, binary"
    }

    fn close(&mut self) -> Result<(), TargetError> {
        self.publish()
    }
}

pub(super) fn copy(c: &mut Connection, work: &Work, table: &Table, batches: &[Batch]) -> Result<(), TargetError> {
    let name = KNOWLEDGE.dialect.table_name(work, &table.name);
    c.put(|out| frontend::query(&format!("COPY {name} FROM STDIN (FORMAT binary)"), out))?;
    c.send()?;
    let incoming = c.next()?;
    if incoming.tag == b'E' {
        let e = c.server_error(incoming)?;
        c.until_ready(|_, _| ())?;
        return Err(e);
    }
    // <https://www.postgresql.org/docs/current/sql-copy.html>, `Binary Format`.
    let mut data = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    for batch in batches {
        rows(work, table, batch, |row| {
            put_row(&mut data, row);
            if data.len() >= COPY_CHUNK { send_copy(c, &mut data) } else { Ok(()) }
        })?;
    }
    data.extend_from_slice(&u16::MAX.to_be_bytes());
    send_copy(c, &mut data)?;
    c.out.extend_from_slice(b"c\0\0\0\x04");
    c.send()?;
    let mut copied = 0;
    c.until_ready(|tag, body| {
        if tag == b'C' {
            copied = protocol::rows_of_tag(body);
        }
    })?;
    let sent = batches.iter().map(Batch::len).sum::<u64>();
    if copied == sent {
        return Ok(());
    }
    Err(TargetError::Statement(format!("COPY stored {copied} rows instead of {sent}")))
}

fn put_row(data: &mut Vec<u8>, row: &[Datum<'_>]) {
    data.extend_from_slice(&(row.len() as u16).to_be_bytes());
    for datum in row {
        match datum {
            Datum::Int(i) => put(data, &[&i.to_be_bytes()]),
            Datum::Bytes(bytes) => put(data, &[bytes]),
            Datum::Typed(value) => match value.logical {
                LogicalType::Timestamp => put(data, &[&(value.number * 1_000_000).to_be_bytes()]),
                LogicalType::Boolean => put(data, &[&[(value.number & 1) as u8]]),
                LogicalType::Numeric => put(data, &[&numeric(value.number)]),
                // With the version of the format.
                LogicalType::Json => put(data, &[&[1], value.text().as_bytes()]),
                LogicalType::Text | LogicalType::Int | LogicalType::Bytes => put(data, &[value.text().as_bytes()]),
            },
        }
    }
}

/// Adds a value, made of parts.
fn put(data: &mut Vec<u8>, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    data.extend_from_slice(&(length as u32).to_be_bytes());
    parts.iter().for_each(|part| data.extend_from_slice(part));
}

/// The number of `hundredths` in binary: digits of base 10,000, the last of them after the point
/// (`numeric_send` in PostgreSQL's numeric.c).
fn numeric(hundredths: i64) -> Vec<u8> {
    let (mut whole, mut digits) = (hundredths.unsigned_abs() / 100, vec![hundredths.unsigned_abs() % 100 * 100]);
    while whole > 0 {
        digits.insert(0, whole % 10_000);
        whole /= 10_000;
    }
    let sign = if hundredths < 0 { 0x4000 } else { 0 };
    let head = [digits.len() as u16, (digits.len() as u16).wrapping_sub(2), sign, 2];
    head.into_iter().chain(digits.iter().map(|d| *d as u16)).flat_map(u16::to_be_bytes).collect()
}

fn send_copy(c: &mut Connection, data: &mut Vec<u8>) -> Result<(), TargetError> {
    c.out.push(b'd');
    c.out.extend_from_slice(&(data.len() as u32 + 4).to_be_bytes());
    c.out.append(data);
    c.send()
}
