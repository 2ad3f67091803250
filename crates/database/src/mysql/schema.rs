//! Creates, fills, locks and removes the database `loadline`.

use std::collections::BTreeSet;

use loadline_workload::{ColumnDef, LogicalType, RowCount, Table};

use super::procedure;
use super::sql::{DATABASE, MARK, create_table, quoted, table_name};
use super::wire::Connection;
use crate::error::{Cause, TargetError};
use crate::loading::{Batch, in_parts};
use crate::work::Work;
use crate::workload_tables::workload_tables;

/// Name of the user lock. Like the database, it belongs to the server.
const LOCK: &str = "loadline";
/// The table that marks the database as loadline's.
const MARKER: &str = "made_by_loadline";
/// In the marker's comment: the database existed before, empty, and stays.
const ADOPTED: &str = "in a database that was there";
/// Rows per INSERT.
const ROWS_PER_INSERT: usize = 64;

/// Who created the database.
enum Owner {
    /// There is no such database.
    Nobody,
    /// It exists and is empty.
    Empty,
    Loadline,
    Other,
}

fn owner(c: &mut Connection) -> Result<Owner, TargetError> {
    let count =
        c.value(&format!("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '{DATABASE}'"))?;
    if count.as_deref() == Some("0") {
        return Ok(Owner::Nobody);
    }
    if marker_comment(c)?.is_some_and(|comment| comment.starts_with(MARK)) {
        return Ok(Owner::Loadline);
    }
    Ok(if objects(c)? == 0 { Owner::Empty } else { Owner::Other })
}

fn marker_comment(c: &mut Connection) -> Result<Option<String>, TargetError> {
    c.value(&format!(
        "SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{DATABASE}' AND TABLE_NAME = '{MARKER}'"
    ))
}

/// Number of tables, views, routines and events in the database.
fn objects(c: &mut Connection) -> Result<u64, TargetError> {
    let sql = format!(
        "SELECT (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{DATABASE}') \
         + (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = '{DATABASE}') \
         + (SELECT COUNT(*) FROM information_schema.EVENTS WHERE EVENT_SCHEMA = '{DATABASE}')"
    );
    Ok(c.value(&sql)?.and_then(|n| n.parse().ok()).unwrap_or(0))
}

fn not_ours() -> TargetError {
    TargetError::Refused(format!(
        "there is a database '{DATABASE}' that loadline did not create (it has no table '{MARKER}'), and it is left \
         untouched: rename it, or use another server"
    ))
}

/// Creates the database if it does not exist.
pub(super) fn ensure(c: &mut Connection) -> Result<(), TargetError> {
    let adopted = match owner(c)? {
        Owner::Loadline => return Ok(()),
        Owner::Other => return Err(not_ours()),
        Owner::Empty => true,
        Owner::Nobody => false,
    };
    let made = if adopted { Ok(()) } else { c.query(&format!("CREATE DATABASE {}", quoted(DATABASE))).map(drop) };
    let more = if adopted { format!(" {ADOPTED}") } else { String::new() };
    let made = made.and_then(|()| {
        c.query(&format!(
            "CREATE TABLE {}.{} (version VARCHAR(40) NOT NULL PRIMARY KEY) ENGINE = InnoDB \
             COMMENT = '{MARK} {}{more}; loadline clean removes it'",
            quoted(DATABASE),
            quoted(MARKER),
            env!("CARGO_PKG_VERSION")
        ))
        .map(drop)
    });
    match made {
        Err(TargetError::Server(e)) if e.cause == Cause::Privilege => Err(TargetError::Refused(format!(
            "the database '{DATABASE}' cannot be created: {e}. Ask an administrator to run: CREATE DATABASE {DATABASE}; GRANT \
             ALL ON {DATABASE}.* TO the user"
        ))),
        other => other,
    }
}

/// Drops the workload tables.
pub(super) fn drop_tables(c: &mut Connection, work: &Work) -> Result<(), TargetError> {
    workload_tables(work)
        .try_for_each(|table| c.query(&format!("DROP TABLE IF EXISTS {}", table_name(work, &table.name))).map(drop))
}

/// Drops and creates the workload tables. Tables of the data set are created when they are loaded.
pub(super) fn create(c: &mut Connection, work: &Work) -> Result<(), TargetError> {
    ensure(c)?;
    for table in workload_tables(work) {
        c.query(&format!("DROP TABLE IF EXISTS {}", table_name(work, &table.name)))?;
        c.query(&create_table(work, table))?;
    }
    Ok(())
}

/// Creates the workload's procedure and the routines that it calls; `in_cluster`: see [`procedure::create`].
pub(super) fn install(c: &mut Connection, work: &Work, in_cluster: bool) -> Result<(), TargetError> {
    ensure(c)?;
    if let Some((name, create)) = procedure::recursive(work) {
        c.query(&format!("DROP PROCEDURE IF EXISTS {name}"))?;
        c.query(&create)?;
    }
    c.query(&format!("DROP PROCEDURE IF EXISTS {}", procedure::name(work)))?;
    c.query(&procedure::create(work, in_cluster)).map(drop)
}

/// Empties the tables that the workload fills itself.
pub(super) fn reset(c: &mut Connection, work: &Work) -> Result<(), TargetError> {
    for table in work.workload.tables.iter().filter(|t| t.rows == RowCount::Empty) {
        c.query(&format!("TRUNCATE TABLE {}", table_name(work, &table.name)))?;
    }
    Ok(())
}

/// Inserts the rows of `batch`.
pub(super) fn insert(c: &mut Connection, work: &Work, table: &Table, batch: &Batch) -> Result<u64, TargetError> {
    let name = table_name(work, &table.name);
    let mark = |c: &ColumnDef| if c.logical == LogicalType::Json { "CONVERT(? USING utf8mb4)" } else { "?" };
    let one = format!("({})", table.columns.iter().map(mark).collect::<Vec<_>>().join(", "));
    let insert = |n: usize| format!("INSERT INTO {name} VALUES {}", vec![one.as_str(); n].join(", "));
    let mut whole = c.prepare(&insert(ROWS_PER_INSERT))?;
    let done = in_parts(work, table, batch, ROWS_PER_INSERT as u64, |args| {
        let rows = args.len() / table.columns.len().max(1);
        if rows == ROWS_PER_INSERT {
            return c.execute(&mut whole, args);
        }
        let mut rest = c.prepare(&insert(rows))?;
        let done = c.execute(&mut rest, args)?;
        c.close_statement(rest)?;
        Ok(done)
    })?;
    // The server limits their number (max_prepared_stmt_count), and a load has many batches.
    c.close_statement(whole)?;
    if done != batch.len() {
        return Err(TargetError::Statement(format!("{done} rows were loaded instead of {}", batch.len())));
    }
    Ok(done)
}

/// Takes the lock for as long as the session lives.
pub(super) fn lock(c: &mut Connection) -> Result<(), TargetError> {
    // A session that has just ended holds it until the server has seen that: waits up to 2 s.
    if c.value(&format!("SELECT GET_LOCK('{LOCK}', 2)"))?.as_deref() == Some("1") {
        return Ok(());
    }
    let holder = c.value(&format!("SELECT IS_USED_LOCK('{LOCK}')"))?.unwrap_or_else(|| "unknown".into());
    Err(TargetError::Refused(format!(
        "another loadline run uses this server (session {holder} holds its lock): wait until it has ended"
    )))
}

/// Drops what loadline created and lists it. Tables in `kept` and objects of others stay, and then the
/// database stays too.
pub(super) fn clean(c: &mut Connection, kept: &BTreeSet<String>) -> Result<Vec<String>, TargetError> {
    if !matches!(owner(c)?, Owner::Loadline) {
        return Ok(Vec::new());
    }
    let adopted = marker_comment(c)?.is_some_and(|comment| comment.contains(ADOPTED));
    let mut removed = Vec::new();
    let routines = c.pairs(&format!(
        "SELECT ROUTINE_NAME, ROUTINE_TYPE FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = '{DATABASE}' AND \
         ROUTINE_TYPE = 'PROCEDURE' AND ROUTINE_COMMENT LIKE '{MARK}%' ORDER BY 1"
    ))?;
    for (name, _) in routines {
        c.query(&format!("DROP PROCEDURE IF EXISTS {}.{}", quoted(DATABASE), quoted(&name)))?;
        removed.push(format!("the procedure {DATABASE}.{name}"));
    }
    // The marker goes last, so that an interrupted removal can be repeated.
    let tables = c.pairs(&format!(
        "SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{DATABASE}' AND TABLE_TYPE = \
         'BASE TABLE' AND TABLE_COMMENT LIKE '{MARK}%' ORDER BY TABLE_NAME = '{MARKER}', 1"
    ))?;
    let stays = |name: &str| kept.contains(name) || (!kept.is_empty() && name == MARKER);
    for (name, _) in tables.into_iter().filter(|(name, _)| !stays(name)) {
        c.query(&format!("DROP TABLE IF EXISTS {}.{}", quoted(DATABASE), quoted(&name)))?;
        removed.push(format!("the table {DATABASE}.{name}"));
    }
    if !kept.is_empty() {
        return Ok(removed);
    }
    match (objects(c)?, adopted) {
        (0, false) => {
            c.query(&format!("DROP DATABASE {}", quoted(DATABASE)))?;
            removed.push(format!("the database {DATABASE}"));
        }
        (0, true) => {}
        (n, _) => removed.push(format!("left alone: the database {DATABASE}, which holds {n} objects of others")),
    }
    Ok(removed)
}
