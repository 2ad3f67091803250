//! The schema `loadline`: creates, locks and removes it, loads its tables by COPY in several sessions, and readies them.

use std::collections::BTreeSet;

use loadline_workload::{Datum, LogicalType, RowCount, Table};
use postgres_protocol::message::frontend;

use super::knowledge::{KNOWLEDGE, refusal};
use super::protocol;
use super::sql::{self, SCHEMA, literal};
use super::wire::{Connection, Row, Values};
use crate::data_set::{LoadSession, Loader};
use crate::dialect::{MARK, mark};
use crate::error::{Cause, TargetError};
use crate::loading::{Batch, rows};
use crate::work::Work;

/// Copied rows are sent in chunks that fit into CPU caches: the server works on one while the next is generated.
const COPY_CHUNK: usize = 32 * 1024;

/// Key of the advisory lock: `loadline` in ASCII. Each database has its own lock, like its own schema.
const LOCK_KEY: i64 = 0x6c6f_6164_6c69_6e65;

/// Whether the schema exists; [`TargetError::Refused`] if it is not loadline's.
fn exists(c: &mut Connection) -> Result<bool, TargetError> {
    let comment = c.row(&format!(
        "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = '{SCHEMA}'"
    ))?;
    match comment.value(0) {
        None => Ok(false),
        Some(comment) if comment.starts_with(MARK) => Ok(true),
        Some(_) => Err(refusal("others-schema", &[("schema", SCHEMA)])),
    }
}

pub(super) fn ensure(c: &mut Connection) -> Result<(), TargetError> {
    if exists(c)? {
        return Ok(());
    }
    match c.query(&format!("CREATE SCHEMA {SCHEMA}; COMMENT ON SCHEMA {SCHEMA} IS {}", literal(&mark()))) {
        Err(TargetError::Server(e)) if e.cause == Cause::Privilege => {
            Err(refusal("no-schema", &[("schema", SCHEMA), ("error", &e.text)]))
        }
        made => made.map(drop),
    }
}

/// Makes a checkpoint and returns `true`, unless the role may not.
pub(super) fn checkpoint_if_allowed(c: &mut Connection) -> Result<bool, TargetError> {
    unless_forbidden(c.query("CHECKPOINT"))
}

/// Whether a statement was done; `false` if the role may not.
pub(super) fn unless_forbidden<T>(done: Result<T, TargetError>) -> Result<bool, TargetError> {
    match done {
        Err(TargetError::Server(e)) if e.cause == Cause::Privilege => Ok(false),
        done => done.map(|_| true),
    }
}

fn is_changed_in_place(table: &Table) -> bool {
    table.updated_in_place && matches!(table.rows, RowCount::PerJob(_))
}

/// Frees dead rows of the tables that jobs change in place, and sets the number of workers of the workload's queries. With `levels` it
/// also changes these rows once after a checkpoint, because the server logs a page as a whole at its first change after one.
pub(super) fn freshen(loader: &mut Loader<'_>, work: &Work, levels: bool) -> Result<(), TargetError> {
    let dialect = loader.dialect;
    let session = &mut loader.session;
    let in_place = || work.workload.tables.iter().filter(|t| is_changed_in_place(t));
    // New versions of rows that found no space in their pages (1 to 2 % at 8 jobs) are in the index. Autovacuum is off.
    for table in in_place() {
        session.run(&format!("VACUUM {}", dialect.table_name(work, &table.name)))?;
    }
    sql::parallel_tables(work).iter().try_for_each(|sql| session.run(sql))?;
    if !levels {
        return Ok(());
    }
    unless_forbidden(session.run("CHECKPOINT"))?;
    for table in in_place() {
        let name = dialect.table_name(work, &table.name);
        let bytes = table.columns.iter().filter(|c| c.logical == LogicalType::Bytes).map(|c| dialect.quoted(&c.name));
        // The last byte of the payload, and neither its size nor the count of changes.
        let renewed = bytes.map(|b| {
            let last = format!("octet_length({b}) - 1");
            format!("{b} = set_byte({b}, {last}, 255 - get_byte({b}, {last}))")
        });
        let renewed: Vec<String> = renewed.collect();
        if !renewed.is_empty() {
            session.run(&format!("UPDATE {name} SET {}", renewed.join(", ")))?;
            session.run(&format!("VACUUM {name}"))?;
        }
    }
    Ok(())
}

pub(super) fn lock(c: &mut Connection) -> Result<(), TargetError> {
    let (high, low) = ((LOCK_KEY >> 32).to_string(), (LOCK_KEY & 0xffff_ffff).to_string());
    let holder = KNOWLEDGE.queries.text("lock-holder", &[("high", &high), ("low", &low)]);
    let mut who = String::new();
    // The holder may release the lock between the two queries: try again.
    for _ in 0..3 {
        if c.row(&format!("SELECT pg_try_advisory_lock({LOCK_KEY})"))?.is_true(0) {
            return Ok(());
        }
        let row = c.row(&holder)?;
        if row.value(0).is_some() {
            let [pid, name, since, from] = [0, 1, 2, 3].map(|i| row.value(i).unwrap_or("–"));
            who = format!(": '{name}' (server process {pid}, from {from}, since {since})");
            break;
        }
    }
    Err(refusal("locked", &[("schema", SCHEMA), ("who", &who)]))
}

/// Removes loadline's schema, if it exists, and returns what was removed. Tables in `kept` stay, and so does the schema
/// then.
pub(super) fn clean(c: &mut Connection, kept: &BTreeSet<String>) -> Result<Vec<String>, TargetError> {
    if !exists(c)? {
        return Ok(Vec::new());
    }
    let mut removed = Vec::new();
    for row in c.query(&KNOWLEDGE.queries.text("objects", &[("schema", SCHEMA)]))? {
        if kept.contains(&row.text(2)) {
            continue;
        }
        if !kept.is_empty() {
            c.query(&format!("DROP {} CASCADE", row.text(1)))?;
        }
        removed.push(row.text(0));
    }
    if kept.is_empty() {
        // The schema is loadline's, so all in it and all that depends on it may be dropped.
        c.query(&format!("DROP SCHEMA {SCHEMA} CASCADE"))?;
        removed.push(format!("schema {SCHEMA}"));
    }
    Ok(removed)
}

impl LoadSession for Connection {
    fn rows(&mut self, sql: &str) -> Result<Vec<Row>, TargetError> {
        self.query(sql)
    }

    fn run(&mut self, sql: &str) -> Result<(), TargetError> {
        self.query(sql).map(drop)
    }

    fn ensure(&mut self) -> Result<(), TargetError> {
        ensure(self)
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

/// The number of `hundredths` in binary: digits of base 10,000, the last after the point (`numeric_send` in PostgreSQL's numeric.c).
fn numeric(hundredths: i64) -> Vec<u8> {
    let ten_thousandths = u128::from(hundredths.unsigned_abs()) * 100;
    // The server drops zeros in front.
    let digits = (0..6).rev().map(|at| (ten_thousandths / 10_000_u128.pow(at) % 10_000) as u16);
    let head = [6, 4, if hundredths < 0 { 0x4000 } else { 0 }, 2];
    head.into_iter().chain(digits).flat_map(u16::to_be_bytes).collect()
}

fn send_copy(c: &mut Connection, data: &mut Vec<u8>) -> Result<(), TargetError> {
    c.out.push(b'd');
    c.out.extend_from_slice(&(data.len() as u32 + 4).to_be_bytes());
    c.out.append(data);
    c.send()
}
