//! Parallel queries: settings of the sessions, and whether the workers come.

use loadline_workload::{Table, limit};

use super::settings::PgSettings;
use super::sql::table_name;
use super::wire::Connection;
use crate::error::TargetError;
use crate::parallel::queries;
use crate::role::{ParallelWorkers, WorkerLimit};
use crate::work::Work;

/// Settings of a job's session whose queries run with `workers`. The session itself is one of them (it works
/// beside the others). With more than one, the costs and the smallest size by which the planner
/// would take fewer are set aside, as a hint would do; how many it takes then is said by [`of_tables`].
pub(super) fn settings(workers: u32) -> Vec<(&'static str, String)> {
    let mut settings = vec![
        ("max_parallel_workers_per_gather", workers.saturating_sub(1).to_string()),
        // An index is built by the session that asks for it.
        ("max_parallel_maintenance_workers", "0".to_owned()),
    ];
    if workers > 1 {
        let free = ["min_parallel_table_scan_size", "parallel_setup_cost", "parallel_tuple_cost"];
        settings.extend(free.map(|name| (name, "0".to_owned())));
        settings.push(("parallel_leader_participation", "on".to_owned()));
    }
    settings
}

/// Statements by which the planner takes as many workers as it may for each of the workload's tables. By a
/// table's size alone it would take one more each time that the size triples: nine for 128 MiB. The session's
/// setting stays the limit, so other workloads on the same tables have none.
pub(super) fn of_tables(work: &Work) -> Vec<String> {
    let Some(workers) = work.parallel_workers().map(|n| n.saturating_sub(1)) else { return Vec::new() };
    let set =
        |table: &Table| format!("ALTER TABLE {} SET (parallel_workers = {workers});", table_name(work, table.name));
    work.workload.tables.iter().map(set).collect()
}

/// The most parallel workers, and which settings say so. Beside the session, a worker is one of the server's
/// background workers.
pub(super) fn most(settings: &PgSettings) -> Option<WorkerLimit> {
    let names = ["max_parallel_workers", "max_worker_processes"];
    let values = names.map(|name| settings.number(name));
    let [Some(a), Some(b)] = values else { return None };
    let because = format!("max_parallel_workers = {a}, max_worker_processes = {b}, and the session itself");
    Some(WorkerLimit { workers: a.min(b) as u32 + 1, because })
}

/// Tries the first query of `work` and counts the workers.
pub(super) fn attempt(c: &mut Connection, work: &Work) -> Result<Option<ParallelWorkers>, TargetError> {
    let Some(sql) = queries(work, |table| table_name(work, table), limit)?.into_iter().next() else { return Ok(None) };
    let rows = c.query(&format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {sql}"))?;
    let plan: Vec<String> = rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
    Ok(Some(of_plan(&plan)))
}

/// Lines «Workers Planned: 3» and «Workers Launched: 2»; without them the query was not parallel.
fn of_plan(plan: &[String]) -> ParallelWorkers {
    let number = |name: &str| {
        let of = |line: &String| line.trim().strip_prefix(name)?.trim().parse::<u32>().ok();
        plan.iter().find_map(of).unwrap_or(0) + 1
    };
    ParallelWorkers { planned: number("Workers Planned:"), launched: number("Workers Launched:"), how: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_is_read_off_the_plan() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let parallel = lines(
            "Limit (actual rows=10)\n  ->  Gather (actual rows=9)\n   Workers Planned: 3\n   Workers Launched: 2",
        );
        assert_eq!(of_plan(&parallel), ParallelWorkers { planned: 4, launched: 3, how: String::new() });
        assert_eq!(
            of_plan(&lines("Limit\n ->  Sort")),
            ParallelWorkers { planned: 1, launched: 1, how: String::new() }
        );
    }

    #[test]
    fn one_process_has_no_workers_and_no_hints() {
        assert_eq!(settings(1)[0], ("max_parallel_workers_per_gather", "0".to_owned()));
        assert!(settings(4).contains(&("max_parallel_workers_per_gather", "3".to_owned())) && settings(4).len() == 6);
        assert!(settings(4).contains(&("parallel_leader_participation", "on".to_owned())));
        let given = PgSettings::of(&[("max_parallel_workers", "8", ""), ("max_worker_processes", "4", "")]);
        assert_eq!(most(&given).map(|m| m.workers), Some(5));
    }
}
