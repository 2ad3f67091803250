//! The target: its nodes, the instances behind them, and what is asked of them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use loadline_model::manifest::TargetInfo;
use loadline_model::{Capabilities, Capability, Column, Driver, Finding, Severity, column};

use super::client::Client;
use super::config::Address;
use super::connect::{Endpoint, Role};
use super::ledger::Ledger;
use super::loading::{self, PgLoader};
use super::observer::{BUFFER_WAIT_EVENTS, Blind, LOG_SYNC_EVENTS, PgObserver, uncounted_syncs};
use super::settings::Settings;
use super::slice::Database;
use super::temp::TempServer;
use super::versions::Version;
use super::wire::Connection;
use super::{doctor, parallel, procedure, room, schema, sql};
use crate::data_set::{self, FoundTable, LoadProgress, Loader};
use crate::error::TargetError;
use crate::file_facts::FileFacts;
use crate::number::Number;
use crate::own_tables::{Own, Whole};
use crate::parallel::Together;
use crate::request::OpenRequest;
use crate::room::LogRoom;
use crate::session::{ClientSession, DatabaseSession, JobLimit, Observer, RunLock, Target};
use crate::work::Work;

/// A server that nodes lead to. Several nodes may lead to the same one.
struct Instance {
    endpoint: Arc<Endpoint>,
    /// What tells it from others.
    identity: String,
    /// Nodes that lead to it.
    nodes: u32,
    /// Whether it runs on this machine.
    local: bool,
}

/// A PostgreSQL target.
pub(super) struct Postgres {
    endpoints: Vec<Arc<Endpoint>>,
    /// Number of the instance behind each node.
    instance_of: Vec<usize>,
    instances: Vec<Instance>,
    version: Version,
    version_text: String,
    ledger: Ledger,
    blind: Blind,
    block_bytes: u64,
    kind: &'static str,
    url: String,
    /// The workload's own tables that need not be counted.
    whole: Whole,
    /// The private server, if this is one. Dropped last: it stops with us.
    server: Option<Mutex<TempServer>>,
}

impl Postgres {
    /// Opens `url` and the nodes of `request`.
    pub(super) fn open(
        kind: &'static str,
        url: &str,
        request: &OpenRequest,
        server: Option<TempServer>,
    ) -> Result<Postgres, TargetError> {
        let mut endpoints = Vec::new();
        for node in std::iter::once(url).chain(request.nodes.iter().map(String::as_str)) {
            endpoints.push(Arc::new(Endpoint::new(node, request)?));
        }
        let ledger = Ledger::default();
        let mut instances: Vec<Instance> = Vec::new();
        let mut instance_of = Vec::new();
        let mut found: Option<(Version, String, Settings, Option<String>)> = None;
        for endpoint in &endpoints {
            let mut c = endpoint.connect(Role::Look)?;
            let identity = identity(&mut c, endpoint)?;
            let known = instances.iter().position(|i| i.identity == identity);
            if let Some((_, text, _, _)) = found.as_ref().filter(|(version, _, _, _)| *version != c.version) {
                return Err(TargetError::Refused(format!(
                    "the nodes have different versions: {text} and {}. All nodes must have the same",
                    c.version_text
                )));
            }
            match known {
                Some(i) => {
                    if instances[i].endpoint.config.database != endpoint.config.database {
                        return Err(TargetError::Usage(format!(
                            "the nodes «{}» and «{}» are two databases of one server: all nodes must use the same",
                            instances[i].endpoint.config.shown, endpoint.config.shown
                        )));
                    }
                    instances[i].nodes += 1;
                    instance_of.push(i);
                }
                None => {
                    let local = is_local(endpoint, c.key.pid);
                    if found.is_none() {
                        let settings = Settings::read(&mut c)?;
                        let unreadable = if local { None } else { proc_stat_refusal(&mut c)? };
                        found = Some((c.version, c.version_text.clone(), settings, unreadable));
                    }
                    instance_of.push(instances.len());
                    instances.push(Instance { endpoint: Arc::clone(endpoint), identity, nodes: 1, local });
                }
            }
            c.publish(&ledger)?;
        }
        let Some((version, version_text, settings, unreadable)) = found else {
            return Err(TargetError::Usage("the target has no node".into()));
        };
        let mut blind = Blind { redo_syncs: uncounted_syncs(&settings), ..Blind::default() };
        match (instances.iter().all(|i| i.local), instances.len(), unreadable) {
            (true, _, _) => {}
            (false, 1, None) => blind.reads_proc_stat = true,
            (false, 1, Some(why)) => blind.proc_stat = Some(why),
            (false, _, _) => {
                blind.proc_stat = Some("the instances run on several machines: their CPUs are not added up".into());
            }
        }
        let block_bytes = settings.number("block_size").map_or(8192, |b| b as u64);
        let url = if server.is_some() { request.url.clone() } else { crate::redact(url) };
        Ok(Postgres {
            endpoints,
            instance_of,
            instances,
            version,
            version_text,
            ledger,
            blind,
            block_bytes,
            kind,
            url,
            whole: Whole::default(),
            server: server.map(Mutex::new),
        })
    }

    /// Runs `f` in an administrative session of `instance`.
    fn admin<T>(
        &self,
        instance: &Instance,
        f: impl FnOnce(&mut Connection) -> Result<T, TargetError>,
    ) -> Result<T, TargetError> {
        self.session(instance, Role::Admin, f)
    }

    fn session<T>(
        &self,
        instance: &Instance,
        role: Role,
        f: impl FnOnce(&mut Connection) -> Result<T, TargetError>,
    ) -> Result<T, TargetError> {
        let mut c = instance.endpoint.connect(role)?;
        let done = f(&mut c);
        // What a failed step committed before is counted by the server as well.
        match (&done, c.publish(&self.ledger)) {
            (Ok(_), Err(e)) => Err(e),
            _ => done,
        }
    }

    /// As [`Self::admin`], in each instance in turn.
    fn each<T>(
        &self,
        mut f: impl FnMut(&Instance, &mut Connection) -> Result<T, TargetError>,
    ) -> Result<Vec<T>, TargetError> {
        self.instances.iter().map(|i| self.admin(i, |c| f(i, c))).collect()
    }

    /// Runs `f` with a session of `instance` that loads.
    fn loader<T>(
        &self,
        instance: &Instance,
        f: impl FnOnce(&mut PgLoader<'_>) -> Result<T, TargetError>,
    ) -> Result<T, TargetError> {
        let mut loader = PgLoader::open(&instance.endpoint, &self.ledger)?;
        let done = f(&mut loader)?;
        loader.close()?;
        Ok(done)
    }

    fn endpoint_of(&self, job: u32) -> Result<&Endpoint, TargetError> {
        let node = job as usize % self.endpoints.len().max(1);
        self.endpoints.get(node).map(Arc::as_ref).ok_or_else(|| TargetError::Usage("the target has no node".into()))
    }
}

impl Target for Postgres {
    fn info(&self) -> Result<TargetInfo, TargetError> {
        let settings = match self.instances.first() {
            Some(instance) => self.session(instance, Role::Look, Settings::read)?,
            None => Settings::default(),
        };
        let local = self.instances.iter().all(|i| i.local);
        let data_dir = settings.get("data_directory").map(str::to_owned);
        let log_dir = data_dir.as_ref().map(|dir| {
            let dir = std::path::Path::new(dir).join("pg_wal");
            // The log is often a link to another device.
            let dir = if local { dir.canonicalize().unwrap_or(dir) } else { dir };
            dir.display().to_string()
        });
        let own = self.server.as_ref().map(|s| s.lock().unwrap_or_else(PoisonError::into_inner));
        let mut notes = own.map_or_else(Vec::new, |s| s.notes().to_vec());
        if self.endpoints.len() > 1 {
            notes.push(format!(
                "{} nodes lead to {} server instances; each instance's counters are counted once",
                self.endpoints.len(),
                self.instances.len()
            ));
        }
        notes.push(
            "autovacuum is off for loadline's own tables of rows that are updated in place: it would log pages that no transaction has changed".into(),
        );
        notes.push(
            "queries and index builds of the jobs are not parallel (max_parallel_workers_per_gather and \
             max_parallel_maintenance_workers = 0 in their sessions), but for the workload that asks for it: there also min_parallel_table_scan_size, parallel_setup_cost and \
             parallel_tuple_cost = 0, parallel_leader_participation = on, and the table option parallel_workers"
                .into(),
        );
        Ok(TargetInfo {
            kind: self.kind.into(),
            product: "PostgreSQL".into(),
            version: self.version_text.clone(),
            url: self.url.clone(),
            nodes: self.nodes(),
            local,
            settings: settings.stated(),
            log_dir,
            data_dir,
            notes,
            ..TargetInfo::default()
        })
    }

    fn nodes(&self) -> u32 {
        self.endpoints.len() as u32
    }

    fn capabilities(&self) -> Result<Capabilities, TargetError> {
        let may = self.each(|_, c| c.value(self.version.may_checkpoint()))?;
        let mut missing = Vec::new();
        if may.iter().any(|may| may.as_deref() != Some("t")) {
            let why = format!("the role is not {}", self.version.checkpoint_privilege());
            missing.extend(Driver::ALL.map(|d| (d, Capability::Checkpoint, why.clone())));
        }
        Ok(Capabilities { missing, ..Capabilities::default() })
    }

    fn doctor(&self) -> Result<Vec<Finding>, TargetError> {
        let several = self.instances.len() > 1;
        let mut findings = Vec::new();
        for (i, instance) in self.instances.iter().enumerate() {
            let mut found = self.session(instance, Role::Look, |c| doctor::examine(c, instance.local))?;
            if several {
                for finding in &mut found {
                    finding.subject = format!("{} (instance {})", finding.subject, i + 1);
                }
            }
            findings.append(&mut found);
        }
        if let Some(why) = &self.blind.proc_stat {
            findings.push(Finding::new("cpu", Severity::Warning, "CPU figures", "–", why.clone()));
        }
        Ok(findings)
    }

    fn lock(&self) -> Result<RunLock, TargetError> {
        let mut held = Vec::new();
        for instance in &self.instances {
            let mut c = instance.endpoint.connect(Role::Lock)?;
            schema::lock(&mut c)?;
            c.publish(&self.ledger)?;
            held.push(c);
        }
        Ok(RunLock::new(held))
    }

    fn job_limit(&self) -> Result<JobLimit, TargetError> {
        let mut tightest: Option<JobLimit> = None;
        for instance in &self.instances {
            let mut limit = self.admin(instance, |c| doctor::free_sessions(c, &instance.endpoint.name))?;
            // Jobs are spread over the nodes in turn: this instance gets its nodes' share of them.
            let nodes = self.nodes();
            if nodes > instance.nodes {
                limit.jobs = limit.jobs.map(|jobs| jobs.saturating_mul(nodes) / instance.nodes.max(1));
                limit.because = format!("{} on {}", limit.because, instance.endpoint.config.place());
            }
            if tightest.as_ref().is_none_or(|t| limit.jobs < t.jobs) {
                tightest = Some(limit);
            }
        }
        tightest.ok_or_else(|| TargetError::Usage("the target has no node".into()))
    }

    fn create(&self, work: &Work) -> Result<(), TargetError> {
        self.whole.forget(work);
        self.each(|_, c| schema::create(c, work)).map(drop)
    }

    fn drop_own(&self, work: &Work) -> Result<(), TargetError> {
        self.whole.forget(work);
        self.each(|_, c| schema::drop_own(c, work)).map(drop)
    }

    fn load_watched(&self, work: &Work, jobs: u32, progress: &LoadProgress) -> Result<(), TargetError> {
        for (i, instance) in self.instances.iter().enumerate() {
            let here: Vec<u32> = (0..jobs)
                .filter(|job| self.instance_of.get(*job as usize % self.endpoints.len().max(1)) == Some(&i))
                .collect();
            let own = Own { work, jobs: &here, server: i, whole: &self.whole };
            loading::load(&instance.endpoint, &self.ledger, &own, progress)?;
        }
        Ok(())
    }

    fn data_set(&self) -> Result<Vec<FoundTable>, TargetError> {
        let mut all = Vec::new();
        for instance in &self.instances {
            all.extend(self.loader(instance, |l| data_set::found(l))?);
        }
        Ok(all)
    }

    fn drop_data_set(&self) -> Result<(), TargetError> {
        self.instances.iter().try_for_each(|i| self.loader(i, loading::drop_all))
    }

    fn reset(&self, work: &Work) -> Result<(), TargetError> {
        self.each(|_, c| schema::reset(c, work)).map(drop)
    }

    fn install(&self, work: &Work) -> Result<(), TargetError> {
        self.each(|_, c| schema::install(c, work)).map(drop)
    }

    fn log_room(&self, data: u64, indexes: u64) -> Result<LogRoom, TargetError> {
        let rooms = self.each(|_, c| room::log(c, data, indexes))?;
        Ok(rooms.into_iter().max_by_key(|r| r.bytes).unwrap_or_default())
    }

    fn in_place_pct(&self) -> u64 {
        sql::IN_PLACE_PCT
    }

    fn settle(&self) -> Result<Option<String>, TargetError> {
        let privilege = self.version.checkpoint_privilege();
        let said = self.each(|_, c| match c.query("CHECKPOINT") {
            Err(TargetError::Statement(_)) if c.last_code == "42501" => {
                Ok(Some(format!("no checkpoint before each test: the role is not {privilege}")))
            }
            done => done.map(|_| None),
        })?;
        Ok(said.into_iter().flatten().next())
    }

    fn checkpoint(&self) -> Result<(), TargetError> {
        self.each(|_, c| c.query("CHECKPOINT")).map(drop)
    }

    fn set_cache(&self, data_bytes: Option<u64>) -> Result<Option<u64>, TargetError> {
        if let Some(server) = &self.server {
            server.lock().unwrap_or_else(PoisonError::into_inner).set_cache(data_bytes)?;
        }
        let sizes = self.each(|_, c| {
            c.value("SELECT setting::bigint * 8192 FROM pg_settings WHERE name = 'shared_buffers' AND unit = '8kB'")
        })?;
        Ok(sizes.into_iter().map(|s| s?.parse::<u64>().ok()).sum())
    }

    fn block_bytes(&self) -> Option<u64> {
        Some(self.block_bytes)
    }

    fn client_session(&self, work: &Work, job: u32) -> Result<Box<dyn ClientSession>, TargetError> {
        Ok(Box::new(Client::open(self.endpoint_of(job)?, &self.ledger, work, job)?))
    }

    fn database_session(&self, work: &Work, job: u32) -> Result<Box<dyn DatabaseSession>, TargetError> {
        Ok(Box::new(Database::open(self.endpoint_of(job)?, &self.ledger, work, job)?))
    }

    fn in_database_overhead_ns(&self, _work: &Work) -> Result<Option<f64>, TargetError> {
        const ITERATIONS: u32 = 20_000;
        let Some(instance) = self.instances.first() else { return Ok(None) };
        let mut times = self.admin(instance, |c| {
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

    fn observer(&self) -> Result<Box<dyn Observer>, TargetError> {
        let endpoints: Vec<_> = self.instances.iter().map(|i| &i.endpoint).collect();
        Ok(Box::new(PgObserver::open(&endpoints, &self.ledger, &self.blind)?))
    }

    fn table_bytes(&self, work: &Work, table: &str) -> Result<Option<u64>, TargetError> {
        let name = sql::literal(&sql::table_name(work, table));
        let sizes = self.each(|_, c| c.value(&format!("SELECT pg_table_size(to_regclass({name}))")))?;
        Ok(sizes.into_iter().map(|s| s?.parse::<u64>().ok()).sum())
    }

    fn most_together(&self) -> Result<Option<(u32, String)>, TargetError> {
        let limits = self.each(|_, c| Ok(parallel::most(&Settings::read(c)?)))?;
        Ok(limits.into_iter().flatten().min_by_key(|(most, _)| *most))
    }

    fn together(&self, work: &Work) -> Result<Option<Together>, TargetError> {
        let Some(instance) = self.instances.first() else { return Ok(None) };
        let role = Role::Job { job: 0, nowait: false, together: work.together().unwrap_or(1) };
        self.session(instance, role, |c| parallel::attempt(c, work))
    }

    /// Measured on 15: 2 to 3 for each worker that starts.
    fn commits_of_workers(&self) -> Option<&'static str> {
        Some("the server also counts transactions that each worker of a parallel query makes for itself when it starts")
    }

    fn number(&self, work: &Work, query: &str) -> Result<Option<Number>, TargetError> {
        let sql = sql::query(work, query)?;
        Number::of_all(self.each(|_, c| c.value(&sql))?).map(Some)
    }

    fn absent_columns(&self) -> Vec<(&'static Column, String)> {
        let mut absent = vec![(column::FLASH_CACHE_WRITE_PCT, "PostgreSQL has no flash cache".to_owned())];
        if let Some(why) = self.version.no_redo_blocks() {
            absent.push((column::REDO_BLOCKS_PER_S, why.to_owned()));
        }
        if let Some(why) = &self.blind.redo_syncs {
            absent.push((column::REDO_SYNC_WRITES_PER_S, why.clone()));
            absent.push((column::COMMITS_PER_REDO_SYNC, why.clone()));
        }
        if let Some(why) = &self.blind.proc_stat {
            let cpu = column::CPU_SHARES;
            absent.extend(cpu.map(|id| (id, why.clone())));
        }
        absent
    }

    fn publishes_counters(&self) -> bool {
        true
    }

    fn file_facts(&self) -> FileFacts {
        FileFacts { growth_is_written: self.version.growth_is_written(), ..FileFacts::default() }
    }

    fn counter_lag_s(&self) -> f64 {
        // Without a way to hurry them, sessions report once a second (PGSTAT_STAT_INTERVAL) at most.
        if self.version.flush_stats().is_some() { 0.0 } else { 1.0 }
    }

    fn buffer_wait_events(&self) -> &'static [&'static str] {
        BUFFER_WAIT_EVENTS
    }

    fn log_sync_events(&self) -> &'static [&'static str] {
        LOG_SYNC_EVENTS
    }

    fn clean(&self) -> Result<Vec<String>, TargetError> {
        let _lock = self.lock()?;
        Ok(self.each(|_, c| schema::clean(c, &BTreeSet::new()))?.concat())
    }

    fn clean_after_run(&self, keep_data: bool) -> Result<Vec<String>, TargetError> {
        let _lock = self.lock()?;
        let mut removed = Vec::new();
        for instance in &self.instances {
            let kept = self.loader(instance, |l| {
                if keep_data {
                    data_set::keep(l)?;
                }
                data_set::kept(l)
            })?;
            removed.extend(self.admin(instance, |c| schema::clean(c, &kept))?);
        }
        Ok(removed)
    }
}

/// What tells this instance from others: its system identifier (a copy of it has the same) and when
/// it was started (a copy has not).
fn identity(c: &mut Connection, endpoint: &Endpoint) -> Result<String, TargetError> {
    let sql = "SELECT (SELECT system_identifier FROM pg_control_system()) || ' ' || \
               date_part('epoch', pg_postmaster_start_time())";
    match c.value(sql) {
        Ok(Some(identity)) => Ok(identity),
        // Not allowed: then the address has to do.
        Ok(None) | Err(TargetError::Statement(_)) => Ok(endpoint.config.place()),
        Err(e) => Err(e),
    }
}

/// Whether the server with process `pid` runs on this machine: it is reached without a network, and
/// the process is one of PostgreSQL's here (not so behind a tunnel or a container's port).
fn is_local(endpoint: &Endpoint, pid: u32) -> bool {
    let near = match &endpoint.config.address {
        Address::Unix(_) => true,
        Address::Tcp(host) => {
            host.eq_ignore_ascii_case("localhost") || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
    };
    let process = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    near && process.is_ok_and(|name| name.trim().starts_with("postgres"))
}

/// Why the server does not let us read its machine's `/proc/stat`, if it does not.
fn proc_stat_refusal(c: &mut Connection) -> Result<Option<String>, TargetError> {
    match c.value("SELECT left(pg_read_file('/proc/stat'), 4)") {
        Ok(Some(text)) if text.starts_with("cpu") => Ok(None),
        Ok(_) => Ok(Some("the server's machine has no /proc/stat".into())),
        Err(TargetError::Statement(_)) if c.last_code == "42501" => {
            Ok(Some("the role may not read /proc/stat through the server: GRANT pg_read_server_files TO …".into()))
        }
        Err(TargetError::Statement(e)) => Ok(Some(format!("/proc/stat cannot be read through the server: {e}"))),
        Err(e) => Err(e),
    }
}
