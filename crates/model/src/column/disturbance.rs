//! Columns of who else used the machine in a test's window. The thresholds are in [`crate::disturbance`].

use super::{Column, define};
use crate::format::Format;

const PROC: &[(&str, &str)] =
    &[("*", "/proc/PID/stat of all processes of loadline's machine, at window start and end")];
const PRESSURE: &[(&str, &str)] = &[("*", "/proc/pressure of loadline's machine, at window start and end")];
const CGROUP: &[(&str, &str)] =
    &[("*", "cpu.stat of the control group and those above it: nr_throttled / nr_periods, the largest")];

define! {
    OTHER_CPU_PCT: "other_cpu_pct", "Other processes on the CPU", "%", Format::Fixed(1),
        "CPU time of processes that are neither loadline nor the database, as a share of the CPUs that loadline, or the database, may use: the larger share.",
        PROC;
    UNKNOWN_CPU_PCT: "unknown_cpu_pct", "Unknown CPU", "%", Format::Fixed(1),
        "CPU time of the machine that is no interrupt's and of no process that loadline saw: of those that ended and that nobody waited for. In a container, where loadline does not see all processes, all but loadline's and the database's, threads of the kernel included.",
        &[("*", "/proc/stat minus /proc/PID/stat of loadline and the database, at window start and end")];
    CPU_STEAL_PCT: "cpu_steal_pct", "CPU steal", "%", Format::Fixed(1),
        "Share of CPU time that the hypervisor gave to others while a virtual CPU was ready to run: the larger of the database's and loadline's machine.",
        &[("*", "/proc/stat, field steal, at window start and end")];
    CPU_WITHHELD_PCT: "cpu_withheld_pct", "CPUs withheld", "%", Format::Integer,
        "Share of the machine's CPUs that loadline may not use, by its CPU affinity or a cpuset.",
        &[("*", "Cpus_allowed_list of /proc/self/status, CPUs of /proc/stat")];
    CPU_LIMIT: "cpu_limit", "CPU limit", "CPUs", Format::Fixed(2),
        "CPU time per second that the control group of loadline may use.",
        &[("*", "cpu.max (version 1: cpu.cfs_quota_us / cpu.cfs_period_us) of the control group and those above it")];
    CLIENT_THROTTLED_PCT: "client_throttled_pct", "Client throttled", "%", Format::Fixed(1),
        "Share of the CPU limit's periods in which loadline had used up its limit and had to stop.", CGROUP;
    DATABASE_THROTTLED_PCT: "database_throttled_pct", "Database throttled", "%", Format::Fixed(1),
        "Share of the CPU limit's periods in which the database had used up its limit and had to stop.", CGROUP;
    THERMAL_THROTTLED_PCT: "thermal_throttled_pct", "Thermal throttling", "%", Format::Fixed(1),
        "Share of the window in which a CPU ran slower because it was too hot: the CPU with the largest share.",
        &[("*", "/sys/devices/system/cpu/cpu*/thermal_throttle/{core,package}_throttle_total_time_ms")];
    CPU_FREQUENCY_PCT: "cpu_frequency_pct", "CPU frequency", "%", Format::Integer,
        "Frequency of the fastest CPU as a share of its highest, mean of window start and end.",
        &[("*", "/sys/devices/system/cpu/cpu*/cpufreq: scaling_cur_freq / cpuinfo_max_freq")];
    OTHER_IO_PCT: "other_io_pct", "Other I/O", "%", Format::Fixed(1),
        "Share of the window in which the device of log or data was busy for other processes: its busy time, times their share of the bytes that processes read and wrote.",
        &[("*", "/proc/diskstats, io_ticks; read_bytes and write_bytes of /proc/PID/io of all processes")];
    OTHER_SESSIONS_PCT: "other_sessions_pct", "Other sessions", "%", Format::Integer,
        "Mean number of sessions of others that worked on the server, or waited there for storage or locks: 100 % is one session all the time.",
        &[
            ("postgres", "pg_stat_activity, sampled about ten times a second"),
            ("mysql", "information_schema.PROCESSLIST (MySQL: SHOW PROCESSLIST), sampled about ten times a second")
        ];
    OTHER_SESSIONS_CPU_PCT: "other_sessions_cpu_pct", "Other sessions on CPU", "%", Format::Fixed(1),
        "CPU time of sessions of others on the server, as a share of the CPUs that the database may use. At least so much: of a session that began or ended in the window, up to a third of a second is not seen.",
        &[
            ("postgres", "/proc/PID/schedstat of the processes in pg_stat_activity, about four times a second"),
            ("mysql", "/proc/TID/schedstat of the threads in information_schema.PROCESSLIST (MySQL: performance_schema.threads), about four times a second")
        ];
    MEMORY_PRESSURE_PCT: "memory_pressure_pct", "Memory pressure", "%", Format::Fixed(1),
        "Share of the window in which some task waited for memory.", PRESSURE;
    MEMORY_PRESSURE_FULL_PCT: "memory_pressure_full_pct", "Memory pressure, all", "%", Format::Fixed(1),
        "Share of the window in which all tasks that were not idle waited for memory.", PRESSURE;
    CPU_PRESSURE_PCT: "cpu_pressure_pct", "CPU pressure", "%", Format::Fixed(1),
        "Share of the window in which some task waited for a CPU, the jobs' own included.", PRESSURE;
    IO_PRESSURE_PCT: "io_pressure_pct", "I/O pressure", "%", Format::Fixed(1),
        "Share of the window in which some task waited for I/O, the database's own included.", PRESSURE;
    IO_PRESSURE_FULL_PCT: "io_pressure_full_pct", "I/O pressure, all", "%", Format::Fixed(1),
        "Share of the window in which all tasks that were not idle waited for I/O.", PRESSURE;
}
