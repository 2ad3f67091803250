//! Checkpoints: the size of the log at which SQLite makes one, and checkpoints on demand.

use std::ffi::c_int;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use loadline_workload::{Instrument, RowCount};
use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, DEFAULT_NAME, ErrorCode};

use super::session::waiting_briefly;
use super::{failed, pragma};
use crate::embedded::counters::LogCounters;
use crate::error::TargetError;
use crate::work::Work;

pub(super) const TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between two attempts, while transactions or another checkpoint block it.
const PAUSE: Duration = Duration::from_millis(1);
/// Pages of the log for workloads that measure the storage: changed pages must reach the database file about as fast as
/// they are changed. With SQLite's default of 1,000, a window of one second has one checkpoint or none.
const SHORT_LOG_PAGES: u64 = 100;
/// Pages in transactions, if these change many each: a checkpoint syncs twice, which many pages share.
const SHORT_LOG_TRANSACTIONS: u64 = 32;
/// Size of the log from which one is made for workloads with a checkpoint on demand, bytes: all changes wait for it.
const LONG_LOG_BYTES: u64 = 512 << 20;
/// Transactions between two checkpoints elsewhere, if these change many pages each: with SQLite's default, a session that
/// changes 480 pages spends most of its time in a checkpoint every third commit, not in the log.
const LOG_TRANSACTIONS: u64 = 256;
/// Size of the log of these from which one is made in any case, bytes. Until it has been filled once, each commit also makes the
/// file longer.
const LOG_BYTES: u64 = 64 << 20;
const DEFAULT_PAGES: u64 = 1000;

/// Pages in the log at which a checkpoint is made; `None` for the default.
pub(super) fn log_pages(work: &Work, page_size: u64) -> Option<u64> {
    let workload = &work.workload;
    let page_size = page_size.max(512);
    if workload.has(Instrument::Checkpoint) {
        return Some(LONG_LOG_BYTES / page_size);
    }
    // Rows that are changed are in a page each; new rows share pages.
    let changes = workload.tables.iter().any(|t| t.rows != RowCount::Empty);
    let pages = if changes { work.program.rows_changed_per_tx() } else { 0 };
    if workload.has(Instrument::Device) && work.program.writes() {
        return Some(pages.saturating_mul(SHORT_LOG_TRANSACTIONS).max(SHORT_LOG_PAGES));
    }
    let pages = pages.saturating_mul(LOG_TRANSACTIONS).min(LOG_BYTES / page_size);
    (pages > DEFAULT_PAGES).then_some(pages)
}

/// Replaces SQLite's own checkpoints, which let the others write on: the log is started again only if it was copied to its end,
/// which never happens as long as several sessions write. It then grows without bound, and each commit makes another checkpoint
/// with its two syncs (<https://www.sqlite.org/wal.html#avoiding_excessively_large_wal_files>).
///
/// Here the session that has added the last of `wal_autocheckpoint` pages makes one. Where `others_write` it is SQLite's own, as
/// long as the log has less than [`LOG_BYTES`]; else the other writers wait for it, and the next one starts the log again.
pub(super) fn make_by_length(
    db: &mut Connection,
    others_write: bool,
    counters: &Arc<LogCounters>,
) -> Result<(), TargetError> {
    let number = |name| pragma(db, name).map(|text| text.parse::<c_int>().unwrap_or(0));
    let (interval, page_size) = (number("wal_autocheckpoint")?, number("page_size")?);
    if interval <= 0 {
        return Ok(());
    }
    let restart = if others_write { (LOG_BYTES as c_int) / page_size.max(512) } else { 0 };
    let counters = Arc::clone(counters);
    let hook = move |wal: &mut Wal, pages: c_int| {
        let at = counters.checkpoint_at.load(Ordering::Relaxed);
        // A log that a reader keeps from being started again is tried less and less often: the writers wait for each attempt.
        let step = if pages < restart { interval } else { interval.max(at / 2) };
        if pages.saturating_sub(at) >= step {
            counters.checkpoint_at.store(pages, Ordering::Relaxed);
            let done = if pages < restart {
                wal.checkpoint_v2(CheckpointMode::PASSIVE)
            } else {
                waiting_briefly(|| wal.checkpoint_v2(CheckpointMode::RESTART))
            };
            // As with SQLite's own, the commit has succeeded whether the checkpoint does or not.
            counters.data.checkpoints.fetch_add(done.is_ok().into(), Ordering::Relaxed);
        }
        Ok(())
    };
    db.wal_hook(Some(hook)).map_err(|e| failed(db, "the hook of the log")(e))
}

/// Whether a checkpoint lets the others write on: where the writes of the storage are measured, and where one transaction fills
/// the log (DBL-22), which writes more if the next one begins meanwhile.
pub(super) fn others_write(work: &Work) -> bool {
    work.workload.has(Instrument::Device) || work.program.rows_changed_per_tx() > DEFAULT_PAGES
}

/// Copies the present content of the log to the database while sessions continue (`PASSIVE`), and syncs it; counts that. SQLite
/// copies only a part if open transactions still need older pages or another checkpoint runs, and reports that in its
/// row: the checkpoint is then repeated. SQLite syncs the database only after a checkpoint without later changes, so
/// `file` (the database) is synced here.
pub(super) fn make(db: &Connection, file: &File, counters: &LogCounters, timeout: Duration) -> Result<(), TargetError> {
    let done = copy_and_sync(db, file, timeout);
    counters.data.checkpoints.fetch_add(done.is_ok().into(), Ordering::Relaxed);
    done
}

fn copy_and_sync(db: &Connection, file: &File, timeout: Duration) -> Result<(), TargetError> {
    let deadline = Instant::now() + timeout;
    let mut wanted = None;
    loop {
        let [log, done] = match db.wal_checkpoint_v2(DEFAULT_NAME, CheckpointMode::PASSIVE) {
            // Another one is under way.
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => [-1, -1],
            pages => pages.map_err(failed(db, "the checkpoint"))?.into(),
        };
        if is_complete(&mut wanted, [log, done]) {
            break;
        }
        if Instant::now() >= deadline {
            return Err(TargetError::Statement(format!(
                "the checkpoint did not complete within {:.1} s: {} of the {} pages in the log are in the database",
                timeout.as_secs_f64(),
                done.max(0),
                wanted.unwrap_or(log).max(0)
            )));
        }
        std::thread::sleep(PAUSE);
    }
    if wanted == Some(0) {
        return Err(TargetError::Statement(
            "the log is empty: nothing has been changed since the last checkpoint".into(),
        ));
    }
    file.sync_data().map_err(|e| TargetError::Local(format!("syncing the database failed: {e}")))
}

/// Whether the first `wanted` pages (all at the first call) of the `log` are `done`, that is, in the database; -1: unknown. SQLite
/// restarts the log when all of it is copied, so a shorter log is complete too.
fn is_complete(wanted: &mut Option<c_int>, [log, done]: [c_int; 2]) -> bool {
    if log < 0 {
        return false;
    }
    let wanted = *wanted.get_or_insert(log);
    done >= wanted || log < wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::OpenFlags;

    #[test]
    fn a_partial_or_blocked_checkpoint_is_not_complete() {
        let mut wanted = None;
        assert!(!is_complete(&mut wanted, [-1, -1]), "another one is under way");
        assert!(!is_complete(&mut wanted, [100, 97]), "transactions need the rest");
        assert!(!is_complete(&mut wanted, [140, 99]));
        assert!(is_complete(&mut wanted, [140, 100]), "later pages do not count");
        assert!(is_complete(&mut wanted, [7, 0]), "the log was restarted");
    }

    #[test]
    fn an_open_transaction_that_needs_old_pages_blocks_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let open = || {
            let db = Connection::open(&path).unwrap();
            db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0").unwrap();
            db
        };
        let (writer, reader) = (open(), open());
        let said = |result: Result<(), TargetError>| result.unwrap_err().to_string();
        writer.execute_batch("CREATE TABLE t (a); PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        let short = Duration::from_millis(20);
        let file = File::open(&path).unwrap();
        let counters = LogCounters::default();
        assert!(said(make(&open(), &file, &counters, short)).contains("empty"));
        writer.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        reader.execute_batch("BEGIN").unwrap();
        reader.query_row("SELECT count(*) FROM t", [], |_| Ok(())).unwrap();
        writer.execute_batch("INSERT INTO t VALUES (randomblob(100000))").unwrap();
        assert!(said(make(&open(), &file, &counters, short)).contains("did not complete"));
        reader.execute_batch("COMMIT").unwrap();
        let size = || file.metadata().unwrap().len();
        assert!(size() < 100_000);
        make(&open(), &file, &counters, short).unwrap();
        assert!(size() > 100_000);
        assert_eq!(counters.data.checkpoints.load(Ordering::Relaxed), 1);
    }

    /// By SQLite's own checkpoints the log of these writers grows with all that they write.
    #[test]
    #[ignore = "nightly: a writer that waits for a CPU holds the others up in a checkpoint"]
    fn the_log_stays_short_while_several_sessions_write_and_others_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let (vfs, counters) = super::super::log_counters::register().unwrap();
        let open = || {
            let mut db = Connection::open_with_flags_and_vfs(&path, OpenFlags::default(), vfs).unwrap();
            db.busy_handler(Some(super::super::session::wait_for_writer)).unwrap();
            db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 50; PRAGMA synchronous = NORMAL")
                .unwrap();
            db
        };
        open().execute_batch("CREATE TABLE t (a); PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        let log = || path.with_extension("db-wal").metadata().unwrap().len() / 4096;
        let write = |commits: u32| {
            let mut db = open();
            make_by_length(&mut db, false, &counters).unwrap();
            for _ in 0..commits {
                db.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (randomblob(9000)); COMMIT").unwrap();
            }
        };
        let reader = open();
        std::thread::scope(|s| (0..3).for_each(|_| drop(s.spawn(|| write(1000)))));
        // Fewer than 200 if nobody else has the CPUs: a writer that waits for one holds the others up in a checkpoint. By SQLite's
        // own it had 12,000.
        assert!(log() < 3000, "{} pages", log());
        // A reader keeps the log from being started again, and nobody waits long for it.
        reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
        write(100);
        let held = log();
        assert!(held >= 300, "{held} pages");
        reader.execute_batch("COMMIT").unwrap();
        write(200);
        assert!(log() < held + held / 2 + 50, "{} pages", log());
        assert!(counters.data.checkpoints.load(Ordering::Relaxed) > 20, "also while others write");
    }
}
