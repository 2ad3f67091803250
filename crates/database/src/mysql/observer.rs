//! Reads the servers' counters.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use loadline_model::snapshot::{WaitSample, counter};
use loadline_model::{Column, Snapshot, column};

use super::instance::MysqlInstance;
use super::knowledge::{KNOWLEDGE, Version};
use super::server::Mysql;
use super::wire::Connection;
use super::{member, own_sessions};
use crate::cloud::{absent_devices, why_absent};
use crate::descriptor::{BlockBytes, Counter};
use crate::error::{Cause, TargetError, unless_refused};
use crate::kind::TargetKind as _;
use crate::other_sessions::OtherSessions;
use crate::role::{Observation, Observer, Scope, SessionTasks};

/// Number of sessions that performance_schema had no memory for: its sums lack their waits.
const LOST_SESSIONS: &str = "Performance_schema_thread_instances_lost";
const COMMANDS: &[&str] = &["mariadbd", "mysqld"];

/// The counter of log syncs, or the note that says why there is none. MariaDB 10.8 removed `Innodb_os_log_fsyncs` and
/// performance_schema's `wait/io/file/innodb/innodb_log_file`. While commits wait, each log write is synced
/// (strace on 10.11, 8 sessions: 4867 writes and 4882 fdatasync calls on the log).
fn sync_counter(version: &Version, flush: u8, writes_sync: bool) -> Result<&'static str, &'static str> {
    match (version.is_mariadb() && version.release.is_from(&[10, 8]), flush) {
        (false, _) if writes_sync => Err("syncs-by-writes"),
        (false, _) => Ok("Innodb_os_log_fsyncs"),
        (true, 1 | 3) => Ok("Innodb_log_writes"),
        (true, _) => Err("uncounted-syncs"),
    }
}

/// Reads one server's counters, in a session of its own.
struct ObserverSession {
    connection: Connection,
    instance: MysqlInstance,
    scope: Scope,
    /// CPU time of others' sessions, if the server runs on this machine.
    others: Option<OtherSessions>,
    /// The query of InnoDB's metrics, if the user may run it. It needs PROCESS, as the sessions of all users do.
    metrics: Option<&'static str>,
    /// The query of the last file of the redo log, if the files have numbers that grow, and the user may run it.
    log_files: Option<&'static str>,
    /// Sessions that wait for locks of rows, on MariaDB.
    rows: own_sessions::RowWaits,
}

impl ObserverSession {
    fn open(instance: &MysqlInstance, scope: Scope) -> Result<ObserverSession, TargetError> {
        let mut connection = instance.endpoint.connect()?;
        let metrics = metrics(&mut connection)?;
        let log_files = KNOWLEDGE.log_files.at(connection.version.release);
        let may_run = |sql| unless_refused(connection.query(sql).map(|_| Some(sql)));
        let log_files = log_files.map(may_run).transpose()?.flatten();
        let others = instance.local.then(|| OtherSessions::new(COMMANDS));
        let rows = own_sessions::RowWaits::default();
        Ok(ObserverSession { connection, instance: instance.clone(), scope, others, metrics, log_files, rows })
    }

    fn read(&mut self) -> Result<Counters, TargetError> {
        let c = &mut self.connection;
        let of_galera = if self.instance.member.is_some() { &KNOWLEDGE.galera_status[..] } else { &[] };
        let status = c.shown("GLOBAL STATUS", KNOWLEDGE.status.iter().chain(of_galera))?;
        let mut counters = numbers(status, "").collect::<Counters>();
        if counters.get("wsrep_local_state").is_some_and(|state| !member::MEMBER.contains(state)) {
            counters.insert("wsrep_cluster_size".to_owned(), 0.0);
        }
        for (name, ns) in self.instance.times.read(c)? {
            // If sessions were lost, log waits are estimated from samples.
            if counters.get(LOST_SESSIONS).is_none_or(|lost| *lost == 0.0) {
                *counters.entry(counter::LOG_WAIT_NS.to_owned()).or_default() += ns;
            }
            counters.insert(name, ns);
        }
        if let Some(sql) = self.metrics {
            counters.extend(numbers(c.pairs(sql)?, "INNODB_METRICS."));
        }
        if let Some(sql) = self.log_files {
            counters.extend(numbers(c.pairs(sql)?, ""));
        }
        let block = BlockBytes { data: counters.get("Innodb_page_size").copied().unwrap_or(16_384.0), log: 512.0 };
        Counter::fill(&KNOWLEDGE.counters, c.version.release, block, &mut counters);
        let (commits, own, times) = self.instance.ledger.commits();
        if let Some(all) = counters.get(commits).copied() {
            counters.insert(counter::COMMITS.to_owned(), (all - own as f64) / times as f64);
        }
        let name = sync_counter(
            &c.version,
            self.instance.ledger.flush.load(Relaxed),
            self.instance.settings.log_writes_sync(),
        );
        let syncs = name.ok().and_then(|name| counters.get(name).copied());
        counters.extend(syncs.map(|syncs| (counter::REDO_SYNCS.to_owned(), syncs)));
        Ok(counters)
    }
}

/// Those of `pairs` that are numbers, with `prefix` before their names.
fn numbers(pairs: impl IntoIterator<Item = (String, String)>, prefix: &str) -> impl Iterator<Item = (String, f64)> {
    pairs.into_iter().filter_map(move |(name, value)| Some((format!("{prefix}{name}"), value.parse().ok()?)))
}

/// The query of InnoDB's enabled metrics that SHOW STATUS lacks; `None` if the user lacks PROCESS.
pub(super) fn metrics(c: &mut Connection) -> Result<Option<&'static str>, TargetError> {
    let sql = KNOWLEDGE.metrics.at(c.version.release).unwrap_or_default();
    match c.query(sql) {
        Err(TargetError::Server(e)) if e.cause == Cause::Privilege => Ok(None),
        answer => answer.map(|_| Some(sql)),
    }
}

impl Observation for Mysql {
    fn observer_of(&self, scope: Scope) -> Result<Box<dyn Observer>, TargetError> {
        let open = |instance| ObserverSession::open(instance, scope);
        let sessions = self.nodes.instances.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        Ok(Box::new(MysqlObserver(sessions)))
    }

    fn job_sessions(&self) -> Vec<Vec<u32>> {
        self.nodes.instances.iter().map(|instance| instance.endpoint.sessions.of_jobs()).collect()
    }

    fn adopt_jobs(&self, sessions: &[Vec<u32>]) {
        for (instance, ids) in self.nodes.instances.iter().zip(sessions) {
            ids.iter().for_each(|id| instance.endpoint.sessions.add(*id, true, None));
        }
    }

    fn end_jobs(&self, _: std::ops::Range<u32>, sessions: &[Vec<u32>]) -> Result<Option<u32>, TargetError> {
        let of_each = self.nodes.instances.iter().zip(sessions);
        let ended = of_each.map(|(instance, ids)| instance.admin(|c| own_sessions::end(c, ids)));
        let ended = ended.collect::<Result<Vec<_>, _>>()?;
        Ok(if ended.is_empty() { None } else { ended.into_iter().sum() })
    }

    fn absent_columns(&self) -> Vec<(&'static Column, String)> {
        let product = self.first().version.product();
        let mut absent = super::Kind.facts().uncounted(product);
        if KNOWLEDGE.log_files.at(self.first().version.release).is_none() {
            let why = format!("{product} writes its redo log files in a circle: there is no next one");
            absent.extend(column::SWITCHES.map(|id| (id, why.clone())));
        }
        let uncounted = |i: &MysqlInstance| {
            sync_counter(&i.version, i.ledger.flush.load(Relaxed), i.settings.log_writes_sync()).err()
        };
        if let Some(why) = self.nodes.instances.iter().find_map(uncounted) {
            let columns = [column::REDO_SYNC_WRITES_PER_S, column::COMMITS_PER_REDO_SYNC];
            absent.extend(columns.map(|column| (column, KNOWLEDGE.notes.text(why, &[]))));
        }
        if !self.nodes.instances.iter().all(|i| i.local) {
            let cloud = self.first().settings.cloud();
            let why = why_absent(cloud, |cloud| &cloud.cpu, "and MariaDB and MySQL do not show its /proc/stat");
            absent.extend(column::CPU_SHARES.map(|id| (id, why.clone())));
            absent.extend(absent_devices(cloud, "and MariaDB and MySQL do not show its devices"));
        }
        absent
    }
}

/// Reads all servers of a target and adds them up.
///
/// Each node of a cluster writes what all nodes change: rows and redo of the sum are those of the mean node, so that redo per
/// transaction is that of one copy, and redo syncs can be compared with commits.
struct MysqlObserver(Vec<ObserverSession>);

impl Observer for MysqlObserver {
    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let before = loadline_storage::now_ns();
        let all = self.0.iter_mut().map(ObserverSession::read).collect::<Result<Vec<_>, _>>()?;
        let mut snapshot = Snapshot { counters: sum(&all), ..Snapshot::default() };
        if all.len() > 1 {
            for name in &KNOWLEDGE.of_mean_node {
                snapshot.counters.entry(name.clone()).and_modify(|value| *value /= all.len() as f64);
            }
            snapshot.nodes = all;
        }
        // The counters are of a moment within the query.
        snapshot.at_ns = before + loadline_storage::now_ns().saturating_sub(before) / 2;
        // The readings of several servers have no common time.
        if let [ObserverSession { others: Some(others), .. }] = &self.0[..] {
            others.fill(&mut snapshot.counters);
        }
        Ok(snapshot)
    }

    fn sample_waits(&mut self) -> Result<Option<WaitSample>, TargetError> {
        let mut sample = WaitSample { others: Some(0), ..WaitSample::default() };
        for session in &mut self.0 {
            let ObserverSession { connection, instance, scope, others, metrics, rows, .. } = session;
            let (sessions, sees_all) = (&instance.endpoint.sessions, metrics.is_some());
            let seen = (sees_all, instance.member.is_some());
            if !sessions.sample(connection, *scope, seen, rows, &mut sample)? {
                return Ok(None);
            }
            if sees_all && let Some(others) = others {
                others.read(|| sessions.other_threads(connection).map(Some))?;
            }
        }
        Ok(Some(sample))
    }

    fn session_tasks(&mut self) -> SessionTasks {
        let mut ids = Vec::new();
        for ObserverSession { instance, connection, .. } in &mut self.0 {
            // Without an answer fewer than all are known: then none is used.
            ids.extend(instance.endpoint.sessions.job_threads(connection).unwrap_or_default());
        }
        SessionTasks { ids, commands: COMMANDS }
    }
}

type Counters = BTreeMap<String, f64>;

/// Sums of the counters that every server has. Without some servers a sum would be incomplete.
fn sum(all: &[Counters]) -> Counters {
    let Some((first, others)) = all.split_first() else { return Counters::new() };
    let sum = |(name, value): (&String, &f64)| {
        let rest = others.iter().map(|counters| counters.get(name).copied()).sum::<Option<f64>>()?;
        Some((name.clone(), value + rest))
    };
    first.iter().filter_map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;

    #[test]
    fn syncs_are_counted_unless_each_write_is_one() {
        for (version, flush, writes_sync, counter) in cases::<(String, u8, bool, String)>("mysql-syncs") {
            let found = sync_counter(&Version::parse(&version), flush, writes_sync);
            assert_eq!(found.unwrap_or_default(), counter, "{version} {flush}");
        }
    }

    #[test]
    fn only_what_all_servers_count_is_added_up() {
        let of = |pairs: &[(&str, f64)]| pairs.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect::<Counters>();
        assert_eq!(sum(&[of(&[("a", 1.0), ("b", 2.0)]), of(&[("a", 10.0)])]), of(&[("a", 11.0)]));
    }
}
