//! Snapshots of a database's counters, and samples of its waits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counters of a database at one moment, under its own names (`pg_stat_wal.wal_sync`). Counters of several nodes
/// are added up; but what each node of a cluster does for all of it (redo, changed rows) is that of the mean node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When it was taken, in ns on loadline's monotonic clock (origin: start of the process).
    pub at_ns: u64,
    /// Cumulative counters by name.
    pub counters: BTreeMap<String, f64>,
    /// Those of each node by itself, in the order of the nodes; empty if there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<BTreeMap<String, f64>>,
    /// `/proc/stat` of the database's machine, if read through the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proc_stat: Option<String>,
}

impl Snapshot {
    /// Growth of counter `name` from `self` to `later`; `None` if either lacks it or it was reset in between.
    #[must_use]
    pub fn delta(&self, later: &Snapshot, name: &str) -> Option<f64> {
        let grown = later.counters.get(name)? - self.counters.get(name)?;
        (grown >= 0.0).then_some(grown)
    }

    /// Views of which somebody reset the statistics between `self` and `later`: the time of their last reset differs or is new.
    pub fn reset_until<'a>(&self, later: &'a Snapshot) -> impl Iterator<Item = &'a str> {
        let differs = |(name, at): &(&String, &f64)| self.counters.get(*name) != Some(*at);
        later.counters.iter().filter(differs).filter_map(|(name, _)| name.strip_suffix(counter::STATS_RESET))
    }

    /// Seconds from `self` to `later`.
    #[must_use]
    pub fn seconds_until(&self, later: &Snapshot) -> f64 {
        later.at_ns.saturating_sub(self.at_ns) as f64 / 1e9
    }
}

/// Number of job sessions in each wait at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitSample {
    /// Sessions by wait event (`IO:WALSync`); `CPU` counts running sessions.
    pub sessions: BTreeMap<String, u32>,
    /// Sessions of others at work; `None` if unknown.
    #[serde(default)]
    pub others: Option<u32>,
    /// Background work that runs (`checkpoint`, [`AUTOVACUUM`]); `None` if unknown.
    #[serde(default)]
    pub background: Option<Vec<String>>,
}

/// Background work that cleans up after changed rows.
pub const AUTOVACUUM: &str = "autovacuum";

/// Sum of the wait samples of one window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitProfile {
    /// Number of samples.
    pub samples: u32,
    /// Sessions by wait event, summed over the samples.
    pub sessions: BTreeMap<String, u64>,
    /// Sessions of others at work, summed over the samples; `None` if unknown in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<u64>,
}

impl WaitProfile {
    /// Adds one sample.
    pub fn add(&mut self, sample: &WaitSample) {
        let before = if self.samples == 0 { Some(0) } else { self.others };
        self.others = before.zip(sample.others).map(|(sum, n)| sum + u64::from(n));
        self.samples += 1;
        for (event, n) in &sample.sessions {
            *self.sessions.entry(event.clone()).or_default() += u64::from(*n);
        }
    }

    /// Mean number of sessions in the events for which `is_one` is true, `None` without samples.
    #[must_use]
    pub fn mean_sessions(&self, is_one: impl Fn(&str) -> bool) -> Option<f64> {
        let n: u64 = self.sessions.iter().filter(|(event, _)| is_one(event)).map(|(_, n)| *n).sum();
        (self.samples > 0).then(|| n as f64 / f64::from(self.samples))
    }
}

/// A mean time below this is of no reads or writes of a file, ns: to copy a block of 8 KiB from the page cache takes about a
/// microsecond.
pub const LEAST_IO_NS: f64 = 300.0;

/// Neutral counter names that targets fill beside the database's own, so that figures and checks are computed in
/// one place.
pub mod counter {
    /// End of the database's own counters that are the time of the last reset of a view.
    pub const STATS_RESET: &str = ".stats_reset";
    /// Transactions committed, without loadline's own queries.
    pub const COMMITS: &str = "loadline.commits";
    /// Transactions that loadline's jobs had completed before the snapshot was read.
    pub const JOBS_BEFORE: &str = "loadline.jobs_before";
    /// Transactions that loadline's jobs had completed after the snapshot was read.
    pub const JOBS_AFTER: &str = "loadline.jobs_after";
    /// COMMITs of loadline's jobs that had failed when the snapshot had been read.
    pub const FAILED_COMMITS: &str = "loadline.failed_commits";
    /// CPU time of the sessions of others, ns, as far as they were seen.
    pub const OTHER_SESSIONS_CPU_NS: &str = "loadline.other_sessions_cpu_ns";
    /// When that was read, ns: a while before the snapshot.
    pub const OTHER_SESSIONS_AT_NS: &str = "loadline.other_sessions_at_ns";
    /// Bytes of redo generated.
    pub const REDO_BYTES: &str = "loadline.redo_bytes";
    /// Images of whole pages in the redo, which a page's first change after a checkpoint has.
    pub const REDO_PAGE_IMAGES: &str = "loadline.redo_page_images";
    /// Write calls to the log.
    pub const REDO_WRITES: &str = "loadline.redo_writes";
    /// Syncs of the log.
    pub const REDO_SYNCS: &str = "loadline.redo_syncs";
    /// Time that sessions waited for the log, ns, measured by the database.
    pub const LOG_WAIT_NS: &str = "loadline.log_wait_ns";
    /// Log blocks written.
    pub const REDO_BLOCKS: &str = "loadline.redo_blocks";
    /// Commit time before the write of the group began, ns.
    pub const LOG_PART_WAIT_NS: &str = "loadline.log_part_wait_ns";
    /// Time to copy records to the log buffer, ns.
    pub const LOG_PART_COPY_NS: &str = "loadline.log_part_copy_ns";
    /// Commit time in the write of the group, ns.
    pub const LOG_PART_WRITE_NS: &str = "loadline.log_part_write_ns";
    /// Commit time in the sync of the group, ns.
    pub const LOG_PART_SYNC_NS: &str = "loadline.log_part_sync_ns";
    /// Commit time after the group was durable, ns.
    pub const LOG_PART_WAKE_NS: &str = "loadline.log_part_wake_ns";
    /// Groups written.
    pub const LOG_GROUPS: &str = "loadline.log_groups";
    /// Bytes in the log buffer at the start of a group's write, summed over the groups.
    pub const LOG_FILL_BYTES: &str = "loadline.log_fill_bytes";
    /// Time that sessions waited for free space in the log buffer, ns.
    pub const LOG_FULL_NS: &str = "loadline.log_full_ns";
    /// Write requests of the database to all files.
    pub const WRITES: &str = "loadline.writes";
    /// Those of [`WRITES`] taken by a flash cache in the storage.
    pub const FLASH_WRITES: &str = "loadline.flash_writes";
    /// Blocks of tables and indexes looked up in the database's cache.
    pub const BLOCK_GETS: &str = "loadline.block_gets";
    /// Blocks that the database read from outside its cache; the page cache may have served them.
    pub const BLOCK_READS: &str = "loadline.block_reads";
    /// Bytes of data files read.
    pub const READ_BYTES: &str = "loadline.read_bytes";
    /// Read calls on data files; one may read several blocks.
    pub const READ_CALLS: &str = "loadline.read_calls";
    /// Time spent in reads of data files, ns.
    pub const READ_NS: &str = "loadline.read_ns";
    /// Blocks written to data files.
    pub const BLOCK_WRITES: &str = "loadline.block_writes";
    /// Of these, blocks that the database itself syncs soon after.
    pub const SYNCED_WRITES: &str = "loadline.synced_writes";
    /// Write calls on data files; one may write several blocks.
    pub const WRITE_CALLS: &str = "loadline.write_calls";
    /// Bytes written to data files.
    pub const WRITE_BYTES: &str = "loadline.write_bytes";
    /// Time spent in writes of the log, ns.
    pub const REDO_WRITE_NS: &str = "loadline.redo_write_ns";
    /// Time spent in syncs of the log, ns.
    pub const REDO_SYNC_NS: &str = "loadline.redo_sync_ns";
    /// Time that sessions spent to get a free buffer in the database's cache, ns: waiting for one, or writing a
    /// changed block themselves.
    pub const BUFFER_WAIT_NS: &str = "loadline.buffer_wait_ns";
    /// Time that sessions waited for locks held by others, ns, measured by the database.
    pub const LOCK_WAIT_NS: &str = "loadline.lock_wait_ns";
    /// Time that sessions waited for their turn to write, ns, in a database with one writer at a time.
    pub const WRITER_WAIT_NS: &str = "loadline.writer_wait_ns";
    /// Rows read from tables or found through indexes.
    pub const ROWS_READ: &str = "loadline.rows_read";
    /// Rows inserted, updated and deleted.
    pub const ROWS_CHANGED: &str = "loadline.rows_changed";
    /// Nodes of a cluster as one of them counts them, 0 at one that has lost the majority; of several nodes the mean.
    pub const CLUSTER_SIZE: &str = "loadline.cluster_size";
    /// Number of the last change in a cluster's membership, as one of its nodes counts them; of several nodes the mean.
    pub const CLUSTER_VIEW: &str = "loadline.cluster_view";
    /// Transactions of other nodes that a node has received and not yet applied.
    pub const APPLY_QUEUE: &str = "loadline.apply_queue";
    /// Transactions that failed certification: another node had changed one of their rows before.
    pub const CERT_FAILURES: &str = "loadline.cert_failures";
    /// Transactions that were aborted because a change of another node, applied here, needed their rows.
    pub const APPLY_ABORTS: &str = "loadline.apply_aborts";
    /// Bytes that nodes sent to the others, each once, whatever the number of receivers.
    pub const REPLICATED_BYTES: &str = "loadline.replicated_bytes";
    /// Time in which flow control stopped replication because a node could not keep up, ns; of several nodes the mean.
    pub const FLOW_PAUSED_NS: &str = "loadline.flow_paused_ns";
    /// Redo that the slowest replica had not applied yet, bytes.
    pub const REPLICA_BEHIND_BYTES: &str = "loadline.replica_behind_bytes";
    /// Time from a commit until the slowest replica applied it, ns; 0 if all had applied everything.
    pub const REPLICA_BEHIND_NS: &str = "loadline.replica_behind_ns";
    /// Those that describe the moment, and also fall.
    pub const GAUGES: [&str; 5] = [CLUSTER_SIZE, CLUSTER_VIEW, APPLY_QUEUE, REPLICA_BEHIND_BYTES, REPLICA_BEHIND_NS];
    /// Checkpoints started or completed, whichever the database counts.
    pub const CHECKPOINTS: &str = "loadline.checkpoints";
    /// Parallel workers planned for queries.
    pub const WORKERS_PLANNED: &str = "loadline.workers_planned";
    /// Those of [`WORKERS_PLANNED`] that were launched.
    pub const WORKERS_CAME: &str = "loadline.workers_came";
    /// Parallel queries that got all workers they asked for.
    pub const PARALLEL_WHOLE: &str = "loadline.parallel_whole";
    /// Parallel queries that got fewer workers than they asked for.
    pub const PARALLEL_LESS: &str = "loadline.parallel_less";
}
