//! Operations of an embedded database on its files, counted by loadline because the database does not.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use loadline_model::Snapshot;
use loadline_model::snapshot::counter;

use crate::error::TargetError;
use crate::role::Observer;

/// Operations on the log of one target. Only SQLite's single writer adds to it.
#[derive(Debug, Default)]
pub(crate) struct LogCounters {
    pub(crate) writes: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// Pages written (a frame is a header and a page, two writes).
    pub(crate) pages: AtomicU64,
    pub(crate) syncs: AtomicU64,
    /// Times that the log began anew.
    pub(crate) restarts: AtomicU64,
    /// Time spent in syncs, ns.
    pub(crate) sync_ns: AtomicU64,
    /// Time spent in writes, ns.
    pub(crate) write_ns: AtomicU64,
    /// Time in which jobs waited for their turn to write, ns.
    pub(crate) writer_wait_ns: AtomicU64,
    /// Length of the present log when its last checkpoint began, pages: SQLite only.
    pub(crate) checkpoint_at: AtomicI32,
    pub(crate) data: DataCounters,
}

/// Operations on one target's database files, and cache accesses of its sessions.
#[derive(Debug, Default)]
pub(crate) struct DataCounters {
    /// Pages read from the database file. Reads of the log are not counted: most are made by checkpoints.
    pub(crate) reads: AtomicU64,
    /// Time of the reads, ns.
    pub(crate) read_ns: AtomicU64,
    /// Pages written to the database file.
    pub(crate) writes: AtomicU64,
    pub(crate) write_bytes: AtomicU64,
    /// Time of writes and syncs, ns, that jobs make themselves, in a checkpoint or to free a page of their cache.
    pub(crate) write_ns: AtomicU64,
    pub(crate) checkpoints: AtomicU64,
    /// Cache accesses, pages.
    pub(crate) gets: AtomicU64,
    /// Cache misses, pages. Some are read from the log.
    pub(crate) misses: AtomicU64,
    pub(crate) changed: AtomicU64,
}

thread_local! {
    /// The counters of the job that runs in this thread: what others write is nobody's wait.
    pub(crate) static JOB: RefCell<Option<Arc<LogCounters>>> = const { RefCell::new(None) };
}

/// Calls `call`, and adds its time, ns, to `counter`.
pub(crate) fn timed<T>(counter: &AtomicU64, call: impl FnOnce() -> T) -> T {
    let begin = loadline_storage::now_ns();
    let done = call();
    counter.fetch_add(loadline_storage::now_ns().saturating_sub(begin), Ordering::Relaxed);
    done
}

impl LogCounters {
    /// Calls what writes or syncs, and adds its time to that counter of the `log`, or to that of the data if a job makes it.
    pub(crate) fn timed_write<T>(&self, log: Option<&AtomicU64>, call: impl FnOnce() -> T) -> T {
        match log {
            Some(counter) => timed(counter, call),
            None if JOB.with_borrow(Option::is_some) => timed(&self.data.write_ns, call),
            None => call(),
        }
    }
}

pub(crate) struct FileObserver {
    pub(crate) counters: Arc<LogCounters>,
    pub(crate) page_size: u64,
    /// Names of those that mean nothing of this database.
    pub(crate) without: &'static [&'static str],
}

impl Observer for FileObserver {
    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let data = &self.counters.data;
        let counters = [
            (counter::REDO_WRITES, &self.counters.writes),
            (counter::REDO_BYTES, &self.counters.bytes),
            (counter::REDO_BLOCKS, &self.counters.pages),
            (counter::REDO_SYNCS, &self.counters.syncs),
            (counter::LOG_SWITCHES, &self.counters.restarts),
            (counter::LOG_WAIT_NS, &self.counters.sync_ns),
            (counter::REDO_SYNC_NS, &self.counters.sync_ns),
            (counter::WRITER_WAIT_NS, &self.counters.writer_wait_ns),
            (counter::REDO_WRITE_NS, &self.counters.write_ns),
            (counter::BLOCK_GETS, &data.gets),
            (counter::BLOCK_READS, &data.misses),
            (counter::READ_CALLS, &data.reads),
            (counter::READ_NS, &data.read_ns),
            (counter::BLOCK_WRITES, &data.writes),
            (counter::WRITE_CALLS, &data.writes),
            (counter::WRITE_BYTES, &data.write_bytes),
            (counter::BUFFER_WAIT_NS, &data.write_ns),
            (counter::CHECKPOINTS, &data.checkpoints),
            (counter::ROWS_CHANGED, &data.changed),
        ];
        let counters = counters.into_iter().map(|(name, counter)| (name, counter.load(Ordering::Relaxed) as f64));
        // As of the other databases: the blocks that were read, from wherever.
        let read_bytes = data.misses.load(Ordering::Relaxed) as f64 * self.page_size as f64;
        let counters = counters.chain([(counter::READ_BYTES, read_bytes)]);
        let counters = counters.filter(|(name, _)| !self.without.contains(name));
        let counters = counters.map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(Snapshot { at_ns: loadline_storage::now_ns(), counters, ..Snapshot::default() })
    }
}
