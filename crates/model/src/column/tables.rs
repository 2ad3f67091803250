//! Tables: the columns that each group shows, and those that only files hold.

use super::*;

/// A named selection of columns, in order.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Group code it is for.
    pub group: &'static str,
    /// The group's name.
    pub title: &'static str,
    /// Columns shown in tables after those with which all begin.
    then: &'static [&'static Column],
    /// Columns that follow in CSV and JSON. A column in both lists appears once; columns that no table names come last.
    also_in_files: &'static [&'static [&'static Column]],
}

/// Each table begins with these.
const BEGIN: &[&Column] = &[RUN, TEST, WORKLOAD, NODES, JOBS];

/// What the log writer shows is in the files of every group.
const SHOWN_OF_LOG_WRITER: &[&Column] = &[
    CPU_BUSY_PCT, CPU_USER_PCT, CPU_SYS_PCT, CPU_IDLE_PCT, CPU_IOWAIT_PCT, COMMIT_THROUGHPUT_TPS, COMMIT_LATENCY_MS,
    REDO_BLOCKS_PER_S, REDO_WRITES_PER_S, REDO_SYNC_WRITES_PER_S, REDO_MIB_PER_S, REDO_KIB_PER_TX, LOG_FILE_SYNC_MS,
    FLASH_CACHE_WRITE_PCT, ELAPSED_S, COMMIT_TIME_NS_P50, COMMIT_TIME_NS_P99, COMMIT_TIME_NS_MAX, ERRORS,
    LIMIT_SHARE_PCT,
];

/// In the files of every group, after that.
const OF_ALL: &[&Column] = &[
    LIMIT_TPS, LIMIT_OF, TARGET, DRIVER, VALID, VALIDITY, INVALID_REASON, DISTURBED_BY, FORCED, REPETITION, TRIES,
    STARTED_AT, WARMUP_S, WITHIN_WINDOW_PCT, RATE_TPS, COMMITS, COMMITS_DATABASE, COMMITS_PER_REDO_SYNC,
    REDO_BYTES_PER_TX, STATEMENTS_PER_TX, ROWS_PER_TX, ROWS_CHANGED_DATABASE, COMMIT_TIME_NS_MEAN,
    TRANSACTION_TIME_NS_P50, TRANSACTION_TIME_NS_P99, TRANSACTION_TIME_NS_MAX, RESPONSE_TIME_NS_MEAN,
    RESPONSE_TIME_NS_P50, RESPONSE_TIME_NS_P99, RESPONSE_TIME_NS_MAX, OUTSIDE_TX_PCT, CLIENT_CPU_US_PER_TX,
    CLIENT_CPU_PCT, DEVICE_WRITES_PER_S, DEVICE_WRITE_MIB_PER_S, DEVICE_UTIL_PCT,
];

/// The parts of a commit: in the files of the log writer only.
const OF_LOG_WRITER: &[&Column] = &[
    LOG_PART_WAIT_US, LOG_PART_COPY_US, LOG_PART_WRITE_US, LOG_PART_SYNC_US, LOG_PART_WAKE_US, LOG_GROUP_COMMITS,
    LOG_FILL_KIB, LOG_FULL_US,
];

/// In the files of every group, after those of the log writer.
const OF_ALL_TOO: &[&Column] = &[TRANSACTION_TIME_NS_MEAN, TX_PER_S, REDO_WRITE_TIME_US, REDO_SYNCS, REDO_SYNC_TIME_US];

/// In the files of every group but the log writer.
const OF_OTHERS: &[&Column] = &[
    THREADS, BLOCK_BYTES, QUERIES_PER_S, QUERY_TIME_US_MEAN, ROWS_PER_S, DATA_MIB_PER_S, SQL_SERVICE_TIME_S, SPEED_UP,
    MOPS_PER_S, MOPS_PER_S_PER_JOB, WRITE_PCT, GROUPS, CACHE_HIT_PCT, BLOCK_GETS_PER_S, BLOCK_READS_PER_S,
    READ_MIB_PER_S, READ_TIME_US_MEAN, READ_WAIT_PCT, READ_TIME_US_P50, READ_TIME_US_P99, READS_WITHIN_512US_PCT,
    IO_PER_S, BUFFER_WAIT_PCT, PHYSICAL_WRITES_PER_S, PHYSICAL_WRITTEN_BLOCKS_PER_S, PHYSICAL_WRITTEN_MIB_PER_S,
    DEVICE_READS_PER_S, DEVICE_READ_MIB_PER_S, DEVICE_READ_SHARE_PCT, CACHED_PCT_MAX, DATA_SOURCE,
    CHECKPOINT_SHARE_PCT, CALM_TPS, CHECKPOINT_TPS, CALM_TIME_NS_P99, CHECKPOINT_TIME_NS_P99, VISIBLE_DELAY_NS_P50,
    VISIBLE_DELAY_NS_P99,
];

/// Further columns in the files of every group except the log writer.
const FILES: &[&[&Column]] =
    &[SHOWN_OF_LOG_WRITER, OF_ALL, OF_ALL_TOO, OF_OTHERS, shares::COLUMNS, disturbance::COLUMNS, replication::COLUMNS];

/// All tables, one a group, in the order in which the groups are named.
pub static TABLES: [Table; 8] = [
    table(
        "server",
        "Server",
        &[
            CPU_BUSY_PCT, CPU_USER_PCT, CPU_SYS_PCT, QUERIES_PER_S, ROWS_PER_S, DATA_MIB_PER_S, QUERY_TIME_US_MEAN,
            TRANSACTION_TIME_NS_MEAN, TRANSACTION_TIME_NS_P50, TRANSACTION_TIME_NS_P99, CACHE_HIT_PCT,
            BLOCK_GETS_PER_S, BLOCK_READS_PER_S, ELAPSED_S, CLIENT_CPU_PCT, ERRORS,
        ],
    ),
    table(
        "storage",
        "Storage",
        &[
            THREADS, BLOCK_BYTES, CPU_BUSY_PCT, CPU_IOWAIT_PCT, BLOCK_READS_PER_S, READ_MIB_PER_S, READ_TIME_US_MEAN,
            READ_TIME_US_P50, READ_TIME_US_P99, READS_WITHIN_512US_PCT, READ_WAIT_PCT, ROWS_PER_S, DATA_MIB_PER_S,
            PHYSICAL_WRITES_PER_S, PHYSICAL_WRITTEN_MIB_PER_S, IO_PER_S, BUFFER_WAIT_PCT, CACHE_HIT_PCT,
            DEVICE_READS_PER_S, DEVICE_READ_MIB_PER_S, DEVICE_READ_SHARE_PCT, CACHED_PCT_MAX, DATA_SOURCE, ELAPSED_S,
            ERRORS,
        ],
    ),
    Table {
        group: "log-writer",
        title: "Log writer",
        then: SHOWN_OF_LOG_WRITER,
        also_in_files: &[
            SHOWN_OF_LOG_WRITER,
            OF_ALL,
            OF_LOG_WRITER,
            OF_ALL_TOO,
            shares::COLUMNS,
            disturbance::COLUMNS,
            replication::COLUMNS,
        ],
    },
    table(
        "database-writer",
        "Database writer",
        &[
            CPU_BUSY_PCT, CPU_IOWAIT_PCT, TX_PER_S, TRANSACTION_TIME_NS_P50, TRANSACTION_TIME_NS_P99,
            TRANSACTION_TIME_NS_MAX, PHYSICAL_WRITES_PER_S, PHYSICAL_WRITTEN_BLOCKS_PER_S, PHYSICAL_WRITTEN_MIB_PER_S,
            REDO_MIB_PER_S, BUFFER_WAIT_PCT, CACHED_PCT_MAX, CHECKPOINT_SHARE_PCT, CALM_TPS, CHECKPOINT_TPS,
            CALM_TIME_NS_P99, CHECKPOINT_TIME_NS_P99, ELAPSED_S, ERRORS,
        ],
    ),
    // The published columns of study 2, then what they lack.
    table(
        "data-load",
        "Data load",
        &[
            THREADS, ROWS_PER_TX, CPU_BUSY_PCT, ROWS_PER_S, TX_PER_S, SQL_SERVICE_TIME_S, PHYSICAL_WRITES_PER_S,
            PHYSICAL_WRITTEN_BLOCKS_PER_S, PHYSICAL_WRITTEN_MIB_PER_S, REDO_MIB_PER_S, REDO_WRITES_PER_S,
            REDO_WRITE_TIME_US, REDO_SYNCS, REDO_SYNC_TIME_US, ELAPSED_S, DATA_MIB_PER_S, INDEXES,
            TRANSACTION_TIME_NS_P50, TRANSACTION_TIME_NS_P99, VISIBLE_DELAY_NS_P50, VISIBLE_DELAY_NS_P99, ERRORS,
        ],
    ),
    table(
        "data-analytics",
        "Data analytics",
        &[
            THREADS, GROUPS, CPU_BUSY_PCT, CPU_USER_PCT, CPU_SYS_PCT, CPU_IOWAIT_PCT, ROWS_PER_S, DATA_MIB_PER_S,
            QUERIES_PER_S, TRANSACTION_TIME_NS_MEAN, TRANSACTION_TIME_NS_P50, TRANSACTION_TIME_NS_P99, SPEED_UP,
            CACHE_HIT_PCT, BLOCK_READS_PER_S, READ_MIB_PER_S, ELAPSED_S, ERRORS,
        ],
    ),
    table(
        "transaction-processing",
        "Transaction processing",
        &[
            CPU_BUSY_PCT, CPU_USER_PCT, CPU_SYS_PCT, CPU_IOWAIT_PCT, TX_PER_S, STATEMENTS_PER_TX,
            TRANSACTION_TIME_NS_MEAN, TRANSACTION_TIME_NS_P50, TRANSACTION_TIME_NS_P99, TRANSACTION_TIME_NS_MAX,
            COMMIT_TIME_NS_P50, COMMIT_TIME_NS_P99, ROWS_PER_S, CACHE_HIT_PCT, REDO_MIB_PER_S, REDO_KIB_PER_TX,
            LOG_FILE_SYNC_MS, ELAPSED_S, ERRORS,
        ],
    ),
    table(
        "procedural-code",
        "Procedural code",
        &[
            CPU_BUSY_PCT, CPU_USER_PCT, CPU_SYS_PCT, MOPS_PER_S, MOPS_PER_S_PER_JOB, TRANSACTION_TIME_NS_MEAN,
            TRANSACTION_TIME_NS_P50, TRANSACTION_TIME_NS_P99, ELAPSED_S, ERRORS,
        ],
    ),
];

/// Place of the table of groups that have none of their own.
const LOG_WRITER: usize = 2;

const fn table(group: &'static str, title: &'static str, then: &'static [&'static Column]) -> Table {
    Table { group, title, then, also_in_files: FILES }
}

impl Table {
    /// Table of group `group`; groups without one of their own use the log writer's.
    #[must_use]
    pub fn of(group: &str) -> &'static Table {
        TABLES.iter().find(|t| t.group == group).unwrap_or(&TABLES[LOG_WRITER])
    }

    /// Columns shown in tables, in order.
    #[must_use]
    pub fn shown(&self) -> Vec<&'static Column> {
        [BEGIN, self.then].concat()
    }

    /// Columns of CSV and JSON: `platform, workload, run, test, …` as in the published studies,
    /// then the rest.
    pub fn file_columns(&self) -> impl Iterator<Item = &'static Column> {
        const FIRST: [&Column; 2] = [PLATFORM, WORKLOAD];
        // The first columns after those of published tables.
        const OWN_FIRST: [&Column; 6] = [TARGET, DRIVER, VALID, VALIDITY, INVALID_REASON, ERRORS];
        let placed = |c: &&'static Column| FIRST.contains(c) || OWN_FIRST.contains(c);
        let shown = self.shown();
        let also = self.also_in_files.iter().copied().flatten().filter(|c| !shown.contains(c));
        let rest = shown.iter().chain(also).copied().filter(|c| !placed(c));
        let last_published = shown.iter().position(|c| *c == ELAPSED_S).unwrap_or(shown.len());
        let is_published = |c: &&Column| shown.iter().take(last_published + 1).any(|s| s == c);
        let (published, own): (Vec<&Column>, Vec<&Column>) = rest.partition(is_published);
        let unnamed = COLUMNS.iter().copied().filter(move |c| !placed(c) && !TABLES.iter().any(|t| t.names(c)));
        FIRST.into_iter().chain(published).chain(OWN_FIRST).chain(own).chain(unnamed)
    }

    fn names(&self, column: &Column) -> bool {
        self.shown().iter().chain(self.also_in_files.iter().copied().flatten()).any(|c| *c == column)
    }
}
