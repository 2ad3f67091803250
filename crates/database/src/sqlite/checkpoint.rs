//! Checkpoints: the size of the log at which SQLite makes one, and checkpoints on demand.

use std::fs::File;
use std::time::{Duration, Instant};

use loadline_workload::{Instrument, RowCount};
use rusqlite::Connection;

use super::failed;
use crate::error::TargetError;
use crate::work::Work;

/// Time limit of a checkpoint on demand.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between two attempts, while transactions or another checkpoint block it.
const PAUSE: Duration = Duration::from_millis(1);
/// Pages of the log for workloads that measure the storage: changed pages must reach the database file about as fast as
/// they are changed. With SQLite's default of 1,000, a window of one second has one checkpoint or none.
const SHORT_LOG_PAGES: u64 = 100;
/// The same in transactions, if these change many pages each: a checkpoint syncs twice, which many pages share.
const SHORT_LOG_TRANSACTIONS: u64 = 32;
/// Maximum size of the log for workloads with a checkpoint on demand, bytes: all changes wait for it.
const LONG_LOG_BYTES: u64 = 512 << 20;

/// Note for the report.
pub(super) const NOTE: &str = "wal_autocheckpoint is 100 pages if changes must reach the storage, and 512 MiB if loadline \
     requests a checkpoint; --setting wal_autocheckpoint replaces both";

/// Pages in the log at which SQLite itself makes a checkpoint; `None` for the default.
pub(super) fn log_pages(work: &Work, page_size: u64) -> Option<u64> {
    let workload = work.workload;
    if workload.has(Instrument::Checkpoint) {
        return Some(LONG_LOG_BYTES / page_size.max(512));
    }
    // Rows that are changed are in a page each; new rows share pages.
    let changes = workload.tables.iter().any(|t| t.rows != RowCount::Empty);
    let pages = if changes { work.program.rows_changed_per_tx() } else { 0 };
    let measured = workload.has(Instrument::Device) && work.program.writes();
    measured.then(|| pages.saturating_mul(SHORT_LOG_TRANSACTIONS).max(SHORT_LOG_PAGES))
}

/// The row of `PRAGMA wal_checkpoint`: whether it was blocked, pages in the log at its start, and how many of them are
/// in the database; -1 if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CheckpointRow {
    busy: i64,
    log: i64,
    done: i64,
}

/// Copies the present content of the log to the database while sessions continue (`PASSIVE`), and syncs it. SQLite
/// copies only a part if open transactions still need older pages or another checkpoint runs, and reports that in its
/// row: the checkpoint is then repeated. SQLite syncs the database only after a checkpoint without later changes, so
/// `file` (the database) is synced here.
///
/// # Errors
/// When the log is empty, or the checkpoint does not complete within `timeout`.
pub(super) fn make(db: &Connection, file: &File, timeout: Duration) -> Result<(), TargetError> {
    let deadline = Instant::now() + timeout;
    let mut wanted = None;
    loop {
        let answer = db
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |r| {
                Ok(CheckpointRow { busy: r.get(0)?, log: r.get(1)?, done: r.get(2)? })
            })
            .map_err(failed(db, "the checkpoint"))?;
        if is_complete(&mut wanted, answer) {
            break;
        }
        if Instant::now() >= deadline {
            return Err(TargetError::Statement(format!(
                "the checkpoint did not complete within {:.1} s: {} of the {} pages in the log are in the database",
                timeout.as_secs_f64(),
                answer.done.max(0),
                wanted.unwrap_or(answer.log).max(0)
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

/// Whether the first `wanted` pages of the log (all at the first call) are in the database. SQLite restarts the log
/// when all of it is copied, so a shorter log is complete too.
fn is_complete(wanted: &mut Option<i64>, answer: CheckpointRow) -> bool {
    if answer.busy != 0 || answer.log < 0 {
        return false;
    }
    let wanted = *wanted.get_or_insert(answer.log);
    answer.done >= wanted || answer.log < wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_or_blocked_checkpoint_is_not_complete() {
        let answer = |busy, log, done| CheckpointRow { busy, log, done };
        let mut wanted = None;
        assert!(!is_complete(&mut wanted, answer(1, -1, -1)), "another one is under way");
        assert!(!is_complete(&mut wanted, answer(0, 100, 97)), "transactions need the rest");
        assert!(!is_complete(&mut wanted, answer(0, 140, 99)));
        assert!(is_complete(&mut wanted, answer(0, 140, 100)), "later pages do not count");
        assert!(is_complete(&mut wanted, answer(0, 7, 0)), "the log was restarted");
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
        assert!(said(make(&open(), &file, short)).contains("empty"));
        writer.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        reader.execute_batch("BEGIN").unwrap();
        reader.query_row("SELECT count(*) FROM t", [], |_| Ok(())).unwrap();
        writer.execute_batch("INSERT INTO t VALUES (randomblob(100000))").unwrap();
        assert!(said(make(&open(), &file, short)).contains("did not complete"));
        reader.execute_batch("COMMIT").unwrap();
        let size = || file.metadata().unwrap().len();
        assert!(size() < 100_000);
        make(&open(), &file, short).unwrap();
        assert!(size() > 100_000);
    }
}
