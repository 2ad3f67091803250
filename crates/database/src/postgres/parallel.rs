//! Parallel queries: settings of sessions and tables.

use loadline_workload::Table;

use super::knowledge::KNOWLEDGE;
use crate::work::Work;

/// Settings of a job's session for queries with `workers`, including the session itself. With more than one, the
/// planner's costs and minimum size of parallel plans are set to 0, like a hint; [`table_settings`] sets the number.
pub(super) fn settings(workers: u32) -> Vec<(&'static str, String)> {
    let mut settings = vec![
        ("max_parallel_workers_per_gather", workers.saturating_sub(1).to_string()),
        // The session itself builds indexes, without workers.
        ("max_parallel_maintenance_workers", "0".to_owned()),
    ];
    if workers > 1 {
        let zero = ["min_parallel_table_scan_size", "parallel_setup_cost", "parallel_tuple_cost"];
        settings.extend(zero.map(|name| (name, "0".to_owned())));
        settings.push(("parallel_leader_participation", "on".to_owned()));
    }
    settings
}

/// Statements that set the planner's number of workers for each of the workload's tables. Otherwise it depends on the
/// table's size: one more each time the size triples, nine for 128 MiB. The session's setting stays the limit, so other
/// workloads on the same tables run without workers.
pub(super) fn table_settings(work: &Work) -> Vec<String> {
    let Some(workers) = work.parallel_workers().map(|n| n.saturating_sub(1)) else { return Vec::new() };
    let name = |table: &Table| KNOWLEDGE.dialect.table_name(work, &table.name);
    let set = |table: &Table| format!("ALTER TABLE {} SET (parallel_workers = {workers});", name(table));
    work.workload.tables.iter().map(set).collect()
}
