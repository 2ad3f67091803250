//! The constants of all columns, in the order of `loadline columns`, and sets of them. What each means is in `columns.toml`.

use super::{Cell, Column};
use crate::record::Validity;
use crate::slow::SlowFigures;

/// Defines columns: their ids in capitals and, of fields of [`crate::TestRecord`], the functions that read them. Lists them under a name.
macro_rules! define {
    ($list:ident: $($name:ident $(= $field:expr)?),+ $(,)?) => {
        $(
            pub const $name: &Column = &Column {
                id: $crate::named::small!(stringify!($name)),
                field: define!(@field $($field)?),
            };
        )+
        pub(super) const $list: &[&Column] = &[$($name),+];
    };
    (@field) => { None };
    (@field $field:expr) => { Some($field) };
}

fn text(t: &str) -> Cell {
    Cell::Text(t.to_owned())
}

fn number_or_absent(n: Option<f64>) -> Cell {
    n.map_or(Cell::Absent, Cell::Number)
}

fn text_or_absent(t: Option<&String>) -> Cell {
    t.map_or(Cell::Absent, |t| text(t))
}

define! { BASE:
    PLATFORM = |r| text(&r.platform),
    WORKLOAD = |r| text(&r.workload),
    RUN = |r| text(&r.run),
    TEST = |r| Cell::Number(r.test.into()),
    NODES = |r| number_or_absent(r.imported().is_none().then(|| r.nodes.into())),
    JOBS = |r| Cell::Number(r.jobs.into()),
    AGENTS = |r| number_or_absent(Some(r.by_agent().len() as f64).filter(|n| *n > 0.0)),
    // The largest distance of an agent's window from the common one; unknown if it is of one.
    START_SKEW_MS = |r| number_or_absent(
        r.by_agent().iter().map(|agent| agent.start_skew_ms).reduce(|a, b| Some(a?.max(b?))).flatten()
    ),
    CPU_BUSY_PCT, CPU_USER_PCT, CPU_SYS_PCT, CPU_IDLE_PCT, CPU_IOWAIT_PCT, COMMIT_THROUGHPUT_TPS, COMMIT_LATENCY_MS,
    ELAPSED_S, COMMIT_TIME_NS_P50, COMMIT_TIME_NS_P99, COMMIT_TIME_NS_MAX, ERRORS, CONFLICTS,
    TARGET = |r| text(&r.target),
    DRIVER = |r| if r.imported().is_none() { text(r.driver.name()) } else { Cell::Absent },
    VALID = |r| r.validity().map_or(Cell::Absent, |of| text(if of == Validity::Valid { "true" } else { "false" })),
    VALIDITY = |r| r.validity().map_or(Cell::Absent, |of| text(of.name())),
    INVALID_REASON = |r| text_or_absent(r.invalid_reason.as_ref()),
    DISTURBED_BY = |r| text_or_absent(r.disturbed_by.as_ref()),
    REPETITION = |r| Cell::Number(r.repetition.into()),
    TRIES = |r| number_or_absent(r.imported().is_none().then(|| r.tries.into())),
    TRANSACTION_TIME_NS_P50, TRANSACTION_TIME_NS_P99, TRANSACTION_TIME_NS_MAX, COMMIT_TIME_NS_MEAN, RATE_TPS,
    RESPONSE_TIME_NS_MEAN, RESPONSE_TIME_NS_P50, RESPONSE_TIME_NS_P99, RESPONSE_TIME_NS_MAX, COMMITS,
    COMMITS_DATABASE, STATEMENTS_PER_TX, ROWS_PER_TX, ROWS_CHANGED_DATABASE, OUTSIDE_TX_PCT, CLIENT_CPU_US_PER_TX,
    CLIENT_CPU_PCT, DEVICE_WRITES_PER_S, DEVICE_WRITE_MIB_PER_S, DEVICE_UTIL_PCT, WARMUP_S, WITHIN_WINDOW_PCT,
    STARTED_AT = |r| text(&r.started_at),
    FORCED = |r| text_or_absent(Option::from(r.forced.clone()).as_ref()),
    TRANSACTION_TIME_NS_MEAN, TX_PER_S, THREADS,
    JOB_LOAD = |r| if r.imported().is_none() { text(&r.load().words()) } else { Cell::Absent },
    THINK_TIME_MS, THINK_TIME_MS_MEAN, THINKING_PCT, SCRIPT_SLEEP_PCT, RECONNECT_EVERY, CONNECTS_PER_S,
    CONNECT_TIME_NS_MEAN, CONNECT_TIME_NS_P50, CONNECT_TIME_NS_P99, CONNECT_TIME_NS_MAX, CONNECTING_PCT,
    VIA_CPU_US_PER_TX, TABLES_MIB, TABLES_FREE_MIB, DEAD_ROWS, AGING_PCT, IDENTICAL_BLOCKS_PCT,
    RATE_LOW_TPS, RATE_HIGH_TPS, RATE_LOOKS, RATE_OBJECTIVE_MS, RATE_OBJECTIVE_PCT, KEYS_ZIPF, KEYS_HOT_PCT, KEYS_HOT_DRAWS_PCT,
}

define! { LOG:
    REDO_BLOCKS_PER_S, REDO_WRITES_PER_S, REDO_SYNC_WRITES_PER_S, REDO_MIB_PER_S, REDO_KIB_PER_TX, LOG_FILE_SYNC_MS,
    FLASH_CACHE_WRITE_PCT, LIMIT_SHARE_PCT,
    LIMIT_OF = |r| text_or_absent(r.limit().map(|l| &l.name)),
    LIMIT_TPS, COMMITS_PER_REDO_SYNC, REDO_BYTES_PER_TX, LOG_PART_WAIT_US, LOG_PART_COPY_US, LOG_PART_WRITE_US,
    LOG_PART_SYNC_US, LOG_PART_WAKE_US, LOG_GROUP_COMMITS, LOG_FILL_KIB, LOG_FULL_US, REDO_WRITE_TIME_US, REDO_SYNCS,
    REDO_SYNC_TIME_US, LOG_SWITCHES, LOG_SWITCH_TPS, BETWEEN_SWITCHES_TPS,
    LOG_FLUSHED_WITHIN_S,
}

define! { WORK:
    QUERIES_PER_S, QUERY_TIME_US_MEAN, ROWS_PER_S, DATA_MIB_PER_S, MOPS_PER_S, MOPS_PER_S_PER_JOB, GROUPS, SPEED_UP,
    SQL_SERVICE_TIME_S, INDEXES, VISIBLE_DELAY_NS_P50, VISIBLE_DELAY_NS_P99,
}

define! { STORAGE:
    BLOCK_BYTES, WRITE_PCT, CACHE_HIT_PCT, BLOCK_GETS_PER_S, BLOCK_READS_PER_S, READ_MIB_PER_S, READ_TIME_US_MEAN,
    READ_WAIT_PCT, READ_TIME_US_P50, READ_TIME_US_P99, READS_WITHIN_512US_PCT, DEVICE_READS_PER_S,
    DEVICE_READ_MIB_PER_S, DEVICE_READ_SHARE_PCT,
    DATA_SOURCE = |r| text_or_absent(r.data_source().map(|source| source.to_string()).as_ref()),
    CACHED_PCT_MAX, IO_PER_S, BUFFER_WAIT_PCT, PHYSICAL_WRITES_PER_S, PHYSICAL_WRITTEN_BLOCKS_PER_S,
    PHYSICAL_WRITTEN_MIB_PER_S, CHECKPOINTS, AUTOVACUUM_SHARE_PCT, CHECKPOINT_SHARE_PCT, CHECKPOINT_TPS, CALM_TPS,
    CHECKPOINT_TIME_NS_P99, CALM_TIME_NS_P99, BLOCK_READS_PER_TX, BLOCK_WRITES_PER_TX, UNDO_KIB_PER_TX, OLD_ROWS_PER_TX,
}

define! { COST:
    SERVER_CPU_USER_US_PER_TX, SERVER_CPU_SYS_US_PER_TX, SERVER_VOLUNTARY_SWITCHES_PER_TX,
    SERVER_INVOLUNTARY_SWITCHES_PER_TX, SERVER_READ_KIB_PER_TX, SERVER_WRITTEN_KIB_PER_TX, SERVER_INSTRUCTIONS_PER_TX,
    SERVER_CACHE_MISSES_PER_TX,
}

define! { SHARES:
    BOUNDED_BY = |r| text_or_absent(r.bounded_by().map(str::to_owned).as_ref()),
    SESSION_CPU_PCT, SESSION_CPU_WAIT_PCT, SESSION_IO_PCT, SESSION_IDLE_PCT, CLIENT_JOB_CPU_PCT,
    CLIENT_JOB_CPU_WAIT_PCT, DATA_DEVICE_UTIL_PCT, LOCK_WAIT_PCT, LOG_WRITE_WAIT_PCT, WRITE_WAIT_PCT, WRITER_WAIT_PCT,
    REPLICA_WAIT_PCT,
    SLOW_WAIT = |r| text_or_absent(r.slow().and_then(SlowFigures::words).as_ref()),
    SLOW_WAIT_PCT, SLOW_WAIT_OTHERS_PCT,
}

define! { REPLICATION:
    ARM = |r| r.arm().map_or(Cell::Absent, |arm| Cell::Text(arm.to_string())),
    LEVEL = |r| text_or_absent(r.level().map(|point| &point.level)),
    DELAY_MS = |r| r.level().map_or(Cell::Absent, |point| Cell::Number(point.delay_ms)),
    RTT_MS, REPLICAS_SYNCHRONOUS, REPLICA_BEHIND_MIB, REPLICA_BEHIND_MS, REPLICA_LINK_MIB_PER_S,
}

define! { DISTURBANCE:
    OTHER_CPU_PCT, UNKNOWN_CPU_PCT, CPU_STEAL_PCT, CPU_WITHHELD_PCT, CPU_LIMIT, CLIENT_THROTTLED_PCT,
    DATABASE_THROTTLED_PCT, THERMAL_THROTTLED_PCT, CPU_FREQUENCY_PCT, OTHER_IO_PCT, OTHER_SESSIONS_PCT,
    OTHER_SESSIONS_CPU_PCT, MEMORY_PRESSURE_PCT, MEMORY_PRESSURE_FULL_PCT, CPU_PRESSURE_PCT, IO_PRESSURE_PCT,
    IO_PRESSURE_FULL_PCT,
}

pub const CPU_SHARES: [&Column; 5] = [CPU_BUSY_PCT, CPU_USER_PCT, CPU_SYS_PCT, CPU_IDLE_PCT, CPU_IOWAIT_PCT];

/// Interval of a rate that was found, looks of the search, and the objective as [`RateObjective::figures`](crate::load::RateObjective).
pub const RATE_SEARCH: [&Column; 5] = [RATE_LOW_TPS, RATE_HIGH_TPS, RATE_LOOKS, RATE_OBJECTIVE_MS, RATE_OBJECTIVE_PCT];

/// Size of the tables, and what is unused in them.
pub const WEAR: [&Column; 3] = [TABLES_MIB, TABLES_FREE_MIB, DEAD_ROWS];

/// As [`Keys::figures`](crate::Keys::figures).
pub const KEYS: [&Column; 3] = [KEYS_ZIPF, KEYS_HOT_PCT, KEYS_HOT_DRAWS_PCT];

pub const SWITCHES: [&Column; 3] = [LOG_SWITCHES, LOG_SWITCH_TPS, BETWEEN_SWITCHES_TPS];

/// Use by the database's processes per transaction: pairs of CPU time, context switches, I/O and hardware events.
pub const SERVER_COST: [[&Column; 2]; 4] = [
    [SERVER_CPU_USER_US_PER_TX, SERVER_CPU_SYS_US_PER_TX],
    [SERVER_VOLUNTARY_SWITCHES_PER_TX, SERVER_INVOLUNTARY_SWITCHES_PER_TX],
    [SERVER_READ_KIB_PER_TX, SERVER_WRITTEN_KIB_PER_TX],
    [SERVER_INSTRUCTIONS_PER_TX, SERVER_CACHE_MISSES_PER_TX],
];

#[derive(Debug, Clone, Copy)]
pub struct Times {
    pub mean: &'static Column,
    pub p50: &'static Column,
    pub p99: &'static Column,
    pub max: &'static Column,
}

impl Times {
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

/// Redo and commits by the database's own count.
pub const REDO_AND_COMMITS: [&Column; 8] = [
    REDO_BLOCKS_PER_S, REDO_WRITES_PER_S, REDO_SYNC_WRITES_PER_S, REDO_MIB_PER_S, REDO_KIB_PER_TX, REDO_BYTES_PER_TX,
    COMMITS_DATABASE, COMMITS_PER_REDO_SYNC,
];
