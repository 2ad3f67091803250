//! Opens the database and applies the settings.

use std::ffi::CStr;
use std::sync::Arc;

use loadline_workload::Commit;
use rusqlite::{Connection, OpenFlags};

use super::loading::text;
use super::session::{held_by_others, wait_for_writer};
use super::{KIND, failed};
use crate::embedded::Chosen;
use crate::embedded::files::EmbeddedFiles;
use crate::error::TargetError;
use crate::machine::memory_bytes;
use crate::request::OpenRequest;

/// `PRAGMA application_id` of loadline's databases: "load" in ASCII.
const APPLICATION_ID: i64 = 0x6c6f_6164;
/// The query of a table or view that is not loadline's; NULL if there is none.
const FOREIGN: &str = "SELECT min(name) FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT GLOB 'loadline_*' \
     AND name NOT GLOB 'sqlite_*'";

/// loadline's default of a setting on a machine with `memory_bytes`. Every session has a cache of its own, which takes memory
/// only as it fills: those of 16 jobs are an eighth of the memory, as the shared caches of private servers are.
pub(super) fn default(name: &str, memory_bytes: u64) -> String {
    match name {
        "page_size" => "1024".to_owned(),
        "wal_autocheckpoint" => "1000".to_owned(),
        "cache_size" => format!("-{}", (memory_bytes / 128 / 1024).clamp(16 << 10, 1 << 20)),
        _ => "0".to_owned(),
    }
}

pub(super) struct Connector {
    pub(super) files: Arc<EmbeddedFiles>,
    pub(super) settings: Vec<(String, String)>,
    /// Virtual file system that counts operations on the log.
    pub(super) vfs: &'static CStr,
}

impl Connector {
    pub(super) fn connect(&self, commit: Commit) -> Result<Connection, TargetError> {
        let path = &self.files.database;
        let unreachable = |e: rusqlite::Error| TargetError::Unreachable(format!("cannot open {}: {e}", path.display()));
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut db = Connection::open_with_flags_and_vfs(path, flags, self.vfs).map_err(unreachable)?;
        db.busy_handler(Some(wait_for_writer)).map_err(unreachable)?;
        let foreign = db.query_row(FOREIGN, [], |r| r.get::<_, Option<String>>(0));
        let foreign = foreign.map_err(|e| match e.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => {
                TargetError::Refused(format!("{} is not a database: give the name of a new file", path.display()))
            }
            Some(rusqlite::ErrorCode::DatabaseBusy) => held_by_others(&db),
            _ => unreachable(e),
        })?;
        let known: i64 = pragma(&db, "application_id")?.parse().unwrap_or(0);
        // A new file has no pages. One with pages and no tables would be removed after the run, so it is refused too.
        if foreign.is_some() || known != APPLICATION_ID && pragma(&db, "page_count")? != "0" {
            return Err(self.files.foreign(&foreign.map_or("a database".to_owned(), |name| format!("'{name}'"))));
        }
        for (name, value) in &self.settings {
            set_pragma(&db, name, value)?;
        }
        if known != APPLICATION_ID {
            set_pragma(&db, "application_id", &APPLICATION_ID.to_string())?;
        }
        set_pragma(&db, "journal_mode", "WAL")?;
        let mode = pragma(&db, "journal_mode")?;
        if mode != "wal" {
            return Err(TargetError::Refused(format!(
                "{}: SQLite cannot use a write-ahead log here (journal_mode stays '{mode}')",
                path.display()
            )));
        }
        let (name, number) = synchronous(commit);
        set_pragma(&db, "synchronous", name)?;
        if pragma(&db, "synchronous")? != number {
            return Err(TargetError::Refused(format!("SQLite does not accept synchronous = {name}")));
        }
        Ok(db)
    }
}

/// `PRAGMA synchronous` for a commit mode: name and number.
pub(super) fn synchronous(commit: Commit) -> (&'static str, &'static str) {
    match commit {
        Commit::Wait => ("FULL", "2"),
        Commit::Nowait => ("NORMAL", "1"),
    }
}

pub(super) fn settings(request: &OpenRequest) -> Result<Chosen, TargetError> {
    let wanted = |name: &str, value: &str| match value.parse::<i64>() {
        Ok(n) if name == "page_size" && !((512..=65536).contains(&n) && n.count_ones() == 1) => {
            Some("a power of two from 512 to 65536")
        }
        Ok(_) => None,
        Err(_) => Some("a whole number"),
    };
    Chosen::new(request, &KIND, |name| Some(default(name, memory_bytes())), wanted)
}

pub(super) fn pragma(db: &Connection, name: &str) -> Result<String, TargetError> {
    let value = db.pragma_query_value(None, name, |row| row.get_ref(0).map(text));
    value.map(Option::unwrap_or_default).map_err(failed(db, name))
}

pub(super) fn set_pragma(db: &Connection, name: &str, value: &str) -> Result<(), TargetError> {
    // Only some pragmas return a row.
    db.pragma_update_and_check(None, name, value, |_| Ok(())).or_else(|e| match e {
        rusqlite::Error::QueryReturnedNoRows => Ok(()),
        e => Err(failed(db, name)(e)),
    })
}
