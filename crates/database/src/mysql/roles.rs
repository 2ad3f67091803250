//! Implements the roles of a target.

use std::collections::BTreeSet;

use loadline_model::manifest::TargetInfo;
use loadline_model::{Capabilities, Capability, Column, Driver, Finding, column};

use super::client::MysqlClientSession;
use super::doctor::{self, MysqlSettings, MysqlState};
use super::loading::MysqlLoader;
use super::observer::{UNCOUNTED_SYNCS, sync_counter};
use super::server::{Mysql, NOWAIT};
use super::slice::MysqlDatabaseSession;
use super::{cache, grants, own_sessions, procedure, render, schema, sql};
use crate::cloud::{Part, absent_devices, why_absent};
use crate::data_set::{self, LoadProgress, Loader};
use crate::error::TargetError;
use crate::facts::Facts;
use crate::number::Number;
use crate::role::{
    Administration, BlockCache, Checkpoints, ClientDriver, ClientSession, DatabaseDriver, DatabaseSession, Doctor,
    JobLimit, LogSpace, Observation, Observer, Privilege, Queries, RunLock,
};
use crate::scope::Scope;
use crate::target::{Abilities, Target};
use crate::work::Work;
use crate::workload_tables::{LoadedTables, LoadsTables};

impl Target for Mysql {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn info(&self) -> Result<TargetInfo, TargetError> {
        let first = self.first();
        let settings = first.admin(MysqlSettings::read)?;
        let mut notes = self.private().map_or_else(Vec::new, |s| s.notes.clone());
        if self.server.is_some() {
            notes.push(format!(
                "workloads whose commit does not wait run with innodb_flush_log_at_trx_commit = {NOWAIT}, all others with {}: \
                 the setting is global, and this server is private",
                first.given_flush
            ));
        }
        notes.extend(first.endpoint.recognised.note());
        if self.nodes.is_cluster() {
            notes.extend(self.cluster_notes(&settings));
        } else if self.facts.nodes > 1 {
            notes.push(format!("{} nodes lead to one server, whose counters are counted once", self.facts.nodes));
        }
        Ok(TargetInfo {
            in_process: false,
            kind: self.private().map_or("mysql", |s| s.setup.product.scheme.as_str()).into(),
            product: first.version.product().into(),
            version: first.version.text.clone(),
            url: self.url.clone(),
            nodes: self.facts.nodes,
            local: self.instances().iter().all(|i| i.local),
            host: settings.get("hostname").map(str::to_owned),
            log_dir: Some(doctor::log_dir(&settings).display().to_string()),
            data_dir: settings.get("datadir").map(str::to_owned),
            settings: settings.recorded(),
            notes,
            ..TargetInfo::default()
        })
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities {
            database_driver: Some(self),
            queries: Some(self),
            data_set: Some(self),
            block_cache: Some(self),
            checkpoints: Some(self),
            statistics_views: Some(self),
            settings: self.server.is_some().then_some(self as _),
            nodes: (self.instances().len() > 1).then_some(self as _),
            replication: self.private().is_some_and(|s| !s.replicas().is_empty()).then_some(self as _),
            ..Abilities::default()
        }
    }
}

impl Administration for Mysql {
    fn lock(&self) -> Result<RunLock, TargetError> {
        let mut held = Vec::new();
        for instance in self.instances() {
            let mut c = instance.endpoint.connect()?;
            schema::lock(&mut c)?;
            instance.ledger.book(&mut c)?;
            held.push(c);
        }
        Ok(RunLock::new(held))
    }

    fn create(&self, work: &Work) -> Result<(), TargetError> {
        self.loaded.forget(work);
        self.set_flush(work.program.commit)?;
        self.jobs_run(work, Driver::Client);
        self.at_first(|c| schema::create(c, work))
    }

    fn load_watched(&self, work: &Work, jobs: u32, progress: &LoadProgress) -> Result<(), TargetError> {
        self.load_missing(work, jobs, progress)
    }

    /// The redo log has its full size from the start; only a binary log grows.
    fn log_space(&self, data: u64, _indexes: u64) -> Result<LogSpace, TargetError> {
        let each = self.each(|_, c| Ok(doctor::binary_log(&MysqlSettings::read(c)?, data)))?;
        Ok(each.into_iter().max_by_key(|r| r.bytes).unwrap_or_default())
    }

    fn reset(&self, work: &Work, driver: Driver) -> Result<(), TargetError> {
        self.set_flush(work.program.commit)?;
        self.jobs_run(work, driver);
        self.at_first(|c| schema::reset(c, work))
    }

    fn settle(&self) -> Result<Option<String>, TargetError> {
        match self.checkpoint() {
            Ok(()) => Ok(None),
            Err(TargetError::Unsupported(why)) => Ok(Some(format!("no checkpoint before each test: {why}"))),
            Err(e) => Err(e),
        }
    }

    fn drop_tables(&self, work: &Work) -> Result<(), TargetError> {
        self.loaded.forget(work);
        self.at_first(|c| schema::drop_tables(c, work))
    }

    fn clean(&self) -> Result<Vec<String>, TargetError> {
        let _lock = self.lock()?;
        self.at_first(|c| schema::clean(c, &BTreeSet::new()))
    }

    fn clean_after_run(&self, keep_data: bool) -> Result<Vec<String>, TargetError> {
        let _lock = self.lock()?;
        let kept = self.with_loader(|loader| data_set::kept(loader, keep_data))?;
        self.at_first(|c| schema::clean(c, &kept))
    }
}

impl Doctor for Mysql {
    fn doctor(&self) -> Result<Vec<Finding>, TargetError> {
        let all = self.each(|instance, c| {
            let settings = MysqlSettings::read(c)?;
            let mut state = MysqlState::ask(c, &settings, instance.local)?;
            state.times = Some(instance.times.clone());
            state.flavour = instance.endpoint.recognised.flavour();
            Ok(doctor::examine(&settings, &state))
        })?;
        // What holds for all servers of a private cluster is said once; a user's servers are named.
        let private = self.server.is_some() || self.instances().len() == 1;
        let everywhere = |finding: &Finding| private && all.iter().all(|of_one| of_one.contains(finding));
        let mut findings = Vec::new();
        for (number, (instance, of_one)) in self.instances().iter().zip(&all).enumerate() {
            for finding in of_one {
                match (everywhere(finding), number) {
                    (true, 0) => findings.push(finding.clone()),
                    (true, _) => {}
                    (false, _) => {
                        let subject = format!("{} ({})", finding.subject, instance.endpoint.config.place());
                        findings.push(Finding { subject, ..finding.clone() });
                    }
                }
            }
        }
        Ok(findings)
    }

    fn privileges(&self) -> Result<Vec<Privilege>, TargetError> {
        self.first().admin(grants::privileges)
    }

    fn capabilities(&self) -> Result<Capabilities, TargetError> {
        let (mut missing, mut by_setting) = (Vec::<(Driver, Capability, String)>::new(), Vec::new());
        // Of a private server the plan knew it.
        if self.server.is_none() && self.instances().iter().any(|instance| instance.version.mariadb) {
            missing.push(render::no_wait_in_procedures());
        }
        for instance in self.instances() {
            let allowed = instance.admin(|c| c.value("SELECT @@GLOBAL.local_infile"))?;
            if allowed.as_deref() != Some("1") {
                let why =
                    "local_infile is OFF: SET GLOBAL local_infile = ON, so that LOAD DATA LOCAL INFILE is allowed";
                missing.push((Driver::Client, Capability::BulkLoad, self.labelled(instance, why.to_owned())));
            }
            // loadline itself changes it on private servers only, where it is what was given.
            let now = "SELECT @@GLOBAL.innodb_flush_log_at_trx_commit";
            let now = if self.server.is_none() { instance.admin(|c| c.number(now))? } else { None };
            let value = now.map_or(instance.given_flush, |value| value as u8);
            let waits = matches!(value, 1 | 3);
            let (capability, why) = match (waits, self.server.is_some()) {
                (true, true) => continue,
                (true, false) => (
                    Capability::CommitNowait,
                    format!(
                        "innodb_flush_log_at_trx_commit = {value} holds for the whole server, and loadline does not change a \
                         user's server: SET GLOBAL innodb_flush_log_at_trx_commit = {NOWAIT} for such a run, or use {}:",
                        if instance.version.mariadb { "mariadb-temp" } else { "mysql-temp" }
                    ),
                ),
                (false, _) => (
                    Capability::CommitWait,
                    format!(
                        "innodb_flush_log_at_trx_commit = {value}: SET GLOBAL innodb_flush_log_at_trx_commit = 1 first"
                    ),
                ),
            };
            let why = self.labelled(instance, why);
            // What a procedure cannot do whatever the setting is comes first.
            let other = |d: &Driver| missing.iter().any(|(of, c, _)| (*of, *c) == (*d, capability));
            by_setting.extend(
                Driver::ALL
                    .into_iter()
                    .filter(|d| !other(d))
                    .map(|d| (d, capability, "innodb_flush_log_at_trx_commit")),
            );
            missing.extend(Driver::ALL.map(|d| (d, capability, why.clone())));
        }
        for (instance, refused) in self.instances().iter().zip(self.each(|_, c| cache::flush_refusal(c))?) {
            if let Some(why) = refused {
                let why = self.labelled(instance, why);
                missing.extend(Driver::ALL.map(|d| (d, Capability::Checkpoint, why.clone())));
            }
        }
        Ok(Capabilities { missing, by_setting, ..Capabilities::default() })
    }

    fn job_limit(&self) -> Result<JobLimit, TargetError> {
        let nodes = self.facts.nodes;
        let limits = self.each(|instance, c| {
            let settings = MysqlSettings::read(c)?;
            let mut limit = doctor::job_limit(c, &settings)?;
            // Jobs go to the nodes in turn: this server gets its nodes' share of them.
            if nodes > instance.nodes {
                limit.jobs = limit.jobs.map(|jobs| jobs.saturating_mul(nodes) / instance.nodes.max(1));
                limit.because = format!("{} at {}", limit.because, instance.endpoint.config.place());
            }
            Ok(limit)
        })?;
        let tightest = limits.into_iter().min_by_key(|limit| limit.jobs.unwrap_or(u32::MAX));
        tightest.ok_or_else(|| TargetError::Usage("the target has no node".into()))
    }
}

impl ClientDriver for Mysql {
    fn client_session(&self, work: &Work, job: u32) -> Result<Box<dyn ClientSession>, TargetError> {
        Ok(Box::new(MysqlClientSession::open(self.endpoint_of(work, job)?, work)?))
    }
}

impl Observation for Mysql {
    fn observer(&self) -> Result<Box<dyn Observer>, TargetError> {
        self.observer_of(Scope::Jobs)
    }

    fn evidence(&self, work: &Work) -> Result<Option<i64>, TargetError> {
        self.evidence_query(work)
    }

    fn job_sessions(&self) -> Vec<Vec<u32>> {
        self.instances().iter().map(|instance| instance.endpoint.sessions.of_jobs()).collect()
    }

    fn adopt_jobs(&self, sessions: &[Vec<u32>]) {
        for (instance, ids) in self.instances().iter().zip(sessions) {
            ids.iter().for_each(|id| instance.endpoint.sessions.add(*id, true));
        }
    }

    fn end_jobs(&self, _: std::ops::Range<u32>, sessions: &[Vec<u32>]) -> Result<Option<u32>, TargetError> {
        let of_each = self.instances().iter().zip(sessions);
        let ended = of_each.map(|(instance, ids)| instance.admin(|c| own_sessions::end(c, ids)));
        let ended = ended.collect::<Result<Vec<_>, _>>()?;
        Ok(if ended.is_empty() { None } else { ended.into_iter().sum() })
    }

    fn absent_columns(&self) -> Vec<(&'static Column, String)> {
        let product = self.first().version.product();
        let mut absent = vec![
            (column::FLASH_CACHE_WRITE_PCT, format!("{product} has no flash cache")),
            (column::REDO_BLOCKS_PER_S, format!("{product} does not count the blocks of its log")),
        ];
        if self.instances().iter().any(|i| sync_counter(&i.version, i.flush.now()).is_none()) {
            absent.push((column::REDO_SYNC_WRITES_PER_S, UNCOUNTED_SYNCS.to_owned()));
            absent.push((column::COMMITS_PER_REDO_SYNC, UNCOUNTED_SYNCS.to_owned()));
        }
        if !self.instances().iter().all(|i| i.local) {
            let cloud = self.first().cloud;
            let why = why_absent(cloud, Part::Cpus, "and MariaDB and MySQL do not show its /proc/stat");
            let cpu = column::CPU_SHARES;
            absent.extend(cpu.map(|id| (id, why.clone())));
            absent.extend(absent_devices(cloud, "and MariaDB and MySQL do not show its devices"));
        }
        absent
    }
}

impl DatabaseDriver for Mysql {
    fn install(&self, work: &Work) -> Result<(), TargetError> {
        self.at_first(|c| schema::install(c, work, self.first().member.is_some()))
    }

    fn database_session(&self, work: &Work, job: u32) -> Result<Box<dyn DatabaseSession>, TargetError> {
        Ok(Box::new(MysqlDatabaseSession::open(self.endpoint_of(work, job)?, work, job)?))
    }

    fn overhead_ns(&self) -> Result<Option<f64>, TargetError> {
        const ITERATIONS: u32 = 5_000;
        let name = procedure::overhead_name();
        let mut times = self.first().admin(|c| {
            c.query(&format!("DROP PROCEDURE IF EXISTS {name}"))?;
            c.query(&procedure::create_overhead())?;
            c.query(&procedure::create_moments())?;
            let mut times = Vec::new();
            for _ in 0..3 {
                let begin = loadline_storage::now_ns();
                c.query(&format!("CALL {name}({ITERATIONS})"))?;
                times.push(loadline_storage::now_ns().saturating_sub(begin) as f64 / f64::from(ITERATIONS));
            }
            c.query(&format!("DROP PROCEDURE {name}"))?;
            Ok(times)
        })?;
        times.sort_by(f64::total_cmp);
        Ok(times.get(times.len() / 2).copied())
    }
}

impl Queries for Mysql {
    fn number(&self, work: &Work, query: &str) -> Result<Number, TargetError> {
        let sql = sql::query(work, query)?;
        Number::read(self.at_first(|c| c.value(&sql))?)
    }

    /// The size of the primary key's tree, which holds the rows.
    fn table_bytes(&self, work: &Work, table: &str) -> Result<Option<u64>, TargetError> {
        let size = self.at_first(|c| {
            // The server shows the size as of the last ANALYZE.
            c.query(&sql::analyze(work, table))?;
            c.value(&sql::table_size(work, table))
        })?;
        Ok(size.and_then(|s| s.parse::<u64>().ok()))
    }
}

impl LoadsTables for Mysql {
    fn open_loader(&self) -> Result<Box<dyn Loader + '_>, TargetError> {
        Ok(Box::new(MysqlLoader::open(&self.first().endpoint, &self.first().ledger)?))
    }

    fn loaded(&self) -> &LoadedTables {
        &self.loaded
    }

    fn in_step<T>(&self, f: impl FnOnce() -> Result<T, TargetError>) -> Result<T, TargetError> {
        self.caught_up(f)
    }
}

impl BlockCache for Mysql {
    fn set_cache(&self, data_bytes: Option<u64>) -> Result<Option<u64>, TargetError> {
        let wanted = self.private().and_then(|s| s.pool_bytes(data_bytes));
        let sizes = self.each(|_, c| cache::resize(c, wanted))?;
        Ok(sizes.into_iter().sum())
    }
}

impl Checkpoints for Mysql {
    fn checkpoint(&self) -> Result<(), TargetError> {
        self.each(|_, c| cache::flush(c)).map(drop)
    }
}
