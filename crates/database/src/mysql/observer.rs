//! Reads the servers' counters.

use loadline_model::Snapshot;
use loadline_model::snapshot::{WaitSample, counter};

use super::flush::Flush;
use super::knowledge::KNOWLEDGE;
use super::ledger::Ledger;
use super::member;
use super::own_sessions::OwnSessions;
use super::performance::CommitTimes;
use super::version::Version;
use super::wire::Connection;
use crate::descriptor::{BlockBytes, Counter};
use crate::error::{TargetError, unless_refused};
use crate::other_sessions::OtherSessions;
use crate::role::{Observer, SessionTasks};
use crate::scope::Scope;

/// Number of sessions that performance_schema had no memory for: its sums lack their waits.
const LOST_SESSIONS: &str = "Performance_schema_thread_instances_lost";
/// The server's processes.
const COMMANDS: &[&str] = &["mariadbd", "mysqld"];
/// Prefix of the metrics' names in a snapshot.
const METRIC: &str = "INNODB_METRICS.";

/// Why the syncs of the log are not counted while commits do not wait.
pub(super) const UNCOUNTED_SYNCS: &str = "the server has no counter of log syncs (MariaDB 10.8 removed \
     Innodb_os_log_fsyncs); log writes equal syncs only while innodb_flush_log_at_trx_commit = 1, when each write is synced";

/// The counter of log syncs, if there is one. MariaDB 10.8 removed `Innodb_os_log_fsyncs` and
/// performance_schema's `wait/io/file/innodb/innodb_log_file`. While commits wait, each log write is synced
/// (strace on 10.11, 8 sessions: 4867 writes and 4882 fdatasync calls on the log).
pub(super) fn sync_counter(version: &Version, flush: u8) -> Option<&'static str> {
    match (version.mariadb && version.is_at_least(10, 8), flush) {
        (false, _) => Some("Innodb_os_log_fsyncs"),
        (true, 1 | 3) => Some("Innodb_log_writes"),
        (true, _) => None,
    }
}

/// Reads one server's counters, in a session of its own.
pub(super) struct ObserverSession {
    connection: Connection,
    ledger: Ledger,
    flush: Flush,
    times: CommitTimes,
    sessions: OwnSessions,
    /// Whose waits are sampled.
    scope: Scope,
    /// CPU time of others' sessions, if the server runs on this machine.
    others: Option<OtherSessions>,
    /// The query of InnoDB's metrics, if the user may run it.
    metrics: Option<String>,
    /// Whether the server is a node of a Galera cluster.
    galera: bool,
}

impl ObserverSession {
    /// Reads through `connection`.
    pub(super) fn open(
        mut connection: Connection,
        ledger: Ledger,
        flush: Flush,
        times: CommitTimes,
        (sessions, scope): (OwnSessions, Scope),
        (local, galera): (bool, bool),
    ) -> Result<ObserverSession, TargetError> {
        let metrics = metrics(&mut connection)?;
        let others = local.then(|| OtherSessions::new(COMMANDS));
        Ok(ObserverSession { connection, ledger, flush, times, sessions, scope, others, metrics, galera })
    }

    /// Whether this user sees the sessions of all users: both need PROCESS.
    fn sees_all(&self) -> bool {
        self.metrics.is_some()
    }

    fn read(&mut self) -> Result<Snapshot, TargetError> {
        let c = &mut self.connection;
        let mut snapshot = Snapshot::default();
        for (name, value) in c.pairs(&status_query(self.galera))? {
            if let Ok(number) = value.parse::<f64>() {
                snapshot.counters.insert(name, number);
            }
        }
        if snapshot.counters.get("wsrep_local_state").is_some_and(|state| !member::MEMBER.contains(state)) {
            snapshot.counters.insert("wsrep_cluster_size".to_owned(), 0.0);
        }
        for (name, ns) in self.times.read(c)? {
            // If sessions were lost, log waits are estimated from samples.
            if snapshot.counters.get(LOST_SESSIONS).is_none_or(|lost| *lost == 0.0) {
                *snapshot.counters.entry(counter::LOG_WAIT_NS.to_owned()).or_default() += ns;
            }
            snapshot.counters.insert(name, ns);
        }
        if let Some(sql) = &self.metrics {
            for (name, value) in c.pairs(sql)? {
                if let Ok(number) = value.parse::<f64>() {
                    snapshot.counters.insert(format!("{METRIC}{name}"), number);
                }
            }
        }
        let page = snapshot.counters.get("Innodb_page_size").copied().unwrap_or(16_384.0);
        let block = BlockBytes { data: page, log: 512.0 };
        Counter::fill(&KNOWLEDGE.counters, (&c.version).into(), block, &mut snapshot.counters);
        let (commits, own, times) = self.ledger.commits();
        if let Some(all) = snapshot.counters.get(commits).copied() {
            snapshot.counters.insert(counter::COMMITS.to_owned(), (all - own as f64) / times as f64);
        }
        let syncs = sync_counter(&c.version, self.flush.now()).and_then(|name| snapshot.counters.get(name).copied());
        if let Some(syncs) = syncs {
            snapshot.counters.insert(counter::REDO_SYNCS.to_owned(), syncs);
        }
        Ok(snapshot)
    }
}

/// The query for a snapshot's counters. `galera`: whether the server is a node of a Galera cluster.
fn status_query(galera: bool) -> String {
    let more: &[String] = if galera { &KNOWLEDGE.galera_status } else { &[] };
    let names: Vec<String> = KNOWLEDGE.status.iter().chain(more).map(|name| format!("'{name}'")).collect();
    format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({})", names.join(", "))
}

/// The query of InnoDB's enabled metrics that SHOW STATUS lacks; `None` if the user lacks PROCESS.
pub(super) fn metrics(c: &mut Connection) -> Result<Option<String>, TargetError> {
    // The column's name differs between MariaDB and MySQL.
    let column = c.value(
        "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'information_schema' AND TABLE_NAME = \
         'INNODB_METRICS' AND COLUMN_NAME IN ('ENABLED', 'STATUS') LIMIT 1",
    )?;
    let on = match column.as_deref() {
        Some("ENABLED") => "ENABLED = 1",
        Some(_) => "STATUS = 'enabled'",
        None => return Ok(None),
    };
    let sql = format!(
        "SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE {on} AND COMMENT NOT LIKE '%(innodb\\_%' AND \
         SUBSYSTEM IN ('buffer', 'log', 'os', 'recovery', 'server', 'transaction')"
    );
    unless_refused(c.query(&sql).map(|_| Some(sql)))
}

/// Reads all servers of a target and adds them up.
///
/// Each node of a cluster writes what all nodes change: rows and redo of the sum are those of the mean node, so that redo per
/// transaction is that of one copy, and redo syncs can be compared with commits.
pub(super) struct MysqlObserver {
    pub(super) sessions: Vec<ObserverSession>,
    /// Whether the servers are one cluster.
    pub(super) cluster: bool,
}

impl Observer for MysqlObserver {
    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let before = loadline_storage::now_ns();
        let all = self.sessions.iter_mut().map(ObserverSession::read).collect::<Result<Vec<_>, _>>()?;
        let nodes = if all.len() > 1 { all.iter().map(|s| s.counters.clone()).collect() } else { Vec::new() };
        let servers = all.len() as f64;
        let mut snapshot = sum(all);
        for name in KNOWLEDGE.of_mean_node.iter().filter(|_| self.cluster) {
            if let Some(value) = snapshot.counters.get_mut(name) {
                *value /= servers;
            }
        }
        snapshot.nodes = nodes;
        // The counters are of a moment within the query.
        snapshot.at_ns = before + loadline_storage::now_ns().saturating_sub(before) / 2;
        // The readings of several servers have no common time.
        if let [ObserverSession { others: Some(others), .. }] = &self.sessions[..] {
            others.fill(&mut snapshot.counters);
        }
        Ok(snapshot)
    }

    fn sample_waits(&mut self) -> Result<Option<WaitSample>, TargetError> {
        let mut sample = WaitSample { others: Some(0), ..WaitSample::default() };
        for session in &mut self.sessions {
            let sees_all = session.sees_all();
            let ObserverSession { connection, sessions, scope, others, galera, .. } = session;
            if !sessions.sample(connection, *scope, (sees_all, *galera), &mut sample)? {
                return Ok(None);
            }
            if let Some(others) = others.as_mut().filter(|_| sees_all) {
                others.read(|| sessions.other_threads(connection).map(Some))?;
            }
        }
        Ok(Some(sample))
    }

    fn session_tasks(&mut self) -> SessionTasks {
        let mut ids = Vec::new();
        for ObserverSession { sessions, connection, .. } in &mut self.sessions {
            // Without an answer fewer than all are known: then none is used.
            ids.extend(sessions.job_threads(connection).unwrap_or_default());
        }
        SessionTasks { ids, commands: COMMANDS }
    }
}

/// Sums of the counters that every server has. Without some servers a sum would be incomplete.
fn sum(all: Vec<Snapshot>) -> Snapshot {
    let servers = all.len();
    let mut total = Snapshot::default();
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    for (name, value) in all.into_iter().flat_map(|s| s.counters) {
        *seen.entry(name.clone()).or_default() += 1;
        *total.counters.entry(name).or_default() += value;
    }
    total.counters.retain(|name, _| seen.get(name) == Some(&servers));
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_all_servers_count_is_added_up() {
        let of = |pairs: &[(&str, f64)]| Snapshot {
            counters: pairs.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect(),
            ..Snapshot::default()
        };
        let total = sum(vec![of(&[("a", 1.0), ("b", 2.0)]), of(&[("a", 10.0)])]);
        assert_eq!(total.counters, [("a".to_owned(), 11.0)].into());
    }
}
