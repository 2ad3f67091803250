//! The schema `loadline`: creates, fills, locks and removes it.

use std::collections::BTreeSet;

use loadline_workload::{Datum, LogicalType, RowCount, Table};
use postgres_protocol::message::frontend;

use super::knowledge::KNOWLEDGE;
use super::parallel;
use super::protocol;
use super::sql::{SCHEMA, create_table, literal, quoted, table_name};
use super::wire::{Connection, Row};
use crate::error::{Cause, TargetError};
use crate::loading::{Batch, rows};
use crate::work::Work;
use crate::workload_tables::workload_tables;

/// Key of the advisory lock: `loadline` in ASCII. Each database has its own lock, like its own schema.
const LOCK_KEY: i64 = 0x6c6f_6164_6c69_6e65;
/// Prefix of the comment that marks the schema as loadline's.
pub(super) const MARK: &str = "made by loadline";
/// Copied rows are sent in chunks of this size: small enough for the CPU caches of both sides, and the server works on
/// one chunk while the next is generated.
const COPY_CHUNK: usize = 32 * 1024;

/// Whether the schema exists.
///
/// # Errors
/// [`TargetError::Refused`] if it is not loadline's.
fn exists(c: &mut Connection) -> Result<bool, TargetError> {
    let comment = c.row(&format!(
        "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = '{SCHEMA}'"
    ))?;
    match comment.get(0) {
        None => Ok(false),
        Some(comment) if comment.starts_with(MARK) => Ok(true),
        Some(_) => Err(TargetError::Refused(format!(
            "loadline did not create the schema '{SCHEMA}' (its comment does not say so) and does not touch it: rename it, \
             or use another database"
        ))),
    }
}

/// Creates the schema if it does not exist.
pub(super) fn ensure(c: &mut Connection) -> Result<(), TargetError> {
    if exists(c)? {
        return Ok(());
    }
    let comment = format!("{MARK} {}; loadline clean removes it", env!("CARGO_PKG_VERSION"));
    match c.query(&format!("CREATE SCHEMA {SCHEMA}; COMMENT ON SCHEMA {SCHEMA} IS {}", literal(&comment))) {
        Err(TargetError::Server(e)) if e.cause == Cause::Privilege => Err(TargetError::Refused(format!(
            "the schema '{SCHEMA}' cannot be created: {e}. GRANT CREATE ON DATABASE … TO …"
        ))),
        made => made.map(drop),
    }
}

/// Drops the workload tables and creates them empty. Tables of the data set are created when they are loaded.
pub(super) fn create(c: &mut Connection, work: &Work) -> Result<(), TargetError> {
    let mut tables = workload_tables(work).peekable();
    if tables.peek().is_some() {
        ensure(c)?;
    }
    for table in tables {
        c.query(&format!("DROP TABLE IF EXISTS {}; {}", table_name(work, &table.name), create_table(work, table)))?;
    }
    Ok(())
}

/// Empties the tables that the workload fills, frees dead rows of those that jobs change in place, and sets the number of
/// workers of its queries.
pub(super) fn reset(c: &mut Connection, work: &Work) -> Result<(), TargetError> {
    for table in work.workload.tables.iter().filter(|t| t.rows == RowCount::Empty) {
        c.query(&format!("TRUNCATE TABLE {}", table_name(work, &table.name)))?;
    }
    // While a job stands still in a transaction, new versions of other jobs' rows find no room in their pages and leave them
    // (1 to 2 % at 8 jobs that do not wait for their commits). Autovacuum is off, so this takes their place in the index away.
    for table in work.workload.tables.iter().filter(|t| is_changed_in_place(t)) {
        c.query(&format!("VACUUM {}", table_name(work, &table.name)))?;
    }
    for sql in parallel::table_settings(work) {
        c.query(&sql)?;
    }
    Ok(())
}

/// Makes a checkpoint and changes the jobs' own rows once after it, so that few transactions write as much log each as many.
/// The server logs a page as a whole at its first change after a checkpoint.
pub(super) fn renew(c: &mut Connection, work: &Work) -> Result<(), TargetError> {
    checkpoint_if_allowed(c)?;
    for table in work.workload.tables.iter().filter(|t| is_changed_in_place(t)) {
        let name = table_name(work, &table.name);
        let bytes = table.columns.iter().filter(|c| c.logical == LogicalType::Bytes).map(|c| quoted(&c.name));
        // The last byte of the payload, and neither its size nor the count of changes.
        let last = |b: &str| format!("octet_length({b}) - 1");
        let renewed = bytes.map(|b| format!("{b} = set_byte({b}, {0}, 255 - get_byte({b}, {0}))", last(&b)));
        let renewed: Vec<String> = renewed.collect();
        if !renewed.is_empty() {
            c.query(&format!("UPDATE {name} SET {}", renewed.join(", ")))?;
            c.query(&format!("VACUUM {name}"))?;
        }
    }
    Ok(())
}

/// Makes a checkpoint and returns `true`, unless the role may not.
pub(super) fn checkpoint_if_allowed(c: &mut Connection) -> Result<bool, TargetError> {
    match c.query("CHECKPOINT") {
        Err(TargetError::Server(e)) if e.cause == Cause::Privilege => Ok(false),
        done => done.map(|_| true),
    }
}

fn is_changed_in_place(table: &Table) -> bool {
    table.updated_in_place && matches!(table.rows, RowCount::PerJob(_))
}

/// Copies `batches` into `table`.
pub(super) fn copy(c: &mut Connection, work: &Work, table: &Table, batches: &[Batch]) -> Result<(), TargetError> {
    let name = table_name(work, &table.name);
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

/// Takes the lock; it is held until the session ends.
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
        if row.get(0).is_some() {
            let [pid, name, since, from] = [0, 1, 2, 3].map(|i| row.get(i).unwrap_or("–"));
            who = format!(": '{name}' (server process {pid}, from {from}, since {since})");
            break;
        }
    }
    Err(TargetError::Refused(format!(
        "another run has locked the schema '{SCHEMA}' of this database{who}. Wait for its end, or use another database"
    )))
}

/// Removes loadline's schema, if it exists, and returns what was removed. Tables in `kept` stay, and so does the schema
/// then.
pub(super) fn clean(c: &mut Connection, kept: &BTreeSet<String>) -> Result<Vec<String>, TargetError> {
    if !exists(c)? {
        return Ok(Vec::new());
    }
    let mut removed = Vec::new();
    for row in c.query(&KNOWLEDGE.queries.text("objects", &[("schema", SCHEMA)]))?.into_iter().map(Row) {
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
