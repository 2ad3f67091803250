//! The schema `loadline`: creates, fills, locks and removes it.

use std::collections::BTreeSet;

use loadline_workload::{Datum, LogicalType, RowCount, Table};
use postgres_protocol::message::frontend;

use super::parallel;
use super::procedure;
use super::protocol;
use super::sql::{SCHEMA, create_table, literal, quoted, table_name};
use super::wire::Connection;
use crate::error::{Cause, TargetError};
use crate::loading::{Batch, rows};
use crate::work::Work;
use crate::workload_tables::workload_tables;

/// Key of the advisory lock: `loadline` in ASCII. Each database has its own lock, like its own schema.
const LOCK_KEY: i64 = 0x6c6f_6164_6c69_6e65;
/// Prefix of the comment that marks the schema as loadline's.
const MARK: &str = "made by loadline";
/// Copied rows are sent in chunks of this size: small enough for the CPU caches of both sides, and the server works on
/// one chunk while the next is generated.
const COPY_CHUNK: usize = 32 * 1024;

/// Who created the schema.
enum SchemaOwner {
    Nobody,
    Loadline,
    Other,
}

fn owner(c: &mut Connection) -> Result<SchemaOwner, TargetError> {
    let rows = c.query(&format!(
        "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = '{SCHEMA}'"
    ))?;
    Ok(match rows.first().and_then(|r| r.first().cloned().flatten()) {
        None => SchemaOwner::Nobody,
        Some(comment) if comment.starts_with(MARK) => SchemaOwner::Loadline,
        Some(_) => SchemaOwner::Other,
    })
}

/// Whether the schema exists and is loadline's.
pub(super) fn is_ours(c: &mut Connection) -> Result<bool, TargetError> {
    Ok(matches!(owner(c)?, SchemaOwner::Loadline))
}

fn not_ours() -> TargetError {
    TargetError::Refused(format!(
        "loadline did not create the schema '{SCHEMA}' (its comment does not say so) and does not touch it: rename it, \
         or use another database"
    ))
}

/// Creates the schema if it does not exist.
pub(super) fn ensure(c: &mut Connection) -> Result<(), TargetError> {
    match owner(c)? {
        SchemaOwner::Loadline => Ok(()),
        SchemaOwner::Other => Err(not_ours()),
        SchemaOwner::Nobody => {
            let comment = format!("{MARK} {}; loadline clean removes it", env!("CARGO_PKG_VERSION"));
            let made = c.query(&format!("CREATE SCHEMA {SCHEMA}; COMMENT ON SCHEMA {SCHEMA} IS {}", literal(&comment)));
            match made {
                Err(TargetError::Server(e)) if e.cause == Cause::Privilege => Err(TargetError::Refused(format!(
                    "the schema '{SCHEMA}' cannot be created: {e}. GRANT CREATE ON DATABASE … TO …"
                ))),
                other => other.map(drop),
            }
        }
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

/// Drops the workload tables.
pub(super) fn drop_tables(c: &mut Connection, work: &Work) -> Result<(), TargetError> {
    workload_tables(work)
        .try_for_each(|table| c.query(&format!("DROP TABLE IF EXISTS {}", table_name(work, &table.name))).map(drop))
}

/// Creates the workload's procedure.
pub(super) fn install(c: &mut Connection, work: &Work) -> Result<(), TargetError> {
    ensure(c)?;
    let sql = procedure::create(work, c.version);
    c.query(&sql).map(drop)
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
    protocol::message(&mut c.out, b'c', |_| ());
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
    protocol::message(&mut c.out, b'd', |out| out.extend_from_slice(data));
    data.clear();
    c.send()
}

/// Takes the lock; it is held until the session ends.
pub(super) fn lock(c: &mut Connection) -> Result<(), TargetError> {
    // The holder may release the lock between the two queries: try again.
    for _ in 0..3 {
        if c.value(&format!("SELECT pg_try_advisory_lock({LOCK_KEY})"))?.as_deref() == Some("t") {
            return Ok(());
        }
        let holder = c.query(&format!(
            "SELECT a.pid, a.application_name, to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ'), \
             coalesce(host(a.client_addr), 'this machine') \
             FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
             WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 \
             AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
             AND l.classid::bigint = {} AND l.objid::bigint = {}",
            LOCK_KEY >> 32,
            LOCK_KEY & 0xffff_ffff
        ))?;
        if let Some(row) = holder.first() {
            let text = |i: usize| row.get(i).cloned().flatten().unwrap_or_else(|| "–".into());
            return Err(TargetError::Refused(format!(
                "another run has locked the schema '{SCHEMA}' of this database: '{}' (server process {}, from {}, since {}). \
                 Wait for its end, or use another database",
                text(1),
                text(0),
                text(3),
                text(2)
            )));
        }
    }
    Err(TargetError::Refused(format!(
        "another run has locked the schema '{SCHEMA}' of this database. Wait for its end, or use another database"
    )))
}

/// Removes loadline's schema, if it exists, and returns what was removed. Tables in `kept` stay, and so does the schema
/// then.
pub(super) fn clean(c: &mut Connection, kept: &BTreeSet<String>) -> Result<Vec<String>, TargetError> {
    match owner(c)? {
        SchemaOwner::Nobody => Ok(Vec::new()),
        SchemaOwner::Other => Err(not_ours()),
        SchemaOwner::Loadline => {
            let held = c.query(&format!(
                "SELECT 'table ' || oid::regclass::text || ' (' || pg_size_pretty(pg_total_relation_size(oid)) || ')', \
                 'TABLE ' || oid::regclass::text, relname \
                 FROM pg_class WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind = 'r' \
                 UNION ALL SELECT 'procedure ' || oid::regproc::text, 'ROUTINE ' || oid::regprocedure::text, '' FROM pg_proc \
                 WHERE pronamespace = '{SCHEMA}'::regnamespace ORDER BY 1"
            ))?;
            let mut removed = Vec::new();
            for row in held {
                let mut row = row.into_iter().map(Option::unwrap_or_default);
                let (Some(description), Some(object), Some(name)) = (row.next(), row.next(), row.next()) else {
                    continue;
                };
                if kept.contains(&name) {
                    continue;
                }
                if !kept.is_empty() {
                    c.query(&format!("DROP {object} CASCADE"))?;
                }
                removed.push(description);
            }
            if kept.is_empty() {
                // The schema is loadline's, so all in it and all that depends on it may be dropped.
                c.query(&format!("DROP SCHEMA {SCHEMA} CASCADE"))?;
                removed.push(format!("schema {SCHEMA}"));
            }
            Ok(removed)
        }
    }
}
