//! The schema `loadline`: creates, locks and removes it, and readies its tables.

use std::collections::BTreeSet;

use loadline_workload::{LogicalType, RowCount, Table};

use super::knowledge::KNOWLEDGE;
use super::sql::{self, SCHEMA, literal};
use super::wire::{Connection, Values};
use crate::data_set::Loader;
use crate::dialect::{MARK, mark};
use crate::error::{Cause, TargetError};
use crate::work::Work;

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
        Some(_) => Err(TargetError::Refused(format!(
            "loadline did not create the schema '{SCHEMA}' (its comment does not say so) and does not touch it: rename it, \
             or use another database"
        ))),
    }
}

pub(super) fn ensure(c: &mut Connection) -> Result<(), TargetError> {
    if exists(c)? {
        return Ok(());
    }
    match c.query(&format!("CREATE SCHEMA {SCHEMA}; COMMENT ON SCHEMA {SCHEMA} IS {}", literal(&mark()))) {
        Err(TargetError::Server(e)) if e.cause == Cause::Privilege => Err(TargetError::Refused(format!(
            "the schema '{SCHEMA}' cannot be created: {e}. GRANT CREATE ON DATABASE … TO …"
        ))),
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

/// Frees dead rows of the tables that jobs change in place, and sets the number of workers of the workload's queries.
///
/// With `levels` it also makes a checkpoint and changes the jobs' own rows once after it, so that few transactions write as much log each
/// as many: the server logs a page as a whole at its first change after a checkpoint.
pub(super) fn freshen(loader: &mut Loader<'_>, work: &Work, levels: bool) -> Result<(), TargetError> {
    let dialect = loader.dialect;
    let session = &mut loader.session;
    let in_place = || work.workload.tables.iter().filter(|t| is_changed_in_place(t));
    // While a job stands still in a transaction, new versions of other jobs' rows find no room in their pages and leave them
    // (1 to 2 % at 8 jobs that do not wait for their commits). Autovacuum is off, so this takes their place in the index away.
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
