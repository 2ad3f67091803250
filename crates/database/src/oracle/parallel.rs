//! Parallel queries: the settings of a job's session, and how many parallel servers a query had.
//!
//! loadline asks for a degree of parallelism. A scan has that many parallel servers; a query that also groups or
//! sorts has two sets of them, one of which feeds the other. The session itself only coordinates.

use super::session::{OraSession, Row};
use super::sql::{first_rows, quoted, table_name};
use crate::error::TargetError;
use crate::parallel::queries;
use crate::role::{ParallelWorkers, WorkerLimit};
use crate::work::Work;

/// Statistics of this session's last parallel operation (Database Reference, `V$PQ_SESSTAT`).
pub(super) const LAST_QUERY: &str = "SELECT STATISTIC, LAST_QUERY FROM V$PQ_SESSTAT";
/// Maximum number of parallel servers of an instance.
const MAX_SERVERS: &str = "SELECT VALUE FROM V$PARAMETER WHERE NAME = 'parallel_max_servers'";

/// The first statements of a job's session (SQL Language Reference, `ALTER SESSION`): no result cache, and the
/// degree of parallelism, whatever the defaults of instance and tables.
pub(super) fn settings(work: &Work) -> [String; 2] {
    let degree = match work.parallel_workers() {
        Some(n) if n > 1 => format!("ALTER SESSION FORCE PARALLEL QUERY PARALLEL {n}"),
        _ => "ALTER SESSION DISABLE PARALLEL QUERY".to_owned(),
    };
    ["ALTER SESSION SET RESULT_CACHE_MODE = MANUAL".to_owned(), degree]
}

/// The highest degree of a query with two sets of servers; `None` if the parameter cannot be read.
///
/// # Errors
/// If the session is lost.
pub(super) fn max_workers(session: &mut dyn OraSession) -> Result<Option<WorkerLimit>, TargetError> {
    let servers = match session.value(MAX_SERVERS) {
        Ok(value) => value.and_then(|v| v.trim().parse::<u32>().ok()),
        Err(e) if e.lost => return Err(e.into()),
        Err(_) => None,
    };
    let because = |n| format!("parallel_max_servers = {n}, in two sets; one process needs none");
    Ok(servers.map(|n| WorkerLimit { workers: (n / 2).max(1), because: because(n) }))
}

/// Runs the first query of `work` in a job's session and reads how many parallel servers it had.
///
/// # Errors
/// If the query fails, or the statistics cannot be read.
pub(super) fn try_first_query(
    session: &mut dyn OraSession,
    work: &Work,
) -> Result<Option<ParallelWorkers>, TargetError> {
    let all = queries(work, |table| quoted(&table_name(work, table)), first_rows)?;
    let Some(sql) = all.into_iter().next() else { return Ok(None) };
    session.query(&sql, &[])?;
    match session.query(LAST_QUERY, &[]) {
        Ok(rows) => Ok(of_statistics(&rows)),
        Err(e) if e.lost => Err(e.into()),
        Err(e) => Err(TargetError::Statement(format!("{}: GRANT SELECT ON SYS.V_$PQ_SESSTAT TO …", e.text))),
    }
}

/// The degree and the servers of the last operation; `None` without the statistics. `DOP` exists from 12c on; before,
/// `Allocation Height` is the number of servers in a set.
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
    // With fewer servers the degree was not reached.
    Some(ParallelWorkers { planned: degree, launched: degree.min(servers), how })
}

#[cfg(test)]
mod tests {

    use super::super::fake::{FakeServer, row};
    use super::super::session::{NO_VIEW, OraError};
    use super::*;

    fn work(workers: i64) -> Work {
        Work::of("DA-PARALLEL", &[("workers", workers)]).unwrap()
    }

    #[test]
    fn a_session_sets_its_degree_and_no_result_cache() {
        for (workers, words) in [(1, "DISABLE PARALLEL QUERY"), (4, "FORCE PARALLEL QUERY PARALLEL 4")] {
            let [cache, degree] = settings(&work(workers));
            assert_eq!(degree, format!("ALTER SESSION {words}"));
            // SQL Language Reference: MANUAL, or FORCE, with which every query's result is kept.
            assert_eq!(cache, "ALTER SESSION SET RESULT_CACHE_MODE = MANUAL");
        }
    }

    #[test]
    fn parallel_servers_are_read_from_the_last_querys_statistics() {
        let of = |given: &[(&str, &str)]| {
            let rows: Vec<Row> = given.iter().map(|(name, value)| row(&[name, value])).collect();
            of_statistics(&rows).map(|t| (t.planned, t.launched, t.how))
        };
        let (planned, launched, how) =
            of(&[("Queries Parallelized", "1"), ("Server Threads", "8"), ("DOP", "4"), ("Slave Sets", "2")]).unwrap();
        assert!((planned, launched) == (4, 4) && how.contains("parallelism of 4 with 8 parallel servers"), "{how}");
        let old = of(&[("Queries Parallelized", "1"), ("Server Threads", "16"), ("Allocation Height", "16")]).unwrap();
        assert_eq!((old.0, old.1), (16, 16));
        assert_eq!(of(&[("Queries Parallelized", "0"), ("DOP", "4")]).map(|t| t.1), Some(1), "it was not parallel");
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn unreadable_statistics_are_an_error_with_the_grant() {
        let server = FakeServer::new(|sql, _| match sql {
            LAST_QUERY => {
                Ok(vec![row(&["Queries Parallelized", "1"]), row(&["Server Threads", "8"]), row(&["DOP", "4"])])
            }
            MAX_SERVERS => Ok(vec![row(&["40"])]),
            _ => Ok(Vec::new()),
        });
        let mut session = server.clone();
        assert_eq!(try_first_query(&mut session, &work(4)).unwrap().map(|t| t.launched), Some(4));
        let sent = server.texts();
        assert!(
            sent[0].contains("FETCH FIRST 10 ROWS ONLY") && sent[0].contains(">= (-") && sent.len() == 2,
            "{sent:?}"
        );
        let WorkerLimit { workers: degree, because: why } = max_workers(&mut session).unwrap().unwrap();
        assert!(degree == 20 && why.contains("parallel_max_servers = 40"), "{why}");

        let mut blind = FakeServer::new(|sql, _| match sql {
            LAST_QUERY | MAX_SERVERS => Err(OraError::numbered(NO_VIEW, "ORA-00942: table or view does not exist")),
            _ => Ok(Vec::new()),
        });
        let e = try_first_query(&mut blind, &work(4)).unwrap_err().to_string();
        assert!(e.contains("ORA-00942") && e.contains("GRANT SELECT ON SYS.V_$PQ_SESSTAT"), "{e}");
        assert_eq!(max_workers(&mut blind).unwrap(), None);
    }
}
