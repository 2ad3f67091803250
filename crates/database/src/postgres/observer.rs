//! Reads the server's own counters.

use std::sync::Arc;

use loadline_model::Snapshot;
use loadline_model::snapshot::{WaitSample, counter};

use super::connect::{Endpoint, Role};
use super::ledger::Ledger;
use super::protocol;
use super::settings::PgSettings;
use super::wire::Connection;
use crate::clock;
use crate::error::TargetError;
use crate::role::Observer;

/// Wait events during which a session waits for the log writer. The names of the I/O events have
/// been written otherwise since version 17.
pub(super) const LOG_SYNC_EVENTS: &[&str] =
    &["IO:WALSync", "IO:WalSync", "IO:WALWrite", "IO:WalWrite", "LWLock:WALWrite"];

/// Wait events during which a session makes room in the block cache, makes a table longer, or waits for a block
/// that another session reads, writes or holds. `BufferIO` is an event of IPC from 14 on.
pub(super) const BUFFER_WAIT_EVENTS: &[&str] = &[
    "IO:DataFileWrite",
    "IO:DataFileFlush",
    "IO:DataFileExtend",
    "IPC:BufferIO",
    "LWLock:BufferIO",
    "LWLock:BufferContent",
    "LWLock:BufferMapping",
    "BufferPin:BufferPin",
];

/// The job sessions by what they do. The function behind `pg_stat_activity`, without its joins. A worker of a
/// parallel query that has just started has no state yet, which is told from one that is hidden by its query.
const WAITS: &str = "SELECT CASE WHEN a.state IS NULL AND a.query = '<insufficient privilege>' THEN NULL \
     WHEN a.state IS NULL THEN 'Activity:starting' \
     WHEN a.state IN ('active', 'fastpath function call') THEN coalesce(a.wait_event_type || ':' || a.wait_event, 'CPU') \
     ELSE 'Client:idle' END, count(*) \
     FROM pg_stat_get_activity(NULL) a \
     WHERE starts_with(a.application_name, $1) \
     AND a.datid = (SELECT oid FROM pg_database WHERE datname = current_database()) GROUP BY 1";

/// What cannot be read, and why.
#[derive(Debug, Clone, Default)]
pub(super) struct Blind {
    /// Why the syncs of the log are not counted.
    pub(super) redo_syncs: Option<String>,
    /// Why `/proc/stat` of the server's machine cannot be read; `None` also where it need not be.
    pub(super) proc_stat: Option<String>,
    /// Whether `/proc/stat` is read through the server.
    pub(super) reads_proc_stat: bool,
}

/// Why the server does not count its log syncs with these settings, if it does not.
pub(super) fn uncounted_syncs(settings: &PgSettings) -> Option<String> {
    if settings.get("fsync") == Some("off") {
        return Some("fsync = off: the server does not sync its log".into());
    }
    let method = settings.get("wal_sync_method")?;
    matches!(method, "open_sync" | "open_datasync")
        .then(|| format!("wal_sync_method = {method}: each write is a sync, and PostgreSQL does not count them"))
}

/// One instance and how it is read.
struct ObserverSession {
    connection: Connection,
    names: Vec<String>,
    neutral: Vec<(&'static str, &'static str, f64)>,
    reads_proc_stat: bool,
}

/// Reads all instances of a target and adds them up.
pub(super) struct PgObserver {
    sessions: Vec<ObserverSession>,
    ledger: Ledger,
    job_prefix: String,
}

impl ObserverSession {
    fn open(endpoint: &Endpoint, blind: &Blind) -> Result<ObserverSession, TargetError> {
        let mut connection = endpoint.connect(Role::Observer)?;
        let version = connection.version;
        for sql in version.observer_settings() {
            connection.query(sql)?;
        }
        let settings = PgSettings::read(&mut connection)?;
        let query = version.snapshot_query(|name| settings.is_on(name), blind.reads_proc_stat);
        let flush = version.flush_stats().unwrap_or("SELECT 1");
        connection.prepare(&[("f", flush, &[]), ("q", &query.sql, &[]), ("w", WAITS, &[])])?;
        let mut neutral = version.redo_counters(settings.number("wal_block_size").unwrap_or(8192.0));
        if blind.redo_syncs.is_some() {
            neutral.retain(|(name, _, _)| ![counter::REDO_SYNCS, counter::REDO_SYNC_NS].contains(name));
        }
        neutral.extend(version.data_counters(settings.number("block_size").unwrap_or(8192.0)));
        Ok(ObserverSession { connection, names: query.names, neutral, reads_proc_stat: blind.reads_proc_stat })
    }

    /// Adds this instance's counters to `snapshot`, in one round trip: first what this session has
    /// done is made visible, then the counters are read.
    fn read(&mut self, ledger: &Ledger, snapshot: &mut Snapshot) -> Result<(), TargetError> {
        let c = &mut self.connection;
        for name in ["f", "q"] {
            protocol::bind(&mut c.out, name, false, 0, std::iter::empty());
            protocol::execute(&mut c.out);
            protocol::sync(&mut c.out);
        }
        c.send()?;
        c.until_own_ready(|_, _| ())?;
        // All commits up to here are in what the query reads; that of the query itself is not.
        ledger.add(c.take_own_commits());
        let row = c.text_rows()?.into_iter().next().unwrap_or_default();
        let mut values = row.into_iter();
        for (name, value) in self.names.iter().zip(values.by_ref()) {
            // NULL: the server does not count that here.
            if let Some(number) = value.and_then(|v| v.parse::<f64>().ok()) {
                *snapshot.counters.entry(name.clone()).or_default() += number;
                for (neutral, _, worth) in self.neutral.iter().filter(|(_, source, _)| source == name) {
                    *snapshot.counters.entry((*neutral).to_owned()).or_default() += number * worth;
                }
            }
        }
        if self.reads_proc_stat {
            snapshot.proc_stat = values.next().flatten();
        }
        Ok(())
    }
}

impl PgObserver {
    /// Opens a session at each of `endpoints`, one per instance.
    pub(super) fn open(
        endpoints: &[&Arc<Endpoint>],
        ledger: &Ledger,
        blind: &Blind,
    ) -> Result<PgObserver, TargetError> {
        let sessions =
            endpoints.iter().map(|endpoint| ObserverSession::open(endpoint, blind)).collect::<Result<Vec<_>, _>>()?;
        let job_prefix = endpoints.first().map_or_else(String::new, |d| d.job_prefix());
        Ok(PgObserver { sessions, ledger: ledger.clone(), job_prefix })
    }
}

impl Observer for PgObserver {
    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let mut snapshot = Snapshot::default();
        let before = clock::now_ns();
        for session in &mut self.sessions {
            session.read(&self.ledger, &mut snapshot)?;
        }
        // The counters are of some moment in between.
        snapshot.at_ns = before + clock::now_ns().saturating_sub(before) / 2;
        if let Some(commits) = snapshot.counters.get("pg_stat_database.xact_commit").copied() {
            snapshot.counters.insert(counter::COMMITS.to_owned(), commits - self.ledger.total() as f64);
        }
        Ok(snapshot)
    }

    fn sample_waits(&mut self) -> Result<Option<WaitSample>, TargetError> {
        let mut sample = WaitSample::default();
        for session in &mut self.sessions {
            for row in session.connection.send_bound("w", &[&self.job_prefix])? {
                let mut row = row.into_iter();
                // The state of other roles' sessions is hidden from us: then there is no figure.
                let Some(event) = row.next().flatten() else { return Ok(None) };
                let count = row.next().flatten().and_then(|n| n.parse().ok()).unwrap_or(0);
                *sample.sessions.entry(event).or_default() += count;
            }
        }
        Ok(Some(sample))
    }
}
