//! Limits: the throughput that the machine allows for the work of a test.

use serde::{Deserialize, Serialize};

/// Reference throughput for one test: what does the same work, or its unavoidable part, without the database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestLimit {
    /// Short name, one of [`name`] or several with ` + `.
    #[serde(default = "log_writer")]
    pub name: String,
    /// Subject of the measurement, in words: `reference log writer (fdatasync) in /var/lib/…`.
    pub of: String,
    pub jobs: u32,
    /// Redo per transaction that the log writer was measured with, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redo_bytes_per_tx: Option<f64>,
    /// Transactions per second: of CPU and memory the higher one of `samples`, otherwise their mean.
    pub tps: f64,
    /// The measurements before and after the test, transactions per second.
    pub samples: Vec<f64>,
    pub source: LimitSource,
}

/// Names of limits, as records and the column `limit_of` hold them, that are more than shown.
pub mod name {
    /// Commits of the reference log writer: the only limit that older records have.
    pub const LOG_WRITER: &str = "log writer";
    /// The smallest durable transactions of the database itself.
    pub const SMALLEST_COMMITS: &str = "smallest commits";
    pub const BLOCK_READS: &str = "block reads";
    /// Random reads of single blocks, all those of a query at once.
    pub const BATCH_READS: &str = "batches of block reads";
    pub const READ_BANDWIDTH: &str = "read bandwidth";
    pub const BLOCK_WRITES: &str = "block writes";
    pub const WRITE_BANDWIDTH: &str = "write bandwidth";
}

fn log_writer() -> String {
    name::LOG_WRITER.to_owned()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitSource {
    /// Measured right before and after the test.
    Run,
    /// From `--limits FILE`, made by `loadline probe` on the database's machine.
    File,
}

/// The reference log writer at one number of jobs and one size of transaction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LogWriterPoint {
    /// Device and folder.
    pub of: String,
    pub workload: String,
    /// Whether its transactions differ in size. Such a point is compared with the same workload only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mix: bool,
    pub wait: bool,
    pub redo_bytes_per_tx: f64,
    pub jobs: u32,
    pub tps: f64,
    pub latency_ns_mean: f64,
}

impl LogWriterPoint {
    /// The limit of a test with `jobs` jobs and `redo_bytes` of redo per transaction, from `points` of another
    /// run: takes the points of the nearest size and interpolates over the logarithm of the jobs. A workload of
    /// mixed sizes (its code in `mix`) takes points of the same workload only.
    pub fn limit(
        points: &[LogWriterPoint],
        mix: Option<&str>,
        wait: bool,
        redo_bytes: f64,
        jobs: u32,
    ) -> Result<TestLimit, String> {
        /// Redo may differ by this share (an LGWR-LAT1 is 1 to 2 KiB).
        const REDO_TOLERANCE: f64 = 0.5;
        let off = |p: &&LogWriterPoint| (p.redo_bytes_per_tx / redo_bytes - 1.0).abs();
        let mode = if wait { "that wait" } else { "that do not wait" };
        let is_kind = |p: &&LogWriterPoint| match mix {
            Some(workload) => p.wait == wait && p.workload == workload,
            None => p.wait == wait && !p.mix,
        };
        let near = points.iter().filter(is_kind).filter(|p| p.tps > 0.0).min_by(|a, b| off(a).total_cmp(&off(b)));
        let Some(near) = near.filter(|p| off(p) <= REDO_TOLERANCE) else {
            let of = mix.map_or(String::new(), |workload| format!(", mixed as in {workload}"));
            return Err(format!(
                "the limits file has no log writer figure for commits {mode} with {redo_bytes:.0} bytes of redo{of}"
            ));
        };
        let is_same = |p: &&LogWriterPoint| p.of == near.of && p.redo_bytes_per_tx == near.redo_bytes_per_tx;
        let same = || points.iter().filter(is_kind).filter(is_same);
        let below = same().filter(|p| p.jobs <= jobs).max_by_key(|p| p.jobs);
        let above = same().filter(|p| p.jobs >= jobs).min_by_key(|p| p.jobs);
        let (Some(below), Some(above)) = (below, above) else {
            let counts = || same().map(|p| p.jobs);
            let (first, last) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
            return Err(format!("the limits file has log writer figures for {first} to {last} jobs, not for {jobs}"));
        };
        let log = |jobs: u32| f64::from(jobs.max(1)).ln();
        let width = log(above.jobs) - log(below.jobs);
        let share = if width > 0.0 { (log(jobs) - log(below.jobs)) / width } else { 0.0 };
        let tps = below.tps + (above.tps - below.tps) * share;
        Ok(TestLimit {
            name: log_writer(),
            of: near.of.clone(),
            jobs,
            redo_bytes_per_tx: Some(near.redo_bytes_per_tx),
            tps,
            samples: vec![tps],
            source: LimitSource::File,
        })
    }
}

/// One size of a scan of commit time over redo since the last commit (LGWR-SIZE).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizePoint {
    /// Redo written by a transaction before its commit, bytes.
    pub redo_bytes: f64,
    /// Time from its last change to its commit, s.
    #[serde(default, skip_serializing_if = "is_none")]
    pub idle_s: f64,
    /// Commit time of each transaction of this size, ns, in chronological order.
    pub commit_ns: Vec<u64>,
    /// Time from the first statement to the issue of the commit of the same transactions, ns.
    pub write_ns: Vec<u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature.
fn is_none(seconds: &f64) -> bool {
    *seconds == 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(jobs: u32, redo: f64, tps: f64) -> LogWriterPoint {
        let (of, workload) = ("x".into(), "w".into());
        LogWriterPoint { of, workload, wait: true, redo_bytes_per_tx: redo, jobs, tps, ..LogWriterPoint::default() }
    }

    #[test]
    fn limits_are_interpolated_between_job_counts_and_absent_beyond() {
        let points = [point(1, 1500.0, 100.0), point(4, 1500.0, 300.0), point(1, 25600.0, 50.0)];
        let limit = |redo, jobs| LogWriterPoint::limit(&points, None, true, redo, jobs);
        assert_eq!(limit(1500.0, 4).unwrap().tps, 300.0);
        assert_eq!(limit(1400.0, 2).unwrap().tps, 200.0, "halfway on a logarithmic scale");
        assert_eq!(limit(25000.0, 1).unwrap().tps, 50.0);
        assert!(limit(1500.0, 8).unwrap_err().contains("1 to 4 jobs"));
        assert!(limit(500_000.0, 1).is_err(), "another size is another limit");
        assert!(LogWriterPoint::limit(&points, None, false, 1500.0, 1).is_err(), "another mode of commit as well");
    }

    #[test]
    fn a_mix_is_compared_with_itself_only() {
        let mixed = LogWriterPoint { workload: "m".into(), mix: true, ..point(1, 11_000.0, 70.0) };
        let points = [point(1, 10_000.0, 90.0), mixed];
        let limit = |mix| LogWriterPoint::limit(&points, mix, true, 11_000.0, 1);
        assert_eq!((limit(None).unwrap().tps, limit(Some("m")).unwrap().tps), (90.0, 70.0));
        assert!(limit(Some("other")).unwrap_err().contains("mixed as in other"));
    }
}
