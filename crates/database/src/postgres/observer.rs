//! Reads the server's own counters.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use loadline_model::Snapshot;
use loadline_model::snapshot::{WaitSample, counter};

use super::connect::{Endpoint, SessionRole};
use super::knowledge::{KNOWLEDGE, LSN, snapshot_query};
use super::server::{PgInstance, Postgres};
use super::settings::{CounterGaps, PgSettings};
use super::sql::own;
use super::wire::{Connection, Row, SYNC, Values};
use crate::descriptor::{BlockBytes, Counter};
use crate::error::TargetError;
use crate::other_sessions::{OtherSessions, SessionTask, Sessions};
use crate::role::{Observer, Scope, SessionTasks};
use crate::rules::SettingValues as _;

const COMMANDS: &[&str] = &["postgres"];

fn is_of_log(name: &str) -> bool {
    ["pg_stat_wal.", "pg_stat_io.wal_", "loadline.redo_", "loadline.log_"].iter().any(|begin| name.starts_with(begin))
}

struct ObserverSession {
    connection: Connection,
    names: Vec<String>,
    block: BlockBytes,
    counts_syncs: bool,
    reads_proc_stat: bool,
    /// Log is a copy of its primary's.
    standby: bool,
    /// Size of a file of the log, bytes.
    log_file: f64,
    others: OtherSessions,
}

/// Reads all instances of a target and adds them up.
pub(super) struct PgObserver {
    sessions: Vec<ObserverSession>,
    job_prefix: String,
    /// Whether sessions are plain: a pooler's serve any job, and all have the name of one.
    is_plain: bool,
    /// Prefix of the names of all of loadline's sessions.
    own_prefix: String,
    local: bool,
    /// Whether there are several nodes, each an instance of its own.
    by_node: bool,
}

impl ObserverSession {
    fn open(
        endpoint: &Endpoint,
        (standby, has_standbys): (bool, bool),
        gaps: &CounterGaps,
        scope: Scope,
    ) -> Result<ObserverSession, TargetError> {
        let mut connection = endpoint.connect(SessionRole::Observer)?;
        let version = connection.version;
        for sql in KNOWLEDGE.texts.observer_settings.all(version) {
            connection.query(sql)?;
        }
        let settings = PgSettings::read(&mut connection)?;
        let (query, names) =
            snapshot_query(version, scope, |name| settings.is_on(name), gaps.reads_proc_stat, has_standbys);
        let flush = KNOWLEDGE.texts.flush.at(version).unwrap_or("SELECT 1");
        let waits = if scope == Scope::Jobs { "waits-of-jobs" } else { "waits-of-all" };
        let [waits, others] = [waits, "others"].map(|name| KNOWLEDGE.queries.text(name, &[]));
        let statements = [("f", flush), ("q", &query), ("w", &waits), ("o", &others)];
        let own = statements.map(|(name, sql)| (name, own(sql)));
        connection.prepare(&own.each_ref().map(|(name, sql)| (*name, sql.as_str(), &[][..]))).map_err(|(_, e)| e)?;
        let size = |name| settings.number(name).unwrap_or(8192.0);
        Ok(ObserverSession {
            connection,
            names,
            block: BlockBytes { data: size("block_size"), log: size("wal_block_size") },
            counts_syncs: gaps.redo_syncs.is_none(),
            reads_proc_stat: gaps.reads_proc_stat,
            standby,
            log_file: settings.number("wal_segment_size").unwrap_or(16_777_216.0),
            others: OtherSessions::new(COMMANDS),
        })
    }

    fn read_others(&mut self, own_prefix: &str) -> Result<(), TargetError> {
        let c = &mut self.connection;
        self.others.read(|| {
            let task = |row: &Row| {
                let task = if row.is_true(1) { row.number(0)? } else { return None };
                Some(SessionTask { session: task, task })
            };
            let others: Option<Vec<SessionTask>> = c.send_bound("o", &[own_prefix])?.iter().map(task).collect();
            Ok(others.map(|others| Sessions { own: Some(c.pid), others }))
        })
    }

    /// Adds this instance's counters to `snapshot` in one round trip: publishes this session's own counts, then reads
    /// the counters. Returns them. What a standby writes of the log is not added: the primary wrote it already.
    fn read(&mut self, snapshot: &mut Snapshot) -> Result<BTreeMap<String, f64>, TargetError> {
        let mut here = BTreeMap::new();
        let c = &mut self.connection;
        for name in ["f", "q"] {
            c.call(name, false, std::iter::empty());
            c.out.extend_from_slice(SYNC);
        }
        c.send()?;
        c.until_own_ready(|_, _| ())?;
        // The query reads all commits up to here, but not its own.
        c.book();
        let row = c.text_rows()?.into_iter().next().unwrap_or_default();
        let mut values = row.into_iter();
        for (name, value) in self.names.iter().zip(values.by_ref()) {
            // NULL: the server has no such count.
            if let Some(number) = value.and_then(|v| v.parse::<f64>().ok()) {
                here.insert(name.clone(), number);
            }
        }
        if self.reads_proc_stat {
            snapshot.proc_stat = values.next().flatten();
        }
        Counter::fill(&KNOWLEDGE.counters, c.version, self.block, &mut here);
        if !self.counts_syncs {
            here.retain(|name, _| ![counter::REDO_SYNCS, counter::REDO_SYNC_NS].contains(&name.as_str()));
        }
        if let Some(position) = here.get(LSN).copied() {
            here.insert(counter::LOG_SWITCHES.to_owned(), (position / self.log_file).floor());
        }
        if let Some(all) = here.get("pg_stat_database.xact_commit") {
            here.insert(counter::COMMITS.to_owned(), all - c.ledger.load(Ordering::Relaxed) as f64);
        }
        for (name, number) in here.iter().filter(|(name, _)| !(self.standby && is_of_log(name))) {
            *snapshot.counters.entry(name.clone()).or_default() += number;
        }
        Ok(here)
    }
}

impl PgObserver {
    pub(super) fn open(target: &Postgres, scope: Scope) -> Result<PgObserver, TargetError> {
        let instances = &target.nodes.instances;
        let has_standbys = instances.iter().any(|i| i.standby);
        let open = |i: &PgInstance| {
            let role = (i.standby, has_standbys && !i.standby);
            ObserverSession::open(&i.endpoint, role, &target.gaps, scope)
        };
        let sessions = instances.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let (direct, via) = (target.primary(), target.via());
        Ok(PgObserver {
            sessions,
            job_prefix: via.as_deref().unwrap_or(direct).job_prefix(),
            is_plain: via.is_some(),
            own_prefix: direct.name.clone(),
            local: instances.iter().all(|i| i.local),
            by_node: instances.len() > 1 && instances.len() == target.nodes.endpoints.len(),
        })
    }
}

impl Observer for PgObserver {
    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let mut snapshot = Snapshot::default();
        let before = loadline_storage::now_ns();
        let mut nodes = Vec::new();
        for session in &mut self.sessions {
            nodes.push(session.read(&mut snapshot)?);
        }
        if self.by_node {
            snapshot.nodes = nodes;
        }
        // The counters were read in between: use the middle.
        snapshot.at_ns = before + loadline_storage::now_ns().saturating_sub(before) / 2;
        // The readings of several servers have no common time.
        if let [session] = &self.sessions[..] {
            session.others.fill(&mut snapshot.counters);
        }
        Ok(snapshot)
    }

    fn sample_waits(&mut self) -> Result<Option<WaitSample>, TargetError> {
        let mut sample = WaitSample { others: Some(0), ..WaitSample::default() };
        for session in &mut self.sessions {
            if self.local {
                session.read_others(&self.own_prefix)?;
            }
            for row in session.connection.send_bound("w", &[&self.job_prefix, &self.own_prefix])? {
                let count: u32 = row.number(2).unwrap_or(0);
                // Without the privilege to see other roles' sessions there is no figure.
                match (row.value(0), row.value(1).map(str::to_owned)) {
                    (Some("background"), Some(doing)) => {
                        sample.background.get_or_insert_default().extend((doing != "idle").then_some(doing));
                    }
                    (Some("background"), None) => {}
                    (Some("other"), Some(_)) => sample.others = sample.others.map(|n| n + count),
                    (Some("other"), None) => sample.others = None,
                    (_, Some(doing)) => {
                        let jobs = if self.is_plain { None } else { row.value(3) };
                        let jobs = jobs.unwrap_or_default().split(',').filter_map(|n| n.parse::<u32>().ok());
                        sample.jobs.entry(doing.clone()).or_default().extend(jobs);
                        *sample.sessions.entry(doing).or_default() += count;
                    }
                    (_, None) => return Ok(None),
                }
            }
        }
        Ok(Some(sample))
    }

    fn session_tasks(&mut self) -> SessionTasks {
        let mut ids = Vec::new();
        for session in &mut self.sessions {
            // Without an answer fewer than all are known: then none is used.
            let sql = KNOWLEDGE.queries.text("processes", &[]);
            let rows = session.connection.query_with(&sql, &[&self.job_prefix]).unwrap_or_default();
            ids.extend(rows.iter().filter_map(|row| row.number::<u32>(0)));
        }
        SessionTasks { ids, commands: COMMANDS }
    }
}
