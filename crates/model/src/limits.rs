//! What the hardware allows for the work of a test.

use serde::{Deserialize, Serialize};

/// Reference throughput for one test: the reference log writer, or a device, with the same work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestLimit {
    /// What sets it, in words: `reference log writer (fdatasync) in /var/lib/…`.
    pub of: String,
    /// Jobs it was measured with.
    pub jobs: u32,
    /// Bytes of redo per transaction that it was measured with.
    pub redo_bytes_per_tx: f64,
    /// Transactions per second; the mean of `samples`.
    pub tps: f64,
    /// Its single measurements (before and after the test), transactions per second.
    pub samples: Vec<f64>,
    /// Transaction time, mean, ns.
    pub latency_ns_mean: f64,
    /// Where the figure comes from.
    pub source: LimitSource,
}

/// Where a limit comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitSource {
    /// Measured right before and after the test.
    Run,
    /// Brought by `--limits FILE`, from `loadline probe` on the database's machine.
    File,
}

/// One size of a scan of commit time over redo since the last commit (LGWR-SIZE).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizePoint {
    /// Redo written by the transaction before its commit, bytes.
    pub redo_bytes: f64,
    /// Commit times, ns, one per transaction of this size, in the order of time.
    pub commit_ns: Vec<u64>,
    /// Times from the first statement to the issue of the commit, ns, of the same transactions.
    pub write_ns: Vec<u64>,
}
