//! Columns of the log (writes, syncs, commit waits), and of the limit of a test.

use super::{Column, NOT, OWN, define, text_or_absent};
use crate::format::Format;

define! {
    REDO_BLOCKS_PER_S: "redo_blocks_per_s", "Redo blocks", "1/s", Format::Integer,
        "Log blocks written per second, in the database's log block size.",
        &[
            ("postgres", "pg_stat_io (object wal) write_bytes / wal_block_size, from 18 on"),
            ("sqlite", "pages written to the log, counted by loadline's VFS"),
            ("oracle", "V$SYSSTAT 'redo blocks written'"),
            ("wal", "blocks written, counted by the log writer")
        ];
    REDO_WRITES_PER_S: "redo_writes_per_s", "Redo writes", "1/s", Format::Integer,
        "Write calls to the log per second.",
        &[
            ("postgres", "pg_stat_wal.wal_write (14 to 17), pg_stat_io wal writes (18)"),
            ("sqlite", "write calls to the log, counted by loadline's VFS (two per frame)"),
            ("mysql", "Innodb_log_writes"),
            ("oracle", "V$SYSSTAT 'redo writes'"),
            ("wal", "calls that wrote to the log device")
        ];
    REDO_SYNC_WRITES_PER_S: "redo_sync_writes_per_s", "Redo sync writes", "1/s", Format::Integer,
        "Syncs of the log per second.",
        &[
            ("postgres", "pg_stat_wal.wal_sync (14 to 17), pg_stat_io wal fsyncs (18)"),
            (
                "mysql",
                "Innodb_os_log_fsyncs; MariaDB 10.8 and newer lacks it: Innodb_log_writes while innodb_flush_log_at_trx_commit = 1, when each write is synced"
            ),
            ("sqlite", "syncs of the log, counted by loadline's VFS"),
            ("oracle", "V$SYSSTAT 'redo synch writes': commits that forced the log to disk and waited"),
            ("wal", "calls that made the log durable")
        ];
    REDO_MIB_PER_S: "redo_mib_per_s", "Redo data", "MiB/s", Format::Fixed(2),
        "Redo generated per second.",
        &[
            ("postgres", "pg_current_wal_insert_lsn(), difference over the window"),
            (
                "mysql",
                "Innodb_lsn_current (MariaDB), Innodb_redo_log_current_lsn (MySQL 8.0.30 and newer), else Innodb_os_log_written, difference over the window"
            ),
            ("sqlite", "bytes written to the log, counted by loadline's VFS"),
            ("oracle", "V$SYSSTAT 'redo size'"),
            ("wal", "bytes of records and commits with their headers, without block padding")
        ];
    REDO_KIB_PER_TX: "redo_kib_per_tx", "Redo data", "KiB/tx", Format::Fixed(2),
        "Redo generated per transaction.", &[("*", "redo_mib_per_s / commit_throughput_tps")];
    LOG_FILE_SYNC_MS: "log_file_sync_ms", "Log file sync", "ms", Format::Fixed(3),
        "Time that sessions waited for the log writer, per commit, as measured by the database.",
        &[
            (
                "postgres",
                "pg_stat_activity sampled: mean number of job sessions in IO:WALSync, IO:WALWrite, LWLock:WALWrite / tps"
            ),
            (
                "mysql",
                "information_schema.PROCESSLIST sampled: mean number of job sessions in 'Commit', 'Updating status' (MariaDB holds the answer back until the log is on disk; with its thread pool 'Starting cleanup'), 'Waiting for prior transaction to commit' (MySQL: 'waiting for handler commit') / tps; on MySQL, and on MariaDB with a binary log, where performance_schema times these stages: events_stages_summary_global_by_event_name, time in them / tps"
            ),
            ("sqlite", "time in syncs of the log, measured by loadline's VFS / commits"),
            ("oracle", "V$SYSTEM_EVENT 'log file sync', time waited / commits"),
            ("wal", "time in commits that waited, without copying / commits")
        ];
    FLASH_CACHE_WRITE_PCT: "flash_cache_write_pct", "Flash cache write", "%", Format::Fixed(2),
        "Share of the database's physical write requests (data files and logs) that Exadata's flash cache took.",
        &[("oracle", "V$SYSSTAT 'physical write requests optimized' / 'physical write total IO requests'")];
    LIMIT_SHARE_PCT: "limit_share_pct", "Share of the limit", "%", Format::Integer,
        "Throughput as a share of limit_tps.",
        &[("*", "commit_throughput_tps / limit_tps")];
    LIMIT_OF: "limit_of", "Limit of", "", Format::Text,
        "What limit_tps is the rate of: the lowest of the workload's references (see its page).",
        &[("*", "measured right before and after the test, or --limits FILE")],
        |r| text_or_absent(r.limit.as_ref().map(|l| &l.name));
    LIMIT_TPS: "limit_tps", "Limit", "tps", Format::Integer,
        "Throughput that the machine allows for the same work, as measured by the reference in limit_of right before and after the test.",
        OWN;
    COMMITS_PER_REDO_SYNC: "commits_per_redo_sync", "Commits per redo sync", "", Format::Fixed(2),
        "Group commit: commits made durable by one sync of the log; never more than the number of jobs.",
        &[
            ("postgres", "pg_stat_database.xact_commit / redo syncs, from the same snapshots"),
            ("mysql", "commits counted by the database / redo syncs, from the same snapshots"),
            ("*", "the jobs' own count / redo syncs"),
            (
                "oracle",
                "V$SYSSTAT 'user commits' / 'redo synch writes'; commits per log write are commit_throughput_tps / redo_writes_per_s"
            )
        ];
    REDO_BYTES_PER_TX: "redo_bytes_per_tx", "Redo per transaction", "B", Format::Fixed(1),
        "Redo generated per transaction, bytes.", NOT;
    LOG_PART_WAIT_US: "log_part_wait_us", "Commit: wait", "µs", Format::Fixed(1),
        "Time per commit until the write of its group began: waits for the previous group, for others to join and for copies.",
        &[("wal", "the log writer's own clock")];
    LOG_PART_COPY_US: "log_part_copy_us", "Commit: copy", "µs", Format::Fixed(1),
        "Time per commit to copy its records to the log buffer.", &[("wal", "the log writer's own clock")];
    LOG_PART_WRITE_US: "log_part_write_us", "Commit: write", "µs", Format::Fixed(1),
        "Time per commit to write its group to the device.", &[("wal", "the log writer's own clock")];
    LOG_PART_SYNC_US: "log_part_sync_us", "Commit: sync", "µs", Format::Fixed(1),
        "Time per commit to sync its group.", &[("wal", "the log writer's own clock")];
    LOG_PART_WAKE_US: "log_part_wake_us", "Commit: wake", "µs", Format::Fixed(1),
        "Time per commit from its group being durable until its job runs again.",
        &[("wal", "the log writer's own clock")];
    LOG_GROUP_COMMITS: "log_group_commits", "Commits per group", "", Format::Fixed(2),
        "Commits per write of the log.", &[("wal", "commits / groups written")];
    LOG_FILL_KIB: "log_fill_kib", "Buffer fill", "KiB", Format::Fixed(1),
        "Bytes in the log buffer at the start of a write, mean.", &[("wal", "counted by the log writer")];
    LOG_FULL_US: "log_full_us", "Buffer full", "µs/tx", Format::Fixed(1),
        "Time per commit that jobs waited for free space in the log buffer.", &[("wal", "counted by the log writer")];
    REDO_WRITE_TIME_US: "redo_write_time_us", "Redo write time", "µs", Format::Fixed(1),
        "Mean time of a write call to the log.",
        &[
            (
                "postgres",
                "pg_stat_wal.wal_write_time / wal_write (14 to 17), pg_stat_io wal write_time / writes (18); with track_wal_io_timing"
            ),
            ("sqlite", "write calls to the log, timed by loadline's VFS"),
            ("oracle", "V$SYSTEM_EVENT 'log file parallel write', time waited / V$SYSSTAT 'redo writes'"),
            ("wal", "the log writer's own clock")
        ];
    REDO_SYNCS: "redo_syncs", "Redo syncs", "", Format::Integer,
        "Number of syncs of the log in the window.",
        &[("*", "the counter of redo_sync_writes_per_s, difference over the window")];
    REDO_SYNC_TIME_US: "redo_sync_time_us", "Redo sync time", "µs", Format::Fixed(1),
        "Mean time of a sync of the log.",
        &[
            (
                "postgres",
                "pg_stat_wal.wal_sync_time / wal_sync (14 to 17), pg_stat_io wal fsync_time / fsyncs (18); with track_wal_io_timing"
            ),
            ("sqlite", "syncs of the log, timed by loadline's VFS"),
            ("oracle", "V$SYSSTAT 'redo synch time (usec)' / 'redo synch writes'"),
            ("wal", "the log writer's own clock")
        ];
}
