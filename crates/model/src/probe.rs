//! Results of `loadline probe`: the rates and latencies that the storage under a directory allows.

use serde::{Deserialize, Serialize};

use crate::limits::LogWriterPoint;
use crate::machine::{Machine, Storage};

pub const VERSION: u32 = 1;

/// One probe of one or several directories on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeReport {
    pub version: u32,
    pub loadline: String,
    /// Start of the probe, RFC 3339, UTC.
    pub at: String,
    pub machine: Machine,
    /// Results in the order of the directories given.
    pub dirs: Vec<ProbedDir>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbedDir {
    pub dir: String,
    pub storage: Storage,
    /// Kind of storage: `local`, `tmpfs`, `overlay`, `network` or `fuse`.
    pub kind: String,
    /// `st_dev`: the same for directories on one filesystem.
    pub st_dev: u64,
    /// Smallest block of the device, bytes, if the kernel states it.
    pub logical_block_bytes: Option<u32>,
    pub engine: Engine,
    /// Why it was not io_uring, if so.
    pub engine_reason: Option<String>,
    /// Whether block sizes that allow it bypassed the page cache (`O_DIRECT`).
    pub direct: bool,
    pub file_bytes: u64,
    /// Time measured per row, s, in `rounds` slices.
    pub window_s: f64,
    /// Slices of each row, interleaved with those of the others.
    pub rounds: u32,
    /// Share of the data that can be compressed away, 0 to 1.
    pub compressibility: f64,
    /// Share of duplicates among the 4 KiB pages written, 0 to 1.
    pub dedup: f64,
    /// Share of the 4 KiB pages of the test file that repeated others at the end, as hashed; `None` if it could not be read.
    #[serde(default)]
    pub dedup_seen: Option<f64>,
    /// Notes for the reader: what fsync means there, fallbacks, shortened measurements.
    pub notes: Vec<String>,
    pub rows: Vec<ProbeRow>,
    /// Figures that could not be measured, with the reason.
    pub absent: Vec<Absent>,
    /// Figures of the reference log writer by size of transaction and number of jobs.
    #[serde(default)]
    pub log_writer: Vec<LogWriterPoint>,
}

impl ProbedDir {
    pub fn row(&self, operation: Operation, size_bytes: u64, depth: u32) -> Option<&ProbeRow> {
        self.rows.iter().find(|r| r.operation == operation && r.size_bytes == size_bytes && r.depth == depth)
    }
}

crate::named! {
    /// How operations are submitted to the kernel.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Engine {
        IoUring: "io_uring";
        /// A thread per operation in flight, with pread and pwrite.
        Threads: "threads";
    }
    pub fn name;
}

crate::named! {
    /// A measured operation, in the order of tables. The serialised names are stable.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Operation {
        SyncWriteFdatasyncPrealloc: "sync-write-fdatasync-prealloc", "Sync write, fdatasync, preallocated file";
        SyncWriteFdatasyncGrowing: "sync-write-fdatasync-growing", "Sync write, fdatasync, growing file";
        SyncWriteDsyncPrealloc: "sync-write-dsync-prealloc", "Sync write, O_DSYNC, preallocated file";
        SyncWriteDsyncGrowing: "sync-write-dsync-growing", "Sync write, O_DSYNC, growing file";
        RandomRead: "random-read", "Random read";
        SequentialRead: "sequential-read", "Sequential read";
        SequentialWrite: "sequential-write", "Sequential write, not synced";
        PmemPersist: "pmem-persist", "Mapped memory: store and persist";
    }
    /// Stable name, as in CSV and JSON.
    pub fn id;
    pub fn title;
}

/// The figures of one operation at one size and depth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeRow {
    pub operation: Operation,
    pub size_bytes: u64,
    pub depth: u32,
    pub direct: bool,
    pub per_s: f64,
    pub mib_per_s: f64,
    pub mean_ns: f64,
    pub p50_ns: u64,
    /// 99th percentile, ns; `None` below 100 samples.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile, ns; `None` below 1,000 samples.
    pub p999_ns: Option<u64>,
    pub max_ns: u64,
    /// CPU time of the probe and of the kernel on its behalf, per operation, ns.
    pub cpu_ns_per_op: f64,
    pub samples: u64,
    /// Time in which they completed, s.
    pub elapsed_s: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    pub operation: Operation,
    /// Bytes per operation; `None` for every size.
    pub size_bytes: Option<u64>,
    /// Queue depth; `None` for every depth.
    pub depth: Option<u32>,
    pub reason: String,
}
