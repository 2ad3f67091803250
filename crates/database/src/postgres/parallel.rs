//! Parallel queries: the number of workers that may run, and that run.

use super::connect::SessionRole;
use super::knowledge::KNOWLEDGE;
use super::server::Postgres;
use super::settings::PgSettings;
use crate::error::TargetError;
use crate::parallel::queries;
use crate::role::{ParallelQueries, ParallelWorkers, WorkerLimit};
use crate::work::Work;

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
        let rows = self.primary().session(SessionRole::Job(work, 0), |c| c.query(&explain))?;
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
        for (plan, planned, launched) in [
            (
                "Limit (actual rows=10)\n  ->  Gather (actual rows=9)\n   Workers Planned: 3\n   Workers Launched: 2",
                4,
                3,
            ),
            ("Limit\n ->  Sort", 1, 1),
        ] {
            let lines: Vec<String> = plan.lines().map(str::to_owned).collect();
            assert_eq!(parse_plan(&lines), ParallelWorkers { planned, launched, how: String::new() });
        }
    }

    #[test]
    fn the_session_itself_is_a_worker_and_no_background_process() {
        let given = PgSettings::from_pairs(&[("max_parallel_workers", "8", ""), ("max_worker_processes", "4", "")]);
        assert_eq!(worker_limit(&given).map(|m| m.workers), Some(5));
    }
}
