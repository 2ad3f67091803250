//! Every column, defined once: terminal, CSV, HTML, Markdown and docs are drawn from this table.

use crate::format::{self, Format};
use crate::record::TestRecord;

/// One column of a result table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Stable id, the same in `tests.jsonl`, CSV and `--columns`. It carries its unit last.
    pub id: &'static str,
    /// Heading.
    pub title: &'static str,
    /// Unit as shown, empty if it has none.
    pub unit: &'static str,
    /// How it is shown.
    pub format: Format,
    /// What it means, one sentence.
    pub meaning: &'static str,
    /// Where it comes from, by target kind; `*` is any other.
    pub sources: &'static [(&'static str, &'static str)],
}

/// A named selection of columns, in order.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Group code it is for.
    pub group: &'static str,
    /// Ids shown to people, in order.
    pub shown: &'static [&'static str],
    /// Ids that follow in CSV and JSON.
    pub also_in_files: &'static [&'static str],
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A number in the column's own unit.
    Number(f64),
    /// Not measured.
    Absent,
}

const NOT: &[(&str, &str)] = &[];
const CPU: &[(&str, &str)] = &[
    ("oracle", "V$OSSTAT USER_TIME, SYS_TIME, IDLE_TIME less IOWAIT_TIME, IOWAIT_TIME; all instances"),
    ("*", "/proc/stat of the database's machine, both edges of the window"),
];
const OWN: &[(&str, &str)] = &[("*", "the jobs' own clocks and counts")];

macro_rules! column {
    ($id:literal, $title:literal, $unit:literal, $format:expr, $meaning:literal, $sources:expr) => {
        Column { id: $id, title: $title, unit: $unit, format: $format, meaning: $meaning, sources: $sources }
    };
}

/// All columns.
pub static COLUMNS: &[Column] = &[
    column!("platform", "Platform", "", Format::Text, "Name of the platform.", NOT),
    column!("workload", "Workload", "", Format::Text, "Code of the workload in the catalogue.", NOT),
    column!("run", "Run", "", Format::Text, "Run id: the folder that holds everything about the test.", NOT),
    column!("test", "Test", "", Format::Integer, "Number of the test in its run.", NOT),
    column!("nodes", "Nodes", "", Format::Integer, "Instances of the target over which jobs are spread.", NOT),
    column!("jobs", "Jobs", "", Format::Integer, "Load-generating sessions.", NOT),
    column!(
        "cpu_busy_pct",
        "CPU busy",
        "%",
        Format::Integer,
        "Share of CPU time that was not idle and not waiting for I/O.",
        CPU
    ),
    column!("cpu_user_pct", "CPU user", "%", Format::Integer, "Share of CPU time in user mode (nice included).", CPU),
    column!(
        "cpu_sys_pct",
        "CPU sys",
        "%",
        Format::Integer,
        "Share of CPU time in the kernel (interrupts and stolen time included).",
        CPU
    ),
    column!("cpu_idle_pct", "CPU idle", "%", Format::Integer, "Share of CPU time idle.", CPU),
    column!(
        "cpu_iowait_pct",
        "CPU iowait",
        "%",
        Format::Integer,
        "Share of CPU time idle while I/O was outstanding.",
        CPU
    ),
    column!(
        "commit_throughput_tps",
        "Commit throughput",
        "tps",
        Format::Integer,
        "Transactions that completed inside the common window, per second of it, over all jobs.",
        OWN
    ),
    column!(
        "commit_latency_ms",
        "Commit latency",
        "ms",
        Format::Fixed(3),
        "Mean transaction time: from a transaction's first statement to the return of its commit.",
        OWN
    ),
    column!(
        "redo_blocks_per_s",
        "Redo blocks",
        "1/s",
        Format::Integer,
        "Log blocks written per second, in the database's own log block size.",
        &[
            ("postgres", "pg_stat_io (object wal) write_bytes / wal_block_size, from 18 on"),
            ("sqlite", "pages written to the log, counted on their way to the file"),
            ("oracle", "V$SYSSTAT «redo blocks written»"),
            ("wal", "blocks written, as the log writer counts them")
        ]
    ),
    column!(
        "redo_writes_per_s",
        "Redo writes",
        "1/s",
        Format::Integer,
        "Write calls to the log per second.",
        &[
            ("postgres", "pg_stat_wal.wal_write (14 to 17), pg_stat_io wal writes (18)"),
            ("sqlite", "write calls to the log, counted on their way to the file (two a frame)"),
            ("mysql", "Innodb_log_writes"),
            ("oracle", "V$SYSSTAT «redo writes»"),
            ("wal", "calls that wrote to the log device")
        ]
    ),
    column!(
        "redo_sync_writes_per_s",
        "Redo sync writes",
        "1/s",
        Format::Integer,
        "Syncs of the log per second.",
        &[
            ("postgres", "pg_stat_wal.wal_sync (14 to 17), pg_stat_io wal fsyncs (18)"),
            (
                "mysql",
                "Innodb_os_log_fsyncs; MariaDB 10.8 and newer, which has no such counter: Innodb_log_writes while innodb_flush_log_at_trx_commit = 1, as each write is then synced"
            ),
            ("sqlite", "syncs of the log, counted on their way to the file"),
            ("oracle", "V$SYSSTAT «redo synch writes»: commits that forced the log to disk and waited"),
            ("wal", "calls that made the log durable")
        ]
    ),
    column!(
        "redo_mib_per_s",
        "Redo data",
        "MiB/s",
        Format::Fixed(2),
        "Redo generated per second.",
        &[
            ("postgres", "pg_current_wal_insert_lsn(), difference over the window"),
            (
                "mysql",
                "Innodb_lsn_current (MariaDB), Innodb_redo_log_current_lsn (MySQL 8.0.30 and newer), else Innodb_os_log_written, difference over the window"
            ),
            ("sqlite", "bytes written to the log, counted on their way to the file"),
            ("oracle", "V$SYSSTAT «redo size»"),
            ("wal", "bytes of records and commits with their headers; what fills up blocks is not in it")
        ]
    ),
    column!(
        "redo_kib_per_tx",
        "Redo data",
        "KiB/tx",
        Format::Fixed(2),
        "Redo generated per transaction.",
        &[("*", "redo_mib_per_s / commit_throughput_tps")]
    ),
    column!(
        "log_file_sync_ms",
        "Log file sync",
        "ms",
        Format::Fixed(3),
        "What the database itself says sessions waited for the log writer, per commit.",
        &[
            (
                "postgres",
                "pg_stat_activity sampled: mean number of job sessions in IO:WALSync, IO:WALWrite, LWLock:WALWrite / tps"
            ),
            (
                "mysql",
                "information_schema.PROCESSLIST sampled: mean number of job sessions in «Commit», «Updating status» (MariaDB holds the answer back until the log is on disk; with its thread pool «Starting cleanup»), «Waiting for prior transaction to commit» (MySQL: «waiting for handler commit») / tps; on MySQL, and on MariaDB with a binary log, where performance_schema times these stages: events_stages_summary_global_by_event_name, time in them / tps"
            ),
            ("sqlite", "time in syncs of the log, timed on their way to the file / commits"),
            ("oracle", "V$SYSTEM_EVENT «log file sync», time waited / commits"),
            ("wal", "time in commits that waited, copying left out / commits")
        ]
    ),
    column!(
        "flash_cache_write_pct",
        "Flash cache write",
        "%",
        Format::Fixed(2),
        "Share of the database's physical write requests (data files and logs) that Exadata's flash cache took.",
        &[("oracle", "V$SYSSTAT «physical write requests optimized» / «physical write total IO requests»")]
    ),
    column!("elapsed_s", "Elapsed", "s", Format::Integer, "Length of the measured window.", OWN),
    column!(
        "commit_time_ns_p50",
        "Commit time p50",
        "ms",
        Format::NsAsMs,
        "Median time from the issue of COMMIT to its return.",
        OWN
    ),
    column!(
        "commit_time_ns_p99",
        "Commit time p99",
        "ms",
        Format::NsAsMs,
        "99th percentile of the time from the issue of COMMIT to its return.",
        OWN
    ),
    column!(
        "commit_time_ns_max",
        "Commit time max",
        "ms",
        Format::NsAsMs,
        "Longest time from the issue of COMMIT to its return.",
        OWN
    ),
    column!("errors", "Errors", "", Format::Integer, "Transactions that ended with an error in the window.", OWN),
    column!(
        "limit_share_pct",
        "Share of the limit",
        "%",
        Format::Integer,
        "Throughput as a share of what the hardware allows for the same work, measured in the same run.",
        &[("*", "commit_throughput_tps / limit_tps")]
    ),
    column!(
        "limit_tps",
        "Limit",
        "tps",
        Format::Integer,
        "What the hardware allows for the same work: the reference log writer with the same jobs and redo per transaction, on the filesystem of the database's log, right before and after the test.",
        OWN
    ),
    column!("target", "Target", "", Format::Text, "URL of the target without secrets.", NOT),
    column!(
        "driver",
        "Driver",
        "",
        Format::Text,
        "database: a procedure runs and times the loop; client: loadline does.",
        NOT
    ),
    column!("valid", "Valid", "", Format::YesNo, "Whether every check of the test passed.", NOT),
    column!("invalid_reason", "Why invalid", "", Format::Text, "What failed.", NOT),
    column!("repetition", "Repetition", "", Format::Integer, "Which repetition of the same test.", NOT),
    column!("transaction_time_ns_p50", "Transaction time p50", "ms", Format::NsAsMs, "Median transaction time.", OWN),
    column!(
        "transaction_time_ns_p99",
        "Transaction time p99",
        "ms",
        Format::NsAsMs,
        "99th percentile of the transaction time.",
        OWN
    ),
    column!("transaction_time_ns_max", "Transaction time max", "ms", Format::NsAsMs, "Longest transaction time.", OWN),
    column!("commit_time_ns_mean", "Commit time mean", "ms", Format::NsAsMs, "Mean commit time.", OWN),
    column!("rate_tps", "Rate", "tps", Format::Fixed(1), "Rate that was asked for (open loop).", NOT),
    column!(
        "response_time_ns_mean",
        "Response time mean",
        "ms",
        Format::NsAsMs,
        "Open loop: mean time from the intended start of a transaction to the return of its commit.",
        OWN
    ),
    column!(
        "response_time_ns_p50",
        "Response time p50",
        "ms",
        Format::NsAsMs,
        "Open loop: median time from the intended start of a transaction to the return of its commit.",
        OWN
    ),
    column!(
        "response_time_ns_p99",
        "Response time p99",
        "ms",
        Format::NsAsMs,
        "Open loop: 99th percentile of the time from the intended start of a transaction to the return of its commit.",
        OWN
    ),
    column!(
        "response_time_ns_max",
        "Response time max",
        "ms",
        Format::NsAsMs,
        "Open loop: longest time from the intended start of a transaction to the return of its commit.",
        OWN
    ),
    column!("commits", "Commits", "", Format::Integer, "Transactions that completed inside the window.", OWN),
    column!(
        "commits_database",
        "Commits by the database",
        "",
        Format::Integer,
        "Commits that the database itself counted between the snapshots at both edges of the window.",
        &[
            ("postgres", "pg_stat_database.xact_commit less loadline's own queries"),
            ("mysql", "Com_commit, for transactions of one statement Handler_commit, less loadline's own queries"),
            ("null", "the engine's own count"),
            ("oracle", "V$SYSSTAT «user commits», all sessions of the database"),
            ("wal", "the log's own count of commits")
        ]
    ),
    column!(
        "commits_per_redo_sync",
        "Commits per redo sync",
        "",
        Format::Fixed(2),
        "Group commit: commits made durable by one sync of the log; can never exceed the number of jobs.",
        &[
            ("postgres", "pg_stat_database.xact_commit / redo syncs, the same snapshots"),
            ("mysql", "commits of the database / redo syncs, the same snapshots"),
            ("*", "the jobs' own count / redo syncs"),
            (
                "oracle",
                "V$SYSSTAT «user commits» / «redo synch writes»; commits per write of the log are commit_throughput_tps / redo_writes_per_s"
            )
        ]
    ),
    column!(
        "redo_bytes_per_tx",
        "Redo per transaction",
        "B",
        Format::Fixed(1),
        "Redo generated per transaction, bytes.",
        NOT
    ),
    column!(
        "statements_per_tx",
        "Statements per transaction",
        "",
        Format::Integer,
        "Statements of one transaction, its commit not counted.",
        NOT
    ),
    column!("rows_per_tx", "Rows per transaction", "", Format::Integer, "Rows changed by one transaction.", NOT),
    column!(
        "rows_changed_database",
        "Rows changed, by the database",
        "",
        Format::Integer,
        "Growth of the sum of all change counters in the workload's rows over the whole test, warm-up included.",
        &[("*", "the workload's consistency query, before and after the test")]
    ),
    column!(
        "outside_tx_pct",
        "Time outside transactions",
        "%",
        Format::Fixed(2),
        "Closed loop: share of the jobs' time in the window that was not inside a transaction: what loadline's own loop took.",
        OWN
    ),
    column!(
        "client_cpu_us_per_tx",
        "Client CPU",
        "µs/tx",
        Format::Fixed(2),
        "CPU time of the loadline process per transaction.",
        &[("*", "getrusage(RUSAGE_SELF) at both edges of the window")]
    ),
    column!(
        "client_cpu_pct",
        "Client CPU",
        "%",
        Format::Integer,
        "CPU time of the loadline process, as a share of its machine.",
        &[("*", "getrusage(RUSAGE_SELF) / (window × CPUs)")]
    ),
    column!(
        "device_writes_per_s",
        "Log device writes",
        "1/s",
        Format::Integer,
        "Writes completed by the device under the log, per second.",
        &[("*", "/proc/diskstats")]
    ),
    column!(
        "device_write_mib_per_s",
        "Log device data",
        "MiB/s",
        Format::Fixed(2),
        "Bytes written by the device under the log.",
        &[("*", "/proc/diskstats")]
    ),
    column!(
        "device_util_pct",
        "Log device busy",
        "%",
        Format::Integer,
        "Share of the window in which the device under the log had I/O in flight.",
        &[("*", "/proc/diskstats, io_ticks")]
    ),
    column!(
        "log_part_wait_us",
        "Commit: wait",
        "µs",
        Format::Fixed(1),
        "Time per commit before the write of its group began: for the group before it, for others to join, for copies.",
        &[("wal", "the log writer's own clock")]
    ),
    column!(
        "log_part_copy_us",
        "Commit: copy",
        "µs",
        Format::Fixed(1),
        "Time per commit copying its records to the log buffer.",
        &[("wal", "the log writer's own clock")]
    ),
    column!(
        "log_part_write_us",
        "Commit: write",
        "µs",
        Format::Fixed(1),
        "Time per commit handing its group to the device.",
        &[("wal", "the log writer's own clock")]
    ),
    column!(
        "log_part_sync_us",
        "Commit: sync",
        "µs",
        Format::Fixed(1),
        "Time per commit making its group durable.",
        &[("wal", "the log writer's own clock")]
    ),
    column!(
        "log_part_wake_us",
        "Commit: wake",
        "µs",
        Format::Fixed(1),
        "Time per commit from its group being durable to its job running again.",
        &[("wal", "the log writer's own clock")]
    ),
    column!(
        "log_group_commits",
        "Commits per group",
        "",
        Format::Fixed(2),
        "Commits that one write of the log made durable.",
        &[("wal", "commits / groups written")]
    ),
    column!(
        "log_fill_kib",
        "Buffer fill",
        "KiB",
        Format::Fixed(1),
        "Bytes in the log buffer when a write began, mean over the writes.",
        &[("wal", "counted by the log writer")]
    ),
    column!(
        "log_full_us",
        "Buffer full",
        "µs/tx",
        Format::Fixed(1),
        "Time per commit that jobs waited for room in the log buffer.",
        &[("wal", "counted by the log writer")]
    ),
    column!("warmup_s", "Warm-up", "s", Format::Fixed(1), "Time before the window opened.", NOT),
    column!("started_at", "Start of window", "", Format::Text, "Wall-clock time at which the window opened, UTC.", NOT),
    column!("forced", "Forced", "", Format::Text, "What was refused and overridden with --force.", NOT),
];

/// The table of the log-writer group.
pub static LOG_WRITER: Table = Table {
    group: "log-writer",
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
    ],
};

/// All tables, one a group.
pub static TABLES: &[&Table] = &[&LOG_WRITER];

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
        let rest = self.shown.iter().chain(self.also_in_files).copied().filter(|id| !placed(id));
        let (published, own): (Vec<&str>, Vec<&str>) = rest.partition(|id| self.is_published(id));
        FIRST.into_iter().chain(published).chain(OWN_FIRST).chain(own).filter_map(column)
    }

    fn is_published(&self, id: &str) -> bool {
        let end = self.shown.iter().position(|c| *c == "elapsed_s").map_or(self.shown.len(), |p| p + 1);
        self.shown[..end].contains(&id)
    }
}

/// Column `id`.
#[must_use]
pub fn column(id: &str) -> Option<&'static Column> {
    COLUMNS.iter().find(|c| c.id == id)
}

impl Column {
    /// This column's cell of `record`.
    #[must_use]
    pub fn cell(&self, record: &TestRecord) -> Cell {
        let text = |t: &str| Cell::Text(t.to_owned());
        match self.id {
            "platform" => text(&record.platform),
            "workload" => text(&record.workload),
            "run" => text(&record.run),
            "test" => Cell::Number(f64::from(record.test)),
            "nodes" => Cell::Number(f64::from(record.nodes)),
            "jobs" => Cell::Number(f64::from(record.jobs)),
            "target" => text(&record.target),
            "driver" => text(record.driver.name()),
            "valid" => text(if record.valid { "true" } else { "false" }),
            "invalid_reason" => record.invalid_reason.as_deref().map_or(Cell::Absent, text),
            "forced" => record.forced.as_deref().map_or(Cell::Absent, text),
            "repetition" => Cell::Number(f64::from(record.repetition)),
            "started_at" => text(&record.started_at),
            id => record.figure(id).map_or(Cell::Absent, Cell::Number),
        }
    }

    /// The cell as people see it.
    #[must_use]
    pub fn shown(&self, record: &TestRecord) -> String {
        match (self.cell(record), self.format) {
            (Cell::Absent, _) => format::ABSENT.to_owned(),
            (Cell::Text(t), Format::YesNo) => if t == "true" { "yes" } else { "NO" }.to_owned(),
            (Cell::Text(t), _) => t,
            (Cell::Number(n), Format::Integer) => format::number(n, 0),
            (Cell::Number(n), Format::Fixed(d)) => format::number(n, d),
            (Cell::Number(n), Format::NsAsMs) => format::number(n / 1e6, 3),
            (Cell::Number(n), _) => n.to_string(),
        }
    }

    /// The cell as files hold it: full precision, empty when absent.
    #[must_use]
    pub fn plain(&self, record: &TestRecord) -> String {
        match self.cell(record) {
            Cell::Absent => String::new(),
            Cell::Text(t) => t,
            Cell::Number(n) => n.to_string(),
        }
    }

    /// Heading with its unit: `Redo data [MiB/s]`.
    #[must_use]
    pub fn heading(&self) -> String {
        if self.unit.is_empty() { self.title.to_owned() } else { format!("{} [{}]", self.title, self.unit) }
    }

    /// Where the figure comes from on target kind `kind`.
    #[must_use]
    pub fn source(&self, kind: &str) -> Option<&'static str> {
        // A private server is read like any other of its kind.
        let kind = kind.strip_suffix("-temp").unwrap_or(kind);
        let find = |k: &str| self.sources.iter().find(|(s, _)| *s == k).map(|(_, text)| *text);
        find(kind).or_else(|| find("*"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_tables_name_known_columns() {
        for (i, c) in COLUMNS.iter().enumerate() {
            assert!(!COLUMNS[..i].iter().any(|d| d.id == c.id), "{} is defined twice", c.id);
            assert!(c.meaning.ends_with('.'), "{}: the meaning is a sentence", c.id);
        }
        for table in TABLES {
            for id in table.shown.iter().chain(table.also_in_files) {
                assert!(column(id).is_some(), "{} is no column", id);
            }
            let in_files: Vec<_> = table.file_columns().map(|c| c.id).collect();
            for id in table.shown.iter().chain(table.also_in_files) {
                assert_eq!(in_files.iter().filter(|f| f == &id).count(), 1, "{id} stands once in files");
            }
        }
    }

    #[test]
    fn file_columns_begin_as_the_published_studies_do() {
        let published = "platform,workload,run,test,nodes,jobs,cpu_busy_pct,cpu_user_pct,cpu_sys_pct,cpu_idle_pct,\
            cpu_iowait_pct,commit_throughput_tps,commit_latency_ms,redo_blocks_per_s,redo_writes_per_s,\
            redo_sync_writes_per_s,redo_mib_per_s,redo_kib_per_tx,log_file_sync_ms,flash_cache_write_pct,elapsed_s,\
            target,driver,valid,invalid_reason,errors,commit_time_ns_p50";
        let ids: Vec<_> = LOG_WRITER.file_columns().map(|c| c.id).collect();
        assert!(ids.join(",").starts_with(published), "{}", ids.join(","));
    }
}
