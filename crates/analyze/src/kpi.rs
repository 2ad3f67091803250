//! Which figures count for a workload, and whether more or less of them is better. Columns carry their
//! unit last, so that the rule follows from their ids.

use loadline_model::TestRecord;
use loadline_model::column::column;

use crate::compare::{METRICS, Metric};
use crate::sweep::{LATENCY, THROUGHPUT};

/// Shares and ratios of which more is better.
const MORE_IS_BETTER: [&str; 3] = ["speed_up", "cache_hit_pct", "reads_within_512us_pct"];
/// What a workload without the log in its work is compared by, besides its own KPIs.
const TIMES: [&str; 3] = [MEAN_TIME, "transaction_time_ns_p50", "transaction_time_ns_p99"];
/// The mean transaction time, under the name that does not speak of commits.
const MEAN_TIME: &str = "transaction_time_ns_mean";
/// Proofs of the work and no measure of the platform: as good as equal wherever a test holds.
const PROOFS: [&str; 1] = ["cache_hit_pct"];
/// Groups whose transactions write no redo worth the name, but for those of [`WRITING`]: what the log takes in
/// meanwhile is the database's own and no part of the work.
const READING: [&str; 4] = ["server", "storage", "data-analytics", "procedural-code"];
/// Workloads of these groups that do write. (A test holds this list to the catalogue.)
pub const WRITING: [&str; 2] = ["STO-WRITE", "STO-RANDOM"];
/// Workloads whose tables are as large as `--size` says: one of another size is scanned, cached and indexed
/// differently. Tables of all others have rows of their own number. (A test holds this list to the catalogue.)
pub const SIZED: [&str; 12] = [
    "STO-READ",
    "STO-READ-ASYNC",
    "STO-SCAN",
    "STO-RANDOM",
    "DBWR-THR",
    "DBWR-CKPT",
    "DA-SCAN",
    "DA-AGG",
    "DA-JOIN",
    "DA-SORT",
    "DA-WINDOW",
    "DA-PARALLEL",
];

/// Whether column `id` is work per time: what grows with load until the platform is at its peak.
#[must_use]
pub fn is_rate(id: &str) -> bool {
    ["_per_s", "_tps", "_per_s_per_job"].iter().any(|unit| id.ends_with(unit))
}

/// Whether more of column `id` is better; of times, waits and costs less is.
#[must_use]
pub fn higher_is_better(id: &str) -> bool {
    is_rate(id) || MORE_IS_BETTER.contains(&id)
}

/// Whether the work of `workload` depends on the size of the data set (`--size`).
#[must_use]
pub fn uses_data(workload: &str) -> bool {
    SIZED.contains(&workload)
}

/// Whether redo is part of the work of `workload` in `group`.
#[must_use]
pub fn writes_redo(group: &str, workload: &str) -> bool {
    !READING.contains(&group) || WRITING.contains(&workload)
}

/// Whether the workloads of `group` are defined by their redo: others write as much as the database needs
/// for the same rows, which is a figure of the platform.
#[must_use]
pub fn defined_by_redo(group: &str) -> bool {
    group == "log-writer"
}

/// Whether column `id` is the throughput of a part of the window only, told apart by a checkpoint.
#[must_use]
pub fn in_checkpoint(id: &str) -> bool {
    time_in_checkpoint(id).is_some()
}

/// The 99th percentile of the transactions that the throughput `id` of a part of the window is of.
#[must_use]
pub fn time_in_checkpoint(id: &str) -> Option<&'static str> {
    match id {
        "checkpoint_tps" => Some("checkpoint_time_ns_p99"),
        "calm_tps" => Some("calm_time_ns_p99"),
        _ => None,
    }
}

/// Id of the figure that tells how much these tests of one workload did: its first KPI where that is a
/// rate that one of them has (a valid one, if there is any), else the throughput.
#[must_use]
pub fn rate_of(tests: &[&TestRecord]) -> &'static str {
    let first = tests.first().and_then(|r| r.kpis.first()).filter(|id| is_rate(id));
    let any_valid = tests.iter().any(|r| r.valid);
    let measured = |id: &&String| tests.iter().any(|r| r.valid == any_valid && r.figure(id).is_some());
    first.filter(measured).and_then(|id| column(id)).map_or(THROUGHPUT, |c| c.id)
}

/// What tests of group `group` with the KPIs `kpis` are compared by: the KPIs first, then the times, or
/// the log writer's figures where the log is what the group is about.
#[must_use]
pub fn metrics(group: &str, kpis: &[String]) -> Vec<Metric> {
    let log = kpis.is_empty() || group == "log-writer";
    let time = |id: &'static str| if id == LATENCY && !log { MEAN_TIME } else { id };
    let own = kpis.iter().filter_map(|id| column(id)).map(|c| time(c.id)).filter(|id| !PROOFS.contains(id));
    let mut out: Vec<Metric> = Vec::new();
    for id in own {
        if !out.iter().any(|m| m.id == id) {
            out.push(Metric { id, higher_is_better: higher_is_better(id) });
        }
    }
    let times = TIMES.map(|id| Metric { id, higher_is_better: false });
    let more = if log { METRICS.to_vec() } else { times.to_vec() };
    for metric in more {
        if !out.iter().any(|m| m.id == metric.id) {
            out.push(metric);
        }
    }
    if log {
        // In the order of the log-writer table, whatever its KPIs are.
        out.sort_by_key(|m| METRICS.iter().position(|k| k.id == m.id).unwrap_or(METRICS.len()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_told_from_times_and_shares() {
        for id in ["commit_throughput_tps", "rows_per_s", "data_mib_per_s", "mops_per_s_per_job", "checkpoint_tps"] {
            assert!(is_rate(id) && higher_is_better(id), "{id}");
        }
        for id in ["commit_latency_ms", "read_time_us_p99", "buffer_wait_pct", "sql_service_time_s", "rows_per_tx"] {
            assert!(!is_rate(id) && !higher_is_better(id), "{id}");
        }
        assert!(higher_is_better("speed_up") && !is_rate("speed_up"));
    }

    #[test]
    fn kpis_are_compared_before_the_times() {
        let ids = |group: &str, kpis: &[&str]| -> Vec<&str> {
            let kpis: Vec<String> = kpis.iter().map(|k| (*k).to_owned()).collect();
            metrics(group, &kpis).iter().map(|m| m.id).collect()
        };
        let reads = ids("storage", &["block_reads_per_s", "read_time_us_p99", "commit_latency_ms", "cache_hit_pct"]);
        assert_eq!(reads[..3], ["block_reads_per_s", "read_time_us_p99", "transaction_time_ns_mean"]);
        assert!(!reads.contains(&"log_file_sync_ms") && reads.len() == 5);
        let log: Vec<&str> = METRICS.iter().map(|m| m.id).collect();
        assert_eq!(ids("log-writer", &["redo_mib_per_s"]), log);
        assert_eq!(ids("storage", &[]), log, "records of older versions name no KPIs");
    }
}
