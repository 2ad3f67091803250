//! The target: its nodes and the server instances behind them. Its roles are in `roles.rs`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connect::{Endpoint, SessionRole};
use super::knowledge::{KNOWLEDGE, message, refusal};
use super::pair::Pair;
use super::settings::{CounterGaps, PgSettings, refuse_placeholders, uncounted_syncs};
use super::standbys::Identity;
use super::temp::TempServer;
use super::wire::{Connection, Values};
use super::{sql, standbys};
use crate::cloud::{Cloud, why_absent};
use crate::descriptor::Release;
use crate::error::{Cause, TargetError, unless_refused};
use crate::facts::{Facts, Runs};
use crate::request::{OpenRequest, Way, of_target};
use crate::rules::SettingValues as _;
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
    pub(super) local: bool,
    pub(super) version: Release,
    pub(super) version_text: String,
    /// Settings when the target was opened.
    pub(super) settings: Arc<PgSettings>,
}

pub(super) type PgNodes = Servers<PgInstance, Arc<Endpoint>>;

pub(super) fn read_only(nodes: &PgNodes) -> u32 {
    nodes.instance_of.iter().filter(|instance| nodes.instances[**instance].standby).count() as u32
}

#[derive(Clone)]
pub(super) struct Postgres {
    /// The primary first, then its standbys; or the one standby that the target is.
    pub(super) nodes: PgNodes,
    pub(super) gaps: CounterGaps,
    pub(super) facts: Facts,
    pub(super) kind: &'static str,
    pub(super) url: String,
    /// The standbys that commits can wait for: those of a private server, or the user's.
    pub(super) pair: Option<Arc<Pair>>,
    /// The proxy or pooler through which jobs go now, or the plain way with which it is compared.
    pub(super) via: Arc<Mutex<Option<Arc<Endpoint>>>>,
    /// Workload tables known to be complete.
    pub(super) loaded: Arc<LoadedTables>,
    /// The private server, if this is one. Last field: it must stop after all else is dropped.
    pub(super) server: Option<Arc<Mutex<TempServer>>>,
}

/// Connects to the node at `endpoint`, which gets the books of its instance if another node leads to the same. A private server has been
/// `given` settings.
fn add(
    nodes: &mut PgNodes,
    mut endpoint: Endpoint,
    given: Option<&BTreeMap<String, String>>,
) -> Result<(), TargetError> {
    let mut c = endpoint.connect(SessionRole::Inspect)?;
    if let Some(given) = given {
        refuse_placeholders(&mut c, given)?;
    }
    let identity = Identity::read(&mut c, &endpoint, given.is_some())?;
    let Servers { instances, instance_of, endpoints } = nodes;
    if let Some(first) = instances.first().filter(|first| first.version.number[0] != c.version.number[0]) {
        return Err(refusal("versions", &[("first", &first.version_text), ("other", &c.version_text)]));
    }
    let known = instances.iter().position(|i| i.identity == identity).unwrap_or(instances.len());
    instance_of.push(known);
    if let Some(known) = instances.get(known) {
        if known.endpoint.config.database != endpoint.config.database {
            let parts = [("first", known.endpoint.config.shown.as_str()), ("other", &endpoint.config.shown)];
            return Err(TargetError::Usage(message("two-databases", &parts)));
        }
        endpoint.ledger = Arc::clone(&known.endpoint.ledger);
        c.ledger = Arc::clone(&endpoint.ledger);
        endpoints.push(Arc::new(endpoint));
        return c.publish();
    }
    let settings = Arc::new(PgSettings::read(&mut c)?);
    if let Some(first) = instances.first() {
        identity.check_standby(&endpoint, &first.identity, &first.endpoint)?;
    } else if given.is_some() {
        create_extension(&mut c, &settings)?;
    }
    // A target that is one standby is left to the doctor.
    let standby = identity.standby && !instances.is_empty();
    let (local, endpoint) = (is_local(&endpoint, c.pid), Arc::new(endpoint));
    endpoints.push(Arc::clone(&endpoint));
    let (version, version_text) = (c.version, c.version_text.clone());
    instances.push(PgInstance { endpoint, identity, standby, local, version, version_text, settings });
    c.publish()
}

/// Why counters of `nodes` cannot be read; `c` is a session of the first.
fn gaps(c: &mut Connection, way: &Way, nodes: &PgNodes) -> Result<CounterGaps, TargetError> {
    let settings = &nodes.instances[0].settings;
    // Sessions of ways that are compared have no settings of their own.
    let own = KNOWLEDGE.texts.reads_are_timed.at(c.version).unwrap_or_default();
    let timed = if *way == Way::Own { own } else { "current_setting('track_io_timing') = 'on'" };
    let is_timed = c.row(&format!("SELECT {timed}"))?.is_true(0);
    let is_local = nodes.instances.iter().all(|i| i.local);
    let proc_stat = match nodes.instances.len() {
        _ if is_local => None,
        1 => proc_stat_refusal(c, settings.cloud())?,
        _ => Some("the instances run on several machines: their CPUs are not added up".to_owned()),
    };
    Ok(CounterGaps {
        redo_syncs: uncounted_syncs(settings),
        read_times: (!is_timed).then(|| message("no-read-times", &[])),
        log_times: (!settings.is_on("track_wal_io_timing")).then(|| message("no-log-times", &[])),
        reads_proc_stat: !is_local && proc_stat.is_none(),
        proc_stat,
    })
}

/// Constants of a target of these nodes.
fn facts(way: &Way, nodes: &PgNodes) -> Facts {
    let PgInstance { version, settings, .. } = &nodes.instances[0];
    Facts {
        nodes: nodes.endpoints.len() as u32,
        read_only_nodes: read_only(nodes),
        block_bytes: Some(settings.number("block_size").map_or(8192, |b| b as u64)),
        in_place_pct: Some(sql::IN_PLACE_PCT),
        // Measured on 15: 2 to 3 for each worker that starts.
        commits_of_workers: Some(
            "the server also counts transactions that each worker of a parallel query makes when it starts",
        ),
        publishes_counters: true,
        // Without a forced flush, sessions report at most once a second (PGSTAT_STAT_INTERVAL).
        counter_lag_s: match (way, KNOWLEDGE.texts.flush.at(*version)) {
            (_, None) => 1.0,
            (Way::Own, Some(_)) => 0.0,
            // Those of a pooler are made to report after the test only.
            (Way::Direct | Way::Via(_), Some(_)) => 0.05,
        },
        waits: &KNOWLEDGE.waits,
        growth_is_written: KNOWLEDGE.texts.growth_is_written.at(*version),
        empty_query: "SELECT 1",
        ..Facts::for_runs(Runs::Apart)
    }
}

impl Postgres {
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
                true => pair = Some(Arc::new(Pair::private(&server)?)),
                false => urls.extend(server.further.iter().map(Server::url)),
            }
        }
        let mut all: Vec<Endpoint> = Vec::new();
        for url in &urls {
            let endpoint = Endpoint::new(url, request, of_target(server.is_some()))?;
            let address = |of: &Endpoint| (of.config.place(), of.config.database.clone());
            if all.iter().any(|other| address(other) == address(&endpoint)) {
                return Err(TargetError::Usage(format!("the node '{}' is given twice", endpoint.config.shown)));
            }
            all.push(endpoint);
        }
        let mut nodes = Servers { instances: Vec::new(), instance_of: Vec::new(), endpoints: Vec::new() };
        let given = server.as_ref().map(|_| &request.settings);
        all.into_iter().try_for_each(|endpoint| add(&mut nodes, endpoint, given))?;
        let Servers { instances, instance_of, endpoints } = nodes;
        // Nodes that take writes are before standbys, in whatever order they were given.
        let mut nodes: Vec<_> = instance_of.into_iter().zip(endpoints).collect();
        nodes.sort_by_key(|(instance, _)| instances[*instance].standby);
        let (instance_of, endpoints) = nodes.into_iter().unzip();
        let nodes = Servers { instances, instance_of, endpoints };
        let PgInstance { endpoint, identity, .. } = &nodes.instances[0];
        if server.is_none() {
            pair = Pair::open(request, endpoint, identity, nodes.instances.len())?.map(Arc::new);
        }
        Ok(Postgres {
            gaps: endpoint.session(SessionRole::Inspect, |c| gaps(c, &request.way, &nodes))?,
            facts: facts(&request.way, &nodes),
            nodes,
            kind,
            url: if server.is_some() { request.url.clone() } else { crate::redact(url) },
            pair,
            via: Arc::default(),
            loaded: Arc::default(),
            server,
        })
    }

    /// The instance that takes writes.
    pub(super) fn first(&self) -> &PgInstance {
        &self.nodes.instances[0]
    }

    pub(super) fn primary(&self) -> &Endpoint {
        &self.first().endpoint
    }

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

    pub(super) fn via(&self) -> Option<Arc<Endpoint>> {
        self.via.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens the session of `job` at its node. With several servers it proves that the address still leads to the right one.
    pub(super) fn job_session(&self, work: &Work, job: u32) -> Result<Connection, TargetError> {
        if let Some(via) = self.via() {
            return via.connect(SessionRole::Job(work, job));
        }
        let (endpoint, instance) = self.nodes.of_job(work, job)?;
        let mut c = endpoint.connect(SessionRole::Job(work, job))?;
        if self.nodes.instances.len() > 1 {
            let here = Identity::read(&mut c, endpoint, self.server.is_some())?;
            if here != instance.identity {
                return Err(refusal("moved", &[("job", &job.to_string()), ("url", &endpoint.config.shown)]));
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

fn create_extension(c: &mut Connection, settings: &PgSettings) -> Result<(), TargetError> {
    let libraries = settings.text("shared_preload_libraries").unwrap_or_default();
    if !libraries.split(',').any(|library| library.trim_matches([' ', '"']) == "pg_stat_statements") {
        return Ok(());
    }
    // If not, the page says that it is not there.
    unless_refused(c.query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")).map(drop)
}

/// Whether the server runs on this machine, and not behind a tunnel or a container's port: `pid` is a PostgreSQL process here.
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
    match c.value("SELECT left(pg_read_file('/proc/stat'), 4)") {
        Ok(Some(text)) if text.starts_with("cpu") => Ok(None),
        Ok(_) => Ok(Some("the server's machine has no /proc/stat".into())),
        Err(TargetError::Server(e)) if e.cause == Cause::Privilege => {
            Ok(Some(why_absent(cloud, |cloud| &cloud.cpu, &message("no-proc-stat", &[]))))
        }
        Err(TargetError::Server(e)) => Ok(Some(format!("/proc/stat cannot be read through the server: {e}"))),
        Err(e) => Err(e),
    }
}
