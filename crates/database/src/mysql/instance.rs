//! The servers behind a target's nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use loadline_model::Driver;

use super::connect::Endpoint;
use super::knowledge::{Version, refusal};
use super::member::{Member, refuse_group};
use super::performance::CommitTimes;
use super::settings::MysqlSettings;
use super::wire::Connection;
use crate::error::TargetError;
use crate::servers::Servers;
use crate::work::Work;

/// A server. Several nodes may lead to the same one.
#[derive(Clone)]
pub(super) struct MysqlInstance {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) version: Version,
    pub(super) ledger: Arc<Ledger>,
    /// Settings when the target was opened.
    pub(super) settings: Arc<MysqlSettings>,
    pub(super) local: bool,
    pub(super) times: CommitTimes,
    pub(super) member: Option<Member>,
}

/// The servers behind the nodes: one, or several that are one cluster, and hold the same data.
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
        if several && let Some(member) = &member {
            endpoint.config.node = Some(format!("node {} ('{}')", node + 1, member.name));
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
                let (first, second) = (first.config.place(), endpoint.config.place());
                let parts = [("first", &*first), ("second", &second), ("name", &member.name)];
                return Err(refusal("same-member", &parts));
            }
            Some(instance) => instance.ledger.book(&mut c)?,
            None => {
                if let Some(other) = nodes.instances.first().filter(|i| i.version != c.version) {
                    let parts = [("first", &*other.version.text), ("other", &c.version.text)];
                    return Err(refusal("versions", &parts));
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
    Err(refusal("no-one-cluster", &[("first", &say(first)), ("new", &say(new))]))
}

impl MysqlInstance {
    fn inspect(
        endpoint: Arc<Endpoint>,
        c: &mut Connection,
        settings: MysqlSettings,
        member: Option<Member>,
    ) -> Result<MysqlInstance, TargetError> {
        let (binlog, galera) = (settings.is_on("log_bin"), member.is_some());
        let ledger = Ledger { flush: settings.flush().into(), binlog, galera, ..Ledger::default() };
        Ok(MysqlInstance {
            local: endpoint.config.address.is_near() && is_here(),
            endpoint,
            version: c.version.clone(),
            ledger: Arc::new(ledger),
            times: CommitTimes::ask(c, binlog)?,
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

/// Whether a server's process runs on this machine. One that is reached by a socket or loopback address may be elsewhere, behind a tunnel.
fn is_here() -> bool {
    let mut processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.any(|process| {
        let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        matches!(name.trim(), "mariadbd" | "mysqld")
    })
}

/// Commits of loadline's own sessions in the server's counters, and how the jobs commit. Shared by all sessions of a target.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// `Handler_commit` of sessions that are not jobs'.
    handler: AtomicU64,
    /// `Com_commit` of the same sessions.
    explicit: AtomicU64,
    /// Whether the jobs send COMMIT, or leave it to autocommit.
    jobs_send_commit: AtomicBool,
    jobs_write: AtomicBool,
    /// The current `innodb_flush_log_at_trx_commit`, a global setting: whether commits wait for the log.
    pub(super) flush: AtomicU8,
    /// Whether the server writes a binary log, which commits like an engine of its own.
    binlog: bool,
    galera: bool,
}

impl Ledger {
    /// Adds the commits of `c`. Call it once, at the end of each session that is not a job's. Exact: the
    /// server keeps the same counters per session.
    pub(super) fn book(&self, c: &mut Connection) -> Result<(), TargetError> {
        for (name, value) in c.shown("SESSION STATUS", ["Handler_commit", "Com_commit"])? {
            let counter = if name == "Handler_commit" { &self.handler } else { &self.explicit };
            counter.fetch_add(value.parse().unwrap_or(0), Relaxed);
        }
        Ok(())
    }

    /// How the transactions of `work` by `driver` end from now on. Each is one statement, which reads or writes, or sends
    /// COMMIT, as a procedure always does.
    pub(super) fn jobs_run(&self, work: &Work, driver: Driver) {
        let sends = driver == Driver::Database || !work.program.is_single_statement();
        self.jobs_send_commit.store(sends, Relaxed);
        self.jobs_write.store(work.program.writes(), Relaxed);
    }

    /// The server's counter of the jobs' commits, loadline's own share of it, and by how much it grows with each commit.
    /// `Handler_commit` also counts each statement inside a transaction, a change twice with a binary log, to which a read writes nothing,
    /// and what a node of a cluster applies of others. `Com_commit` counts no autocommit. `wsrep_local_commits` counts the changes that
    /// began at the node, of all sessions; loadline itself changes nothing while jobs run (docs/inside.md).
    pub(super) fn commits(&self) -> (&'static str, u64, u64) {
        let writes = self.jobs_write.load(Relaxed);
        if self.jobs_send_commit.load(Relaxed) {
            ("Com_commit", self.explicit.load(Relaxed), 1)
        } else if self.galera && writes {
            ("wsrep_local_commits", 0, 1)
        } else {
            ("Handler_commit", self.handler.load(Relaxed), 1 + u64::from(self.binlog && writes))
        }
    }
}
