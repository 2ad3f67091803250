//! The target: its nodes and the server instances behind them. Its roles are in `roles.rs`.

use std::sync::{Arc, Mutex};

use super::config::Address;
use super::connect::{Endpoint, SessionRole};
use super::ledger::Ledger;
use super::loading::PgLoader;
use super::observer::{
    BUFFER_WAIT_EVENTS, CounterGaps, LOG_FILE_EVENTS, LOG_SYNC_EVENTS, LOG_WRITE_EVENTS, PgObserver, uncounted_syncs,
};
use super::settings::PgSettings;
use super::temp::TempServer;
use super::versions::Version;
use super::wire::Connection;
use super::{sql, statements};
use crate::cloud::{Cloud, Part, why_absent};
use crate::data_set::Loader;
use crate::env::of_target;
use crate::error::TargetError;
use crate::facts::{Facts, Runs};
use crate::request::OpenRequest;
use crate::role::Observer;
use crate::scope::Scope;
use crate::workload_tables::LoadedTables;

/// A server instance. Several nodes may lead to the same one.
pub(super) struct PgInstance {
    pub(super) endpoint: Arc<Endpoint>,
    /// Unique identity, see [`identity`].
    pub(super) identity: String,
    /// Number of nodes that lead to it.
    pub(super) nodes: u32,
    /// Whether it runs on this machine.
    pub(super) local: bool,
}

/// A PostgreSQL target.
pub(super) struct Postgres {
    pub(super) endpoints: Vec<Arc<Endpoint>>,
    /// Index of the instance behind each node.
    pub(super) instance_of: Vec<usize>,
    pub(super) instances: Vec<PgInstance>,
    pub(super) version: Version,
    pub(super) version_text: String,
    pub(super) ledger: Ledger,
    pub(super) gaps: CounterGaps,
    pub(super) facts: Facts,
    /// The managed service that runs it.
    pub(super) cloud: Option<&'static Cloud>,
    pub(super) kind: &'static str,
    pub(super) url: String,
    /// Workload tables known to be complete.
    pub(super) loaded: LoadedTables,
    /// The private server, if this is one. Last field: it must stop after all else is dropped.
    pub(super) server: Option<Arc<Mutex<TempServer>>>,
}

impl Postgres {
    /// Opens `url` and the nodes of `request`.
    pub(super) fn open(
        kind: &'static str,
        url: &str,
        request: &OpenRequest,
        server: Option<Arc<Mutex<TempServer>>>,
    ) -> Result<Postgres, TargetError> {
        let env = of_target(server.is_some());
        let mut endpoints = Vec::new();
        for node in std::iter::once(url).chain(request.nodes.iter().map(String::as_str)) {
            endpoints.push(Arc::new(Endpoint::new(node, request, env)?));
        }
        let ledger = Ledger::default();
        let mut instances: Vec<PgInstance> = Vec::new();
        let mut instance_of = Vec::new();
        let mut found: Option<(Version, String, PgSettings, Option<String>)> = None;
        let mut gaps = CounterGaps::default();
        for endpoint in &endpoints {
            let mut c = endpoint.connect(SessionRole::Inspect)?;
            let identity = identity(&mut c, endpoint)?;
            let known = instances.iter().position(|i| i.identity == identity);
            if let Some((_, text, _, _)) = found.as_ref().filter(|(version, _, _, _)| *version != c.version) {
                return Err(TargetError::Refused(format!(
                    "the nodes have different versions: {text} and {}. All nodes must have the same version",
                    c.version_text
                )));
            }
            match known {
                Some(i) => {
                    if instances[i].endpoint.config.database != endpoint.config.database {
                        return Err(TargetError::Usage(format!(
                            "the nodes '{}' and '{}' name two databases of one server: all nodes must use the same database",
                            instances[i].endpoint.config.shown, endpoint.config.shown
                        )));
                    }
                    instances[i].nodes += 1;
                    instance_of.push(i);
                }
                None => {
                    let local = is_local(endpoint, c.key.pid);
                    if found.is_none() {
                        let settings = PgSettings::read(&mut c)?;
                        if server.is_some() {
                            statements::create_on_private(&mut c, &settings)?;
                        }
                        gaps.log_times = (!settings.is_on("track_wal_io_timing"))
                            .then_some("track_wal_io_timing is off: set it on for the whole server");
                        let timed = c.value(&format!("SELECT {}", c.version.reads_are_timed()))?;
                        gaps.read_times = (timed.as_deref() != Some("t")).then_some(
                            "track_io_timing is off: GRANT SET ON PARAMETER track_io_timing (from 15 on), or set it on for the role",
                        );
                        let unreadable = if local { None } else { proc_stat_refusal(&mut c, settings.cloud())? };
                        found = Some((c.version, c.version_text.clone(), settings, unreadable));
                    }
                    instance_of.push(instances.len());
                    instances.push(PgInstance { endpoint: Arc::clone(endpoint), identity, nodes: 1, local });
                }
            }
            c.publish(&ledger)?;
        }
        let Some((version, version_text, settings, unreadable)) = found else {
            return Err(TargetError::Usage("the target has no node".into()));
        };
        gaps.redo_syncs = uncounted_syncs(&settings);
        match (instances.iter().all(|i| i.local), instances.len(), unreadable) {
            (true, _, _) => {}
            (false, 1, None) => gaps.reads_proc_stat = true,
            (false, 1, Some(why)) => gaps.proc_stat = Some(why),
            (false, _, _) => {
                gaps.proc_stat = Some("the instances run on several machines: their CPUs are not added up".into());
            }
        }
        let block_bytes = settings.number("block_size").map_or(8192, |b| b as u64);
        let facts = Facts {
            nodes: endpoints.len() as u32,
            block_bytes: Some(block_bytes),
            in_place_pct: sql::IN_PLACE_PCT,
            // Measured on 15: 2 to 3 for each worker that starts.
            commits_of_workers: Some(
                "the server also counts transactions that each worker of a parallel query makes when it starts",
            ),
            publishes_counters: true,
            // Without a forced flush, sessions report at most once a second (PGSTAT_STAT_INTERVAL).
            counter_lag_s: if version.flush_stats().is_some() { 0.0 } else { 1.0 },
            log_sync_events: LOG_SYNC_EVENTS,
            buffer_wait_events: BUFFER_WAIT_EVENTS,
            log_write_events: LOG_WRITE_EVENTS,
            log_file_events: LOG_FILE_EVENTS,
            lock_wait_events: &["Lock:", "LWLock:", "IPC:XactGroupUpdate", "IPC:ProcarrayGroupUpdate"],
            idle_events: &["Client:idle", "Client:ClientRead"],
            growth_is_written: version.growth_is_written(),
            empty_query: "SELECT 1",
            ..Facts::of(Runs::Apart)
        };
        let url = if server.is_some() { request.url.clone() } else { crate::redact(url) };
        Ok(Postgres {
            endpoints,
            instance_of,
            instances,
            version,
            version_text,
            ledger,
            gaps,
            facts,
            cloud: settings.cloud(),
            kind,
            url,
            loaded: LoadedTables::default(),
            server,
        })
    }

    /// Runs `f` in an administrative session of `instance`.
    pub(super) fn admin<T>(
        &self,
        instance: &PgInstance,
        f: impl FnOnce(&mut Connection) -> Result<T, TargetError>,
    ) -> Result<T, TargetError> {
        self.session(instance, SessionRole::Admin, f)
    }

    /// An observer of all instances.
    pub(super) fn observer_of(&self, scope: Scope) -> Result<Box<dyn Observer>, TargetError> {
        let endpoints: Vec<_> = self.instances.iter().map(|i| &i.endpoint).collect();
        let local = self.instances.iter().all(|i| i.local);
        Ok(Box::new(PgObserver::open(&endpoints, &self.ledger, &self.gaps, local, scope)?))
    }

    pub(super) fn session<T>(
        &self,
        instance: &PgInstance,
        role: SessionRole,
        f: impl FnOnce(&mut Connection) -> Result<T, TargetError>,
    ) -> Result<T, TargetError> {
        let mut c = instance.endpoint.connect(role)?;
        let done = f(&mut c);
        // A failed step may have committed before: publish in both cases.
        match (&done, c.publish(&self.ledger)) {
            (Ok(_), Err(e)) => Err(e),
            _ => done,
        }
    }

    /// As [`Self::admin`], in each instance in turn.
    pub(super) fn each<T>(
        &self,
        mut f: impl FnMut(&PgInstance, &mut Connection) -> Result<T, TargetError>,
    ) -> Result<Vec<T>, TargetError> {
        self.instances.iter().map(|i| self.admin(i, |c| f(i, c))).collect()
    }

    /// Runs `f` with a loader on `instance`.
    pub(super) fn loader<T>(
        &self,
        instance: &PgInstance,
        f: impl FnOnce(&mut PgLoader<'_>) -> Result<T, TargetError>,
    ) -> Result<T, TargetError> {
        let mut loader = PgLoader::open(&instance.endpoint, &self.ledger)?;
        let done = f(&mut loader)?;
        loader.close()?;
        Ok(done)
    }

    pub(super) fn endpoint_of(&self, job: u32) -> Result<&Endpoint, TargetError> {
        let node = job as usize % self.endpoints.len().max(1);
        self.endpoints.get(node).map(Arc::as_ref).ok_or_else(|| TargetError::Usage("the target has no node".into()))
    }
}

/// Identity of an instance: its system identifier (equal for a copy) and its start time (different for a copy).
fn identity(c: &mut Connection, endpoint: &Endpoint) -> Result<String, TargetError> {
    let sql = "SELECT (SELECT system_identifier FROM pg_control_system()) || ' ' || \
               date_part('epoch', pg_postmaster_start_time())";
    match c.value(sql) {
        Ok(Some(identity)) => Ok(identity),
        // Without the privilege: the address.
        Ok(None) | Err(TargetError::Statement(_)) => Ok(endpoint.config.place()),
        Err(e) => Err(e),
    }
}

/// Whether the server runs on this machine: its address is local, and `pid` is a PostgreSQL process here (not so behind
/// a tunnel or a container's port).
fn is_local(endpoint: &Endpoint, pid: u32) -> bool {
    let local_address = match &endpoint.config.address {
        Address::Unix(_) => true,
        Address::Tcp(host) => {
            host.eq_ignore_ascii_case("localhost") || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
    };
    let process = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    local_address && process.is_ok_and(|name| name.trim().starts_with("postgres"))
}

/// Host name and memory, bytes, of the server's machine, as its kernel states them; `None` without the privilege.
pub(super) fn machine(c: &mut Connection) -> Result<(Option<String>, Option<u64>), TargetError> {
    let mut read = |file: &str| match c.value(&format!("SELECT pg_read_file('{file}')")) {
        Err(TargetError::Statement(_)) => Ok(None),
        text => text,
    };
    let (host, memory) = (read("/proc/sys/kernel/hostname")?, read("/proc/meminfo")?);
    Ok((host.map(|name| name.trim().to_owned()), memory.as_deref().and_then(crate::temp::memory::total)))
}

/// Why `/proc/stat` cannot be read through the server; `None` if it can.
fn proc_stat_refusal(c: &mut Connection, cloud: Option<&Cloud>) -> Result<Option<String>, TargetError> {
    const GRANTS: &str = "and the role may not read its /proc/stat: GRANT pg_read_server_files and EXECUTE ON FUNCTION \
         pg_catalog.pg_read_file(text)";
    match c.value("SELECT left(pg_read_file('/proc/stat'), 4)") {
        Ok(Some(text)) if text.starts_with("cpu") => Ok(None),
        Ok(_) => Ok(Some("the server's machine has no /proc/stat".into())),
        Err(TargetError::Statement(_)) if c.last_code == "42501" => Ok(Some(why_absent(cloud, Part::Cpus, GRANTS))),
        Err(TargetError::Statement(e)) => Ok(Some(format!("/proc/stat cannot be read through the server: {e}"))),
        Err(e) => Err(e),
    }
}
