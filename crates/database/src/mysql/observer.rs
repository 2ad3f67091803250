//! Reads the servers' counters.

use loadline_model::Snapshot;
use loadline_model::snapshot::{WaitSample, counter};

use super::data_counters;
use super::flush::Flush;
use super::ledger::Ledger;
use super::member;
use super::own_sessions::OwnSessions;
use super::performance::CommitTimes;
use super::version::Version;
use super::wire::Connection;
use crate::error::TargetError;
use crate::other_sessions::OtherSessions;
use crate::role::{Observer, SessionTasks};
use crate::scope::Scope;

/// Beginning of the query for a snapshot's counters; [`data_counters::STATUS`] follows. It needs no privilege.
const LOG_STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_commit', 'Com_update', 'Handler_commit', \
     'Handler_prepare', 'Binlog_commits', 'Binlog_group_commits', 'Innodb_lsn_current', 'Innodb_os_log_written', \
     'Innodb_os_log_fsyncs', 'Innodb_redo_log_current_lsn', 'Innodb_log_writes', 'Innodb_log_write_requests', \
     'Innodb_log_waits', 'Innodb_data_fsyncs', 'Innodb_data_writes', 'Innodb_data_written', 'Handler_update', \
     'Innodb_checkpoint_age', 'Innodb_buffer_pool_pages_flushed', 'Innodb_history_list_length', \
     'Innodb_lsn_flushed', 'Innodb_lsn_last_checkpoint', 'Innodb_data_reads', 'Innodb_data_read', \
     'Innodb_buffer_pool_pages_dirty', 'Innodb_buffer_pool_reads', 'Innodb_buffer_pool_read_requests', \
     'Innodb_buffer_pool_wait_free', 'Innodb_pages_written', 'Innodb_dblwr_writes', 'Innodb_dblwr_pages_written', \
     'Innodb_row_lock_waits', 'Innodb_row_lock_time', 'Performance_schema_thread_instances_lost', ";
/// Those of a node of a Galera cluster.
const GALERA_STATUS: &str = "'wsrep_local_commits', 'wsrep_replicated', 'wsrep_replicated_bytes', 'wsrep_received', \
     'wsrep_received_bytes', 'wsrep_local_cert_failures', 'wsrep_local_bf_aborts', 'wsrep_local_replays', \
     'wsrep_flow_control_paused_ns', 'wsrep_flow_control_sent', 'wsrep_flow_control_recv', 'wsrep_local_recv_queue', \
     'wsrep_local_recv_queue_max', 'wsrep_local_recv_queue_avg', 'wsrep_local_send_queue', 'wsrep_apply_window', \
     'wsrep_cert_deps_distance', 'wsrep_last_committed', 'wsrep_cluster_size', 'wsrep_cluster_conf_id', \
     'wsrep_local_state', ";
/// Neutral counters of a node of a Galera cluster and their sources.
const OF_GALERA: [(&str, &str); 7] = [
    (counter::CERT_FAILURES, "wsrep_local_cert_failures"),
    (counter::APPLY_ABORTS, "wsrep_local_bf_aborts"),
    (counter::FLOW_PAUSED_NS, "wsrep_flow_control_paused_ns"),
    (counter::REPLICATED_BYTES, "wsrep_replicated_bytes"),
    (counter::APPLY_QUEUE, "wsrep_local_recv_queue"),
    (counter::CLUSTER_SIZE, "wsrep_cluster_size"),
    (counter::CLUSTER_VIEW, "wsrep_cluster_conf_id"),
];
/// What each node of a cluster does for all: the sum over the nodes is divided by their number.
const OF_MEAN_NODE: [&str; 7] = [
    counter::REDO_BYTES,
    counter::REDO_WRITES,
    counter::REDO_SYNCS,
    counter::ROWS_CHANGED,
    counter::FLOW_PAUSED_NS,
    counter::CLUSTER_SIZE,
    counter::CLUSTER_VIEW,
];
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
        let of_galera = if self.galera { GALERA_STATUS } else { "" };
        for (name, value) in c.pairs(&format!("{LOG_STATUS}{of_galera}{})", data_counters::STATUS))? {
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
        data_counters::fill(&mut snapshot.counters);
        let (commits, own, times) = self.ledger.commits();
        let mut neutral = vec![(counter::COMMITS, commits, own as f64, times as f64)];
        // MariaDB's log position, MySQL's since 8.0.30, else the bytes written to the log.
        let position = ["Innodb_lsn_current", "Innodb_redo_log_current_lsn", "Innodb_os_log_written"]
            .into_iter()
            .find(|name| snapshot.counters.contains_key(*name));
        neutral.extend(position.map(|name| (counter::REDO_BYTES, name, 0.0, 1.0)));
        neutral.push((counter::REDO_WRITES, "Innodb_log_writes", 0.0, 1.0));
        let syncs = sync_counter(&self.connection.version, self.flush.now());
        neutral.extend(syncs.map(|name| (counter::REDO_SYNCS, name, 0.0, 1.0)));
        let of_galera = OF_GALERA.iter().filter(|_| self.galera);
        neutral.extend(of_galera.map(|(name, source)| (*name, *source, 0.0, 1.0)));
        for (name, source, less, times) in neutral {
            if let Some(value) = snapshot.counters.get(source).copied() {
                snapshot.counters.insert(name.to_owned(), (value - less) / times);
            }
        }
        Ok(snapshot)
    }
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
    match c.query(&sql) {
        Ok(_) => Ok(Some(sql)),
        Err(TargetError::Server(_)) => Ok(None),
        Err(e) => Err(e),
    }
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
        for name in OF_MEAN_NODE.iter().filter(|_| self.cluster) {
            if let Some(value) = snapshot.counters.get_mut(*name) {
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
        for session in &mut self.sessions {
            // Without an answer fewer than all are known: then none is used.
            ids.extend(session.sessions.job_threads(&mut session.connection).unwrap_or_default());
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
