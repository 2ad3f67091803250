//! Tables: which columns the people of a group look at, and which follow in files.

use super::{Column, column};

/// A named selection of columns, in order.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Group code it is for.
    pub group: &'static str,
    /// The group's name.
    pub title: &'static str,
    /// Ids shown to people, in order.
    pub shown: &'static [&'static str],
    /// Ids that follow in CSV and JSON; those that are shown already stand there once all the same.
    pub also_in_files: &'static [&'static str],
}

/// What every group but the log writer's has in its files: a figure may matter to a group whose table has
/// no room for it.
const IN_ALL_FILES: &[&str] = &[
    "cpu_busy_pct",
    "cpu_user_pct",
    "cpu_sys_pct",
    "cpu_idle_pct",
    "cpu_iowait_pct",
    "commit_throughput_tps",
    "commit_latency_ms",
    "redo_blocks_per_s",
    "redo_writes_per_s",
    "redo_sync_writes_per_s",
    "redo_mib_per_s",
    "redo_kib_per_tx",
    "log_file_sync_ms",
    "flash_cache_write_pct",
    "elapsed_s",
    "commit_time_ns_p50",
    "commit_time_ns_p99",
    "commit_time_ns_max",
    "errors",
    "limit_share_pct",
    "limit_tps",
    "target",
    "driver",
    "valid",
    "invalid_reason",
    "forced",
    "repetition",
    "started_at",
    "warmup_s",
    "rate_tps",
    "commits",
    "commits_database",
    "commits_per_redo_sync",
    "redo_bytes_per_tx",
    "statements_per_tx",
    "rows_per_tx",
    "rows_changed_database",
    "commit_time_ns_mean",
    "transaction_time_ns_p50",
    "transaction_time_ns_p99",
    "transaction_time_ns_max",
    "response_time_ns_mean",
    "response_time_ns_p50",
    "response_time_ns_p99",
    "response_time_ns_max",
    "outside_tx_pct",
    "client_cpu_us_per_tx",
    "client_cpu_pct",
    "device_writes_per_s",
    "device_write_mib_per_s",
    "device_util_pct",
    "transaction_time_ns_mean",
    "tx_per_s",
    "redo_write_time_us",
    "redo_syncs",
    "redo_sync_time_us",
    "threads",
    "block_bytes",
    "queries_per_s",
    "query_time_us_mean",
    "rows_per_s",
    "data_mib_per_s",
    "sql_service_time_s",
    "speed_up",
    "mops_per_s",
    "mops_per_s_per_job",
    "write_pct",
    "groups",
    "cache_hit_pct",
    "block_gets_per_s",
    "block_reads_per_s",
    "read_mib_per_s",
    "read_time_us_mean",
    "read_wait_pct",
    "read_time_us_p50",
    "read_time_us_p99",
    "reads_within_512us_pct",
    "io_per_s",
    "buffer_wait_pct",
    "physical_writes_per_s",
    "physical_written_blocks_per_s",
    "physical_written_mib_per_s",
    "device_reads_per_s",
    "device_read_mib_per_s",
    "device_read_share_pct",
    "data_source",
    "checkpoint_share_pct",
    "calm_tps",
    "checkpoint_tps",
    "calm_time_ns_p99",
    "checkpoint_time_ns_p99",
    "visible_delay_ns_p50",
    "visible_delay_ns_p99",
];

/// The table of the log-writer group.
pub static LOG_WRITER: Table = Table {
    group: "log-writer",
    title: "Log writer",
    shown: &[
        "run",
        "test",
        "workload",
        "nodes",
        "jobs",
        "cpu_busy_pct",
        "cpu_user_pct",
        "cpu_sys_pct",
        "cpu_idle_pct",
        "cpu_iowait_pct",
        "commit_throughput_tps",
        "commit_latency_ms",
        "redo_blocks_per_s",
        "redo_writes_per_s",
        "redo_sync_writes_per_s",
        "redo_mib_per_s",
        "redo_kib_per_tx",
        "log_file_sync_ms",
        "flash_cache_write_pct",
        "elapsed_s",
        "commit_time_ns_p50",
        "commit_time_ns_p99",
        "commit_time_ns_max",
        "errors",
        "limit_share_pct",
    ],
    also_in_files: &[
        "limit_tps",
        "target",
        "driver",
        "valid",
        "invalid_reason",
        "forced",
        "repetition",
        "started_at",
        "warmup_s",
        "rate_tps",
        "commits",
        "commits_database",
        "commits_per_redo_sync",
        "redo_bytes_per_tx",
        "statements_per_tx",
        "rows_per_tx",
        "rows_changed_database",
        "commit_time_ns_mean",
        "transaction_time_ns_p50",
        "transaction_time_ns_p99",
        "transaction_time_ns_max",
        "response_time_ns_mean",
        "response_time_ns_p50",
        "response_time_ns_p99",
        "response_time_ns_max",
        "outside_tx_pct",
        "client_cpu_us_per_tx",
        "client_cpu_pct",
        "device_writes_per_s",
        "device_write_mib_per_s",
        "device_util_pct",
        "log_part_wait_us",
        "log_part_copy_us",
        "log_part_write_us",
        "log_part_sync_us",
        "log_part_wake_us",
        "log_group_commits",
        "log_fill_kib",
        "log_full_us",
        "transaction_time_ns_mean",
        "tx_per_s",
        "redo_write_time_us",
        "redo_syncs",
        "redo_sync_time_us",
    ],
};

/// The table of the server group.
pub static SERVER: Table = Table {
    group: "server",
    title: "Server",
    shown: &[
        "run",
        "test",
        "workload",
        "nodes",
        "jobs",
        "cpu_busy_pct",
        "cpu_user_pct",
        "cpu_sys_pct",
        "queries_per_s",
        "rows_per_s",
        "data_mib_per_s",
        "query_time_us_mean",
        "transaction_time_ns_mean",
        "transaction_time_ns_p50",
        "transaction_time_ns_p99",
        "cache_hit_pct",
        "block_gets_per_s",
        "block_reads_per_s",
        "elapsed_s",
        "client_cpu_pct",
        "errors",
    ],
    also_in_files: IN_ALL_FILES,
};

/// The table of the storage group.
pub static STORAGE: Table = Table {
    group: "storage",
    title: "Storage",
    shown: &[
        "run",
        "test",
        "workload",
        "nodes",
        "jobs",
        "threads",
        "block_bytes",
        "cpu_busy_pct",
        "cpu_iowait_pct",
        "block_reads_per_s",
        "read_mib_per_s",
        "read_time_us_mean",
        "read_time_us_p50",
        "read_time_us_p99",
        "reads_within_512us_pct",
        "read_wait_pct",
        "rows_per_s",
        "data_mib_per_s",
        "physical_writes_per_s",
        "physical_written_mib_per_s",
        "io_per_s",
        "buffer_wait_pct",
        "cache_hit_pct",
        "device_reads_per_s",
        "device_read_mib_per_s",
        "device_read_share_pct",
        "data_source",
        "elapsed_s",
        "errors",
    ],
    also_in_files: IN_ALL_FILES,
};

/// The table of the database-writer group.
pub static DATABASE_WRITER: Table = Table {
    group: "database-writer",
    title: "Database writer",
    shown: &[
        "run",
        "test",
        "workload",
        "nodes",
        "jobs",
        "cpu_busy_pct",
        "cpu_iowait_pct",
        "tx_per_s",
        "transaction_time_ns_p50",
        "transaction_time_ns_p99",
        "transaction_time_ns_max",
        "physical_writes_per_s",
        "physical_written_blocks_per_s",
        "physical_written_mib_per_s",
        "redo_mib_per_s",
        "buffer_wait_pct",
        "checkpoint_share_pct",
        "calm_tps",
        "checkpoint_tps",
        "calm_time_ns_p99",
        "checkpoint_time_ns_p99",
        "elapsed_s",
        "errors",
    ],
    also_in_files: IN_ALL_FILES,
};

/// The table of the data-load group: the published columns of study 2, then what they lack.
pub static DATA_LOAD: Table = Table {
    group: "data-load",
    title: "Data load",
    shown: &[
        "run",
        "test",
        "workload",
        "nodes",
        "jobs",
        "threads",
        "rows_per_tx",
        "cpu_busy_pct",
        "rows_per_s",
        "tx_per_s",
        "sql_service_time_s",
        "physical_writes_per_s",
        "physical_written_blocks_per_s",
        "physical_written_mib_per_s",
        "redo_mib_per_s",
        "redo_writes_per_s",
        "redo_write_time_us",
        "redo_syncs",
        "redo_sync_time_us",
        "elapsed_s",
        "data_mib_per_s",
        "indexes",
        "transaction_time_ns_p50",
        "transaction_time_ns_p99",
        "visible_delay_ns_p50",
        "visible_delay_ns_p99",
        "errors",
    ],
    also_in_files: IN_ALL_FILES,
};

/// The table of the data-analytics group.
pub static DATA_ANALYTICS: Table = Table {
    group: "data-analytics",
    title: "Data analytics",
    shown: &[
        "run",
        "test",
        "workload",
        "nodes",
        "jobs",
        "threads",
        "groups",
        "cpu_busy_pct",
        "cpu_user_pct",
        "cpu_sys_pct",
        "cpu_iowait_pct",
        "rows_per_s",
        "data_mib_per_s",
        "queries_per_s",
        "transaction_time_ns_mean",
        "transaction_time_ns_p50",
        "transaction_time_ns_p99",
        "speed_up",
        "cache_hit_pct",
        "block_reads_per_s",
        "read_mib_per_s",
        "elapsed_s",
        "errors",
    ],
    also_in_files: IN_ALL_FILES,
};

/// The table of the transaction-processing group.
pub static TRANSACTION_PROCESSING: Table = Table {
    group: "transaction-processing",
    title: "Transaction processing",
    shown: &[
        "run",
        "test",
        "workload",
        "nodes",
        "jobs",
        "cpu_busy_pct",
        "cpu_user_pct",
        "cpu_sys_pct",
        "cpu_iowait_pct",
        "tx_per_s",
        "statements_per_tx",
        "transaction_time_ns_mean",
        "transaction_time_ns_p50",
        "transaction_time_ns_p99",
        "transaction_time_ns_max",
        "commit_time_ns_p50",
        "commit_time_ns_p99",
        "rows_per_s",
        "cache_hit_pct",
        "redo_mib_per_s",
        "redo_kib_per_tx",
        "log_file_sync_ms",
        "elapsed_s",
        "errors",
    ],
    also_in_files: IN_ALL_FILES,
};

/// The table of the procedural-code group.
pub static PROCEDURAL_CODE: Table = Table {
    group: "procedural-code",
    title: "Procedural code",
    shown: &[
        "run",
        "test",
        "workload",
        "nodes",
        "jobs",
        "cpu_busy_pct",
        "cpu_user_pct",
        "cpu_sys_pct",
        "mops_per_s",
        "mops_per_s_per_job",
        "transaction_time_ns_mean",
        "transaction_time_ns_p50",
        "transaction_time_ns_p99",
        "elapsed_s",
        "errors",
    ],
    also_in_files: IN_ALL_FILES,
};

/// All tables, one a group, in the order in which the groups are named.
pub static TABLES: &[&Table] = &[
    &SERVER,
    &STORAGE,
    &LOG_WRITER,
    &DATABASE_WRITER,
    &DATA_LOAD,
    &DATA_ANALYTICS,
    &TRANSACTION_PROCESSING,
    &PROCEDURAL_CODE,
];

impl Table {
    /// Table of group `group`; groups without one of their own use the log writer's.
    #[must_use]
    pub fn of(group: &str) -> &'static Table {
        TABLES.iter().find(|t| t.group == group).copied().unwrap_or(&LOG_WRITER)
    }

    /// Columns as people see them.
    pub fn shown_columns(&self) -> impl Iterator<Item = &'static Column> {
        self.shown.iter().filter_map(|id| column(id))
    }

    /// Columns of CSV and JSON: `platform, workload, run, test, …` as in the published studies,
    /// then the rest.
    pub fn file_columns(&self) -> impl Iterator<Item = &'static Column> {
        const FIRST: [&str; 2] = ["platform", "workload"];
        // What published tables lack begins with these, whatever order people see them in.
        const OWN_FIRST: [&str; 5] = ["target", "driver", "valid", "invalid_reason", "errors"];
        let placed = |id: &&str| FIRST.contains(id) || OWN_FIRST.contains(id);
        let also = self.also_in_files.iter().filter(|id| !self.shown.contains(id));
        let rest = self.shown.iter().chain(also).copied().filter(|id| !placed(id));
        let (published, own): (Vec<&str>, Vec<&str>) = rest.partition(|id| self.is_published(id));
        FIRST.into_iter().chain(published).chain(OWN_FIRST).chain(own).filter_map(column)
    }

    fn is_published(&self, id: &str) -> bool {
        let end = self.shown.iter().position(|c| *c == "elapsed_s").map_or(self.shown.len(), |p| p + 1);
        self.shown[..end].contains(&id)
    }
}
