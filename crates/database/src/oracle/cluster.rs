//! The target: implements the roles for its nodes and the database behind them.

use std::collections::BTreeSet;

use loadline_model::manifest::TargetInfo;
use loadline_model::{Column, Driver, Finding};
use loadline_workload::Table;

use super::counters::{self, OraObserver, ViewAccess};
use super::descriptor::{KNOWLEDGE, View};
use super::doctor;
use super::jobs::{OraClientSession, OraDatabaseSession};
use super::nodes::{OraNodes, identity};
use super::schema::OraLoader;
use super::session::{Bind, Connector, MISSING_PRIVILEGE, NO_PRIVILEGE, OraSession};
use super::{awr, block, disk_space, parallel, schema, sql};
use crate::changed_rows;
use crate::data_set::{self, FoundTable, LoadProgress, Loader, Ways};
use crate::error::TargetError;
use crate::facts::{Facts, Runs};
use crate::number::Number;
use crate::request::OpenRequest;
use crate::role::{
    Administration, BlockCache, Checkpoints, ClientDriver, ClientSession, DataSet, DatabaseDriver, DatabaseSession,
    DiskSpace, Doctor, FreeSpace, GrantSql, JobLimit, LogSpace, NativeReports, Observation, Observer, ParallelQueries,
    ParallelWorkers, Privilege, Queries, RunLock, Use, WorkerLimit,
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
    /// Why the flash cache has no figure.
    no_flash: Option<String>,
    /// Whether the user asked for AWR.
    awr: bool,
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
        let no_flash = counters::no_flash(first.as_mut(), &views)?;
        let block_bytes = first.value(BLOCK_SIZE).ok().flatten().and_then(|bytes| bytes.trim().parse().ok());
        nodes.record_instance(0, first.as_mut())?;
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
            nodes.record_instance(i, session.as_mut())?;
        }
        let facts = Facts {
            nodes: nodes.len() as u32,
            block_bytes,
            log_sync_events: counters::LOG_SYNC_EVENTS,
            empty_query: "SELECT 1 FROM DUAL",
            remarks: Some(counters::remarks),
            ..Facts::of(Runs::Apart)
        };
        let (run, awr) = (request.run.clone(), request.native_report);
        Ok(Box::new(Oracle { nodes, facts, run, version, views, no_flash, awr, loaded: LoadedTables::default() }))
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
        let mut settings = std::collections::BTreeMap::new();
        if let Some(q) = KNOWLEDGE.question("parameters") {
            match session.query(&q.sql, &[]) {
                Ok(rows) => {
                    for row in rows {
                        let mut row = row.into_iter();
                        if let (Some(name), Some(Some(value))) = (row.next().flatten(), row.next()) {
                            settings.insert(name, value);
                        }
                    }
                }
                Err(e) if e.lost => return Err(e.into()),
                // The doctor says so, with the grant to ask for.
                Err(_) => {}
            }
        }
        let mut notes = vec![
            super::NEVER_RUN.to_owned(),
            "counters are those of the whole database, other sessions' work included".to_owned(),
            "CPU figures are from V$OSSTAT, which the server updates at its own pace: they are coarse in short windows"
                .to_owned(),
        ];
        notes.push(
            "the jobs' sessions cache no results of queries (RESULT_CACHE_MODE = MANUAL) and run queries in parallel only \
             for workloads that ask for a degree of parallelism"
                .to_owned(),
        );
        if self.nodes.len() > 1 {
            notes.push(format!(
                "{} nodes; counters are added up over all instances of the database, those without jobs included",
                self.nodes.len()
            ));
        }
        let memory = "SELECT VALUE FROM V$OSSTAT WHERE STAT_NAME = 'PHYSICAL_MEMORY_BYTES'";
        let memory = self.admin()?.value(memory).ok().flatten();
        Ok(TargetInfo {
            memory_bytes: memory.and_then(|bytes| bytes.trim().parse().ok()),
            in_process: false,
            kind: "oracle".into(),
            product: super::KIND.product.into(),
            version: self.version.clone(),
            url: self.nodes.shown(0),
            nodes: self.facts.nodes,
            // It is unknown whether the server is on this machine; its counters include CPU times.
            local: false,
            settings,
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
        disk_space::log(self.admin()?.as_mut())
    }

    fn reset(&self, work: &Work, _: Driver) -> Result<(), TargetError> {
        schema::reset(self.admin()?.as_mut(), work)
    }

    fn settle(&self) -> Result<Option<String>, TargetError> {
        match self.admin()?.execute("ALTER SYSTEM CHECKPOINT GLOBAL", &[]) {
            Ok(_) => Ok(None),
            Err(e) if e.is(&[NO_PRIVILEGE, MISSING_PRIVILEGE]) => {
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
        let mut lock = self.nodes.session(0, "lock")?;
        // Without any table there is nothing to lock.
        if lock.query(schema::PREFIXED_TABLES, &[])?.is_empty() {
            return Ok(Vec::new());
        }
        schema::lock(lock.as_mut())?;
        schema::clean(self.admin()?.as_mut(), lock.as_mut(), &BTreeSet::new())
    }

    fn clean_after_run(&self, keep_data: bool) -> Result<Vec<String>, TargetError> {
        let mut lock = self.nodes.session(0, "lock")?;
        if lock.query(schema::PREFIXED_TABLES, &[])?.is_empty() {
            return Ok(Vec::new());
        }
        schema::lock(lock.as_mut())?;
        let kept = data_set::kept(&mut self.loader()?, keep_data)?;
        let kept = kept.iter().map(|stem| schema::name_of(stem)).collect();
        schema::clean(self.admin()?.as_mut(), lock.as_mut(), &kept)
    }
}

impl Doctor for Oracle {
    fn doctor(&self) -> Result<Vec<Finding>, TargetError> {
        let mut findings = Vec::new();
        for i in 0..self.nodes.len() {
            let mut session = self.nodes.session(i, "doctor")?;
            let mut found = doctor::judge(&doctor::ask(session.as_mut())?);
            if self.nodes.len() > 1 {
                for finding in &mut found {
                    finding.subject = format!("{} (node {})", finding.subject, i + 1);
                }
            }
            findings.append(&mut found);
        }
        if self.awr {
            findings.push(awr::examine(self.admin()?.as_mut())?);
        }
        Ok(findings)
    }

    fn privileges(&self) -> Result<Vec<Privilege>, TargetError> {
        let asked = self.doctor()?.into_iter().find(|f| f.id == doctor::TO_ASK_FOR);
        let privilege = |f: Finding| Privilege {
            sql: vec![GrantSql { grant: f.value, revoke: None }],
            gives: "what the findings of `loadline doctor` name",
            granted: false,
            used: Use::Needed,
        };
        Ok(asked.map(privilege).into_iter().collect())
    }

    fn job_limit(&self) -> Result<JobLimit, TargetError> {
        doctor::job_limit(self.admin()?.as_mut())
    }
}

impl ClientDriver for Oracle {
    fn client_session(&self, work: &Work, job: u32) -> Result<Box<dyn ClientSession>, TargetError> {
        let (session, canceller) = self.nodes.job_session(work, job)?;
        Ok(Box::new(OraClientSession::new(session, canceller, work)))
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
        counters::absent(&self.views, self.no_flash.as_deref())
    }
}

impl DatabaseDriver for Oracle {
    /// A block is sent with each call and leaves nothing behind.
    fn install(&self, _: &Work) -> Result<(), TargetError> {
        Ok(())
    }

    fn database_session(&self, work: &Work, job: u32) -> Result<Box<dyn DatabaseSession>, TargetError> {
        let (session, canceller) = self.nodes.job_session(work, job)?;
        Ok(Box::new(OraDatabaseSession::new(session, canceller, work, job)?))
    }

    fn overhead_ns(&self) -> Result<Option<f64>, TargetError> {
        let mut session = self.admin()?;
        let block = block::overhead(20_000);
        let mut times = Vec::new();
        for _ in 0..3 {
            let row = session.call(&block, &[Bind::Out(40)])?;
            times.extend(row.first().cloned().flatten().and_then(|t| t.parse::<f64>().ok()));
        }
        times.sort_by(f64::total_cmp);
        Ok(times.get(times.len() / 2).copied())
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
        let ours =
            schema::tables(session.as_mut())?.into_iter().filter(|(name, ours)| *ours && name.starts_with(&prefix));
        for (name, _) in ours {
            session.execute(&schema::drop_statement(&name), &[])?;
        }
        Ok(())
    }
}

impl DiskSpace for Oracle {
    fn free_space(&self) -> Result<Option<FreeSpace>, TargetError> {
        disk_space::free(self.admin()?.as_mut())
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

impl ParallelQueries for Oracle {
    fn max_parallel_workers(&self) -> Result<Option<WorkerLimit>, TargetError> {
        parallel::max_workers(self.admin()?.as_mut())
    }

    fn try_parallel(&self, work: &Work) -> Result<Option<ParallelWorkers>, TargetError> {
        parallel::try_first_query(self.nodes.job_session(work, 0)?.0.as_mut(), work)
    }
}

impl NativeReports for Oracle {
    fn native_mark(&self) -> Result<i64, TargetError> {
        awr::snapshot(self.admin()?.as_mut())
    }

    fn native_report(&self, from: i64) -> Result<String, TargetError> {
        awr::report(self.admin()?.as_mut(), from)
    }
}
