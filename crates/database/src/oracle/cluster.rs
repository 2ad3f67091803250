//! The target: implements the roles for its nodes and the database behind them.

use loadline_model::Column;
use loadline_model::manifest::TargetInfo;

use super::counters::{self, OraObserver, ViewAccess};
use super::knowledge::{KNOWLEDGE, View};
use super::nodes::{OraNodes, identity};
use super::session::{Connector, OraSession, Row, answered, text};
use super::sql;
use crate::error::TargetError;
use crate::facts::{Facts, Runs};
use crate::number::Number;
use crate::request::OpenRequest;
use crate::role::{BlockCache, NativeReports, Observation, Observer, Queries};
use crate::scope::Scope;
use crate::target::{Abilities, Target};
use crate::work::Work;
use crate::workload_tables::LoadedTables;

/// The size of a block of the user's tables, bytes.
const BLOCK_SIZE: &str = "SELECT BLOCK_SIZE FROM USER_TABLESPACES WHERE TABLESPACE_NAME = \
     (SELECT DEFAULT_TABLESPACE FROM USER_USERS)";

/// An Oracle target. All its nodes are instances of one database and share its tables.
pub(super) struct Oracle {
    pub(super) nodes: OraNodes,
    facts: Facts,
    pub(super) run: String,
    version: String,
    pub(super) views: Vec<(&'static View, ViewAccess)>,
    /// Whether the user asked for AWR.
    pub(super) awr: bool,
    /// Workload tables known to be loaded.
    pub(super) loaded: LoadedTables,
}

impl Oracle {
    /// Opens the URL and the nodes of `request`.
    pub(super) fn open(request: &OpenRequest, connector: &'static Connector) -> Result<Box<dyn Target>, TargetError> {
        let mut nodes = OraNodes::new(request, connector)?;
        let mut first = nodes.session(0, "look")?;
        let (known, version) = (identity(first.as_mut())?, first.version());
        let views = counters::check_access(first.as_mut())?;
        let block_bytes = first.value(BLOCK_SIZE).ok().flatten().and_then(|bytes| bytes.trim().parse().ok());
        nodes.record_instance(first.as_mut())?;
        for node in 1..nodes.len() {
            let mut session = nodes.session(node, "look")?;
            let identity = identity(session.as_mut())?;
            if known != identity {
                return Err(TargetError::Usage(format!(
                    "the nodes are different databases, containers or users: {known} and {identity}. \
                     All nodes must lead to the same database, container and user"
                )));
            }
            nodes.record_instance(session.as_mut())?;
        }
        let facts = Facts {
            nodes: nodes.len() as u32,
            block_bytes,
            waits: &KNOWLEDGE.waits,
            empty_query: "SELECT 1 FROM DUAL",
            ..Facts::of(Runs::Apart)
        };
        let (run, awr) = (request.run.clone(), request.native_report);
        Ok(Box::new(Oracle { nodes, facts, run, version, views, awr, loaded: LoadedTables::default() }))
    }

    pub(super) fn admin(&self) -> Result<Box<dyn OraSession>, TargetError> {
        self.nodes.session(0, "admin")
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
        let memory = session.value("SELECT VALUE FROM V$OSSTAT WHERE STAT_NAME = 'PHYSICAL_MEMORY_BYTES'");
        let mut notes = vec![
            super::NEVER_RUN.to_owned(),
            "counters are those of the whole database, other sessions' work included".to_owned(),
            "CPU figures are from V$OSSTAT, which the server updates at its own pace: they are coarse in short windows"
                .to_owned(),
            "the jobs' sessions cache no results of queries (RESULT_CACHE_MODE = MANUAL) and run queries in parallel only \
             for workloads that ask for a degree of parallelism"
                .to_owned(),
        ];
        if self.nodes.len() > 1 {
            notes.push(format!(
                "{} nodes; counters are added up over all instances of the database, those without jobs included",
                self.nodes.len()
            ));
        }
        Ok(TargetInfo {
            memory_bytes: memory.ok().flatten().and_then(|bytes| bytes.trim().parse().ok()),
            in_process: false,
            kind: "oracle".into(),
            product: super::KIND.product.into(),
            version: self.version.clone(),
            url: self.nodes.shown(0),
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
            statistics_views: Some(self),
            database_driver: Some(self),
            queries: Some(self),
            data_set: Some(self),
            disk_space: Some(self),
            block_cache: Some(self),
            checkpoints: Some(self),
            parallel_queries: Some(self),
            native_reports: self.awr.then_some(self as &dyn NativeReports),
            ..Abilities::default()
        }
    }
}

impl Observation for Oracle {
    fn observer(&self) -> Result<Box<dyn Observer>, TargetError> {
        Ok(Box::new(OraObserver::new(self.nodes.session(0, "observer")?, &self.views, &self.run, Scope::Jobs)))
    }

    fn evidence(&self, work: &Work) -> Result<Option<i64>, TargetError> {
        self.evidence_query(work)
    }

    fn absent_columns(&self) -> Vec<(&'static Column, String)> {
        counters::absent(&self.views)
    }
}

impl Queries for Oracle {
    fn number(&self, work: &Work, query: &str) -> Result<Number, TargetError> {
        Number::read(self.admin()?.value(&sql::query(work, query)?)?)
    }

    fn table_bytes(&self, work: &Work, table: &str) -> Result<Option<u64>, TargetError> {
        let sql =
            format!("SELECT SUM(BYTES) FROM USER_SEGMENTS WHERE SEGMENT_NAME = '{}'", sql::table_name(work, table));
        Ok(self.admin()?.value(&sql)?.and_then(|v| v.parse().ok()))
    }
}

impl BlockCache for Oracle {
    /// Leaves the cache of a user's server as it is. Reading its size needs a grant.
    fn set_cache(&self, _data_bytes: Option<u64>) -> Result<Option<u64>, TargetError> {
        let size = self.admin()?.value("SELECT BYTES FROM V$SGAINFO WHERE NAME = 'Buffer Cache Size'");
        Ok(size.ok().flatten().and_then(|bytes| bytes.trim().parse().ok()))
    }
}
