//! The target: implements the roles for its nodes and the database behind them.

use std::collections::BTreeSet;

use loadline_model::manifest::TargetInfo;
use loadline_model::{Column, Driver};
use loadline_workload::Table;

use super::counters::{self, OraObserver, ViewAccess};
use super::knowledge::{KNOWLEDGE, View};
use super::nodes::{OraNodes, identity};
use super::schema::{self, OraLoader};
use super::session::{Connector, OraSession, Row, answered, text};
use super::sql;
use crate::changed_rows;
use crate::data_set::{self, FoundTable, LoadProgress, Loader, Ways};
use crate::error::TargetError;
use crate::facts::{Facts, Runs};
use crate::number::Number;
use crate::request::OpenRequest;
use crate::role::{
    Administration, BlockCache, Checkpoints, DataSet, LogSpace, NativeReports, Observation, Observer, Queries, RunLock,
};
use crate::scope::Scope;
use crate::target::{Abilities, Target};
use crate::work::Work;
use crate::workload_tables::{self, LoadedTables, WantedRows};

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
    loaded: LoadedTables,
}

impl Oracle {
    /// Opens the URL and the nodes of `request`.
    pub(super) fn open(request: &OpenRequest, connector: &'static Connector) -> Result<Box<dyn Target>, TargetError> {
        let mut nodes = OraNodes::new(request, connector)?;
        let mut first = nodes.session(0, "look")?;
        let known = identity(first.as_mut())?;
        let version = first.version();
        let views = counters::check_access(first.as_mut())?;
        let block_bytes = first.value(BLOCK_SIZE).ok().flatten().and_then(|bytes| bytes.trim().parse().ok());
        nodes.record_instance(first.as_mut())?;
        drop(first);
        for i in 1..nodes.len() {
            let mut session = nodes.session(i, "look")?;
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
            log_sync_events: counters::LOG_SYNC_EVENTS,
            empty_query: "SELECT 1 FROM DUAL",
            ..Facts::of(Runs::Apart)
        };
        let (run, awr) = (request.run.clone(), request.native_report);
        Ok(Box::new(Oracle { nodes, facts, run, version, views, awr, loaded: LoadedTables::default() }))
    }

    /// Drops all tables but those that `kept` names.
    fn clean_except(
        &self,
        kept: impl Fn() -> Result<BTreeSet<String>, TargetError>,
    ) -> Result<Vec<String>, TargetError> {
        let mut lock = self.nodes.session(0, "lock")?;
        // Without any table there is nothing to lock.
        if lock.query(schema::PREFIXED_TABLES, &[])?.is_empty() {
            return Ok(Vec::new());
        }
        schema::lock(lock.as_mut())?;
        schema::clean(self.admin()?.as_mut(), lock.as_mut(), &kept()?)
    }

    fn loader(&self) -> Result<OraLoader, TargetError> {
        Ok(OraLoader(self.nodes.session(0, "loader")?))
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

impl Administration for Oracle {
    fn lock(&self) -> Result<RunLock, TargetError> {
        let mut session = self.nodes.session(0, "lock")?;
        schema::lock(session.as_mut())?;
        Ok(RunLock::new(session))
    }

    fn create(&self, work: &Work) -> Result<(), TargetError> {
        self.loaded.forget(work);
        schema::create(self.admin()?.as_mut(), work)
    }

    fn load_watched(&self, work: &Work, jobs: u32, progress: &LoadProgress) -> Result<(), TargetError> {
        let open = || Ok(Box::new(self.loader()?) as Box<dyn Loader>);
        let wanted = WantedRows { work, jobs, loaded: &self.loaded };
        workload_tables::load_all(&wanted, Ways { open: &open, one_writer: false, progress })
    }

    fn log_space(&self, _data: u64, _indexes: u64) -> Result<LogSpace, TargetError> {
        self.archived_log_space()
    }

    fn reset(&self, work: &Work, _: Driver) -> Result<(), TargetError> {
        schema::reset(self.admin()?.as_mut(), work)
    }

    fn settle(&self) -> Result<Option<String>, TargetError> {
        match self.admin()?.execute("ALTER SYSTEM CHECKPOINT GLOBAL", &[]) {
            Ok(_) => Ok(None),
            Err(e) if e.lacks_privilege() => {
                Ok(Some("no checkpoint before each test: the user has no ALTER SYSTEM privilege".into()))
            }
            Err(e) => Err(e.into()),
        }
    }

    fn drop_tables(&self, work: &Work) -> Result<(), TargetError> {
        self.loaded.forget(work);
        schema::drop_tables(self.admin()?.as_mut(), work)
    }

    fn clean(&self) -> Result<Vec<String>, TargetError> {
        self.clean_except(|| Ok(BTreeSet::new()))
    }

    fn clean_after_run(&self, keep_data: bool) -> Result<Vec<String>, TargetError> {
        self.clean_except(|| {
            let kept = data_set::kept(&mut self.loader()?, keep_data)?;
            Ok(kept.iter().map(|stem| schema::name_of(stem)).collect())
        })
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

impl DataSet for Oracle {
    fn data_set(&self) -> Result<Vec<FoundTable>, TargetError> {
        data_set::found(&mut self.loader()?)
    }

    fn check_rows(&self, work: &Work, table: &Table) -> Result<(), TargetError> {
        changed_rows::check(&mut self.loader()?, work, table)
    }

    fn drop_data_set(&self) -> Result<(), TargetError> {
        let mut session = self.admin()?;
        let prefix = schema::name_of("data_");
        for name in schema::our_tables(session.as_mut())?.iter().filter(|name| name.starts_with(&prefix)) {
            schema::drop_table(session.as_mut(), name)?;
        }
        Ok(())
    }
}

impl BlockCache for Oracle {
    /// Leaves the cache of a user's server as it is. Reading its size needs a grant.
    fn set_cache(&self, _data_bytes: Option<u64>) -> Result<Option<u64>, TargetError> {
        let size = self.admin()?.value("SELECT BYTES FROM V$SGAINFO WHERE NAME = 'Buffer Cache Size'");
        Ok(size.ok().flatten().and_then(|bytes| bytes.trim().parse().ok()))
    }
}

impl Checkpoints for Oracle {
    fn checkpoint(&self) -> Result<(), TargetError> {
        self.admin()?.execute("ALTER SYSTEM CHECKPOINT GLOBAL", &[])?;
        Ok(())
    }
}
