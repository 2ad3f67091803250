//! Snapshots of a database's counters, and samples of its waits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counters of a database at one moment, under its own names (`pg_stat_wal.wal_sync`). Counters of several nodes
/// are added up; but what each node of a cluster does for all of it (redo, changed rows) is that of the mean node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When it was taken, in ns on loadline's monotonic clock (origin: start of the process).
    pub at_ns: u64,
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
    pub fn delta(&self, later: &Snapshot, name: &str) -> Option<f64> {
        let grown = later.counters.get(name)? - self.counters.get(name)?;
        (grown >= 0.0).then_some(grown)
    }

    /// Views of which somebody reset the statistics between `self` and `later`: the time of their last reset differs or is new.
    pub fn reset_until<'a>(&self, later: &'a Snapshot) -> impl Iterator<Item = &'a str> {
        let differs = |(name, at): &(&String, &f64)| self.counters.get(*name) != Some(*at);
        later.counters.iter().filter(differs).filter_map(|(name, _)| name.strip_suffix(counter::STATS_RESET))
    }

    pub fn seconds_until(&self, later: &Snapshot) -> f64 {
        later.at_ns.saturating_sub(self.at_ns) as f64 / 1e9
    }
}

/// Number of job sessions in each wait at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitSample {
    /// Sessions by wait event (`IO:WALSync`); `CPU` counts running sessions.
    pub sessions: BTreeMap<String, u32>,
    /// Numbers of the jobs whose sessions these are, by wait event, as far as known. Not stored.
    #[serde(skip)]
    pub jobs: BTreeMap<String, Vec<u32>>,
    /// Time from the question to the answer, ns. Not stored.
    #[serde(skip)]
    pub took_ns: u64,
    /// Sessions of others at work; `None` if unknown.
    pub others: Option<u32>,
    /// Background work that runs (`checkpoint`, [`AUTOVACUUM`]); `None` if unknown.
    pub background: Option<Vec<String>>,
}

/// Background work that cleans up after changed rows.
pub const AUTOVACUUM: &str = "autovacuum";

/// Sum of the wait samples of one window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitProfile {
    pub samples: u32,
    /// Sessions by wait event, summed over the samples.
    pub sessions: BTreeMap<String, u64>,
    /// Sessions of others at work, summed over the samples; `None` if unknown in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<u64>,
}

impl WaitProfile {
    pub fn add(&mut self, sample: &WaitSample) {
        let before = if self.samples == 0 { Some(0) } else { self.others };
        self.others = before.zip(sample.others).map(|(sum, n)| sum + u64::from(n));
        self.samples += 1;
        for (event, n) in &sample.sessions {
            *self.sessions.entry(event.clone()).or_default() += u64::from(*n);
        }
    }

    /// Mean number of sessions in the events for which `is_one` is true, `None` without samples.
    pub fn mean_sessions(&self, is_one: impl Fn(&str) -> bool) -> Option<f64> {
        let n = self.sessions.iter().filter(|(event, _)| is_one(event)).map(|(_, n)| *n).fold(0, u64::saturating_add);
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
    /// Those that describe the moment, and also fall.
    pub const GAUGES: [&str; 5] = [CLUSTER_SIZE, CLUSTER_VIEW, APPLY_QUEUE, REPLICA_BEHIND_BYTES, REPLICA_BEHIND_NS];

    /// Declares each counter once: constant, name, and what it counts.
    macro_rules! counters {
        ($($counter:ident $name:literal $counts:literal)+) => { $(#[doc = $counts] pub const $counter: &str = $name;)+ };
    }

    counters! {
        COMMITS "loadline.commits" "Transactions committed, without loadline's own queries."
        JOBS_BEFORE "loadline.jobs_before" "Transactions that loadline's jobs had completed before the snapshot was read."
        JOBS_AFTER "loadline.jobs_after" "Transactions that loadline's jobs had completed after the snapshot was read."
        FAILED_COMMITS "loadline.failed_commits" "COMMITs of loadline's jobs that had failed when the snapshot had been read."
        OTHER_SESSIONS_CPU_NS "loadline.other_sessions_cpu_ns" "CPU time of the sessions of others, ns, as far as they were seen."
        OTHER_SESSIONS_AT_NS "loadline.other_sessions_at_ns" "When that was read, ns: a while before the snapshot."
        REDO_BYTES "loadline.redo_bytes" "Bytes of redo generated."
        REDO_PAGE_IMAGES "loadline.redo_page_images"
            "Images of whole pages in the redo, which a page's first change after a checkpoint has."
        REDO_WRITES "loadline.redo_writes" "Write calls to the log."
        REDO_SYNCS "loadline.redo_syncs" "Syncs of the log."
        LOG_WAIT_NS "loadline.log_wait_ns" "Time that sessions waited for the log, ns, measured by the database."
        REDO_BLOCKS "loadline.redo_blocks" "Log blocks written."
        LOG_SWITCHES "loadline.log_switches" "Times that the database went on in the next file of its log, or began its log anew."
        UNDO_BYTES "loadline.undo_bytes" "Bytes of undo generated."
        OLD_ROWS "loadline.old_rows" "Rows updated and deleted, of each of which the version before is kept for readers."
        LOG_PART_WAIT_NS "loadline.log_part_wait_ns" "Commit time before the write of the group began, ns."
        LOG_PART_COPY_NS "loadline.log_part_copy_ns" "Time to copy records to the log buffer, ns."
        LOG_PART_WRITE_NS "loadline.log_part_write_ns" "Commit time in the write of the group, ns."
        LOG_PART_SYNC_NS "loadline.log_part_sync_ns" "Commit time in the sync of the group, ns."
        LOG_PART_WAKE_NS "loadline.log_part_wake_ns" "Commit time after the group was durable, ns."
        LOG_GROUPS "loadline.log_groups" "Groups written."
        LOG_FILL_BYTES "loadline.log_fill_bytes" "Bytes in the log buffer at the start of a group's write, summed over the groups."
        LOG_FULL_NS "loadline.log_full_ns" "Time that sessions waited for free space in the log buffer, ns."
        WRITES "loadline.writes" "Write requests of the database to all files."
        FLASH_WRITES "loadline.flash_writes" "Those of [`WRITES`] taken by a flash cache in the storage."
        BLOCK_GETS "loadline.block_gets" "Blocks of tables and indexes looked up in the database's cache."
        BLOCK_READS "loadline.block_reads" "Blocks that the database read from outside its cache; the page cache may have served them."
        READ_BYTES "loadline.read_bytes" "Bytes of data files read."
        READ_CALLS "loadline.read_calls" "Read calls on data files; one may read several blocks."
        READ_NS "loadline.read_ns" "Time spent in reads of data files, ns."
        BLOCK_WRITES "loadline.block_writes" "Blocks written to data files."
        SYNCED_WRITES "loadline.synced_writes" "Of these, blocks that the database itself syncs soon after."
        WRITE_CALLS "loadline.write_calls" "Write calls on data files; one may write several blocks."
        WRITE_BYTES "loadline.write_bytes" "Bytes written to data files."
        REDO_WRITE_NS "loadline.redo_write_ns" "Time spent in writes of the log, ns."
        REDO_SYNC_NS "loadline.redo_sync_ns" "Time spent in syncs of the log, ns."
        BUFFER_WAIT_NS "loadline.buffer_wait_ns"
            "Time that sessions spent to get a free buffer in the database's cache, ns: waiting for one, or writing a changed block themselves."
        LOCK_WAIT_NS "loadline.lock_wait_ns" "Time that sessions waited for locks held by others, ns, measured by the database."
        WRITER_WAIT_NS "loadline.writer_wait_ns"
            "Time that sessions waited for their turn to write, ns, in a database with one writer at a time."
        ROWS_READ "loadline.rows_read" "Rows read from tables or found through indexes."
        ROWS_CHANGED "loadline.rows_changed" "Rows inserted, updated and deleted."
        CLUSTER_SIZE "loadline.cluster_size"
            "Nodes of a cluster as one of them counts them, 0 at one that has lost the majority; of several nodes the mean."
        CLUSTER_VIEW "loadline.cluster_view"
            "Number of the last change in a cluster's membership, as one of its nodes counts them; of several nodes the mean."
        APPLY_QUEUE "loadline.apply_queue" "Transactions of other nodes that a node has received and not yet applied."
        CERT_FAILURES "loadline.cert_failures" "Transactions that failed certification: another node had changed one of their rows before."
        APPLY_ABORTS "loadline.apply_aborts"
            "Transactions that were aborted because a change of another node, applied here, needed their rows."
        REPLICATED_BYTES "loadline.replicated_bytes" "Bytes that nodes sent to the others, each once, whatever the number of receivers."
        FLOW_PAUSED_NS "loadline.flow_paused_ns"
            "Time in which flow control stopped replication because a node could not keep up, ns; of several nodes the mean."
        REPLICA_BEHIND_BYTES "loadline.replica_behind_bytes" "Redo that the slowest replica had not applied yet, bytes."
        REPLICA_BEHIND_NS "loadline.replica_behind_ns"
            "Time from a commit until the slowest replica applied it, ns; 0 if all had applied everything."
        CHECKPOINTS "loadline.checkpoints" "Checkpoints started or completed, whichever the database counts."
        WORKERS_PLANNED "loadline.workers_planned" "Parallel workers planned for queries."
        WORKERS_CAME "loadline.workers_came" "Those of [`WORKERS_PLANNED`] that were launched."
        PARALLEL_WHOLE "loadline.parallel_whole" "Parallel queries that got all workers they asked for."
        PARALLEL_LESS "loadline.parallel_less" "Parallel queries that got fewer workers than they asked for."
    }
}
