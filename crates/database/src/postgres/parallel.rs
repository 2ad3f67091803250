//! Parallel queries: settings of sessions and tables, and the number of workers that run.

use loadline_workload::Table;

use super::connect::SessionRole;
use super::knowledge::KNOWLEDGE;
use super::server::Postgres;
use super::settings::PgSettings;
use crate::error::TargetError;
use crate::parallel::queries;
use crate::role::{ParallelQueries, ParallelWorkers, WorkerLimit};
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

/// The maximum number of parallel workers and the limiting settings. All workers but the session itself are background
/// workers of the server.
fn worker_limit(settings: &PgSettings) -> Option<WorkerLimit> {
    let names = ["max_parallel_workers", "max_worker_processes"];
    let values = names.map(|name| settings.number(name));
    let [Some(a), Some(b)] = values else { return None };
    let because = format!("max_parallel_workers = {a}, max_worker_processes = {b}, plus the session itself");
    Some(WorkerLimit { workers: a.min(b) as u32 + 1, because })
}

impl ParallelQueries for Postgres {
    fn max_parallel_workers(&self) -> Result<Option<WorkerLimit>, TargetError> {
        self.at_primary(|c| Ok(worker_limit(&PgSettings::read(c)?)))
    }

    fn try_parallel(&self, work: &Work) -> Result<Option<ParallelWorkers>, TargetError> {
        let Some(sql) = queries(work, &KNOWLEDGE.dialect)?.into_iter().next() else { return Ok(None) };
        let explain = format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {sql}");
        let rows = self.session(self.primary(), SessionRole::Job(work, 0), |c| c.query(&explain))?;
        let plan: Vec<String> = rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
        Ok(Some(parse_plan(&plan)))
    }
}

/// Parses the lines `Workers Planned: 3` and `Workers Launched: 2`; without them the query was not parallel.
fn parse_plan(plan: &[String]) -> ParallelWorkers {
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
    fn workers_are_parsed_from_the_plan() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let parallel = lines(
            "Limit (actual rows=10)\n  ->  Gather (actual rows=9)\n   Workers Planned: 3\n   Workers Launched: 2",
        );
        assert_eq!(parse_plan(&parallel), ParallelWorkers { planned: 4, launched: 3, how: String::new() });
        assert_eq!(
            parse_plan(&lines("Limit\n ->  Sort")),
            ParallelWorkers { planned: 1, launched: 1, how: String::new() }
        );
    }

    #[test]
    fn one_process_has_no_workers_and_no_hints() {
        assert_eq!(settings(1)[0], ("max_parallel_workers_per_gather", "0".to_owned()));
        assert!(settings(4).contains(&("max_parallel_workers_per_gather", "3".to_owned())) && settings(4).len() == 6);
        assert!(settings(4).contains(&("parallel_leader_participation", "on".to_owned())));
        let given = PgSettings::from_pairs(&[("max_parallel_workers", "8", ""), ("max_worker_processes", "4", "")]);
        assert_eq!(worker_limit(&given).map(|m| m.workers), Some(5));
    }
}
