//! Columns of every test: identity, machine, load and times.

use super::{Cell, Column, NOT, OWN, define, number_or_absent, text, text_or_absent};
use crate::format::Format;
use crate::record::Validity;

const CPU: &[(&str, &str)] = &[
    ("oracle", "V$OSSTAT USER_TIME, SYS_TIME, IDLE_TIME minus IOWAIT_TIME, IOWAIT_TIME; all instances"),
    ("*", "/proc/stat of the database's machine, at window start and end"),
];

/// The database runs in the jobs' threads.
const OWN_PART: &str =
    "CLOCK_PROCESS_CPUTIME_ID without the jobs' threads (/proc/TID/schedstat), plus their time outside transactions";

/// Shares of CPU time, `busy` first.
pub const CPU_SHARES: [&Column; 5] = [CPU_BUSY_PCT, CPU_USER_PCT, CPU_SYS_PCT, CPU_IDLE_PCT, CPU_IOWAIT_PCT];

/// The columns of one kind of time.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// The mean.
    pub mean: &'static Column,
    /// The median.
    pub p50: &'static Column,
    /// The 99th percentile.
    pub p99: &'static Column,
    /// The longest.
    pub max: &'static Column,
}

impl Times {
    /// All four.
    #[must_use]
    pub const fn all(self) -> [&'static Column; 4] {
        [self.mean, self.p50, self.p99, self.max]
    }
}

/// From the issue of COMMIT to its return.
pub const COMMIT_TIMES: Times =
    Times { mean: COMMIT_TIME_NS_MEAN, p50: COMMIT_TIME_NS_P50, p99: COMMIT_TIME_NS_P99, max: COMMIT_TIME_NS_MAX };
/// From a transaction's first statement to the return of its commit.
pub const TRANSACTION_TIMES: Times = Times {
    mean: TRANSACTION_TIME_NS_MEAN,
    p50: TRANSACTION_TIME_NS_P50,
    p99: TRANSACTION_TIME_NS_P99,
    max: TRANSACTION_TIME_NS_MAX,
};
/// From the intended start of a transaction to the return of its commit.
pub const RESPONSE_TIMES: Times = Times {
    mean: RESPONSE_TIME_NS_MEAN,
    p50: RESPONSE_TIME_NS_P50,
    p99: RESPONSE_TIME_NS_P99,
    max: RESPONSE_TIME_NS_MAX,
};

/// From the start of connecting until a new session is ready for its first transaction.
pub const CONNECT_TIMES: Times =
    Times { mean: CONNECT_TIME_NS_MEAN, p50: CONNECT_TIME_NS_P50, p99: CONNECT_TIME_NS_P99, max: CONNECT_TIME_NS_MAX };

define! {
    PLATFORM: "platform", "Platform", "", Format::Text, "Name of the platform.", NOT, |r| text(&r.platform);
    WORKLOAD: "workload", "Workload", "", Format::Text,
        "Code of the workload in the catalogue.", NOT, |r| text(&r.workload);
    RUN: "run", "Run", "", Format::Text,
        "Run id: name of the folder that holds all files of the run.", NOT, |r| text(&r.run);
    TEST: "test", "Test", "", Format::Integer, "Number of the test in its run.", NOT, |r| Cell::Number(r.test.into());
    NODES: "nodes", "Nodes", "", Format::Integer,
        "Database instances over which the jobs are spread.", NOT, |r| number_or_absent(r.imported.is_none().then(|| r.nodes.into()));
    JOBS: "jobs", "Jobs", "", Format::Integer, "Load-generating sessions.", NOT, |r| Cell::Number(r.jobs.into());
    AGENTS: "agents", "Agents", "", Format::Integer,
        "Agents that ran the jobs; absent if loadline's own process did.", NOT, |r| number_or_absent(r.agents());
    START_SKEW_MS: "start_skew_ms", "Start skew", "ms", Format::Fixed(3),
        "Upper bound of the distance between the windows of the agents and the common one.", OWN,
        |r| number_or_absent(r.start_skew_ms());
    CPU_BUSY_PCT: "cpu_busy_pct", "CPU busy", "%", Format::Integer,
        "Share of CPU time that was neither idle nor waiting for I/O.", CPU;
    CPU_USER_PCT: "cpu_user_pct", "CPU user", "%", Format::Integer,
        "Share of CPU time in user mode (nice included).", CPU;
    CPU_SYS_PCT: "cpu_sys_pct", "CPU sys", "%", Format::Integer,
        "Share of CPU time in the kernel (interrupts and stolen time included).", CPU;
    CPU_IDLE_PCT: "cpu_idle_pct", "CPU idle", "%", Format::Integer, "Share of CPU time idle.", CPU;
    CPU_IOWAIT_PCT: "cpu_iowait_pct", "CPU iowait", "%", Format::Integer,
        "Share of CPU time idle while I/O was outstanding.", CPU;
    COMMIT_THROUGHPUT_TPS: "commit_throughput_tps", "Commit throughput", "tps", Format::Integer,
        "Transactions per second in the measured window, all jobs; of those that cross its start or end, the part of their time in it.",
        OWN;
    COMMIT_LATENCY_MS: "commit_latency_ms", "Commit latency", "ms", Format::Fixed(3),
        "Mean transaction time: from a transaction's first statement to the return of its commit.", OWN;
    ELAPSED_S: "elapsed_s", "Elapsed", "s", Format::Integer, "Length of the measured window.", OWN;
    COMMIT_TIME_NS_P50: "commit_time_ns_p50", "Commit time p50", "ms", Format::NsAsMs,
        "Median time from the issue of COMMIT to its return.", OWN;
    COMMIT_TIME_NS_P99: "commit_time_ns_p99", "Commit time p99", "ms", Format::NsAsMs,
        "99th percentile of the time from the issue of COMMIT to its return.", OWN;
    COMMIT_TIME_NS_MAX: "commit_time_ns_max", "Commit time max", "ms", Format::NsAsMs,
        "Longest time from the issue of COMMIT to its return.", OWN;
    ERRORS: "errors", "Errors", "", Format::Integer, "Transactions that ended with an error in the window.", OWN;
    CONFLICTS: "conflicts", "Tried again", "", Format::Integer,
        "Attempts of transactions that lost against another one (deadlock, certification), were rolled back and tried again, in \
         the window. A transaction's time is that of all its attempts.", OWN;
    TARGET: "target", "Target", "", Format::Text, "URL of the target without secrets.", NOT, |r| text(&r.target);
    DRIVER: "driver", "Driver", "", Format::Text,
        "database: a procedure in the database runs and times the loop; client: loadline does.", NOT,
        |r| if r.imported.is_none() { text(r.driver.name()) } else { Cell::Absent };
    VALID: "valid", "Valid", "", Format::YesNo,
        "Whether every check of the test passed, and nothing disturbed it; empty for an imported test, which loadline has not \
         checked.", NOT,
        |r| r.validity().map_or(Cell::Absent, |of| text(if of == Validity::Valid { "true" } else { "false" }));
    VALIDITY: "validity", "Validity", "", Format::Text,
        "valid (all checks passed), disturbed (all proofs hold, but others took more of the machine than is allowed, \
         docs/truth.md) or refused (a proof failed, and the figures are not used). Empty for an imported test.", NOT,
        |r| r.validity().map_or(Cell::Absent, |of| text(of.name()));
    INVALID_REASON: "invalid_reason", "Why not valid", "", Format::Text,
        "Checks that failed, and what disturbed the test.", NOT, |r| text_or_absent(r.invalid_reason.as_ref());
    DISTURBED_BY: "disturbed_by", "Disturbed by", "", Format::Text,
        "What disturbed the test, with its value in the window; empty if nothing reached its threshold (docs/truth.md).",
        &[("*", "the columns named in docs/truth.md")], |r| text_or_absent(r.disturbed_by.as_ref());
    REPETITION: "repetition", "Repetition", "", Format::Integer,
        "Which repetition of the same test.", NOT, |r| Cell::Number(r.repetition.into());
    TRIES: "tries", "Tries", "", Format::Integer,
        "How often the test was measured, because others disturbed it: the first undisturbed try counts, else the least disturbed one \
         (docs/truth.md).", NOT, |r| number_or_absent(r.imported.is_none().then(|| r.tries.into()));
    TRANSACTION_TIME_NS_P50: "transaction_time_ns_p50", "Transaction time p50", "ms", Format::NsAsMs,
        "Median transaction time.", OWN;
    TRANSACTION_TIME_NS_P99: "transaction_time_ns_p99", "Transaction time p99", "ms", Format::NsAsMs,
        "99th percentile of the transaction time.", OWN;
    TRANSACTION_TIME_NS_MAX: "transaction_time_ns_max", "Transaction time max", "ms", Format::NsAsMs,
        "Longest transaction time.", OWN;
    COMMIT_TIME_NS_MEAN: "commit_time_ns_mean", "Commit time mean", "ms", Format::NsAsMs, "Mean commit time.", OWN;
    RATE_TPS: "rate_tps", "Rate", "tps", Format::Fixed(1), "Requested rate (open loop).", NOT;
    RESPONSE_TIME_NS_MEAN: "response_time_ns_mean", "Response time mean", "ms", Format::NsAsMs,
        "Open loop: mean time from the intended start of a transaction to the return of its commit, of all that were due in the \
        window; what never began counts until the test's end.", OWN;
    RESPONSE_TIME_NS_P50: "response_time_ns_p50", "Response time p50", "ms", Format::NsAsMs,
        "Open loop: median time from the intended start of a transaction that was due in the window to the return of its commit.", OWN;
    RESPONSE_TIME_NS_P99: "response_time_ns_p99", "Response time p99", "ms", Format::NsAsMs,
        "Open loop: 99th percentile of the time from the intended start of a transaction that was due in the window to the return of its commit.",
        OWN;
    RESPONSE_TIME_NS_MAX: "response_time_ns_max", "Response time max", "ms", Format::NsAsMs,
        "Open loop: longest time from the intended start of a transaction that was due in the window to the return of its commit.", OWN;
    COMMITS: "commits", "Commits", "", Format::Integer, "Transactions completed in the window.", OWN;
    COMMITS_DATABASE: "commits_database", "Commits by the database", "", Format::Integer,
        "Commits counted by the database between the snapshots at window start and end.",
        &[
            ("postgres", "pg_stat_database.xact_commit, minus loadline's own queries"),
            ("mysql", "Com_commit (Handler_commit for transactions of one statement), minus loadline's own queries"),
            ("null", "the engine's own count"),
            ("oracle", "V$SYSSTAT 'user commits', all sessions of the database"),
            ("wal", "the log's own count of commits")
        ];
    STATEMENTS_PER_TX: "statements_per_tx", "Statements per transaction", "", Format::Integer,
        "Statements of one transaction, without its commit.", NOT;
    ROWS_PER_TX: "rows_per_tx", "Rows per transaction", "", Format::Integer,
        "Rows read or changed by one transaction.", NOT;
    ROWS_CHANGED_DATABASE: "rows_changed_database", "Rows changed, by the database", "", Format::Integer,
        "Increase of the change counters in the workload's rows, summed, over the whole test including warm-up.",
        &[("*", "the workload's consistency query, before and after the test")];
    OUTSIDE_TX_PCT: "outside_tx_pct", "Time outside transactions", "%", Format::Fixed(2),
        "Closed loop: share of the jobs' time in the window outside transactions, think times and connecting: the cost of \
        loadline's own loop.",
        OWN;
    CLIENT_CPU_US_PER_TX: "client_cpu_us_per_tx", "Client CPU", "µs/tx", Format::Fixed(2),
        "CPU time of the loadline process per transaction.",
        &[
            ("sqlite", OWN_PART),
            ("wal", OWN_PART),
            ("*", "CLOCK_PROCESS_CPUTIME_ID at window start and end")
        ];
    CLIENT_CPU_PCT: "client_cpu_pct", "Client CPU", "%", Format::Integer,
        "CPU time of the loadline process as a share of its machine's CPUs.",
        &[
            ("sqlite", OWN_PART),
            ("wal", OWN_PART),
            ("*", "CLOCK_PROCESS_CPUTIME_ID / (window × CPUs)")
        ];
    DEVICE_WRITES_PER_S: "device_writes_per_s", "Log device writes", "1/s", Format::Integer,
        "Writes completed per second by the device that holds the log.", &[("*", "/proc/diskstats")];
    DEVICE_WRITE_MIB_PER_S: "device_write_mib_per_s", "Log device data", "MiB/s", Format::Fixed(2),
        "Bytes written per second by the device that holds the log.", &[("*", "/proc/diskstats")];
    DEVICE_UTIL_PCT: "device_util_pct", "Log device busy", "%", Format::Integer,
        "Share of the window in which the device that holds the log had I/O in flight.",
        &[("*", "/proc/diskstats, io_ticks")];
    WARMUP_S: "warmup_s", "Warm-up", "s", Format::Fixed(1), "Time under load before the window started.", NOT;
    WITHIN_WINDOW_PCT: "within_window_pct", "Within window ±", "%", Format::Fixed(1),
        "Half width of the 95 % interval of throughput, from the course of the window alone. What differs from window to window is not in it.",
        &[("*", "throughput of each 0.1 s (in the database: 1 s), batch means corrected for autocorrelation")];
    STARTED_AT: "started_at", "Window start", "", Format::Text,
        "Wall-clock time of the window start, UTC.", NOT, |r| text(&r.started_at);
    FORCED: "forced", "Forced", "", Format::Text,
        "What was refused and overridden with --force or --allow-cached.", NOT, |r| text_or_absent(Option::from(r.forced.clone()).as_ref());
    TRANSACTION_TIME_NS_MEAN: "transaction_time_ns_mean", "Transaction time mean", "ms", Format::NsAsMs,
        "Mean transaction time: from a transaction's first statement to the return of its commit.", OWN;
    TX_PER_S: "tx_per_s", "Transactions", "1/s", Format::Integer,
        "Transactions per second in the measured window, all jobs; the same value as commit_throughput_tps.",
        OWN;
    THREADS: "threads", "Threads", "", Format::Integer,
        "Processes that run one statement of a job in parallel, its own session included; 1 without parallel workers.",
        NOT;
    JOB_LOAD: "job_load", "Load of the jobs", "", Format::Text,
        "How the jobs make load: in a closed or open loop, with think time, new sessions or parts that differ (docs/load.md).",
        NOT, |r| if r.imported.is_none() { text(&r.load().words()) } else { Cell::Absent };
    THINK_TIME_MS: "think_time_ms", "Think time asked for", "ms", Format::Fixed(3),
        "Mean time that a job was asked to think after each transaction, drawn from an exponential distribution.", NOT;
    THINK_TIME_MS_MEAN: "think_time_ms_mean", "Think time", "ms", Format::Fixed(3),
        "Mean time that jobs thought: their time in think times in the window, over the number of those that ended in it.", OWN;
    THINKING_PCT: "thinking_pct", "Thinking", "%", Format::Fixed(2),
        "Share of the jobs' time in the window in which they thought between transactions.", OWN;
    SCRIPT_SLEEP_PCT: "script_sleep_pct", "Script sleeping", "%", Format::Fixed(2),
        "Share of the jobs' time in the window in which pgbench scripts slept (\\sleep).", OWN;
    RECONNECT_EVERY: "reconnect_every", "Transactions per session", "", Format::Integer,
        "Transactions after which a job closed its session and opened a new one.", NOT;
    CONNECTS_PER_S: "connects_per_s", "New sessions", "1/s", Format::Integer,
        "Sessions opened anew per second in the window, all jobs.", OWN;
    CONNECT_TIME_NS_MEAN: "connect_time_ns_mean", "Connect time mean", "ms", Format::NsAsMs,
        "Mean time from the start of connecting until the new session is ready for its first transaction, statements prepared.",
        OWN;
    CONNECT_TIME_NS_P50: "connect_time_ns_p50", "Connect time p50", "ms", Format::NsAsMs,
        "Median time from the start of connecting until the new session is ready for its first transaction.", OWN;
    CONNECT_TIME_NS_P99: "connect_time_ns_p99", "Connect time p99", "ms", Format::NsAsMs,
        "99th percentile of the time from the start of connecting until the new session is ready for its first transaction.",
        OWN;
    CONNECT_TIME_NS_MAX: "connect_time_ns_max", "Connect time max", "ms", Format::NsAsMs,
        "Longest time from the start of connecting until the new session was ready for its first transaction.", OWN;
    CONNECTING_PCT: "connecting_pct", "Connecting", "%", Format::Fixed(2),
        "Share of the jobs' time in the window in which they closed a session and opened a new one.", OWN;
}
