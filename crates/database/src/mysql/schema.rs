//! Creates, fills, locks and removes the database `loadline`.

use std::collections::BTreeSet;

use loadline_workload::{ColumnDef, LogicalType, RowCount, Table};

use super::procedure;
use super::sql::{DATABASE, MARK, create_table, full_name, quoted, table_name};
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
const ROWS_PER_INSERT: usize = 64;

/// The database as the server has it.
struct Found {
    exists: bool,
    /// Number of tables, views, routines and events in it.
    objects: u64,
    /// The marker's comment; empty if there is no marker.
    comment: String,
}

impl Found {
    fn ask(c: &mut Connection) -> Result<Found, TargetError> {
        let rows = c.query(&format!(
            "SELECT (SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '{DATABASE}'), \
             (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{DATABASE}') \
             + (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = '{DATABASE}') \
             + (SELECT COUNT(*) FROM information_schema.EVENTS WHERE EVENT_SCHEMA = '{DATABASE}'), \
             (SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{DATABASE}' AND TABLE_NAME = '{MARKER}')"
        ))?;
        let mut values = rows.into_iter().flatten();
        let mut next = || values.next().flatten().unwrap_or_default();
        Ok(Found { exists: next() != "0", objects: next().parse().unwrap_or(0), comment: next() })
    }

    fn is_loadlines(&self) -> bool {
        self.comment.starts_with(MARK)
    }
}

/// Creates the database if it does not exist.
pub(super) fn ensure(c: &mut Connection) -> Result<(), TargetError> {
    let found = Found::ask(c)?;
    if found.is_loadlines() {
        return Ok(());
    }
    if found.objects > 0 {
        return Err(TargetError::Refused(format!(
            "there is a database '{DATABASE}' that loadline did not create (it has no table '{MARKER}'), and it is left \
             untouched: rename it, or use another server"
        )));
    }
    let database = format!("CREATE DATABASE {}", quoted(DATABASE));
    let marker = format!(
        "CREATE TABLE {} (version VARCHAR(40) NOT NULL PRIMARY KEY) ENGINE = InnoDB COMMENT = '{MARK} {}{}; loadline clean \
         removes it'",
        full_name(MARKER),
        env!("CARGO_PKG_VERSION"),
        if found.exists { format!(" {ADOPTED}") } else { String::new() }
    );
    match [&database, &marker].into_iter().skip(usize::from(found.exists)).try_for_each(|sql| c.run(sql)) {
        Err(TargetError::Server(e)) if e.cause == Cause::Privilege => Err(TargetError::Refused(format!(
            "the database '{DATABASE}' cannot be created: {e}. Ask an administrator to run: CREATE DATABASE {DATABASE}; GRANT \
             ALL ON {DATABASE}.* TO the user"
        ))),
        made => made,
    }
}

pub(super) fn drop_tables(c: &mut Connection, work: &Work) -> Result<(), TargetError> {
    workload_tables(work)
        .try_for_each(|table| c.run(&format!("DROP TABLE IF EXISTS {}", table_name(work, &table.name))))
}

/// Drops and creates the workload tables. Tables of the data set are created when they are loaded.
pub(super) fn create(c: &mut Connection, work: &Work) -> Result<(), TargetError> {
    ensure(c)?;
    drop_tables(c, work)?;
    workload_tables(work).try_for_each(|table| c.run(&create_table(work, table)))
}

/// Creates the workload's procedure and the routines that it calls; `in_cluster`: see [`procedure::create`].
pub(super) fn install(c: &mut Connection, work: &Work, in_cluster: bool) -> Result<(), TargetError> {
    ensure(c)?;
    let own = (procedure::name(work), procedure::create(work, in_cluster));
    for (name, create) in procedure::recursive(work).into_iter().chain([own]) {
        c.run(&format!("DROP PROCEDURE IF EXISTS {name}"))?;
        c.run(&create)?;
    }
    Ok(())
}

/// Empties the tables that the workload fills itself.
pub(super) fn reset(c: &mut Connection, work: &Work) -> Result<(), TargetError> {
    let mut emptied = work.workload.tables.iter().filter(|t| t.rows == RowCount::Empty);
    emptied.try_for_each(|table| c.run(&format!("TRUNCATE TABLE {}", table_name(work, &table.name))))
}

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
    let found = Found::ask(c)?;
    if !found.is_loadlines() {
        return Ok(Vec::new());
    }
    // The marker goes last, so that an interrupted removal can be repeated.
    let queries = [
        (
            "PROCEDURE",
            format!(
                "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = '{DATABASE}' AND \
                 ROUTINE_TYPE = 'PROCEDURE' AND ROUTINE_COMMENT LIKE '{MARK}%' ORDER BY 1"
            ),
        ),
        (
            "TABLE",
            format!(
                "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{DATABASE}' AND TABLE_TYPE = \
                 'BASE TABLE' AND TABLE_COMMENT LIKE '{MARK}%' ORDER BY TABLE_NAME = '{MARKER}', 1"
            ),
        ),
    ];
    let stays = |name: &String| kept.contains(name) || (!kept.is_empty() && name == MARKER);
    let mut removed = Vec::new();
    for (kind, names) in queries {
        for name in c.query(&names)?.into_iter().flatten().flatten().filter(|name| !stays(name)) {
            c.run(&format!("DROP {kind} IF EXISTS {}", full_name(&name)))?;
            removed.push(format!("the {} {DATABASE}.{name}", kind.to_lowercase()));
        }
    }
    if !kept.is_empty() {
        return Ok(removed);
    }
    match Found::ask(c)?.objects {
        0 if found.comment.contains(ADOPTED) => {}
        0 => {
            c.run(&format!("DROP DATABASE {}", quoted(DATABASE)))?;
            removed.push(format!("the database {DATABASE}"));
        }
        n => removed.push(format!("left alone: the database {DATABASE}, which holds {n} objects of others")),
    }
    Ok(removed)
}
