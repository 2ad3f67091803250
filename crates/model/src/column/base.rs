//! Columns that every test has: which test it is, its machine, its load and its times.

use super::{Column, NOT, OWN, define};
use crate::format::Format;

const CPU: &[(&str, &str)] = &[
    ("oracle", "V$OSSTAT USER_TIME, SYS_TIME, IDLE_TIME less IOWAIT_TIME, IOWAIT_TIME; all instances"),
    ("*", "/proc/stat of the database's machine, both edges of the window"),
];

pub(super) const COLUMNS: &[Column] = &[
    define!("platform", "Platform", "", Format::Text, "Name of the platform.", NOT),
    define!("workload", "Workload", "", Format::Text, "Code of the workload in the catalogue.", NOT),
    define!("run", "Run", "", Format::Text, "Run id: the folder that holds everything about the test.", NOT),
    define!("test", "Test", "", Format::Integer, "Number of the test in its run.", NOT),
    define!("nodes", "Nodes", "", Format::Integer, "Instances of the target over which jobs are spread.", NOT),
    define!("jobs", "Jobs", "", Format::Integer, "Load-generating sessions.", NOT),
    define!(
        "cpu_busy_pct",
        "CPU busy",
        "%",
        Format::Integer,
        "Share of CPU time that was not idle and not waiting for I/O.",
        CPU
    ),
    define!("cpu_user_pct", "CPU user", "%", Format::Integer, "Share of CPU time in user mode (nice included).", CPU),
    define!(
        "cpu_sys_pct",
        "CPU sys",
        "%",
        Format::Integer,
        "Share of CPU time in the kernel (interrupts and stolen time included).",
        CPU
    ),
    define!("cpu_idle_pct", "CPU idle", "%", Format::Integer, "Share of CPU time idle.", CPU),
    define!(
        "cpu_iowait_pct",
        "CPU iowait",
        "%",
        Format::Integer,
        "Share of CPU time idle while I/O was outstanding.",
        CPU
    ),
    define!(
        "commit_throughput_tps",
        "Commit throughput",
        "tps",
        Format::Integer,
        "Transactions that completed inside the common window, per second of it, over all jobs.",
        OWN
    ),
    define!(
        "commit_latency_ms",
        "Commit latency",
        "ms",
        Format::Fixed(3),
        "Mean transaction time: from a transaction's first statement to the return of its commit.",
        OWN
    ),
    define!("elapsed_s", "Elapsed", "s", Format::Integer, "Length of the measured window.", OWN),
    define!(
        "commit_time_ns_p50",
        "Commit time p50",
        "ms",
        Format::NsAsMs,
        "Median time from the issue of COMMIT to its return.",
        OWN
    ),
    define!(
        "commit_time_ns_p99",
        "Commit time p99",
        "ms",
        Format::NsAsMs,
        "99th percentile of the time from the issue of COMMIT to its return.",
        OWN
    ),
    define!(
        "commit_time_ns_max",
        "Commit time max",
        "ms",
        Format::NsAsMs,
        "Longest time from the issue of COMMIT to its return.",
        OWN
    ),
    define!("errors", "Errors", "", Format::Integer, "Transactions that ended with an error in the window.", OWN),
    define!("target", "Target", "", Format::Text, "URL of the target without secrets.", NOT),
    define!(
        "driver",
        "Driver",
        "",
        Format::Text,
        "database: a procedure runs and times the loop; client: loadline does.",
        NOT
    ),
    define!("valid", "Valid", "", Format::YesNo, "Whether every check of the test passed.", NOT),
    define!("invalid_reason", "Why invalid", "", Format::Text, "What failed.", NOT),
    define!("repetition", "Repetition", "", Format::Integer, "Which repetition of the same test.", NOT),
    define!("transaction_time_ns_p50", "Transaction time p50", "ms", Format::NsAsMs, "Median transaction time.", OWN),
    define!(
        "transaction_time_ns_p99",
        "Transaction time p99",
        "ms",
        Format::NsAsMs,
        "99th percentile of the transaction time.",
        OWN
    ),
    define!("transaction_time_ns_max", "Transaction time max", "ms", Format::NsAsMs, "Longest transaction time.", OWN),
    define!("commit_time_ns_mean", "Commit time mean", "ms", Format::NsAsMs, "Mean commit time.", OWN),
    define!("rate_tps", "Rate", "tps", Format::Fixed(1), "Rate that was asked for (open loop).", NOT),
    define!(
        "response_time_ns_mean",
        "Response time mean",
        "ms",
        Format::NsAsMs,
        "Open loop: mean time from the intended start of a transaction to the return of its commit.",
        OWN
    ),
    define!(
        "response_time_ns_p50",
        "Response time p50",
        "ms",
        Format::NsAsMs,
        "Open loop: median time from the intended start of a transaction to the return of its commit.",
        OWN
    ),
    define!(
        "response_time_ns_p99",
        "Response time p99",
        "ms",
        Format::NsAsMs,
        "Open loop: 99th percentile of the time from the intended start of a transaction to the return of its commit.",
        OWN
    ),
    define!(
        "response_time_ns_max",
        "Response time max",
        "ms",
        Format::NsAsMs,
        "Open loop: longest time from the intended start of a transaction to the return of its commit.",
        OWN
    ),
    define!("commits", "Commits", "", Format::Integer, "Transactions that completed inside the window.", OWN),
    define!(
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
    define!(
        "statements_per_tx",
        "Statements per transaction",
        "",
        Format::Integer,
        "Statements of one transaction, its commit not counted.",
        NOT
    ),
    define!(
        "rows_per_tx",
        "Rows per transaction",
        "",
        Format::Integer,
        "Rows read or changed by one transaction.",
        NOT
    ),
    define!(
        "rows_changed_database",
        "Rows changed, by the database",
        "",
        Format::Integer,
        "Growth of the sum of all change counters in the workload's rows over the whole test, warm-up included.",
        &[("*", "the workload's consistency query, before and after the test")]
    ),
    define!(
        "outside_tx_pct",
        "Time outside transactions",
        "%",
        Format::Fixed(2),
        "Closed loop: share of the jobs' time in the window that was not inside a transaction: what loadline's own loop took.",
        OWN
    ),
    define!(
        "client_cpu_us_per_tx",
        "Client CPU",
        "µs/tx",
        Format::Fixed(2),
        "CPU time of the loadline process per transaction.",
        &[("*", "getrusage(RUSAGE_SELF) at both edges of the window")]
    ),
    define!(
        "client_cpu_pct",
        "Client CPU",
        "%",
        Format::Integer,
        "CPU time of the loadline process, as a share of its machine.",
        &[("*", "getrusage(RUSAGE_SELF) / (window × CPUs)")]
    ),
    define!(
        "device_writes_per_s",
        "Log device writes",
        "1/s",
        Format::Integer,
        "Writes completed by the device under the log, per second.",
        &[("*", "/proc/diskstats")]
    ),
    define!(
        "device_write_mib_per_s",
        "Log device data",
        "MiB/s",
        Format::Fixed(2),
        "Bytes written by the device under the log.",
        &[("*", "/proc/diskstats")]
    ),
    define!(
        "device_util_pct",
        "Log device busy",
        "%",
        Format::Integer,
        "Share of the window in which the device under the log had I/O in flight.",
        &[("*", "/proc/diskstats, io_ticks")]
    ),
    define!("warmup_s", "Warm-up", "s", Format::Fixed(1), "Time before the window opened.", NOT),
    define!("started_at", "Start of window", "", Format::Text, "Wall-clock time at which the window opened, UTC.", NOT),
    define!("forced", "Forced", "", Format::Text, "What was refused and overridden with --force.", NOT),
    define!(
        "transaction_time_ns_mean",
        "Transaction time mean",
        "ms",
        Format::NsAsMs,
        "Mean transaction time: from a transaction's first statement to the return of its commit.",
        OWN
    ),
    define!(
        "tx_per_s",
        "Transactions",
        "1/s",
        Format::Integer,
        "Transactions that completed inside the common window, per second of it, over all jobs: commit_throughput_tps under the name that tables of loads give it.",
        OWN
    ),
    define!(
        "threads",
        "Threads",
        "",
        Format::Integer,
        "Processes that do one statement of a job together, its own session among them; 1 where that works alone.",
        NOT
    ),
];
