//! Counts SQLite's operations on database files and its cache accesses.
//!
//! The virtual file system ([`super::log_counters`]) counts file operations; with `mmap_size` above 0 it does not see
//! reads. Each connection has its own cache: a session adds its counts every few statements.

use std::sync::atomic::Ordering;

use rusqlite::{Connection, ffi};

use crate::embedded::counters::DataCounters;

/// When a session adds its connection's counts to the counters.
#[derive(Debug, Default)]
pub(super) struct SessionCounts {
    statements: u32,
    /// Interval between additions, statements.
    every: u32,
    /// Rows changed up to the last addition.
    changed: u64,
}

/// Maximum interval between additions, statements. An addition costs about a twentieth of the shortest statement.
const MAX_INTERVAL: u32 = 64;
/// If more pages were accessed since the last addition, the interval becomes one statement.
const MANY_PAGES: u64 = 1000;

impl SessionCounts {
    /// Call this after each statement.
    #[inline]
    pub(super) fn statement_done(&mut self, db: &Connection, counters: &DataCounters) {
        self.statements += 1;
        self.add_changed(db, counters);
        if self.statements >= self.every {
            self.add(db, counters);
        }
    }

    /// Adds the changed rows after every statement, because a check compares them with those of the jobs. This causes
    /// no contention: there is one writer at a time, and readers change no rows.
    #[inline]
    fn add_changed(&mut self, db: &Connection, counters: &DataCounters) {
        let changed = db.total_changes();
        if changed > self.changed {
            counters.changed.fetch_add(changed - self.changed, Ordering::Relaxed);
            self.changed = changed;
        }
    }

    #[allow(unsafe_code)]
    pub(super) fn add(&mut self, db: &Connection, counters: &DataCounters) {
        // SAFETY: the handle belongs to an open connection that only this thread uses.
        let (hits, misses) = unsafe {
            let handle = db.handle();
            (taken(handle, ffi::SQLITE_DBSTATUS_CACHE_HIT), taken(handle, ffi::SQLITE_DBSTATUS_CACHE_MISS))
        };
        let gets = hits + misses;
        counters.gets.fetch_add(gets, Ordering::Relaxed);
        counters.misses.fetch_add(misses, Ordering::Relaxed);
        self.add_changed(db, counters);
        self.statements = 0;
        // At the end of a window, only few pages may be missing from the counters.
        self.every = if gets > MANY_PAGES { 1 } else { (self.every.max(1) * 2).min(MAX_INTERVAL) };
    }
}

/// Reads and resets a status counter of a connection (it is an int and would overflow).
///
/// # Safety
/// `handle` must belong to an open connection that no other thread uses.
#[allow(unsafe_code)]
unsafe fn taken(handle: *mut ffi::sqlite3, what: std::ffi::c_int) -> u64 {
    let (mut now, mut highest) = (0, 0);
    // SAFETY: the caller guarantees the handle; both integers outlive the call.
    let code = unsafe { ffi::sqlite3_db_status(handle, what, &raw mut now, &raw mut highest, 1) };
    if code == ffi::SQLITE_OK { u64::from(now.unsigned_abs()) } else { 0 }
}
