//! Columns of storage and of the database's cache: reads, writes, waits and checkpoints.

use super::{Column, NOT, OWN, define, text_or_absent};
use crate::format::Format;

/// Single-block reads, timed by the database.
const READ_TIME: &[(&str, &str)] = &[
    (
        "postgres",
        "pg_stat_database.blk_read_time / read calls (pg_stat_io.reads from 16 on, blks_read before), with track_io_timing",
    ),
    ("sqlite", "read calls of the database's file, timed by loadline's VFS"),
    (
        "oracle",
        "V$SYSTEM_EVENT 'db file … read', 'cell … physical read', 'direct path read', time waited / V$SYSSTAT 'physical read IO requests'",
    ),
    (
        "*",
        "if the database does not time its reads (no read_wait_pct): the jobs' own times of transactions that read one block each",
    ),
];
const READ_SPREAD: &[(&str, &str)] = &[("*", "the jobs' own times of transactions that read one block each")];
const DEVICE: &[(&str, &str)] = &[("*", "/proc/diskstats of the device that holds the data files")];

define! {
    BLOCK_BYTES: "block_bytes", "Block", "B", Format::Integer,
        "Size of a block of the database's data files, bytes.",
        &[
            ("postgres", "block_size"),
            ("mysql", "innodb_page_size"),
            ("sqlite", "PRAGMA page_size"),
            ("oracle", "USER_TABLESPACES.BLOCK_SIZE of the user's default tablespace")
        ];
    WRITE_PCT: "write_pct", "Updates", "%", Format::Integer,
        "Updates as a share of all statements.", &[("*", "parameter write-pct of the workload")];
    CACHE_HIT_PCT: "cache_hit_pct", "Cache hits", "%", Format::Fixed(3),
        "Share of the block reads served by the database's cache.",
        &[("*", "1 − block_reads_per_s / block_gets_per_s")];
    BLOCK_GETS_PER_S: "block_gets_per_s", "Block gets", "1/s", Format::Integer,
        "Logical reads: blocks that the database looked up in its cache per second, hits and misses.",
        &[
            ("postgres", "pg_stat_database.blks_hit + blks_read"),
            ("mysql", "Innodb_buffer_pool_read_requests"),
            ("sqlite", "sqlite3_db_status CACHE_HIT + CACHE_MISS of all sessions"),
            ("oracle", "V$SYSSTAT 'session logical reads'")
        ];
    BLOCK_READS_PER_S: "block_reads_per_s", "Block reads", "1/s", Format::Integer,
        "Physical reads counted by the database: blocks not found in its cache, per second. The page cache may have served them.",
        &[
            ("postgres", "pg_stat_database.blks_read; up to version 15 with the blocks by which tables grow"),
            ("mysql", "Innodb_pages_read, read-ahead included"),
            ("sqlite", "sqlite3_db_status CACHE_MISS of all sessions"),
            ("oracle", "V$SYSSTAT 'physical reads'")
        ];
    READ_MIB_PER_S: "read_mib_per_s", "Read", "MiB/s", Format::Fixed(1),
        "Bytes that the database read from its data files per second.",
        &[
            ("postgres", "pg_stat_database.blks_read × block_size"),
            ("mysql", "Innodb_pages_read × Innodb_page_size"),
            ("sqlite", "bytes read from the database's file, counted by loadline's VFS"),
            ("oracle", "V$SYSSTAT 'physical read bytes'")
        ];
    READ_TIME_US_MEAN: "read_time_us_mean", "Read time", "µs", Format::Fixed(1),
        "Mean time of a read call to the data files.", READ_TIME;
    READ_WAIT_PCT: "read_wait_pct", "Read waits", "%", Format::Fixed(1),
        "Share of the jobs' time spent in reads of data files, timed by the database; absent if it does not time them. Above 100 %, blocks were read ahead and no job waited for them.",
        &[
            ("postgres", "pg_stat_database.blk_read_time / (jobs × window), with track_io_timing"),
            ("sqlite", "time of read calls of the database's file, measured by loadline's VFS / (jobs × window)"),
            (
                "oracle",
                "V$SYSTEM_EVENT 'db file … read', 'cell … physical read', 'direct path read', time waited / (jobs × window)"
            )
        ];
    READ_TIME_US_P50: "read_time_us_p50", "Read time p50", "µs", Format::Fixed(1),
        "Median time of a single-block read.", READ_SPREAD;
    READ_TIME_US_P99: "read_time_us_p99", "Read time p99", "µs", Format::Fixed(1),
        "99th percentile of the time of a single-block read.", READ_SPREAD;
    READS_WITHIN_512US_PCT: "reads_within_512us_pct", "Reads ≤ 512 µs", "%", Format::Fixed(1),
        "Share of the single-block reads that took 512 µs or less.", READ_SPREAD;
    DEVICE_READS_PER_S: "device_reads_per_s", "Device reads", "1/s", Format::Integer,
        "Reads completed per second by the device that holds the data files.", DEVICE;
    DEVICE_READ_MIB_PER_S: "device_read_mib_per_s", "Device read", "MiB/s", Format::Fixed(1),
        "Bytes read per second from the device that holds the data files.", DEVICE;
    DEVICE_READ_SHARE_PCT: "device_read_share_pct", "From the device", "%", Format::Integer,
        "Bytes read from the device as a share of the bytes that the database read. Below 100 %, the rest came from the page cache; above 100 %, blocks were read ahead.",
        &[("*", "device_read_mib_per_s / read_mib_per_s")];
    DATA_SOURCE: "data_source", "Data from", "", Format::Text,
        "Source of the blocks that the database read: device, cached (page cache of the operating system), lukewarm (both), or bounded (the device, but for at most cached_pct_max, which is above 10 %).",
        &[("*", "device_read_share_pct, or cached_pct_max")], |r| text_or_absent(r.data_source.map(|source| source.to_string()).as_ref());
    CACHED_PCT_MAX: "cached_pct_max", "Cached at most", "%", Format::Fixed(1),
        "Upper bound of the share of the requested blocks that caches of the server's machine served, or of the rate of writes that they may have lent. Only if the device's counters cannot be read.",
        &[("*", "server-memory / size of the table; length of the window and time until a checkpoint after it has synced the writes")];
    IO_PER_S: "io_per_s", "I/O", "1/s", Format::Integer,
        "Reads plus writes of data files per second, counted by the database.",
        &[("*", "read calls + write calls of data files between the snapshots")];
    BUFFER_WAIT_PCT: "buffer_wait_pct", "Buffer waits", "%", Format::Fixed(1),
        "Share of the jobs' time spent waiting for a free buffer in the block cache or for a block in it.",
        &[
            (
                "postgres",
                "wait events of the job sessions, sampled: IO:DataFileWrite, DataFileFlush and DataFileExtend, BufferIO, BufferContent, BufferMapping, BufferPin; if commits do not wait, also WALSync and WALWrite, as the redo of a block is written before the block"
            ),
            ("oracle", "V$SYSTEM_EVENT 'free buffer waits', 'write complete waits', time waited / (jobs × window)")
        ];
    PHYSICAL_WRITES_PER_S: "physical_writes_per_s", "Physical writes", "1/s", Format::Integer,
        "Write calls to the data files per second.",
        &[
            (
                "postgres",
                "pg_stat_bgwriter.buffers_checkpoint + buffers_clean + buffers_backend (up to 15; the last includes blocks that extend tables), pg_stat_io.writes (16 and newer)"
            ),
            ("mysql", "Innodb_pages_written + Innodb_dblwr_writes"),
            ("sqlite", "pages written to the database's file, counted by loadline's VFS"),
            ("oracle", "V$SYSSTAT 'physical write IO requests'")
        ];
    PHYSICAL_WRITTEN_BLOCKS_PER_S: "physical_written_blocks_per_s", "Written blocks", "1/s", Format::Integer,
        "Blocks written to the data files per second.",
        &[
            (
                "postgres",
                "pg_stat_bgwriter.buffers_checkpoint + buffers_clean + buffers_backend (up to 15; the last includes blocks that extend tables), pg_stat_io.writes (16, 17), write_bytes / block_size (18)"
            ),
            ("mysql", "Innodb_pages_written"),
            ("sqlite", "pages written to the database's file, counted by loadline's VFS"),
            ("oracle", "V$SYSSTAT 'physical writes'")
        ];
    PHYSICAL_WRITTEN_MIB_PER_S: "physical_written_mib_per_s", "Written data", "MiB/s", Format::Fixed(1),
        "Bytes written to the data files per second.",
        &[
            ("postgres", "blocks written × block_size (up to 17), pg_stat_io.write_bytes (18)"),
            (
                "mysql",
                "(Innodb_pages_written + Innodb_dblwr_pages_written) × Innodb_page_size, the doublewrite buffer included"
            ),
            ("sqlite", "bytes written to the database's file, counted by loadline's VFS"),
            ("oracle", "V$SYSSTAT 'physical write bytes'")
        ];
    CHECKPOINTS: "checkpoints", "Checkpoints", "", Format::Integer,
        "Checkpoints in the window, started or completed, whichever the database counts.",
        &[
            ("postgres", "pg_stat_bgwriter.checkpoints_timed + checkpoints_req (up to 16), pg_stat_checkpointer.num_timed + num_requested (17), num_done (18)"),
            ("sqlite", "checkpoints of the log into the database's file, counted by loadline's VFS"),
            ("oracle", "V$SYSSTAT 'DBWR checkpoints'")
        ];
    AUTOVACUUM_SHARE_PCT: "autovacuum_share_pct", "In autovacuum", "%", Format::Integer,
        "Share of the samples in the window in which a background process cleaned up after changed rows.",
        &[("postgres", "autovacuum workers in pg_stat_activity, sampled ten times a second")];
    CHECKPOINT_SHARE_PCT: "checkpoint_share_pct", "In checkpoints", "%", Format::Integer,
        "Share of the window in which a checkpoint was running.", NOT;
    CHECKPOINT_TPS: "checkpoint_tps", "Checkpoint throughput", "tps", Format::Integer,
        "Transactions per second while a checkpoint was running.", OWN;
    CALM_TPS: "calm_tps", "Throughput outside checkpoints", "tps", Format::Integer,
        "Transactions per second while no checkpoint was running.", OWN;
    CHECKPOINT_TIME_NS_P99: "checkpoint_time_ns_p99", "Checkpoint p99", "ms", Format::NsAsMs,
        "99th percentile of the time of transactions that ended while a checkpoint was running.", OWN;
    CALM_TIME_NS_P99: "calm_time_ns_p99", "p99 outside checkpoints", "ms", Format::NsAsMs,
        "99th percentile of the time of transactions that ended while no checkpoint was running.", OWN;
}
