//! Counts what SQLite does to its database files and in its caches.
//!
//! Files are counted on the way to them ([`super::log_counters`]); with `mmap_size` above 0 SQLite reads past
//! that way. Caches are each connection's own: a session adds to the counters every few statements.

use std::sync::atomic::{AtomicU64, Ordering};

use loadline_model::snapshot::counter;
use rusqlite::{Connection, ffi};

/// What was done to one target's database files, and in the caches of its sessions.
#[derive(Debug, Default)]
pub(super) struct DataCounters {
    /// Pages read from the database's file. Reads of the log are mostly those of a checkpoint that copies it.
    pub(super) reads: AtomicU64,
    /// Bytes of the same.
    pub(super) read_bytes: AtomicU64,
    /// Time they took, ns.
    pub(super) read_ns: AtomicU64,
    /// Pages written to the database's file.
    pub(super) writes: AtomicU64,
    /// Bytes of the same.
    pub(super) write_bytes: AtomicU64,
    /// Syncs of the database's file: each checkpoint that copied something makes one.
    pub(super) checkpoints: AtomicU64,
    /// Pages that sessions asked their caches for.
    gets: AtomicU64,
    /// Those of them that were not there.
    misses: AtomicU64,
    /// Rows that sessions changed.
    changed: AtomicU64,
}

impl DataCounters {
    /// All of them under their neutral names.
    pub(super) fn neutral(&self) -> [(&'static str, &AtomicU64); 10] {
        [
            (counter::BLOCK_GETS, &self.gets),
            (counter::BLOCK_READS, &self.misses),
            (counter::READ_CALLS, &self.reads),
            (counter::READ_BYTES, &self.read_bytes),
            (counter::READ_NS, &self.read_ns),
            (counter::BLOCK_WRITES, &self.writes),
            (counter::WRITE_CALLS, &self.writes),
            (counter::WRITE_BYTES, &self.write_bytes),
            (counter::CHECKPOINTS, &self.checkpoints),
            (counter::ROWS_CHANGED, &self.changed),
        ]
    }
}

/// A session's share: what its connection counts and has not been added yet.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// Statements since the last addition.
    statements: u32,
    /// Statements until the next one.
    every: u32,
    /// Rows changed up to the last addition.
    changed: u64,
}

/// Longest time between two additions, statements. One addition costs about as much as a twentieth of
/// the shortest statement.
const SELDOM: u32 = 64;
/// Pages between two additions beyond which they are made after every statement.
const MANY_PAGES: u64 = 1000;

impl Share {
    /// To be called after each statement.
    #[inline]
    pub(super) fn statement_done(&mut self, db: &Connection, counters: &DataCounters) {
        self.statements += 1;
        self.add_changed(db, counters);
        if self.statements >= self.every {
            self.add(db, counters);
        }
    }

    /// Adds the rows changed, after every statement: a check holds them against those of the jobs. Writers take
    /// turns anyway, and what only reads touches nothing that others have.
    #[inline]
    #[allow(unsafe_code)]
    fn add_changed(&mut self, db: &Connection, counters: &DataCounters) {
        // SAFETY: the handle is that of an open connection, which only this thread uses.
        let changed = u64::try_from(unsafe { ffi::sqlite3_total_changes64(db.handle()) }).unwrap_or(0);
        if changed > self.changed {
            counters.changed.fetch_add(changed - self.changed, Ordering::Relaxed);
            self.changed = changed;
        }
    }

    /// Adds what the connection has counted.
    #[allow(unsafe_code)]
    pub(super) fn add(&mut self, db: &Connection, counters: &DataCounters) {
        // SAFETY: the handle is that of an open connection, which only this thread uses.
        let (hits, misses) = unsafe {
            let handle = db.handle();
            (taken(handle, ffi::SQLITE_DBSTATUS_CACHE_HIT), taken(handle, ffi::SQLITE_DBSTATUS_CACHE_MISS))
        };
        let gets = hits + misses;
        counters.gets.fetch_add(gets, Ordering::Relaxed);
        counters.misses.fetch_add(misses, Ordering::Relaxed);
        self.add_changed(db, counters);
        self.statements = 0;
        // A window must not end in the middle of much that is not added yet.
        self.every = if gets > MANY_PAGES { 1 } else { (self.every.max(1) * 2).min(SELDOM) };
    }
}

/// A status counter of a connection, which then begins anew (it is an int and would overflow).
///
/// # Safety
/// `handle` must be that of an open connection that no other thread uses.
#[allow(unsafe_code)]
unsafe fn taken(handle: *mut ffi::sqlite3, what: std::ffi::c_int) -> u64 {
    let (mut now, mut highest) = (0, 0);
    // SAFETY: as the caller says; both integers outlive the call.
    let code = unsafe { ffi::sqlite3_db_status(handle, what, &raw mut now, &raw mut highest, 1) };
    if code == ffi::SQLITE_OK { u64::from(now.unsigned_abs()) } else { 0 }
}
