//! Reads the server's own counters.

use loadline_model::Snapshot;
use loadline_model::snapshot::counter;

use super::ledger::Ledger;
use super::server::Flush;
use super::version::Version;
use super::wire::Connection;
use crate::clock;
use crate::error::TargetError;
use crate::session::Observer;

/// Counters of SHOW GLOBAL STATUS that are kept with each snapshot. No privilege is needed for them.
const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_commit', 'Com_update', 'Handler_commit', \
     'Handler_prepare', 'Binlog_commits', 'Binlog_group_commits', 'Innodb_lsn_current', 'Innodb_os_log_written', \
     'Innodb_os_log_fsyncs', 'Innodb_redo_log_current_lsn', 'Innodb_log_writes', 'Innodb_log_write_requests', \
     'Innodb_log_waits', 'Innodb_data_fsyncs', 'Innodb_data_writes', 'Innodb_data_written', 'Handler_update', \
     'Innodb_checkpoint_age', 'Innodb_buffer_pool_pages_flushed', 'Innodb_history_list_length')";

/// Why there is no figure of the waits.
pub(super) const NO_WAITS: &str = "the server's status counters do not say how long commits wait \
     for the log, and loadline does not read performance_schema yet";

/// Why the syncs of the log are not counted while commits do not wait.
pub(super) const UNCOUNTED_SYNCS: &str = "the server has no counter of log syncs (Innodb_os_log_fsyncs went with \
     MariaDB 10.8); its log writes stand for them only while innodb_flush_log_at_trx_commit = 1, when each write is synced";

/// The counter of the log's syncs, if there is one. MariaDB 10.8 took `Innodb_os_log_fsyncs` away.
/// While commits wait each log write is synced: counted with strace on 10.11, 8 sessions, 4867
/// writes and 4882 calls of fdatasync on the log.
pub(super) fn sync_counter(version: &Version, flush: u8) -> Option<&'static str> {
    match (version.mariadb && version.is_at_least(10, 8), flush) {
        (false, _) => Some("Innodb_os_log_fsyncs"),
        (true, 1 | 3) => Some("Innodb_log_writes"),
        (true, _) => None,
    }
}

/// Reads the counters in a session of its own.
pub(super) struct Eye {
    pub(super) connection: Connection,
    pub(super) ledger: Ledger,
    pub(super) flush: Flush,
}

impl Observer for Eye {
    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let before = clock::now_ns();
        let mut snapshot = Snapshot::default();
        for (name, value) in self.connection.pairs(STATUS)? {
            if let Ok(number) = value.parse::<f64>() {
                snapshot.counters.insert(name, number);
            }
        }
        // The counters are of some moment in between.
        snapshot.at_ns = before + clock::now_ns().saturating_sub(before) / 2;
        let (commits, own, times) = self.ledger.commits();
        let mut neutral = vec![(counter::COMMITS, commits, own as f64, times as f64)];
        // MariaDB's log position, MySQL's since 8.0.30, else what was written of the log.
        let position = ["Innodb_lsn_current", "Innodb_redo_log_current_lsn", "Innodb_os_log_written"]
            .into_iter()
            .find(|name| snapshot.counters.contains_key(*name));
        neutral.extend(position.map(|name| (counter::REDO_BYTES, name, 0.0, 1.0)));
        neutral.push((counter::REDO_WRITES, "Innodb_log_writes", 0.0, 1.0));
        let syncs = sync_counter(&self.connection.version, self.flush.now());
        neutral.extend(syncs.map(|name| (counter::REDO_SYNCS, name, 0.0, 1.0)));
        for (name, source, less, times) in neutral {
            if let Some(value) = snapshot.counters.get(source).copied() {
                snapshot.counters.insert(name.to_owned(), (value - less) / times);
            }
        }
        Ok(snapshot)
    }
}
