//! Parallel queries: what a job's session is told, and how many parallel servers came.
//!
//! What is asked for is a degree of parallelism. A scan has as many parallel servers; a query that also groups or
//! sorts has two sets of them, one of which feeds the other. The session itself only coordinates.

use super::session::{OraSession, Row};
use super::sql::{first_rows, quoted, table_name};
use crate::error::TargetError;
use crate::parallel::queries;
use crate::role::{ParallelWorkers, WorkerLimit};
use crate::work::Work;

/// What the session's last parallel operation had (Database Reference, «V$PQ_SESSTAT»). It speaks of the session
/// that asks only.
pub(super) const LAST_QUERY: &str = "SELECT STATISTIC, LAST_QUERY FROM V$PQ_SESSTAT";
/// How many parallel servers an instance has at most.
const MOST: &str = "SELECT VALUE FROM V$PARAMETER WHERE NAME = 'parallel_max_servers'";

/// What a job's session is told before all else (SQL Language Reference, «ALTER SESSION»): that results are not
/// kept, whatever the instance would do with them, and the degree of its queries, whatever a table's or the
/// instance's is.
pub(super) fn settings(work: &Work) -> [String; 2] {
    let degree = match work.parallel_workers() {
        Some(n) if n > 1 => format!("ALTER SESSION FORCE PARALLEL QUERY PARALLEL {n}"),
        _ => "ALTER SESSION DISABLE PARALLEL QUERY".to_owned(),
    };
    ["ALTER SESSION SET RESULT_CACHE_MODE = MANUAL".to_owned(), degree]
}

/// The highest degree that a query with two sets of servers has; `None` where the parameter cannot be read.
///
/// # Errors
/// When the session is lost.
pub(super) fn most(session: &mut dyn OraSession) -> Result<Option<WorkerLimit>, TargetError> {
    let servers = match session.value(MOST) {
        Ok(value) => value.and_then(|v| v.trim().parse::<u32>().ok()),
        Err(e) if e.lost => return Err(e.into()),
        Err(_) => None,
    };
    let because = |n| format!("parallel_max_servers = {n}, in two sets; one process needs none");
    Ok(servers.map(|n| WorkerLimit { workers: (n / 2).max(1), because: because(n) }))
}

/// Tries the first query of `work` in a job's session and asks how many came.
///
/// # Errors
/// When the query fails, or what came cannot be read.
pub(super) fn attempt(session: &mut dyn OraSession, work: &Work) -> Result<Option<ParallelWorkers>, TargetError> {
    let all = queries(work, |table| quoted(&table_name(work, table)), first_rows)?;
    let Some(sql) = all.into_iter().next() else { return Ok(None) };
    session.query(&sql, &[])?;
    match session.query(LAST_QUERY, &[]) {
        Ok(rows) => Ok(of_statistics(&rows)),
        Err(e) if e.lost => Err(e.into()),
        Err(e) => Err(TargetError::Statement(format!("{}: GRANT SELECT ON SYS.V_$PQ_SESSTAT TO …", e.text))),
    }
}

/// The degree and the servers of the last operation; `None` without the statistics. «DOP» is there from 12c on;
/// before, «Allocation Height» is the servers of a set.
fn of_statistics(rows: &[Row]) -> Option<ParallelWorkers> {
    let number = |name: &str| {
        let row = rows.iter().find(|r| r.first().and_then(Option::as_deref) == Some(name))?;
        row.get(1)?.as_deref()?.trim().parse::<u32>().ok()
    };
    if number("Queries Parallelized")? == 0 {
        return Some(ParallelWorkers { planned: 1, launched: 1, how: "the query was not parallel".into() });
    }
    let degree = number("DOP").filter(|n| *n > 0).or_else(|| number("Allocation Height"))?;
    let servers = number("Server Threads")?;
    let how =
        format!("a degree of parallelism of {degree} with {servers} parallel servers, which the session coordinates");
    // Fewer servers than the degree cannot have made it up.
    Some(ParallelWorkers { planned: degree, launched: degree.min(servers), how })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::fake::{Paper, row};
    use super::super::session::{NO_VIEW, OraError};
    use super::*;

    fn work(workers: i64) -> Work {
        let shared = loadline_workload::find("DA-PARALLEL").unwrap();
        Work::new(shared, shared.params(&BTreeMap::from([("workers".to_owned(), workers)])).unwrap(), 1, 0.0)
    }

    #[test]
    fn a_session_is_told_its_degree_and_that_no_result_is_kept() {
        for (workers, words) in [(1, "DISABLE PARALLEL QUERY"), (4, "FORCE PARALLEL QUERY PARALLEL 4")] {
            let [cache, degree] = settings(&work(workers));
            assert_eq!(degree, format!("ALTER SESSION {words}"));
            // SQL Language Reference: MANUAL, or FORCE, with which every query's result is kept.
            assert_eq!(cache, "ALTER SESSION SET RESULT_CACHE_MODE = MANUAL");
        }
    }

    #[test]
    fn who_came_is_what_the_session_says_of_its_last_query() {
        let of = |given: &[(&str, &str)]| {
            let rows: Vec<Row> = given.iter().map(|(name, value)| row(&[name, value])).collect();
            of_statistics(&rows).map(|t| (t.planned, t.launched, t.how))
        };
        let (planned, came, how) =
            of(&[("Queries Parallelized", "1"), ("Server Threads", "8"), ("DOP", "4"), ("Slave Sets", "2")]).unwrap();
        assert!((planned, came) == (4, 4) && how.contains("parallelism of 4 with 8 parallel servers"), "{how}");
        let old = of(&[("Queries Parallelized", "1"), ("Server Threads", "16"), ("Allocation Height", "16")]).unwrap();
        assert_eq!((old.0, old.1), (16, 16));
        assert_eq!(of(&[("Queries Parallelized", "0"), ("DOP", "4")]).map(|t| t.1), Some(1), "it was not parallel");
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn the_query_is_tried_and_what_cannot_be_seen_is_an_error_with_its_grant() {
        let paper = Paper::new(|sql, _| match sql {
            LAST_QUERY => {
                Ok(vec![row(&["Queries Parallelized", "1"]), row(&["Server Threads", "8"]), row(&["DOP", "4"])])
            }
            MOST => Ok(vec![row(&["40"])]),
            _ => Ok(Vec::new()),
        });
        let mut session = paper.clone();
        assert_eq!(attempt(&mut session, &work(4)).unwrap().map(|t| t.launched), Some(4));
        let sent = paper.texts();
        assert!(
            sent[0].contains("FETCH FIRST 10 ROWS ONLY") && sent[0].contains(">= (-") && sent.len() == 2,
            "{sent:?}"
        );
        let WorkerLimit { workers: degree, because: why } = most(&mut session).unwrap().unwrap();
        assert!(degree == 20 && why.contains("parallel_max_servers = 40"), "{why}");

        let mut blind = Paper::new(|sql, _| match sql {
            LAST_QUERY | MOST => Err(OraError::numbered(NO_VIEW, "ORA-00942: table or view does not exist")),
            _ => Ok(Vec::new()),
        });
        let e = attempt(&mut blind, &work(4)).unwrap_err().to_string();
        assert!(e.contains("ORA-00942") && e.contains("GRANT SELECT ON SYS.V_$PQ_SESSTAT"), "{e}");
        assert_eq!(most(&mut blind).unwrap(), None);
    }
}
