//! Parallel queries: how many parallel servers a query had.
//!
//! loadline asks for a degree of parallelism. A scan has that many parallel servers; a query that also groups or
//! sorts has two sets of them, one of which feeds the other. The session itself only coordinates.

use super::cluster::Oracle;
use super::session::{Row, answered, number, text};
use super::sql::{first_rows, quoted, table_name};
use crate::error::TargetError;
use crate::parallel::queries;
use crate::role::{ParallelQueries, ParallelWorkers, WorkerLimit};
use crate::work::Work;

/// Statistics of this session's last parallel operation (Database Reference, `V$PQ_SESSTAT`).
const LAST_QUERY: &str = "SELECT STATISTIC, LAST_QUERY FROM V$PQ_SESSTAT";
/// Maximum number of parallel servers of an instance.
const MAX_SERVERS: &str = "SELECT VALUE FROM V$PARAMETER WHERE NAME = 'parallel_max_servers'";

impl ParallelQueries for Oracle {
    /// The highest degree of a query with two sets of servers; `None` if the parameter cannot be read.
    fn max_parallel_workers(&self) -> Result<Option<WorkerLimit>, TargetError> {
        let servers = answered(self.admin()?.value(MAX_SERVERS))?.ok().flatten();
        let because = |n| format!("parallel_max_servers = {n}, in two sets; one process needs none");
        let limit = |n: u32| WorkerLimit { workers: (n / 2).max(1), because: because(n) };
        Ok(servers.and_then(|n| n.trim().parse().ok()).map(limit))
    }

    /// Runs the first query of `work` in a job's session and reads how many parallel servers it had.
    fn try_parallel(&self, work: &Work) -> Result<Option<ParallelWorkers>, TargetError> {
        let all = queries(work, |table| quoted(&table_name(work, table)), first_rows)?;
        let Some(sql) = all.into_iter().next() else { return Ok(None) };
        let mut session = self.nodes.job_session(work, 0)?.0;
        session.query(&sql, &[])?;
        match answered(session.query(LAST_QUERY, &[]))? {
            Ok(rows) => Ok(of_statistics(&rows)),
            Err(e) => Err(TargetError::Statement(format!("{}: GRANT SELECT ON SYS.V_$PQ_SESSTAT TO …", e.text))),
        }
    }
}

/// The degree and the servers of the last operation; `None` without the statistics.
fn of_statistics(rows: &[Row]) -> Option<ParallelWorkers> {
    let statistic = |name: &str| number::<u32>(rows.iter().find(|row| text(row, 0) == Some(name))?, 1);
    if statistic("Queries Parallelized")? == 0 {
        return Some(ParallelWorkers { planned: 1, launched: 1, how: "the query was not parallel".into() });
    }
    let (degree, servers) = (statistic("DOP").filter(|n| *n > 0)?, statistic("Server Threads")?);
    let how =
        format!("a degree of parallelism of {degree} with {servers} parallel servers, which the session coordinates");
    // With fewer servers the degree was not reached.
    Some(ParallelWorkers { planned: degree, launched: degree.min(servers), how })
}
