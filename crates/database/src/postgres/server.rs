//! The target: its nodes and the server instances behind them. Its roles are in `roles.rs`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connect::{Endpoint, SessionRole};
use super::knowledge::{KNOWLEDGE, Version};
use super::pair::Pair;
use super::settings::{CounterGaps, PgSettings, refuse_placeholders, uncounted_syncs};
use super::standbys::Identity;
use super::temp::TempServer;
use super::wire::{Connection, Values};
use super::{sql, standbys};
use crate::cloud::{Cloud, why_absent};
use crate::env::of_target;
use crate::error::{Cause, TargetError, unless_refused};
use crate::facts::{Facts, Runs};
use crate::request::{OpenRequest, Way};
use crate::servers::Servers;
use crate::target::{Settings, Target};
use crate::temp::Server;
use crate::work::Work;
use crate::workload_tables::LoadedTables;

const RELOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// A server instance. Several nodes may lead to the same one.
#[derive(Clone)]
pub(super) struct PgInstance {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) identity: Identity,
    /// Whether it is a standby of the first instance: it only reads.
    pub(super) standby: bool,
    pub(super) nodes: u32,
    pub(super) local: bool,
}

pub(super) struct Postgres {
    /// The primary first, then its standbys; or the one standby that the target is.
    pub(super) nodes: Servers<PgInstance, Arc<Endpoint>>,
    pub(super) version: Version,
    pub(super) version_text: String,
    pub(super) gaps: CounterGaps,
    pub(super) facts: Facts,
    /// The managed service that runs it.
    pub(super) cloud: Option<&'static Cloud>,
    pub(super) kind: &'static str,
    pub(super) url: String,
    /// The standbys that commits can wait for: those of a private server, or the user's.
    pub(super) pair: Option<Pair>,
    /// The proxy or pooler through which jobs go now.
    pub(super) via: Mutex<Option<Arc<Endpoint>>>,
    /// Workload tables known to be complete.
    pub(super) loaded: LoadedTables,
    /// The private server, if this is one. Last field: it must stop after all else is dropped.
    pub(super) server: Option<Arc<Mutex<TempServer>>>,
}

/// A target whose nodes are opened one after the other.
struct Opening<'r> {
    request: &'r OpenRequest,
    private: bool,
    nodes: Servers<PgInstance, Arc<Endpoint>>,
    /// Version and settings of the first.
    first: Option<(Version, String, PgSettings)>,
    gaps: CounterGaps,
}

impl Opening<'_> {
    /// Connects to the node at `endpoint`, which gets the books of its instance if another node leads to the same.
    fn add(&mut self, mut endpoint: Endpoint) -> Result<(), TargetError> {
        let mut c = endpoint.connect(SessionRole::Inspect)?;
        if self.private {
            refuse_placeholders(&mut c, &self.request.settings)?;
        }
        let identity = Identity::read(&mut c, &endpoint, self.private)?;
        if let Some((_, text, _)) = self.first.as_ref().filter(|(version, ..)| *version != c.version) {
            return Err(TargetError::Refused(format!(
                "the nodes have different versions: {text} and {}. All nodes must have the same version",
                c.version_text
            )));
        }
        let instances = &mut self.nodes.instances;
        let known = instances.iter().position(|i| i.identity == identity).unwrap_or(instances.len());
        self.nodes.instance_of.push(known);
        if let Some(known) = instances.get_mut(known) {
            if known.endpoint.config.database != endpoint.config.database {
                return Err(TargetError::Usage(format!(
                    "the nodes '{}' and '{}' name two databases of one server: all nodes must use the same database",
                    known.endpoint.config.shown, endpoint.config.shown
                )));
            }
            known.nodes += 1;
            endpoint.ledger = Arc::clone(&known.endpoint.ledger);
            c.ledger = Arc::clone(&endpoint.ledger);
            self.nodes.endpoints.push(Arc::new(endpoint));
            return c.publish();
        }
        let local = is_local(&endpoint, c.pid);
        // A target that is one standby is left to the doctor.
        let standby = identity.standby && !instances.is_empty();
        match instances.first() {
            Some(first) => identity.check_standby(&endpoint, &first.identity, &first.endpoint)?,
            None => self.add_first(&mut c, local)?,
        }
        let endpoint = Arc::new(endpoint);
        self.nodes.endpoints.push(Arc::clone(&endpoint));
        self.nodes.instances.push(PgInstance { endpoint, identity, standby, nodes: 1, local });
        c.publish()
    }

    fn add_first(&mut self, c: &mut Connection, local: bool) -> Result<(), TargetError> {
        let settings = PgSettings::read(c)?;
        if self.private {
            create_extension(c, &settings)?;
        }
        self.gaps.log_times = (!settings.is_on("track_wal_io_timing"))
            .then_some("track_wal_io_timing is off: set it on for the whole server");
        let timed = match self.request.way {
            Way::Own => KNOWLEDGE.texts.reads_are_timed.at(c.version).unwrap_or_default(),
            // Their sessions have no settings of their own.
            Way::Direct | Way::Via(_) => "current_setting('track_io_timing') = 'on'",
        };
        self.gaps.read_times = (!c.row(&format!("SELECT {timed}"))?.is_true(0)).then_some(
            "track_io_timing is off: GRANT SET ON PARAMETER track_io_timing (from 15 on), or set it on for the role",
        );
        if !local {
            self.gaps.proc_stat = proc_stat_refusal(c, settings.cloud())?;
        }
        self.gaps.redo_syncs = uncounted_syncs(&settings);
        self.first = Some((c.version, c.version_text.clone(), settings));
        Ok(())
    }
}

/// Constants of a target of so many nodes, of which some only read.
fn facts(version: Version, settings: &PgSettings, way: &Way, [nodes, read_only_nodes]: [u32; 2]) -> Facts {
    Facts {
        nodes,
        read_only_nodes,
        block_bytes: Some(settings.number("block_size").map_or(8192, |b| b as u64)),
        in_place_pct: Some(sql::IN_PLACE_PCT),
        // Measured on 15: 2 to 3 for each worker that starts.
        commits_of_workers: Some(
            "the server also counts transactions that each worker of a parallel query makes when it starts",
        ),
        publishes_counters: true,
        // Without a forced flush, sessions report at most once a second (PGSTAT_STAT_INTERVAL).
        counter_lag_s: match (way, KNOWLEDGE.texts.flush.at(version)) {
            (_, None) => 1.0,
            (Way::Own, Some(_)) => 0.0,
            // Those of a pooler are made to report after the test only.
            (Way::Direct | Way::Via(_), Some(_)) => 0.05,
        },
        waits: &KNOWLEDGE.waits,
        growth_is_written: KNOWLEDGE.texts.growth_is_written.at(version),
        empty_query: "SELECT 1",
        ..Facts::for_runs(Runs::Apart)
    }
}

impl Postgres {
    /// Opens `url` and the nodes of `request`.
    pub(super) fn open(
        kind: &'static str,
        url: &str,
        request: &OpenRequest,
        server: Option<Arc<Mutex<TempServer>>>,
    ) -> Result<Postgres, TargetError> {
        let mut urls = vec![url.to_owned()];
        urls.extend(request.nodes.iter().cloned());
        let mut pair = None;
        if let Some(server) = &server {
            let server = lock(server);
            // Standbys for levels are no nodes: they may be far away, and tests of levels write.
            match server.setup.levels {
                true => pair = Some(Pair::private(&server)?),
                false => urls.extend(server.further.iter().map(Server::url)),
            }
        }
        let nodes = Servers { instances: Vec::new(), instance_of: Vec::new(), endpoints: Vec::new() };
        let gaps = CounterGaps::default();
        let mut opening = Opening { request, private: server.is_some(), nodes, first: None, gaps };
        let mut endpoints: Vec<Endpoint> = Vec::new();
        for url in &urls {
            let endpoint = Endpoint::new(url, request, of_target(opening.private))?;
            let address = |of: &Endpoint| (of.config.place(), of.config.database.clone());
            if endpoints.iter().any(|other| address(other) == address(&endpoint)) {
                return Err(TargetError::Usage(format!("the node '{}' is given twice", endpoint.config.shown)));
            }
            endpoints.push(endpoint);
        }
        endpoints.into_iter().try_for_each(|endpoint| opening.add(endpoint))?;
        let Opening { nodes: Servers { instances, instance_of, endpoints }, first, mut gaps, .. } = opening;
        let Some((version, version_text, settings)) = first else {
            return Err(TargetError::Usage("the target has no node".into()));
        };
        // Nodes that take writes are before standbys, in whatever order they were given.
        let mut nodes: Vec<_> = instance_of.into_iter().zip(endpoints).collect();
        nodes.sort_by_key(|(instance, _)| instances[*instance].standby);
        let (instance_of, endpoints): (_, Vec<_>) = nodes.into_iter().unzip();
        let read_only_nodes = instances.iter().filter(|i| i.standby).map(|i| i.nodes).sum();
        if !instances.iter().all(|i| i.local) {
            if instances.len() > 1 {
                gaps.proc_stat = Some("the instances run on several machines: their CPUs are not added up".into());
            }
            gaps.reads_proc_stat = gaps.proc_stat.is_none();
        }
        if server.is_none() {
            pair = Pair::open(request, &instances[0].endpoint, &instances[0].identity, instances.len())?;
        }
        let url = if server.is_some() { request.url.clone() } else { crate::redact(url) };
        Ok(Postgres {
            facts: facts(version, &settings, &request.way, [endpoints.len() as u32, read_only_nodes]),
            nodes: Servers { instances, instance_of, endpoints },
            version,
            version_text,
            gaps,
            cloud: settings.cloud(),
            kind,
            url,
            pair,
            via: Mutex::default(),
            loaded: LoadedTables::default(),
            server,
        })
    }

    /// The instance that takes writes.
    pub(super) fn primary(&self) -> &Endpoint {
        &self.nodes.instances[0].endpoint
    }

    /// Runs `f` in an administrative session of the primary.
    pub(super) fn at_primary<T>(
        &self,
        f: impl FnOnce(&mut Connection) -> Result<T, TargetError>,
    ) -> Result<T, TargetError> {
        self.primary().session(SessionRole::Admin, f)
    }

    /// Standbys: those that are nodes, or those for levels that run.
    pub(super) fn standbys(&self) -> Result<Vec<Endpoint>, TargetError> {
        match (&self.pair, self.private_server()) {
            (Some(_), Some(server)) => server.running_standbys(),
            (Some(pair), None) => Ok(pair.standbys.iter().map(|s| s.endpoint.clone()).collect()),
            (None, _) => {
                let standbys = self.nodes.instances.iter().filter(|i| i.standby);
                Ok(standbys.map(|i| Endpoint::clone(&i.endpoint)).collect())
            }
        }
    }

    /// Waits until all standbys have replayed what their primary has on disk.
    pub(super) fn wait_replayed(&self) -> Result<(), TargetError> {
        standbys::wait(self.primary(), &self.standbys()?)
    }

    pub(super) fn private_server(&self) -> Option<MutexGuard<'_, TempServer>> {
        self.server.as_deref().map(lock)
    }

    /// Makes the server read its configuration file; `false` if a setting in it needs a restart.
    pub(super) fn reload(&self) -> Result<bool, TargetError> {
        let ask = |sql: &str| self.primary().session(SessionRole::Inspect, |c| c.value(sql));
        let read = "SELECT pg_conf_load_time()::text";
        let before = ask(read)?;
        ask("SELECT pg_reload_conf()")?;
        let deadline = Instant::now() + RELOAD_TIMEOUT;
        // Of a new session each time: one takes over the postmaster's values when it begins.
        while ask(read)? == before {
            if Instant::now() >= deadline {
                let (s, place) = (RELOAD_TIMEOUT.as_secs(), &self.url);
                return Err(TargetError::Local(format!("{place} did not read its configuration file within {s} s")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(ask("SELECT bool_or(pending_restart)::text FROM pg_settings")?.as_deref() != Some("true"))
    }

    /// The proxy or pooler through which jobs go now.
    pub(super) fn via(&self) -> Option<Arc<Endpoint>> {
        self.via.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens the session of `job` at its node. With several servers it proves that it is at the right one: an address may
    /// lead to another one by now.
    pub(super) fn job_session(&self, work: &Work, job: u32) -> Result<Connection, TargetError> {
        if let Some(via) = self.via() {
            return via.connect(SessionRole::Job(work, job));
        }
        let (endpoint, instance) = self.nodes.of_job(work, job)?;
        let mut c = endpoint.connect(SessionRole::Job(work, job))?;
        if self.nodes.instances.len() > 1 {
            let here = Identity::read(&mut c, endpoint, self.server.is_some())?;
            if here != instance.identity {
                return Err(TargetError::Refused(format!(
                    "the session of job {job} is not at the server that '{}' led to when the run began: it leads to another \
                     one, or the server was restarted or promoted",
                    endpoint.config.shown
                )));
            }
        }
        Ok(c)
    }
}

impl Settings for Postgres {
    fn switch(&self, request: &OpenRequest, restart: bool) -> Result<(Box<dyn Target>, bool), TargetError> {
        let Some(shared) = &self.server else {
            return Err(TargetError::Unsupported("loadline does not change a user's server".into()));
        };
        let before = lock(shared).settings.given.clone();
        lock(shared).configure(&request.settings)?;
        let restart = restart || !self.reload()?;
        let started = if restart { lock(shared).restart() } else { Ok(()) };
        if let Err(e) = started {
            let mut server = lock(shared);
            let _ = server.configure(&before).and_then(|()| server.restart());
            return Err(e);
        }
        let url = lock(shared).first.url();
        Ok((Box::new(Postgres::open(self.kind, &url, request, Some(Arc::clone(shared)))?), restart))
    }

    fn setting(&self, name: &str) -> Result<Option<String>, TargetError> {
        // Not in an administrative session, which has settings of its own.
        self.primary().session(SessionRole::Inspect, |c| {
            c.value(&format!("SELECT current_setting({}, true)", sql::literal(name)))
        })
    }
}

fn lock(server: &Mutex<TempServer>) -> MutexGuard<'_, TempServer> {
    server.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates the extension on a private server that loads its library.
fn create_extension(c: &mut Connection, settings: &PgSettings) -> Result<(), TargetError> {
    let libraries = settings.get("shared_preload_libraries").unwrap_or_default();
    if !libraries.split(',').any(|library| library.trim_matches([' ', '"']) == "pg_stat_statements") {
        return Ok(());
    }
    // If not, the page says that it is not there.
    unless_refused(c.query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")).map(drop)
}

/// Whether the server runs on this machine: its address is local, and `pid` is a PostgreSQL process here (not so behind
/// a tunnel or a container's port).
pub(super) fn is_local(endpoint: &Endpoint, pid: u32) -> bool {
    let process = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    endpoint.config.address.is_near() && process.is_ok_and(|name| name.trim().starts_with("postgres"))
}

/// Host name and memory, bytes, of the server's machine, as its kernel states them; `None` without the privilege.
pub(super) fn machine(c: &mut Connection) -> Result<(Option<String>, Option<u64>), TargetError> {
    let mut read = |file: &str| unless_refused(c.value(&format!("SELECT pg_read_file('{file}')")));
    let (host, memory) = (read("/proc/sys/kernel/hostname")?, read("/proc/meminfo")?);
    Ok((host.map(|name| name.trim().to_owned()), memory.as_deref().and_then(crate::machine::total_memory)))
}

/// Why `/proc/stat` cannot be read through the server; `None` if it can.
fn proc_stat_refusal(c: &mut Connection, cloud: Option<&Cloud>) -> Result<Option<String>, TargetError> {
    const GRANTS: &str = "and the role may not read its /proc/stat: GRANT pg_read_server_files and EXECUTE ON FUNCTION \
         pg_catalog.pg_read_file(text)";
    match c.value("SELECT left(pg_read_file('/proc/stat'), 4)") {
        Ok(Some(text)) if text.starts_with("cpu") => Ok(None),
        Ok(_) => Ok(Some("the server's machine has no /proc/stat".into())),
        Err(TargetError::Server(e)) if e.cause == Cause::Privilege => {
            Ok(Some(why_absent(cloud, |cloud| &cloud.cpu, GRANTS)))
        }
        Err(TargetError::Server(e)) => Ok(Some(format!("/proc/stat cannot be read through the server: {e}"))),
        Err(e) => Err(e),
    }
}
