//! The target: implements the roles for its service and the database behind it.

use std::sync::Arc;

use loadline_model::Column;
use loadline_model::activity;
use loadline_model::manifest::TargetInfo;

use super::counters::{self, OraObserver, ViewAccess};
use super::knowledge::{KNOWLEDGE, View};
use super::service::Service;
use super::session::{Connector, NO_VIEW, OraError, OraSession, Row, answered, number, text};
use crate::error::TargetError;
use crate::facts::{Facts, Runs};
use crate::kind::TargetKind as _;
use crate::parallel::queries;
use crate::request::OpenRequest;
use crate::role::{
    BlockCache, NativeReports, Observation, Observer, ParallelQueries, ParallelWorkers, Scope, StatisticsViews,
    WorkerLimit,
};
use crate::target::{Abilities, Target};
use crate::work::Work;
use crate::workload_tables::LoadedTables;

/// Writes all changed blocks of all instances to the data files.
pub(super) const CHECKPOINT: &str = "ALTER SYSTEM CHECKPOINT GLOBAL";

pub(super) struct Oracle {
    pub(super) service: Arc<Service>,
    facts: Facts,
    version: String,
    pub(super) views: Vec<(&'static View, ViewAccess)>,
    pub(super) awr: bool,
    pub(super) loaded: LoadedTables,
}

impl Oracle {
    pub(super) fn open(request: &OpenRequest, connector: &'static Connector) -> Result<Box<dyn Target>, TargetError> {
        let service = Service::new(request, connector)?;
        let mut first = service.session("look")?;
        let (version, views) = (first.version(), counters::check_access(first.as_mut())?);
        let block_bytes =
            first.value(KNOWLEDGE.query("block-size")).ok().flatten().and_then(|bytes| bytes.trim().parse().ok());
        let facts = Facts {
            block_bytes,
            waits: &KNOWLEDGE.waits,
            empty_query: "SELECT 1 FROM DUAL",
            ..Facts::for_runs(Runs::Apart)
        };
        let (service, awr, loaded) = (Arc::new(service), request.native_report, LoadedTables::default());
        Ok(Box::new(Oracle { service, facts, version, views, awr, loaded }))
    }

    pub(super) fn admin(&self) -> Result<Box<dyn OraSession>, TargetError> {
        self.service.session("admin")
    }
}

impl Target for Oracle {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn info(&self) -> Result<TargetInfo, TargetError> {
        let mut session = self.admin()?;
        // The doctor says if they cannot be read, with the grant to ask for.
        let rows = answered(session.query(KNOWLEDGE.query("parameters"), &[]))?.unwrap_or_default();
        let setting = |row: &Row| Some((text(row, 0)?.to_owned(), text(row, 1)?.to_owned()));
        let memory = session.value(KNOWLEDGE.query("memory"));
        let mut notes = vec![super::NEVER_RUN.to_owned()];
        notes.extend(KNOWLEDGE.notes.iter().cloned());
        Ok(TargetInfo {
            memory_bytes: memory.ok().flatten().and_then(|bytes| bytes.trim().parse().ok()),
            kind: "oracle".into(),
            product: super::Kind.facts().product.clone(),
            version: self.version.clone(),
            url: self.service.address.shown(),
            nodes: self.facts.nodes,
            // It is unknown whether the server is on this machine; its counters include CPU times.
            local: false,
            settings: rows.iter().filter_map(setting).collect(),
            notes,
            ..TargetInfo::default()
        })
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities {
            database_driver: Some(self),
            tables: Some(self),
            parallel_queries: Some(self),
            native_reports: self.awr.then_some(self as &dyn NativeReports),
            ..Abilities::default()
        }
    }
}

impl Observation for Oracle {
    fn observer_of(&self, scope: Scope) -> Result<Box<dyn Observer>, TargetError> {
        Ok(Box::new(OraObserver::new(self.service.session("observer")?, &self.views, &self.service.run, scope)))
    }

    fn absent_columns(&self) -> Vec<(&'static Column, String)> {
        counters::absent(&self.views)
    }
}

impl StatisticsViews for Oracle {
    fn views(&self) -> Result<Vec<activity::View>, TargetError> {
        let all_instances = self.views.iter().any(|(_, access)| *access == ViewAccess::All);
        let mut session = self.admin()?;
        let whose = counters::whose(Scope::All, &self.service.run);
        let queries = KNOWLEDGE.statistics_views(if all_instances { "GV$" } else { "V$" }, &whose);
        queries.map(|query| counters::read_view(session.as_mut(), &query)).collect()
    }
}

impl BlockCache for Oracle {
    /// Leaves the cache of a user's server as it is. Reading its size needs a grant.
    fn set_cache(&self, _data_bytes: Option<u64>) -> Result<Option<u64>, TargetError> {
        let size = self.admin()?.value(KNOWLEDGE.query("cache"));
        Ok(size.ok().flatten().and_then(|bytes| bytes.trim().parse().ok()))
    }

    fn checkpoint(&self) -> Result<(), TargetError> {
        Ok(self.admin()?.execute(CHECKPOINT, &[]).map(drop)?)
    }
}

pub(super) fn is_forbidden(e: &OraError) -> bool {
    e.is(NO_VIEW) || e.lacks_privilege()
}

impl ParallelQueries for Oracle {
    /// The highest degree of a query with two sets of servers; `None` if the parameter cannot be read.
    fn max_parallel_workers(&self) -> Result<Option<WorkerLimit>, TargetError> {
        let servers = answered(self.admin()?.value(KNOWLEDGE.query("parallel-servers")))?.ok().flatten();
        let because = |n| format!("parallel_max_servers = {n}, in two sets; one process needs none");
        let limit = |n: u32| WorkerLimit { workers: (n / 2).max(1), because: because(n) };
        Ok(servers.and_then(|n| n.trim().parse().ok()).map(limit))
    }

    /// Runs the first query of `work` in a job's session and reads how many parallel servers it had.
    fn try_parallel(&self, work: &Work) -> Result<Option<ParallelWorkers>, TargetError> {
        let Some(sql) = queries(work, &KNOWLEDGE.dialect)?.into_iter().next() else { return Ok(None) };
        let mut session = self.service.job_session(work, 0)?.0;
        session.query(&sql, &[])?;
        match answered(session.query(KNOWLEDGE.query("v$pq_sesstat"), &[]))? {
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
