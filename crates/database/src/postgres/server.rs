//! The target: its nodes and the server instances behind them. Its roles are in `roles.rs`.

use std::sync::{Arc, Mutex, PoisonError};

use super::connect::{Endpoint, SessionRole};
use super::knowledge::KNOWLEDGE;
use super::pair::Pair;
use super::settings::{CounterGaps, PgSettings, refuse_placeholders, uncounted_syncs};
use super::standbys::Identity;
use super::temp::{TempServer, url_of};
use super::versions::Version;
use super::wire::Connection;
use super::{sql, standbys};
use crate::cloud::{Cloud, why_absent};
use crate::env::of_target;
use crate::error::{Cause, TargetError, unless_refused};
use crate::facts::{Facts, Runs};
use crate::request::{OpenRequest, Way};
use crate::servers::Servers;
use crate::work::Work;
use crate::workload_tables::LoadedTables;

/// A server instance. Several nodes may lead to the same one.
#[derive(Clone)]
pub(super) struct PgInstance {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) identity: Identity,
    /// Whether it is a standby of the first instance: it only reads.
    pub(super) standby: bool,
    /// Number of nodes that lead to it.
    pub(super) nodes: u32,
    /// Whether it runs on this machine.
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

/// Servers, as far as they are known, of a target whose nodes are opened one after the other.
#[derive(Default)]
struct Opened {
    instances: Vec<PgInstance>,
    instance_of: Vec<usize>,
    /// Version and settings of the first, and why nothing of its machine can be read.
    first: Option<(Version, String, PgSettings, Option<String>)>,
    gaps: CounterGaps,
}

impl Opened {
    /// Connects to the node at `slot`, which gets the books of its instance if another node leads to the same.
    fn add(&mut self, slot: &mut Arc<Endpoint>, request: &OpenRequest, private: bool) -> Result<(), TargetError> {
        let endpoint = &Arc::clone(slot);
        let mut c = endpoint.connect(SessionRole::Inspect)?;
        if private {
            refuse_placeholders(&mut c, &request.settings)?;
        }
        let identity = Identity::read(&mut c, endpoint, private)?;
        if let Some((_, text, ..)) = self.first.as_ref().filter(|(version, ..)| *version != c.version) {
            return Err(TargetError::Refused(format!(
                "the nodes have different versions: {text} and {}. All nodes must have the same version",
                c.version_text
            )));
        }
        let known = self.instances.iter().position(|i| i.identity == identity).unwrap_or(self.instances.len());
        self.instance_of.push(known);
        if let Some(known) = self.instances.get_mut(known) {
            if known.endpoint.config.database != endpoint.config.database {
                return Err(TargetError::Usage(format!(
                    "the nodes '{}' and '{}' name two databases of one server: all nodes must use the same database",
                    known.endpoint.config.shown, endpoint.config.shown
                )));
            }
            known.nodes += 1;
            let ledger = known.endpoint.ledger.clone();
            c.ledger = ledger.clone();
            *slot = Arc::new(endpoint.with_books_in(ledger));
            return c.publish();
        }
        let local = is_local(endpoint, c.key.pid);
        match self.instances.first() {
            Some(first) => identity.check_standby(endpoint, &first.identity, &first.endpoint)?,
            None => self.add_first(&mut c, request, private, local)?,
        }
        // A target that is one standby is left to the doctor.
        let standby = identity.standby && !self.instances.is_empty();
        self.instances.push(PgInstance { endpoint: Arc::clone(endpoint), identity, standby, nodes: 1, local });
        c.publish()
    }

    fn add_first(
        &mut self,
        c: &mut Connection,
        request: &OpenRequest,
        private: bool,
        local: bool,
    ) -> Result<(), TargetError> {
        let settings = PgSettings::read(c)?;
        if private {
            create_extension(c, &settings)?;
        }
        self.gaps.log_times = (!settings.is_on("track_wal_io_timing"))
            .then_some("track_wal_io_timing is off: set it on for the whole server");
        let timed = match request.way {
            Way::Own => KNOWLEDGE.texts.reads_are_timed.at(c.version).unwrap_or_default(),
            // Their sessions have no settings of their own.
            Way::Direct | Way::Via(_) => "current_setting('track_io_timing') = 'on'",
        };
        self.gaps.read_times = (c.value(&format!("SELECT {timed}"))?.as_deref() != Some("t")).then_some(
            "track_io_timing is off: GRANT SET ON PARAMETER track_io_timing (from 15 on), or set it on for the role",
        );
        let unreadable = if local { None } else { proc_stat_refusal(c, settings.cloud())? };
        self.first = Some((c.version, c.version_text.clone(), settings, unreadable));
        Ok(())
    }
}

/// The endpoints at `urls`, each another one.
fn endpoints(urls: &[String], request: &OpenRequest, private: bool) -> Result<Vec<Arc<Endpoint>>, TargetError> {
    let mut endpoints: Vec<Arc<Endpoint>> = Vec::new();
    for url in urls {
        let endpoint = Endpoint::new(url, request, of_target(private))?;
        if endpoints.iter().any(|other| {
            other.config.place() == endpoint.config.place() && other.config.database == endpoint.config.database
        }) {
            return Err(TargetError::Usage(format!("the node '{}' is given twice", endpoint.config.shown)));
        }
        endpoints.push(Arc::new(endpoint));
    }
    Ok(endpoints)
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
            let server = server.lock().unwrap_or_else(PoisonError::into_inner);
            // Standbys for levels are no nodes: they may be far away, and tests of levels write.
            match server.setup.levels {
                true => pair = Some(Pair::private(&server)?),
                false => urls.extend(server.further.iter().map(url_of)),
            }
        }
        let mut endpoints = endpoints(&urls, request, server.is_some())?;
        let mut opened = Opened::default();
        endpoints.iter_mut().try_for_each(|slot| opened.add(slot, request, server.is_some()))?;
        let Opened { instances, instance_of, first, mut gaps } = opened;
        let Some((version, version_text, settings, unreadable)) = first else {
            return Err(TargetError::Usage("the target has no node".into()));
        };
        // Nodes that take writes are before standbys, in whatever order they were given.
        let mut nodes: Vec<_> = instance_of.into_iter().zip(endpoints).collect();
        nodes.sort_by_key(|(instance, _)| instances[*instance].standby);
        let (instance_of, endpoints): (_, Vec<_>) = nodes.into_iter().unzip();
        let read_only_nodes = instances.iter().filter(|i| i.standby).map(|i| i.nodes).sum();
        gaps.redo_syncs = uncounted_syncs(&settings);
        match (instances.iter().all(|i| i.local), instances.len(), unreadable) {
            (true, _, _) => {}
            (false, 1, None) => gaps.reads_proc_stat = true,
            (false, 1, Some(why)) => gaps.proc_stat = Some(why),
            (false, _, _) => {
                gaps.proc_stat = Some("the instances run on several machines: their CPUs are not added up".into());
            }
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

    /// Runs `f` in an administrative session of `instance`.
    pub(super) fn admin<T>(
        &self,
        instance: &PgInstance,
        f: impl FnOnce(&mut Connection) -> Result<T, TargetError>,
    ) -> Result<T, TargetError> {
        self.session(instance, SessionRole::Admin, f)
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
        match (&done, c.publish()) {
            (Ok(_), Err(e)) => Err(e),
            _ => done,
        }
    }

    /// The instance that takes writes.
    pub(super) fn primary(&self) -> &PgInstance {
        &self.nodes.instances[0]
    }

    /// As [`Self::admin`], in the primary.
    pub(super) fn at_primary<T>(
        &self,
        f: impl FnOnce(&mut Connection) -> Result<T, TargetError>,
    ) -> Result<T, TargetError> {
        self.admin(self.primary(), f)
    }

    /// Standbys: those that are nodes, or those for levels that run.
    pub(super) fn standbys(&self) -> Result<Vec<Endpoint>, TargetError> {
        match (&self.pair, self.private_server()) {
            (Some(_), Some(server)) => server.running_standbys(),
            (Some(pair), None) => Ok(pair.endpoints()),
            (None, _) => {
                let standbys = self.nodes.instances.iter().filter(|i| i.standby);
                Ok(standbys.map(|i| Endpoint::clone(&i.endpoint)).collect())
            }
        }
    }

    /// Waits until all standbys have replayed what their primary has on disk.
    pub(super) fn wait_replayed(&self) -> Result<(), TargetError> {
        standbys::wait(&self.primary().endpoint, &self.standbys()?)
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
