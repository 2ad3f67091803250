//! A database's own counters at one moment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counters read from a database at one moment, under the names the database gives them
/// (`pg_stat_wal.wal_sync`). Counters of several nodes are added up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When it was taken, in ns on loadline's monotonic clock (origin: start of the process).
    pub at_ns: u64,
    /// Cumulative counters by name.
    pub counters: BTreeMap<String, f64>,
    /// `/proc/stat` of the database's machine where the database let us read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proc_stat: Option<String>,
}

impl Snapshot {
    /// How much counter `name` grew from `self` to `later`; `None` if either lacks it or it was
    /// reset in between.
    #[must_use]
    pub fn delta(&self, later: &Snapshot, name: &str) -> Option<f64> {
        let grown = later.counters.get(name)? - self.counters.get(name)?;
        (grown >= 0.0).then_some(grown)
    }

    /// Seconds from `self` to `later`.
    #[must_use]
    pub fn seconds_until(&self, later: &Snapshot) -> f64 {
        later.at_ns.saturating_sub(self.at_ns) as f64 / 1e9
    }
}

/// How many of the job sessions were seen waiting for what, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitSample {
    /// Sessions by wait event (`IO:WALSync`); `CPU` counts sessions that were running.
    pub sessions: BTreeMap<String, u32>,
}

/// Wait samples of one window, added up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitProfile {
    /// Number of samples.
    pub samples: u32,
    /// Sessions seen in each wait event, summed over the samples.
    pub sessions: BTreeMap<String, u64>,
}

impl WaitProfile {
    /// Adds one sample.
    pub fn add(&mut self, sample: &WaitSample) {
        self.samples += 1;
        for (event, n) in &sample.sessions {
            *self.sessions.entry(event.clone()).or_default() += u64::from(*n);
        }
    }

    /// Mean number of sessions in any of `events`, `None` without samples.
    #[must_use]
    pub fn mean_sessions(&self, events: &[&str]) -> Option<f64> {
        (self.samples > 0).then(|| {
            let n: u64 = events.iter().filter_map(|e| self.sessions.get(*e)).sum();
            n as f64 / f64::from(self.samples)
        })
    }
}

/// Counter names that every target fills where it can, beside those of the database itself, so
/// that figures and checks are computed in one place.
pub mod counter {
    /// Transactions committed, loadline's own queries taken off.
    pub const COMMITS: &str = "loadline.commits";
    /// Bytes of redo generated.
    pub const REDO_BYTES: &str = "loadline.redo_bytes";
    /// Write calls to the log.
    pub const REDO_WRITES: &str = "loadline.redo_writes";
    /// Syncs of the log.
    pub const REDO_SYNCS: &str = "loadline.redo_syncs";
    /// Time that sessions spent waiting for the log, ns, as the database itself measures it.
    pub const LOG_WAIT_NS: &str = "loadline.log_wait_ns";
    /// Log blocks written.
    pub const REDO_BLOCKS: &str = "loadline.redo_blocks";
    /// Of the time that commits took, the part before the write of their group began, ns.
    pub const LOG_PART_WAIT_NS: &str = "loadline.log_part_wait_ns";
    /// Time in which records were copied to the log buffer, ns.
    pub const LOG_PART_COPY_NS: &str = "loadline.log_part_copy_ns";
    /// Of the time that commits took, the write of their group, ns.
    pub const LOG_PART_WRITE_NS: &str = "loadline.log_part_write_ns";
    /// Of the time that commits took, the sync of their group, ns.
    pub const LOG_PART_SYNC_NS: &str = "loadline.log_part_sync_ns";
    /// Of the time that commits took, the part after their group was durable, ns.
    pub const LOG_PART_WAKE_NS: &str = "loadline.log_part_wake_ns";
    /// Groups written.
    pub const LOG_GROUPS: &str = "loadline.log_groups";
    /// Sum over the groups of the bytes in the log buffer when their write began.
    pub const LOG_FILL_BYTES: &str = "loadline.log_fill_bytes";
    /// Time that sessions waited for room in the log buffer, ns.
    pub const LOG_FULL_NS: &str = "loadline.log_full_ns";
    /// Write requests of the database, of data files, logs and all else.
    pub const WRITES: &str = "loadline.writes";
    /// Those of [`WRITES`] that a flash cache in the storage took.
    pub const FLASH_WRITES: &str = "loadline.flash_writes";
    /// Blocks of data (tables, indexes) that sessions asked the database's cache for.
    pub const BLOCK_GETS: &str = "loadline.block_gets";
    /// Blocks of data that the database read from outside its cache; the operating system's page cache
    /// may have served them.
    pub const BLOCK_READS: &str = "loadline.block_reads";
    /// Bytes of data files read.
    pub const READ_BYTES: &str = "loadline.read_bytes";
    /// Read calls on data files; one may read several blocks.
    pub const READ_CALLS: &str = "loadline.read_calls";
    /// Time spent in reads of data files, ns.
    pub const READ_NS: &str = "loadline.read_ns";
    /// Blocks of data written to data files.
    pub const BLOCK_WRITES: &str = "loadline.block_writes";
    /// Write calls on data files; one may write several blocks.
    pub const WRITE_CALLS: &str = "loadline.write_calls";
    /// Bytes written to data files.
    pub const WRITE_BYTES: &str = "loadline.write_bytes";
    /// Time spent in writes of the log, ns.
    pub const REDO_WRITE_NS: &str = "loadline.redo_write_ns";
    /// Time spent in syncs of the log, ns.
    pub const REDO_SYNC_NS: &str = "loadline.redo_sync_ns";
    /// Time that sessions spent getting a free place in the database's cache, ns: they waited for one, or
    /// wrote out a changed block themselves to have one.
    pub const BUFFER_WAIT_NS: &str = "loadline.buffer_wait_ns";
    /// Rows read from tables or found through indexes.
    pub const ROWS_READ: &str = "loadline.rows_read";
    /// Rows inserted, updated and deleted.
    pub const ROWS_CHANGED: &str = "loadline.rows_changed";
    /// Checkpoints: those that began or those that ended, whichever the database counts.
    pub const CHECKPOINTS: &str = "loadline.checkpoints";
    /// Processes that queries were to have beside those of their sessions.
    pub const WORKERS_PLANNED: &str = "loadline.workers_planned";
    /// Those of [`WORKERS_PLANNED`] that came.
    pub const WORKERS_CAME: &str = "loadline.workers_came";
    /// Queries that began with as many processes as they had asked for, several.
    pub const PARALLEL_WHOLE: &str = "loadline.parallel_whole";
    /// Queries that asked for several processes and began with fewer.
    pub const PARALLEL_LESS: &str = "loadline.parallel_less";
}
