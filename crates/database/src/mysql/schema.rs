//! Creates, locks and removes the database `loadline`.

use std::collections::BTreeSet;

use super::knowledge::{KNOWLEDGE, refusal};
use super::wire::Connection;
use crate::dialect::{MARK, mark};
use crate::error::{Cause, TargetError};

/// The database that holds everything loadline creates.
const DATABASE: &str = "loadline";
/// Name of the user lock. Like the database, it belongs to the server.
const LOCK: &str = "loadline";
/// The table that marks the database as loadline's.
const MARKER: &str = "made_by_loadline";
/// These names in queries.
const NAMES: [(&str, &str); 3] = [("database-name", DATABASE), ("marker", MARKER), ("mark", MARK)];
/// In the marker's comment: the database existed before, empty, and stays.
const ADOPTED: &str = "in a database that was there";

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
        let rows = c.query(&KNOWLEDGE.queries.text("database", &NAMES))?;
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
        return Err(refusal("others-database", &NAMES));
    }
    let dialect = &KNOWLEDGE.dialect;
    let database = format!("CREATE DATABASE {}", dialect.quoted(DATABASE));
    let comment = if found.exists { mark().replacen(';', &format!(" {ADOPTED};"), 1) } else { mark() };
    let marker = format!(
        "CREATE TABLE {} (version VARCHAR(40) NOT NULL PRIMARY KEY) ENGINE = InnoDB COMMENT = '{comment}'",
        dialect.full_name(MARKER)
    );
    match [&database, &marker].into_iter().skip(usize::from(found.exists)).try_for_each(|sql| c.run(sql)) {
        Err(TargetError::Server(e)) if e.cause == Cause::Privilege => {
            Err(refusal("no-database", &[&NAMES[..], &[("error", &e.text)]].concat()))
        }
        made => made,
    }
}

/// Takes the lock for as long as the session lives.
pub(super) fn lock(c: &mut Connection) -> Result<(), TargetError> {
    // A session that has just ended holds it until the server has seen that: waits up to 2 s.
    if c.value(&format!("SELECT GET_LOCK('{LOCK}', 2)"))?.as_deref() == Some("1") {
        return Ok(());
    }
    let holder = c.value(&format!("SELECT IS_USED_LOCK('{LOCK}')"))?.unwrap_or_else(|| "unknown".into());
    Err(refusal("locked", &[("holder", &holder)]))
}

/// Drops what loadline created and lists it. Tables in `kept` and objects of others stay, and then the
/// database stays too.
pub(super) fn clean(c: &mut Connection, kept: &BTreeSet<String>) -> Result<Vec<String>, TargetError> {
    let found = Found::ask(c)?;
    if !found.is_loadlines() {
        return Ok(Vec::new());
    }
    let stays = |name: &String| kept.contains(name) || (!kept.is_empty() && name == MARKER);
    let mut removed = Vec::new();
    for (kind, names) in [("PROCEDURE", "procedures"), ("TABLE", "tables")] {
        let names = KNOWLEDGE.queries.text(names, &NAMES);
        for name in c.query(&names)?.into_iter().flatten().flatten().filter(|name| !stays(name)) {
            c.run(&format!("DROP {kind} IF EXISTS {}", KNOWLEDGE.dialect.full_name(&name)))?;
            removed.push(format!("the {} {DATABASE}.{name}", kind.to_lowercase()));
        }
    }
    if !kept.is_empty() {
        return Ok(removed);
    }
    match Found::ask(c)?.objects {
        0 if found.comment.contains(ADOPTED) => {}
        0 => {
            c.run(&format!("DROP DATABASE {}", KNOWLEDGE.dialect.quoted(DATABASE)))?;
            removed.push(format!("the database {DATABASE}"));
        }
        n => removed.push(format!("left alone: the database {DATABASE}, which holds {n} objects of others")),
    }
    Ok(removed)
}
