//! All differences between the versions of PostgreSQL.

use loadline_model::snapshot::counter;

use crate::error::TargetError;
use crate::scope::Scope;

/// Oldest supported version: the first with `pg_stat_wal` and OUT parameters of procedures.
pub(super) const OLDEST: u32 = 14;
/// Newest supported version.
pub(super) const NEWEST: u32 = 18;

/// A version of the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub(super) major: u32,
}

/// A view and its counters.
struct View {
    /// Prefix of the counters' names.
    name: &'static str,
    /// The FROM item; returns one row.
    from: &'static str,
    columns: &'static [&'static str],
}

/// When a view's counters were last set to 0: a counter of s since 1970. NULL if never.
const STATS_RESET: &str = "stats_reset";

const DATABASE: View = View {
    name: "pg_stat_database",
    from: "(SELECT * FROM pg_stat_database WHERE datname = current_database())",
    columns: &[
        "xact_commit", "xact_rollback", "blks_read", "blks_hit", "blk_read_time", "blk_write_time", "tup_returned",
        "tup_fetched", "tup_inserted", "tup_updated", "tup_deleted", "conflicts", "deadlocks", "temp_files",
        "temp_bytes", "session_time", "active_time", "idle_in_transaction_time", "sessions", "sessions_abandoned",
        "sessions_fatal", "sessions_killed", STATS_RESET,
    ],
};

impl View {
    /// The FROM item for all databases if `scope` says so.
    fn from(&self, scope: Scope) -> String {
        let of =
            |column: &&str| format!("{}({column}) AS {column}", if *column == STATS_RESET { "max" } else { "sum" });
        if scope == Scope::Jobs || self.name != DATABASE.name {
            return self.from.to_owned();
        }
        format!("(SELECT {} FROM {})", self.columns.iter().map(of).collect::<Vec<_>>().join(", "), self.name)
    }
}

/// The workers of parallel queries.
const WORKERS_18: View = View {
    name: "pg_stat_database",
    from: DATABASE.from,
    columns: &["parallel_workers_to_launch", "parallel_workers_launched"],
};

const WAL_14: View = View {
    name: "pg_stat_wal",
    from: "pg_stat_wal",
    columns: &[
        "wal_records", "wal_fpi", "wal_bytes", "wal_buffers_full", "wal_write", "wal_sync", "wal_write_time",
        "wal_sync_time", STATS_RESET,
    ],
};

const WAL_18: View = View {
    name: "pg_stat_wal",
    from: "pg_stat_wal",
    columns: &["wal_records", "wal_fpi", "wal_bytes", "wal_buffers_full", STATS_RESET],
};

const BGWRITER_14: View = View {
    name: "pg_stat_bgwriter",
    from: "pg_stat_bgwriter",
    columns: &[
        "checkpoints_timed", "checkpoints_req", "checkpoint_write_time", "checkpoint_sync_time", "buffers_checkpoint",
        "buffers_clean", "maxwritten_clean", "buffers_backend", "buffers_backend_fsync", "buffers_alloc", STATS_RESET,
    ],
};

const BGWRITER_17: View = View {
    name: "pg_stat_bgwriter",
    from: "pg_stat_bgwriter",
    columns: &["buffers_clean", "maxwritten_clean", "buffers_alloc", STATS_RESET],
};

const CHECKPOINTER_17: View = View {
    name: "pg_stat_checkpointer",
    from: "pg_stat_checkpointer",
    columns: &["num_timed", "num_requested", "write_time", "sync_time", "buffers_written", STATS_RESET],
};

const CHECKPOINTER_18: View = View {
    name: "pg_stat_checkpointer",
    from: "pg_stat_checkpointer",
    columns: &[
        "num_timed", "num_requested", "num_done", "write_time", "sync_time", "buffers_written", "slru_written",
        STATS_RESET,
    ],
};

/// Relations only: from 18 on the view also has rows for the log.
const IO_16: View = View {
    name: "pg_stat_io",
    from: "(SELECT sum(reads) AS reads, sum(writes) AS writes, sum(writebacks) AS writebacks, sum(extends) AS extends, \
           sum(evictions) AS evictions, sum(fsyncs) AS fsyncs, max(stats_reset) AS stats_reset FROM pg_stat_io \
           WHERE object = 'relation')",
    columns: &["reads", "writes", "writebacks", "extends", "evictions", "fsyncs", STATS_RESET],
};

/// The same with bytes instead of blocks of one size: an operation may move several blocks at once.
const IO_18: View = View {
    name: "pg_stat_io",
    from: "(SELECT sum(reads) AS reads, sum(read_bytes) AS read_bytes, sum(writes) AS writes, sum(write_bytes) AS write_bytes, \
           sum(writebacks) AS writebacks, sum(extends) AS extends, sum(evictions) AS evictions, sum(fsyncs) AS fsyncs, \
           max(stats_reset) AS stats_reset FROM pg_stat_io WHERE object = 'relation')",
    columns: &[
        "reads", "read_bytes", "writes", "write_bytes", "writebacks", "extends", "evictions", "fsyncs", STATS_RESET,
    ],
};

/// The log. Context `init` is not read: it is the filling of new segments with zeros, not a write of redo.
const IO_WAL_18: View = View {
    name: "pg_stat_io",
    from: "(SELECT sum(writes) AS wal_writes, sum(write_bytes) AS wal_write_bytes, sum(write_time) AS wal_write_time, \
           sum(fsyncs) AS wal_fsyncs, sum(fsync_time) AS wal_fsync_time \
           FROM pg_stat_io WHERE object = 'wal' AND context = 'normal')",
    columns: &["wal_writes", "wal_write_bytes", "wal_write_time", "wal_fsyncs", "wal_fsync_time"],
};

/// Name of the counter with the position in the log.
pub(super) const LSN: &str = "pg_current_wal_insert_lsn";

/// Times that stay 0 unless this setting is on.
const TIMED: [(&str, &str); 6] = [
    ("pg_stat_wal.wal_write_time", "track_wal_io_timing"),
    ("pg_stat_wal.wal_sync_time", "track_wal_io_timing"),
    ("pg_stat_io.wal_write_time", "track_wal_io_timing"),
    ("pg_stat_io.wal_fsync_time", "track_wal_io_timing"),
    ("pg_stat_database.blk_read_time", "track_io_timing"),
    ("pg_stat_database.blk_write_time", "track_io_timing"),
];

/// The query that reads all counters, and their names in the order of its columns.
pub(super) struct SnapshotQuery {
    pub(super) sql: String,
    pub(super) names: Vec<String>,
}

impl Version {
    /// Parses `15.18 (Debian 15.18-0+deb12u1)` or `18beta1`.
    pub(super) fn parse(text: &str) -> Version {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        Version { major: digits.parse().unwrap_or(0) }
    }

    /// Checks that loadline supports this version.
    ///
    /// # Errors
    /// [`TargetError::Refused`] if it is too old.
    pub(super) fn check(self, text: &str) -> Result<(), TargetError> {
        if self.major >= OLDEST {
            return Ok(());
        }
        Err(TargetError::Refused(format!(
            "the server is PostgreSQL '{text}', which loadline does not support: it must be {OLDEST} to {NEWEST}"
        )))
    }

    /// Query that publishes the session's work in the counters at once; otherwise they are up to one second late. Version
    /// 14 has no such function. The query scans a small catalog because the server does not report commits as long as
    /// there is nothing else to report.
    pub(super) fn flush_stats(self) -> Option<&'static str> {
        (self.major >= 15).then_some("SELECT pg_stat_force_next_flush() FROM pg_catalog.pg_am LIMIT 1")
    }

    /// The same inside a procedure; it takes effect when the CALL returns.
    pub(super) fn flush_stats_in_procedure(self) -> Option<&'static str> {
        (self.major >= 15).then_some("PERFORM pg_stat_force_next_flush() FROM pg_catalog.pg_am LIMIT 1;")
    }

    /// Session settings that not all versions have, marked as [`super::own::OWN`].
    pub(super) fn session_settings(self) -> &'static [&'static str] {
        if self.major >= 17 { &["SELECT /* loadline */ set_config('transaction_timeout', '0', false)"] } else { &[] }
    }

    /// Whether the privilege to change a setting can be granted.
    pub(super) fn has_parameter_privileges(self) -> bool {
        self.major >= 15
    }

    /// Condition under which the sessions' reads are timed.
    pub(super) fn reads_are_timed(self) -> &'static str {
        if self.has_parameter_privileges() {
            "current_setting('track_io_timing') = 'on' OR has_parameter_privilege('track_io_timing', 'SET')"
        } else {
            "current_setting('track_io_timing') = 'on' OR current_setting('is_superuser') = 'on'"
        }
    }

    /// Whether there is a role that may run CHECKPOINT.
    pub(super) fn has_checkpoint_role(self) -> bool {
        self.major >= 15
    }

    /// Statement that makes the server time this session's reads and writes of data files, if the role may change that. There
    /// is none for the log, because other processes write it too.
    pub(super) fn io_timing(self) -> &'static str {
        if self.has_parameter_privileges() {
            "SELECT /* loadline */ set_config('track_io_timing', 'on', false) WHERE has_parameter_privilege('track_io_timing', 'SET')"
        } else {
            "SELECT /* loadline */ set_config('track_io_timing', 'on', false) WHERE current_setting('is_superuser') = 'on'"
        }
    }

    /// Settings of the observer's session: each read sees the present counters.
    pub(super) fn observer_settings(self) -> &'static [&'static str] {
        if self.major >= 15 {
            &["SELECT /* loadline */ set_config('stats_fetch_consistency', 'none', false)"]
        } else {
            &[]
        }
    }

    /// Settings that reserve connections.
    pub(super) fn reserving_settings(self) -> &'static [&'static str] {
        if self.major >= 16 {
            &["superuser_reserved_connections", "reserved_connections"]
        } else {
            &["superuser_reserved_connections"]
        }
    }

    /// Description of the roles that may run CHECKPOINT.
    pub(super) fn checkpoint_privilege(self) -> &'static str {
        if self.has_checkpoint_role() { "a superuser or a member of pg_checkpoint" } else { "a superuser" }
    }

    /// Query that returns whether the role may run CHECKPOINT.
    pub(super) fn may_checkpoint(self) -> &'static str {
        if self.has_checkpoint_role() {
            "SELECT current_setting('is_superuser') = 'on' OR pg_has_role('pg_checkpoint', 'USAGE')"
        } else {
            "SELECT current_setting('is_superuser') = 'on'"
        }
    }

    fn views(self) -> Vec<View> {
        let mut views = vec![DATABASE, if self.major >= 18 { WAL_18 } else { WAL_14 }];
        match self.major {
            ..17 => views.push(BGWRITER_14),
            17 => views.extend([BGWRITER_17, CHECKPOINTER_17]),
            18.. => views.extend([BGWRITER_17, CHECKPOINTER_18]),
        }
        if self.major >= 16 {
            views.push(if self.major >= 18 { IO_18 } else { IO_16 });
        }
        if self.major >= 18 {
            views.extend([IO_WAL_18, WORKERS_18]);
        }
        views
    }

    /// The query of a snapshot of the work in `scope`. `is_on` says whether a setting is on: times that are not measured are not read, because
    /// they would be 0. `proc_stat` adds `/proc/stat` as the last column.
    pub(super) fn snapshot_query(
        self,
        scope: Scope,
        is_on: impl Fn(&str) -> bool,
        proc_stat: bool,
        has_standbys: bool,
    ) -> SnapshotQuery {
        let mut names = Vec::new();
        let (mut select, mut from) = (Vec::new(), Vec::new());
        for (i, view) in self.views().iter().enumerate() {
            for column in view.columns {
                let name = format!("{}.{column}", view.name);
                if TIMED.iter().all(|(timed, setting)| *timed != name || is_on(setting)) {
                    select.push(match *column {
                        STATS_RESET => format!("extract(epoch FROM v{i}.{STATS_RESET})"),
                        column => format!("v{i}.{column}"),
                    });
                    names.push(name);
                }
            }
            from.push(format!("{} v{i}", view.from(scope)));
        }
        select.push("CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_insert_lsn() - '0/0'::pg_lsn END".into());
        names.push(LSN.into());
        if has_standbys {
            let slowest = |of: &str| format!("(SELECT max({of}) FROM pg_stat_replication WHERE state = 'streaming')");
            let bytes = "greatest(pg_current_wal_lsn() - replay_lsn, 0)";
            select.push(slowest(bytes));
            select.push(slowest(&format!(
                "CASE WHEN {bytes} = 0 THEN 0 ELSE extract(epoch FROM replay_lag) * 1000000000 END"
            )));
            names.extend([counter::REPLICA_BEHIND_BYTES, counter::REPLICA_BEHIND_NS].map(str::to_owned));
        }
        if proc_stat {
            select.push("pg_read_file('/proc/stat')".into());
        }
        let sql = format!("SELECT {}\nFROM {}", select.join(",\n  "), from.join(",\n  "));
        SnapshotQuery { sql, names }
    }

    /// Maps the server's counters of the log to neutral counters: neutral name, source, factor.
    pub(super) fn redo_counters(self, wal_block_size: f64) -> Vec<(&'static str, &'static str, f64)> {
        const MS: f64 = 1e6;
        let mut map = vec![(counter::REDO_BYTES, LSN, 1.0), (counter::REDO_PAGE_IMAGES, "pg_stat_wal.wal_fpi", 1.0)];
        if self.major >= 18 {
            map.push((counter::REDO_WRITE_NS, "pg_stat_io.wal_write_time", MS));
            map.push((counter::REDO_SYNC_NS, "pg_stat_io.wal_fsync_time", MS));
            map.push((counter::REDO_WRITES, "pg_stat_io.wal_writes", 1.0));
            map.push((counter::REDO_SYNCS, "pg_stat_io.wal_fsyncs", 1.0));
            map.push((counter::REDO_BLOCKS, "pg_stat_io.wal_write_bytes", 1.0 / wal_block_size));
        } else {
            map.push((counter::REDO_WRITE_NS, "pg_stat_wal.wal_write_time", MS));
            map.push((counter::REDO_SYNC_NS, "pg_stat_wal.wal_sync_time", MS));
            map.push((counter::REDO_WRITES, "pg_stat_wal.wal_write", 1.0));
            map.push((counter::REDO_SYNCS, "pg_stat_wal.wal_sync", 1.0));
        }
        map
    }

    /// The same for tables and indexes; several sources of one neutral counter are added up.
    ///
    /// `blks_read` counts blocks, also those from the page cache; each is one read call up to version 16.
    /// `tup_returned` counts rows of sequential scans and entries found in indexes. `buffers_backend` (up to 16) counts
    /// blocks that sessions wrote to free a buffer or to extend a table: see [`Version::growth_is_written`].
    /// `blk_write_time` is not used: it is only a part of the time that sessions wait for buffers (without the flush of
    /// the log before it and without waits for other sessions), and only superusers can enable it. Wait events are
    /// available to all.
    pub(super) fn data_counters(self, block_size: f64) -> Vec<(&'static str, &'static str, f64)> {
        const MS: f64 = 1e6;
        let mut map = vec![
            (counter::BLOCK_GETS, "pg_stat_database.blks_hit", 1.0),
            (counter::BLOCK_GETS, "pg_stat_database.blks_read", 1.0),
            (counter::BLOCK_READS, "pg_stat_database.blks_read", 1.0),
            (counter::READ_BYTES, "pg_stat_database.blks_read", block_size),
            (counter::READ_NS, "pg_stat_database.blk_read_time", MS),
            (counter::ROWS_READ, "pg_stat_database.tup_returned", 1.0),
            (counter::ROWS_CHANGED, "pg_stat_database.tup_inserted", 1.0),
            (counter::ROWS_CHANGED, "pg_stat_database.tup_updated", 1.0),
            (counter::ROWS_CHANGED, "pg_stat_database.tup_deleted", 1.0),
        ];
        map.push((
            counter::READ_CALLS,
            if self.major >= 16 { "pg_stat_io.reads" } else { "pg_stat_database.blks_read" },
            1.0,
        ));
        match self.major {
            ..16 => {
                for source in [
                    "pg_stat_bgwriter.buffers_checkpoint",
                    "pg_stat_bgwriter.buffers_clean",
                    "pg_stat_bgwriter.buffers_backend",
                ] {
                    map.push((counter::BLOCK_WRITES, source, 1.0));
                    map.push((counter::WRITE_CALLS, source, 1.0));
                    map.push((counter::WRITE_BYTES, source, block_size));
                }
            }
            16 | 17 => {
                map.push((counter::BLOCK_WRITES, "pg_stat_io.writes", 1.0));
                map.push((counter::WRITE_CALLS, "pg_stat_io.writes", 1.0));
                map.push((counter::WRITE_BYTES, "pg_stat_io.writes", block_size));
            }
            18.. => {
                map.push((counter::BLOCK_WRITES, "pg_stat_io.write_bytes", 1.0 / block_size));
                map.push((counter::WRITE_CALLS, "pg_stat_io.writes", 1.0));
                map.push((counter::WRITE_BYTES, "pg_stat_io.write_bytes", 1.0));
            }
        }
        // Started checkpoints up to 17, completed ones from 18 on.
        let checkpoints: &[&'static str] = match self.major {
            ..17 => &["pg_stat_bgwriter.checkpoints_timed", "pg_stat_bgwriter.checkpoints_req"],
            17 => &["pg_stat_checkpointer.num_timed", "pg_stat_checkpointer.num_requested"],
            18.. => &["pg_stat_checkpointer.num_done"],
        };
        if self.major >= 18 {
            map.push((counter::WORKERS_PLANNED, "pg_stat_database.parallel_workers_to_launch", 1.0));
            map.push((counter::WORKERS_CAME, "pg_stat_database.parallel_workers_launched", 1.0));
        }
        map.extend(checkpoints.iter().map(|source| (counter::CHECKPOINTS, *source, 1.0)));
        map
    }

    /// Note on blocks written, if they include blocks by which tables grow: ForwardSyncRequest, which counts
    /// `buffers_backend`, is called for both (src/backend/storage/smgr/md.c). `pg_stat_io` counts extends separately.
    pub(super) fn growth_is_written(self) -> Option<&'static str> {
        (self.major < 16).then_some(
            "PostgreSQL up to 15 counts a new block of a growing table as written to data files, and once more when its \
             content is written: for a new table it counts about twice its size, which the check data-written subtracts",
        )
    }

    /// Why the server does not count log blocks; `None` if it does.
    pub(super) fn no_redo_blocks(self) -> Option<&'static str> {
        (self.major < 18).then_some("PostgreSQL counts the blocks written to its log only from version 18 on")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        for (text, major) in [("15.18 (Debian 15.18-0+deb12u1)", 15), ("18beta1", 18), ("9.6.24", 9), ("", 0)] {
            assert_eq!(Version::parse(text).major, major, "{text}");
        }
        let e = Version::parse("13.4").check("13.4").unwrap_err().to_string();
        assert!(e.contains("'13.4'") && e.contains("14 to 18"), "{e}");
    }

    #[test]
    fn sql_per_version() {
        for major in 14..=18 {
            let version = Version { major };
            let q = version.snapshot_query(Scope::Jobs, |_| true, true, true);
            let text = format!(
                "{}\n-- redo: {:?}\n-- data: {:?}\n-- flush: {:?}\n-- settings: {:?} {:?} {:?}",
                q.sql,
                version.redo_counters(8192.0),
                version.data_counters(8192.0),
                version.flush_stats(),
                version.session_settings(),
                version.observer_settings(),
                version.reserving_settings()
            );
            insta::assert_snapshot!(format!("version_{major}"), text);
        }
    }

    #[test]
    fn growth_is_counted_separately_from_16_on() {
        for major in 14..=18 {
            let version = Version { major };
            assert_eq!(version.growth_is_written().is_some(), major < 16, "{major}");
            // A time that only superusers can measure must not become a figure.
            let map = version.data_counters(8192.0);
            assert!(!map.iter().any(|(neutral, ..)| *neutral == counter::BUFFER_WAIT_NS), "{major}");
        }
    }

    #[test]
    fn every_redo_counter_is_read_by_the_query() {
        for major in 14..=19 {
            let version = Version { major };
            let all = version.snapshot_query(Scope::Jobs, |_| true, false, false).names;
            for (_, source, _) in version.redo_counters(8192.0).into_iter().chain(version.data_counters(8192.0)) {
                assert!(all.iter().any(|n| n == source), "{major}: {source}");
            }
            let names = version.snapshot_query(Scope::Jobs, |_| false, false, false).names;
            // All sources of a sum must be read.
            for (neutral, source, _) in version.data_counters(8192.0) {
                let timed = neutral == counter::READ_NS;
                assert_eq!(names.iter().any(|n| n == source), !timed, "{major}: {neutral} of {source}");
            }
            assert!(!names.iter().any(|n| n == "pg_stat_wal.wal_sync_time"), "times that are not measured");
        }
    }
}
