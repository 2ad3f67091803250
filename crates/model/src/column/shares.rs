//! Columns of what the jobs' time was spent on, and of what bounds a test: last in the files of every group.

use super::{Column, NOT, define, text_or_absent};
use crate::format::Format;

const SCHEDSTAT: &[(&str, &str)] = &[
    ("sqlite", "/proc/TID/schedstat of the jobs' threads, which run the database, at window start and end"),
    ("*", "/proc/TID/schedstat of the sessions' processes or threads, at window start and end"),
];
const OWN_THREADS: &[(&str, &str)] = &[("*", "/proc/TID/schedstat of loadline's job threads, at window start and end")];

define! {
    BOUNDED_BY: "bounded_by", "Bounded by", "", Format::Text,
        "What bounds the test, in short; empty if the figures do not show it.", NOT,
        |r| text_or_absent(r.bounded_by.as_ref());
    SESSION_CPU_PCT: "session_cpu_pct", "Sessions on CPU", "%", Format::Integer,
        "Share of the jobs' time in which their database sessions ran on a CPU.", SCHEDSTAT;
    SESSION_CPU_WAIT_PCT: "session_cpu_wait_pct", "Sessions waiting for CPU", "%", Format::Integer,
        "Share of the jobs' time in which their database sessions were ready to run but no CPU was free.", SCHEDSTAT;
    SESSION_IO_PCT: "session_io_pct", "Sessions in I/O", "%", Format::Integer,
        "Share of the jobs' time in which the operating system held their database sessions for I/O.",
        &[("*", "samples of the state (D: uninterruptible sleep) in /proc/TID/stat, 50 a second")];
    SESSION_IDLE_PCT: "session_idle_pct", "Sessions idle", "%", Format::Integer,
        "Share of the jobs' time in which their database sessions waited for the next statement.",
        &[
            ("postgres", "pg_stat_activity sampled: state idle or idle in transaction, wait event Client:ClientRead"),
            ("mysql", "information_schema.PROCESSLIST (MySQL: SHOW PROCESSLIST) sampled: command Sleep")
        ];
    CLIENT_JOB_CPU_PCT: "client_job_cpu_pct", "Job threads on CPU", "%", Format::Integer,
        "Share of the jobs' time in which loadline's own threads of the jobs ran on a CPU.", OWN_THREADS;
    CLIENT_JOB_CPU_WAIT_PCT: "client_job_cpu_wait_pct", "Job threads waiting for CPU", "%", Format::Integer,
        "Share of the jobs' time in which loadline's own threads of the jobs were ready to run but no CPU was free.",
        OWN_THREADS;
    DATA_DEVICE_UTIL_PCT: "data_device_util_pct", "Data device busy", "%", Format::Integer,
        "Share of the window in which the device that holds the data had I/O in flight.",
        &[("*", "/proc/diskstats, io_ticks")];
    LOCK_WAIT_PCT: "lock_wait_pct", "Lock waits", "%", Format::Integer,
        "Share of the jobs' time in which their sessions waited for locks or latches held by other sessions.",
        &[
            ("postgres", "pg_stat_activity sampled: wait events of type Lock and LWLock, except those of log and buffers, and IPC:XactGroupUpdate and ProcarrayGroupUpdate"),
            ("mysql", "Innodb_row_lock_time: row locks only")
        ];
    LOG_WRITE_WAIT_PCT: "log_write_wait_pct", "Log write waits", "%", Format::Integer,
        "Share of the jobs' time in which their sessions waited for a place in the log's buffers or made a new log file.",
        &[
            (
                "postgres",
                "pg_stat_activity sampled: LWLock:WALInsert, LWLock:WALBufMapping, IO:WALInitWrite, IO:WALInitSync"
            ),
            ("wal", "time in which jobs waited for free space in the log buffer")
        ];
    WRITE_WAIT_PCT: "write_wait_pct", "Write waits", "%", Format::Integer,
        "Share of the jobs' time in which their sessions wrote data blocks, or waited for a block or a free buffer of the cache.",
        &[
            (
                "postgres",
                "pg_stat_activity sampled: the buffer events of buffer_wait_pct, without those of the log"
            ),
            ("sqlite", "writes and syncs of the database's file by the jobs, timed by loadline's VFS"),
            ("oracle", "as buffer_wait_pct")
        ];
    WRITER_WAIT_PCT: "writer_wait_pct", "Writer waits", "%", Format::Integer,
        "Share of the jobs' time in which they waited for their turn to write, in a database with one writer at a time.",
        &[("sqlite", "time in the busy handler of the jobs' sessions")];
    REPLICA_WAIT_PCT: "replica_wait_pct", "Replica waits", "%", Format::Integer,
        "Share of the jobs' time in which their commits waited for a replica.",
        &[("postgres", "pg_stat_activity sampled: wait event IPC:SyncRep")];
}
