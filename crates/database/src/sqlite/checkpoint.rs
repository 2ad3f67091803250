//! Checkpoints: how long the log grows before SQLite makes one, and one that is asked for.

use std::fs::File;
use std::time::{Duration, Instant};

use loadline_workload::Instrument;
use rusqlite::Connection;

use super::failed;
use crate::error::TargetError;
use crate::work::Work;

/// How long a checkpoint that is asked for may take.
pub(super) const AT_MOST: Duration = Duration::from_secs(60);
/// Between two looks for whether transactions or another checkpoint are out of the way.
const PAUSE: Duration = Duration::from_millis(1);
/// Pages of the log where the storage is measured: changed pages wait in the log, and they shall reach the
/// database about as fast as they are changed. With SQLite's 1,000, a window of a second has none or one
/// checkpoint.
const SHORT_LOG_PAGES: u64 = 100;
/// Most bytes of the log where a checkpoint is asked for, which shall have something to do.
const LONG_LOG_BYTES: u64 = 512 << 20;

/// What a reader should know of it.
pub(super) const NOTE: &str = "wal_autocheckpoint is 100 pages where changes must reach the storage, and 512 MiB where \
     loadline asks for a checkpoint; --setting wal_autocheckpoint replaces both";

/// How many pages the log of a job's sessions may have before SQLite makes a checkpoint of its own accord;
/// `None` for the usual number.
pub(super) fn log_pages(work: &Work, page_size: u64) -> Option<u64> {
    let workload = work.workload;
    if workload.has(Instrument::Checkpoint) {
        return Some(LONG_LOG_BYTES / page_size.max(512));
    }
    (workload.has(Instrument::Device) && work.program.writes()).then_some(SHORT_LOG_PAGES)
}

/// What `PRAGMA wal_checkpoint` answers: whether it was kept from it, pages in the log when it began, and those
/// of them that are in the database; -1 for what is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    busy: i64,
    log: i64,
    done: i64,
}

/// Writes all that is in the log now to the database, while sessions go on (`PASSIVE`), and brings it to the
/// device. SQLite leaves it at a part where transactions under way still need older pages, or where another
/// checkpoint is being made, and says so in a row: it is asked again then. It syncs the database only after a
/// checkpoint that met no later change, so `file`, which is the database, is synced here.
///
/// # Errors
/// There is nothing in the log, or it cannot be brought there within `at_most`.
pub(super) fn make(db: &Connection, file: &File, at_most: Duration) -> Result<(), TargetError> {
    let deadline = Instant::now() + at_most;
    let mut wanted = None;
    loop {
        let answer = db
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |r| {
                Ok(Answer { busy: r.get(0)?, log: r.get(1)?, done: r.get(2)? })
            })
            .map_err(failed("the checkpoint"))?;
        if is_through(&mut wanted, answer) {
            break;
        }
        if Instant::now() >= deadline {
            return Err(TargetError::Statement(format!(
                "the checkpoint did not get through within {:.1} s: {} of the {} pages in the log are in the database",
                at_most.as_secs_f64(),
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

/// Whether the pages `wanted` are in the database: as many as were in the log when it was first read. A log with
/// fewer has been begun anew, which SQLite does when all of it is.
fn is_through(wanted: &mut Option<i64>, answer: Answer) -> bool {
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
    fn a_part_or_a_refusal_is_no_checkpoint() {
        let answer = |busy, log, done| Answer { busy, log, done };
        let mut wanted = None;
        assert!(!is_through(&mut wanted, answer(1, -1, -1)), "another one is under way");
        assert!(!is_through(&mut wanted, answer(0, 100, 97)), "transactions need the rest");
        assert!(!is_through(&mut wanted, answer(0, 140, 99)));
        assert!(is_through(&mut wanted, answer(0, 140, 100)), "what came later is not its business");
        assert!(is_through(&mut wanted, answer(0, 7, 0)), "the log has been begun anew");
    }

    #[test]
    fn a_transaction_that_needs_old_pages_holds_it_up() {
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
        assert!(said(make(&open(), &file, short)).contains("did not get through"));
        reader.execute_batch("COMMIT").unwrap();
        let size = || file.metadata().unwrap().len();
        assert!(size() < 100_000);
        make(&open(), &file, short).unwrap();
        assert!(size() > 100_000);
    }
}
