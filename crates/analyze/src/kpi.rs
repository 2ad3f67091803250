//! The figures that count for a workload, and whether more or less is better. Column ids end with the unit, from which
//! the rule follows.

use loadline_model::column::{self, column};
use loadline_model::group::distinct;
use loadline_model::record::WorkloadFacts;
use loadline_model::{Column, TestRecord};
use loadline_workload::CATALOGUE;

pub const THROUGHPUT: &Column = column::COMMIT_THROUGHPUT_TPS;
/// Latency in a closed loop, ms.
pub const LATENCY: &Column = column::COMMIT_LATENCY_MS;
/// Latency in an open loop, from the intended start, ns.
pub const RESPONSE: &Column = column::RESPONSE_TIME_NS_MEAN;

const MORE_IS_BETTER: [&Column; 6] = [
    column::SPEED_UP,
    column::CACHE_HIT_PCT,
    column::READS_WITHIN_512US_PCT,
    column::LIMIT_SHARE_PCT,
    column::CPU_IDLE_PCT,
    column::CPU_FREQUENCY_PCT,
];
/// Figures that workloads of other groups than the log writer are compared by, after their KPIs.
const TIMES: [&Column; 3] = [MEAN_TIME, column::TRANSACTION_TIME_NS_P50, column::TRANSACTION_TIME_NS_P99];
/// The mean transaction time; [`LATENCY`] is the same under the name of a commit.
const MEAN_TIME: &Column = column::TRANSACTION_TIME_NS_MEAN;
/// KPIs that prove the work instead of measuring the platform: almost equal in all valid tests.
const PROOFS: [&Column; 1] = [column::CACHE_HIT_PCT];
/// Groups whose transactions write no redo, if they do not change rows. Redo in their tests is background redo.
const READING: [&str; 4] = ["server", "storage", "data-analytics", "procedural-code"];

/// Whether `column` is work per time.
pub fn is_rate(column: &Column) -> bool {
    ["_per_s", "_tps", "_per_s_per_job"].iter().any(|unit| column.id.ends_with(unit))
}

/// Whether `column` is throughput times a constant, or jobs by throughput: what is uncertain of one is of the other.
pub fn of_throughput(column: &Column) -> bool {
    let parts = [column::CHECKPOINT_TPS, column::CALM_TPS];
    (is_rate(column) && !parts.contains(&column)) || [LATENCY, MEAN_TIME].contains(&column)
}

/// Whether more of `column` is better; less is better for times, waits and costs.
pub fn higher_is_better(column: &Column) -> bool {
    is_rate(column) || MORE_IS_BETTER.contains(&column)
}

/// Facts of `workload` by its tests. Those of older versions say nothing: then the catalogue's.
fn facts_of(workload: &str, said: Option<WorkloadFacts>) -> WorkloadFacts {
    let catalogued = || CATALOGUE.iter().find(|w| w.code == workload).map(|w| w.facts());
    said.or_else(catalogued).unwrap_or_default()
}

/// Whether the work of `workload`, of which its tests `said` what it is, depends on the size of the data set (`--size`).
pub fn uses_data(workload: &str, said: Option<WorkloadFacts>) -> bool {
    facts_of(workload, said).sized
}

/// Whether redo is part of the work of `workload` in `group`, of which its tests `said` what it is.
pub fn writes_redo(group: &str, workload: &str, said: Option<WorkloadFacts>) -> bool {
    !READING.contains(&group) || facts_of(workload, said).writes
}

/// Whether the workloads of `group` are defined by their redo. In others redo per transaction depends on the database.
pub fn defined_by_redo(group: &str) -> bool {
    group == "log-writer"
}

/// The 99th percentile of the transactions that `rate` counts, if that is of a part of the window only: inside or outside checkpoints.
pub fn time_in_checkpoint(rate: &Column) -> Option<&'static Column> {
    let parts =
        [(column::CHECKPOINT_TPS, column::CHECKPOINT_TIME_NS_P99), (column::CALM_TPS, column::CALM_TIME_NS_P99)];
    parts.into_iter().find(|(part, _)| *part == rate).map(|(_, p99)| p99)
}

/// The rate of these tests of one workload: the first KPI if it is a rate that a (usable) test has, else the throughput.
pub fn rate_of(tests: &[&TestRecord]) -> &'static Column {
    let first = tests.first().and_then(|r| column(r.kpis.first()?)).filter(|c| is_rate(c));
    let any = tests.iter().any(|r| r.is_usable());
    let measured = |c: &&'static Column| tests.iter().any(|r| r.is_usable() == any && r.figure(c).is_some());
    first.filter(measured).unwrap_or(THROUGHPUT)
}

/// Figures that log writers are compared by, in the order of their table.
const OF_LOG: [&Column; 6] = [
    column::COMMIT_THROUGHPUT_TPS,
    column::COMMIT_LATENCY_MS,
    column::REDO_MIB_PER_S,
    column::LOG_FILE_SYNC_MS,
    column::COMMIT_TIME_NS_P50,
    column::COMMIT_TIME_NS_P99,
];

/// Figures that tests of `group` with the KPIs `kpis` are compared by: the KPIs first, then the times, or the figures of the log
/// for log writers. Of an open loop, in which throughput is given, the response time comes before all.
pub fn metrics(group: &str, kpis: &[String], open_loop: bool) -> Vec<&'static Column> {
    let log = kpis.is_empty() || group == "log-writer";
    let time = |c: &'static Column| if c == LATENCY && !log { MEAN_TIME } else { c };
    let own = kpis.iter().filter_map(|id| column(id)).map(time).filter(|c| !PROOFS.contains(c));
    let more = if log { &OF_LOG[..] } else { &TIMES[..] };
    let mut out = distinct(own.chain(more.iter().copied()));
    if log {
        // In the order of the log-writer table, not of the KPIs.
        out.sort_by_key(|c| OF_LOG.iter().position(|k| k == c).unwrap_or(OF_LOG.len()));
    }
    open_loop.then_some(RESPONSE).into_iter().chain(out).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_distinguished_from_times_and_shares() {
        use column::{CHECKPOINT_TPS, COMMIT_LATENCY_MS, DATA_MIB_PER_S, MOPS_PER_S_PER_JOB, ROWS_PER_S, ROWS_PER_TX};
        for (rates, columns) in [
            (true, [THROUGHPUT, ROWS_PER_S, DATA_MIB_PER_S, MOPS_PER_S_PER_JOB, CHECKPOINT_TPS]),
            (false, [COMMIT_LATENCY_MS, column::READ_TIME_US_P99, column::BUFFER_WAIT_PCT, MEAN_TIME, ROWS_PER_TX]),
        ] {
            assert!(columns.iter().all(|c| is_rate(c) == rates && higher_is_better(c) == rates), "{columns:?}");
        }
        assert!(MORE_IS_BETTER.iter().all(|c| higher_is_better(c) && !is_rate(c)));
        assert!(higher_is_better(column::LIMIT_SHARE_PCT) && !higher_is_better(column::CPU_BUSY_PCT));
    }

    #[test]
    fn kpis_are_compared_before_the_times() {
        let columns = |group: &str, kpis: &[&Column]| {
            metrics(group, &kpis.iter().map(|k| k.id.to_owned()).collect::<Vec<_>>(), false)
        };
        let reads = columns(
            "storage",
            &[column::BLOCK_READS_PER_S, column::READ_TIME_US_P99, column::COMMIT_LATENCY_MS, column::CACHE_HIT_PCT],
        );
        assert_eq!(reads[..3], [column::BLOCK_READS_PER_S, column::READ_TIME_US_P99, column::TRANSACTION_TIME_NS_MEAN]);
        assert!(!reads.contains(&column::LOG_FILE_SYNC_MS) && reads.len() == 5);
        assert_eq!(columns("log-writer", &[column::REDO_MIB_PER_S]), OF_LOG);
        assert_eq!(columns("storage", &[]), OF_LOG, "records of older versions name no KPIs");
    }
}
