//! The roles of [`crate::role`] for PostgreSQL.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::PoisonError;

use loadline_model::manifest::TargetInfo;
use loadline_model::{Capabilities, Capability, Column, Driver, Finding, Severity, column};

use super::client::PgClientSession;
use super::cluster::Postgres;
use super::connect::SessionRole;
use super::knowledge::KNOWLEDGE;
use super::loading::PgLoader;
use super::settings::PgSettings;
use super::slice::PgDatabaseSession;
use super::{changed_settings, cluster, doctor, grants, log_space, pair, parallel, procedure, schema, sql};
use crate::cloud::absent_devices;
use crate::data_set::{self, LoadProgress, Loader};
use crate::error::TargetError;
use crate::facts::Facts;
use crate::number::Number;
use crate::role::{
    Administration, BlockCache, Checkpoints, ClientDriver, ClientSession, DatabaseDriver, DatabaseSession, Doctor,
    JobLimit, LogSpace, Observation, Observer, ParallelQueries, ParallelWorkers, Privilege, Queries, RunLock,
    WorkerLimit,
};
use crate::scope::Scope;
use crate::target::{Abilities, Target};
use crate::work::Work;
use crate::workload_tables::{LoadedTables, LoadsTables};

impl Target for Postgres {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn info(&self) -> Result<TargetInfo, TargetError> {
        let settings = self.session(self.primary(), SessionRole::Inspect, PgSettings::read)?;
        let local = self.instances.iter().all(|i| i.local);
        let data_dir = settings.get("data_directory").map(str::to_owned);
        let log_dir = data_dir.as_ref().map(|dir| {
            let dir = Path::new(dir).join("pg_wal");
            // The log is often a link to another device.
            let dir = if local { dir.canonicalize().unwrap_or(dir) } else { dir };
            dir.display().to_string()
        });
        let own = self.server.as_ref().map(|s| s.lock().unwrap_or_else(PoisonError::into_inner));
        let mut notes = own.map_or_else(Vec::new, |s| s.servers.notes.clone());
        notes.extend(self.primary().endpoint.recognised.note());
        if self.endpoints.len() > 1 {
            notes.push(format!(
                "{} nodes lead to {} server instances; each instance's counters are counted once",
                self.endpoints.len(),
                self.instances.len()
            ));
        }
        if self.facts.read_only_nodes > 0 {
            notes.push(
                "of the nodes that are standbys the transactions and their reads are counted, and the log is that of the primary: \
                 what a standby writes of it is a copy"
                    .into(),
            );
        }
        notes.push(
            "autovacuum is off for loadline's tables with rows that are updated in place: it would log pages that no transaction changed".into(),
        );
        notes.push(
            "queries and index builds of the jobs are not parallel (max_parallel_workers_per_gather and \
             max_parallel_maintenance_workers = 0 in their sessions), except in workloads that ask for parallel queries: \
             their sessions have min_parallel_table_scan_size, parallel_setup_cost and parallel_tuple_cost = 0 and \
             parallel_leader_participation = on, and their tables have the option parallel_workers; sessions of \
             pgbench scripts have the server's own settings"
                .into(),
        );
        let (host, memory_bytes) =
            if local { (None, None) } else { self.session(self.primary(), SessionRole::Inspect, cluster::machine)? };
        Ok(TargetInfo {
            host,
            memory_bytes,
            in_process: false,
            kind: self.kind.into(),
            product: "PostgreSQL".into(),
            version: self.version_text.clone(),
            url: self.url.clone(),
            nodes: self.facts.nodes,
            local,
            settings: settings.stated(),
            log_dir,
            data_dir,
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
            parallel_queries: Some(self),
            statistics_views: Some(self),
            settings: self.server.is_some().then_some(self as _),
            nodes: (self.instances.len() > 1).then_some(self as _),
            replication: self.has_levels.then_some(self as _),
            ..Abilities::default()
        }
    }
}

impl Administration for Postgres {
    fn lock(&self) -> Result<RunLock, TargetError> {
        Ok(self.locked()?.0)
    }

    fn create(&self, work: &Work) -> Result<(), TargetError> {
        self.loaded.forget(work);
        self.at_primary(|c| schema::create(c, work))
    }

    fn load_watched(&self, work: &Work, jobs: u32, progress: &LoadProgress) -> Result<(), TargetError> {
        self.load_missing(work, jobs, progress)?;
        self.wait_replayed()
    }

    fn log_space(&self, data: u64, indexes: u64) -> Result<LogSpace, TargetError> {
        // Private standbys follow at once and are on the same disk, each with rows and log of its own.
        let standbys = match &self.server {
            Some(server) => server.lock().unwrap_or_else(PoisonError::into_inner).servers.further.len() as u64,
            None => 0,
        };
        let mut log = self.at_primary(|c| log_space::estimate(c, data, indexes, standbys > 0))?;
        log.bytes = (1 + standbys) * log.bytes + standbys * data.saturating_add(indexes);
        Ok(log)
    }

    fn reset(&self, work: &Work, _: Driver) -> Result<(), TargetError> {
        self.at_primary(|c| {
            schema::reset(c, work)?;
            if self.has_levels { schema::renew(c, work) } else { Ok(()) }
        })
    }

    fn settle(&self) -> Result<Option<String>, TargetError> {
        let privilege = KNOWLEDGE.texts.checkpoint_privilege.at(self.version).unwrap_or_default();
        let said = self.at_primary(|c| {
            // With levels, `reset` has made the checkpoint.
            let made = if self.has_levels {
                c.value(KNOWLEDGE.texts.may_checkpoint.at(self.version).unwrap_or_default())?.as_deref() == Some("t")
            } else {
                schema::checkpoint_if_allowed(c)?
            };
            Ok((!made).then(|| format!("no checkpoint before each test: the role is not {privilege}")))
        })?;
        self.wait_replayed()?;
        // At a standby a restartpoint: it writes what was replayed, which it would otherwise do in a test.
        for standby in self.standbys()? {
            let mut c = standby.connect(SessionRole::Admin)?;
            schema::checkpoint_if_allowed(&mut c)?;
            c.publish()?;
        }
        Ok(said)
    }

    fn drop_tables(&self, work: &Work) -> Result<(), TargetError> {
        self.loaded.forget(work);
        self.at_primary(|c| schema::drop_tables(c, work))
    }

    fn clean(&self) -> Result<Vec<String>, TargetError> {
        let (_lock, mut removed) = self.locked()?;
        removed.extend(self.at_primary(|c| schema::clean(c, &BTreeSet::new()))?);
        Ok(removed)
    }

    fn clean_after_run(&self, keep_data: bool) -> Result<Vec<String>, TargetError> {
        let (_lock, mut removed) = self.locked()?;
        let kept = self.with_loader(|l| data_set::kept(l, keep_data))?;
        removed.extend(self.at_primary(|c| schema::clean(c, &kept))?);
        Ok(removed)
    }
}

impl Postgres {
    /// Takes the lock, and puts back the settings that a run changed which no longer holds it; with a line for each.
    fn locked(&self) -> Result<(RunLock, Vec<String>), TargetError> {
        let mut c = self.primary().endpoint.connect(SessionRole::Lock)?;
        schema::lock(&mut c)?;
        let done = changed_settings::put_back(&mut c)?;
        c.publish()?;
        if !done.is_empty() {
            // Until the server has read them, sessions would still see the settings of a level.
            self.reload()?;
        }
        Ok((RunLock::new(c), done))
    }
}

impl Doctor for Postgres {
    fn doctor(&self) -> Result<Vec<Finding>, TargetError> {
        let several = self.instances.len() > 1;
        let mut findings = Vec::new();
        for (i, instance) in self.instances.iter().enumerate() {
            let examine = if instance.standby { doctor::examine_standby } else { doctor::examine };
            let mut found = self.session(instance, SessionRole::Inspect, |c| examine(c, instance))?;
            found.extend(self.admin(instance, doctor::lost_settings)?);
            if !instance.standby && found.iter().all(|f| f.severity < Severity::Impossible) {
                found.extend(doctor::durable_commit(&instance.endpoint)?);
            }
            if self.pair.is_some() {
                found.extend(self.session(instance, SessionRole::Inspect, pair::findings)?);
            }
            if several {
                for finding in &mut found {
                    finding.subject = format!("{} (instance {})", finding.subject, i + 1);
                }
            }
            findings.append(&mut found);
        }
        if let Some(why) = &self.gaps.proc_stat {
            findings.push(Finding::new("cpu", Severity::Warning, "CPU figures", "–", why.clone()));
        }
        Ok(findings)
    }

    fn privileges(&self) -> Result<Vec<Privilege>, TargetError> {
        self.at_primary(grants::privileges)
    }

    fn capabilities(&self) -> Result<Capabilities, TargetError> {
        let may = self.at_primary(|c| c.value(KNOWLEDGE.texts.may_checkpoint.at(self.version).unwrap_or_default()))?;
        let mut missing = Vec::new();
        if may.as_deref() != Some("t") {
            let privilege = KNOWLEDGE.texts.checkpoint_privilege.at(self.version).unwrap_or_default();
            let why = format!("the role is not {privilege}");
            missing.extend(Driver::ALL.map(|d| (d, Capability::Checkpoint, why.clone())));
        }
        Ok(Capabilities { missing, ..Capabilities::default() })
    }

    fn job_limit(&self) -> Result<JobLimit, TargetError> {
        let mut tightest: Option<JobLimit> = None;
        for instance in &self.instances {
            let mut limit = self.admin(instance, |c| doctor::free_sessions(c, &instance.endpoint.name))?;
            // Jobs are spread evenly over the nodes: this instance gets the share of its nodes.
            let nodes = self.facts.nodes;
            // A run may use fewer nodes than there are, but only those before the standbys do all of its work alone.
            if nodes > instance.nodes && self.facts.read_only_nodes == 0 {
                limit.jobs = limit.jobs.map(|jobs| jobs.saturating_mul(nodes) / instance.nodes.max(1));
                limit.because = format!("{} on {}", limit.because, instance.endpoint.config.place());
            }
            if tightest.as_ref().is_none_or(|t| limit.jobs < t.jobs) {
                tightest = Some(limit);
            }
        }
        tightest.ok_or_else(|| TargetError::Usage("the target has no node".into()))
    }
}

impl ClientDriver for Postgres {
    fn client_session(&self, work: &Work, job: u32) -> Result<Box<dyn ClientSession>, TargetError> {
        Ok(Box::new(PgClientSession::open(self.job_session(work, job)?, work)?))
    }
}

impl Observation for Postgres {
    fn observer(&self) -> Result<Box<dyn Observer>, TargetError> {
        self.observer_of(Scope::Jobs)
    }

    fn evidence(&self, work: &Work) -> Result<Option<i64>, TargetError> {
        self.evidence_query(work)
    }

    fn own_commits(&self) -> Vec<u64> {
        self.instances.iter().map(|instance| instance.endpoint.ledger.total()).collect()
    }

    fn end_jobs(&self, jobs: std::ops::Range<u32>, _: &[Vec<u32>]) -> Result<Option<u32>, TargetError> {
        let mut ended = 0;
        for instance in &self.instances {
            let prefix = instance.endpoint.job_prefix();
            let names: Vec<String> = jobs.clone().map(|job| sql::literal(&format!("{prefix}{job}"))).collect();
            let query = format!(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() \
                 AND application_name IN ({})",
                names.join(", ")
            );
            let count = self.session(instance, SessionRole::Admin, |c| c.value(&query))?;
            ended += count.and_then(|n| n.parse::<u32>().ok()).unwrap_or(0);
        }
        Ok(Some(ended))
    }

    fn absent_columns(&self) -> Vec<(&'static Column, String)> {
        let mut absent = vec![(column::FLASH_CACHE_WRITE_PCT, "PostgreSQL has no flash cache".to_owned())];
        if let Some(why) = KNOWLEDGE.texts.no_redo_blocks.at(self.version) {
            absent.push((column::REDO_BLOCKS_PER_S, why.to_owned()));
        }
        if let Some(why) = &self.gaps.redo_syncs {
            absent.push((column::REDO_SYNC_WRITES_PER_S, why.clone()));
            absent.push((column::COMMITS_PER_REDO_SYNC, why.clone()));
        }
        let read_times = [column::READ_TIME_US_MEAN, column::READ_WAIT_PCT].map(|c| (c, self.gaps.read_times));
        let log_times = [column::REDO_WRITE_TIME_US, column::REDO_SYNC_TIME_US].map(|c| (c, self.gaps.log_times));
        let times = read_times.into_iter().chain(log_times);
        absent.extend(times.filter_map(|(column, why)| Some((column, why?.to_owned()))));
        if let Some(why) = &self.gaps.proc_stat {
            let cpu = column::CPU_SHARES;
            absent.extend(cpu.map(|id| (id, why.clone())));
        }
        if !self.instances.iter().all(|i| i.local) {
            let without = "and PostgreSQL does not show its devices";
            absent.extend(absent_devices(self.cloud, without));
        }
        absent
    }
}

impl DatabaseDriver for Postgres {
    fn install(&self, work: &Work) -> Result<(), TargetError> {
        self.at_primary(|c| schema::install(c, work))?;
        self.wait_replayed()
    }

    fn database_session(&self, work: &Work, job: u32) -> Result<Box<dyn DatabaseSession>, TargetError> {
        Ok(Box::new(PgDatabaseSession::open(self.job_session(work, job)?, work, job)?))
    }

    fn overhead_ns(&self) -> Result<Option<f64>, TargetError> {
        const ITERATIONS: u32 = 20_000;
        let mut times = self.at_primary(|c| {
            let block = procedure::overhead(ITERATIONS);
            let mut times = Vec::new();
            for _ in 0..3 {
                c.query(&block)?;
                c.add_own_commits(u64::from(ITERATIONS));
                let taken = c.value(&format!("SELECT current_setting('{}')", procedure::OVERHEAD))?;
                times.extend(taken.and_then(|t| t.parse::<f64>().ok()));
            }
            Ok(times)
        })?;
        times.sort_by(f64::total_cmp);
        Ok(times.get(times.len() / 2).copied())
    }
}

impl Queries for Postgres {
    fn number(&self, work: &Work, query: &str) -> Result<Number, TargetError> {
        let sql = sql::query(work, query)?;
        Number::read(self.at_primary(|c| c.value(&sql))?)
    }

    fn table_bytes(&self, work: &Work, table: &str) -> Result<Option<u64>, TargetError> {
        let name = sql::literal(&sql::table_name(work, table));
        let size = self.at_primary(|c| c.value(&format!("SELECT pg_table_size(to_regclass({name}))")))?;
        Ok(size.and_then(|s| s.parse().ok()))
    }
}

impl LoadsTables for Postgres {
    fn open_loader(&self) -> Result<Box<dyn Loader + '_>, TargetError> {
        Ok(Box::new(PgLoader::open(&self.primary().endpoint)?))
    }

    fn loaded(&self) -> &LoadedTables {
        &self.loaded
    }
}

impl BlockCache for Postgres {
    fn set_cache(&self, data_bytes: Option<u64>) -> Result<Option<u64>, TargetError> {
        if let Some(server) = &self.server {
            server.lock().unwrap_or_else(PoisonError::into_inner).set_cache(data_bytes)?;
        }
        let size = self.at_primary(|c| {
            c.value("SELECT setting::bigint * 8192 FROM pg_settings WHERE name = 'shared_buffers' AND unit = '8kB'")
        })?;
        Ok(size.and_then(|s| s.parse().ok()))
    }
}

impl Checkpoints for Postgres {
    fn checkpoint(&self) -> Result<(), TargetError> {
        self.at_primary(|c| c.query("CHECKPOINT")).map(drop)
    }
}

impl ParallelQueries for Postgres {
    fn max_parallel_workers(&self) -> Result<Option<WorkerLimit>, TargetError> {
        self.at_primary(|c| Ok(parallel::worker_limit(&PgSettings::read(c)?)))
    }

    fn try_parallel(&self, work: &Work) -> Result<Option<ParallelWorkers>, TargetError> {
        self.session(self.primary(), SessionRole::job(work, 0), |c| parallel::count_workers(c, work))
    }
}
