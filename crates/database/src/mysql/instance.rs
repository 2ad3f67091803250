//! The servers behind a target's nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use loadline_model::Driver;

use super::connect::Endpoint;
use super::knowledge::Version;
use super::member::{Member, refuse_group};
use super::performance::CommitTimes;
use super::settings::MysqlSettings;
use super::wire::Connection;
use crate::error::TargetError;
use crate::rules::SettingValues;
use crate::servers::Servers;
use crate::work::Work;

/// A server. Several nodes may lead to the same one.
#[derive(Clone)]
pub(super) struct MysqlInstance {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) version: Version,
    pub(super) ledger: Ledger,
    /// Settings when the target was opened.
    pub(super) settings: Arc<MysqlSettings>,
    /// Whether it runs on this machine.
    pub(super) local: bool,
    pub(super) times: CommitTimes,
    /// Membership of a cluster, if any.
    pub(super) member: Option<Member>,
}

/// The servers behind the nodes. Several are one cluster, and hold the same data.
pub(super) type MysqlNodes = Servers<MysqlInstance, Arc<Endpoint>>;

/// Connects to all endpoints and finds out which lead to the same server: a user lock is visible to the
/// sessions of its server only. Names and addresses do not decide: a server may have several, and two
/// servers may have the same.
/// `private`: loadline started the servers.
pub(super) fn identify(endpoints: Vec<Endpoint>, private: bool) -> Result<MysqlNodes, TargetError> {
    let several = endpoints.len() > 1;
    let mut nodes = Servers { instances: Vec::new(), instance_of: Vec::new(), endpoints: Vec::new() };
    let mut held: Vec<(Connection, String)> = Vec::new();
    for (node, mut endpoint) in endpoints.into_iter().enumerate() {
        let mut c = endpoint.connect()?;
        let settings = MysqlSettings::read(&mut c)?;
        refuse_group(&mut c, &settings, &endpoint.config.place())?;
        let member = Member::await_ready(&mut c, &settings, private, &endpoint.config.place())?;
        if let Some(member) = member.as_ref().filter(|_| several) {
            endpoint.config.name_node(node, &member.name);
        }
        let endpoint = Arc::new(endpoint);
        let mut known = None;
        for (i, (first, name)) in held.iter().enumerate() {
            let holder = c.number(&format!("SELECT IS_USED_LOCK('{name}')"))?;
            if holder == Some(f64::from(first.session)) {
                known = Some(i);
            }
        }
        let at = known.unwrap_or(held.len());
        match nodes.instances.get(at) {
            Some(MysqlInstance { endpoint: first, member: Some(member), .. }) => {
                return Err(TargetError::Refused(format!(
                    "{} and {} are the same member of the Galera cluster ({}): name each once",
                    first.config.place(),
                    endpoint.config.place(),
                    member.name
                )));
            }
            Some(instance) => instance.ledger.book(&mut c)?,
            None => {
                if let Some(other) = nodes.instances.first().filter(|i| i.version != c.version) {
                    return Err(TargetError::Refused(format!(
                        "the nodes have different versions: {} and {}. All nodes must have the same",
                        other.version.text, c.version.text
                    )));
                }
                let name = format!("loadline {} {} {node}", std::process::id(), loadline_storage::now_ns());
                c.query(&format!("SELECT GET_LOCK('{name}', 0)"))?;
                let instance = MysqlInstance::inspect(Arc::clone(&endpoint), &mut c, settings, member)?;
                check_cluster(&nodes.instances, &instance)?;
                nodes.instances.push(instance);
                held.push((c, name));
            }
        }
        if let Some(instance) = nodes.instances.get(at) {
            let of_jobs = endpoint.for_jobs(&instance.endpoint.sessions, instance.member.as_ref());
            nodes.endpoints.push(Arc::new(of_jobs));
        }
        nodes.instance_of.push(at);
    }
    for (instance, (c, _)) in nodes.instances.iter().zip(&mut held) {
        instance.ledger.book(c)?;
    }
    Ok(nodes)
}

/// Checks that `new` is of one cluster with the `known` servers.
fn check_cluster(known: &[MysqlInstance], new: &MysqlInstance) -> Result<(), TargetError> {
    let Some(first) = known.first() else { return Ok(()) };
    let of = |i: &MysqlInstance| i.member.as_ref().map(|m| m.cluster.clone());
    if of(first).is_some() && of(first) == of(new) {
        return Ok(());
    }
    let say = |i: &MysqlInstance| {
        let place = i.endpoint.config.place();
        of(i).map_or_else(|| format!("{place} is in no cluster"), |name| format!("{place} is in the cluster {name}"))
    };
    Err(TargetError::Refused(format!(
        "{}, and {}: all nodes must be servers of one cluster. Measure each by itself, and set their runs side by side (loadline report \
         RUN RUN)",
        say(first),
        say(new)
    )))
}

impl MysqlInstance {
    fn inspect(
        endpoint: Arc<Endpoint>,
        c: &mut Connection,
        settings: MysqlSettings,
        member: Option<Member>,
    ) -> Result<MysqlInstance, TargetError> {
        let log_bin = settings.is_on("log_bin");
        Ok(MysqlInstance {
            local: is_local(&endpoint, settings.text("pid_file")),
            endpoint,
            version: c.version.clone(),
            ledger: Ledger::new(settings.flush(), log_bin, member.is_some()),
            times: CommitTimes::ask(c, log_bin)?,
            settings: Arc::new(settings),
            member,
        })
    }

    /// Runs `f` in an administrative session.
    pub(super) fn admin<T>(&self, f: impl FnOnce(&mut Connection) -> Result<T, TargetError>) -> Result<T, TargetError> {
        let mut c = self.endpoint.connect()?;
        let done = f(&mut c);
        // The server also counts what a failed step committed.
        match (&done, self.ledger.book(&mut c)) {
            (Ok(_), Err(e)) => Err(e),
            _ => done,
        }
    }
}

/// Whether the server runs on this machine: it is reached by a socket or loopback address, and its process
/// is here (not behind a tunnel or a container's port).
fn is_local(endpoint: &Endpoint, pid_file: Option<&str>) -> bool {
    let is_server = |pid: &str| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        matches!(name.trim(), "mariadbd" | "mysqld")
    };
    let of_file = pid_file.and_then(|path| std::fs::read_to_string(path).ok());
    endpoint.config.address.is_near()
        && match of_file {
            Some(pid) => is_server(pid.trim()),
            // The file cannot be read: any server process counts.
            None => std::fs::read_dir("/proc")
                .into_iter()
                .flatten()
                .flatten()
                .any(|entry| entry.file_name().to_str().is_some_and(is_server)),
        }
}

/// Commits of loadline's own sessions in the server's counters, and how the jobs commit. Shared by all sessions of a target.
#[derive(Debug, Clone)]
pub(super) struct Ledger(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// `Handler_commit` of sessions that are not jobs'.
    handler: AtomicU64,
    /// `Com_commit` of the same sessions.
    explicit: AtomicU64,
    /// Whether the jobs send COMMIT, or leave it to autocommit.
    jobs_send_commit: AtomicBool,
    /// Whether the jobs' transactions change rows.
    jobs_write: AtomicBool,
    /// The current `innodb_flush_log_at_trx_commit`, a global setting: whether commits wait for the log.
    flush: AtomicU8,
    /// Whether the server writes a binary log, which commits like an engine of its own.
    binlog: bool,
    /// Whether the server is a node of a Galera cluster.
    galera: bool,
}

impl Ledger {
    /// Of a server with these properties ([`State`]).
    pub(super) fn new(flush: u8, binlog: bool, galera: bool) -> Ledger {
        Ledger(Arc::new(State { flush: flush.into(), binlog, galera, ..State::default() }))
    }

    /// Adds the commits of `c`. Call it once, at the end of each session that is not a job's. Exact: the
    /// server keeps the same counters per session.
    pub(super) fn book(&self, c: &mut Connection) -> Result<(), TargetError> {
        for (name, value) in c.shown("SESSION STATUS", ["Handler_commit", "Com_commit"])? {
            let counter = if name == "Handler_commit" { &self.0.handler } else { &self.0.explicit };
            counter.fetch_add(value.parse().unwrap_or(0), Relaxed);
        }
        Ok(())
    }

    /// How the transactions of `work` by `driver` end from now on. Each is one statement, which reads or writes, or sends
    /// COMMIT, as a procedure always does.
    pub(super) fn jobs_run(&self, work: &Work, driver: Driver) {
        let sends = driver == Driver::Database || !work.program.is_single_statement();
        self.0.jobs_send_commit.store(sends, Relaxed);
        self.0.jobs_write.store(work.program.writes(), Relaxed);
    }

    pub(super) fn flush(&self) -> u8 {
        self.0.flush.load(Relaxed)
    }

    pub(super) fn set_flush(&self, value: u8) {
        self.0.flush.store(value, Relaxed);
    }

    /// The server's counter of the jobs' commits, loadline's own share of it, and by how much it grows with each commit.
    /// `Handler_commit` also counts each statement inside a transaction, a change twice with a binary log, to which a read writes nothing,
    /// and what a node of a cluster applies of others. `Com_commit` counts no autocommit. `wsrep_local_commits` counts the changes that
    /// began at the node, of all sessions; loadline itself changes nothing while jobs run (docs/inside.md).
    pub(super) fn commits(&self) -> (&'static str, u64, u64) {
        let State { handler, explicit, jobs_send_commit, jobs_write, binlog, galera, .. } = &*self.0;
        let writes = jobs_write.load(Relaxed);
        if jobs_send_commit.load(Relaxed) {
            ("Com_commit", explicit.load(Relaxed), 1)
        } else if *galera && writes {
            ("wsrep_local_commits", 0, 1)
        } else {
            ("Handler_commit", handler.load(Relaxed), 1 + u64::from(*binlog && writes))
        }
    }
}
