//! Columns of work: queries, rows, bytes and operations per second, speed-up and visibility.

use super::{Column, OWN, define};
use crate::format::Format;

/// Work of one transaction (known from the program and its data) times the transactions completed.
const VOLUME: &[(&str, &str)] = &[("*", "the workload's own count per transaction × transactions completed / window")];

define! {
    QUERIES_PER_S: "queries_per_s", "Queries", "1/s", Format::Integer,
        "Queries completed in the measured window, per second, all jobs.", OWN;
    QUERY_TIME_US_MEAN: "query_time_us_mean", "Query time", "µs", Format::Fixed(1),
        "Mean time of a query: mean transaction time / queries per transaction, for read-only workloads.", OWN;
    ROWS_PER_S: "rows_per_s", "Rows", "1/s", Format::Integer,
        "Rows read or changed per second, all jobs; a scan counts every row it reads, whether it passes the filter or not.",
        VOLUME;
    DATA_MIB_PER_S: "data_mib_per_s", "Data", "MiB/s", Format::Fixed(1),
        "Bytes of tables (or of new rows) processed per second, from any cache or device; table sizes as reported by the database.",
        VOLUME;
    MOPS_PER_S: "mops_per_s", "Operations", "million/s", Format::Fixed(3),
        "Operations of procedural code per second, all jobs, in millions.", VOLUME;
    MOPS_PER_S_PER_JOB: "mops_per_s_per_job", "Operations per job", "million/s", Format::Fixed(3),
        "Operations of procedural code per second and job, in millions.", &[("*", "mops_per_s / jobs")];
    GROUPS: "groups", "Groups", "", Format::Integer,
        "Groups of a GROUP BY: distinct values of the column grouped by.", VOLUME;
    SPEED_UP: "speed_up", "Speed-up", "×", Format::Fixed(2),
        "Throughput divided by that of the same query with one worker, in the same run.",
        &[("*", "queries per second / queries per second of the valid test with one worker, same jobs and repetition")];
    SQL_SERVICE_TIME_S: "sql_service_time_s", "SQL service time", "s", Format::Fixed(6),
        "Mean time of the statements of a transaction, without its commit.",
        &[("*", "mean transaction time minus mean commit time, the jobs' own clocks")];
    INDEXES: "indexes", "Indexes", "", Format::Integer,
        "Indexes of the table that is loaded, its primary key included.", OWN;
    VISIBLE_DELAY_NS_P50: "visible_delay_ns_p50", "Visible after p50", "ms", Format::NsAsMs,
        "Median time from the intended start of a batch until another session saw its rows; a late start counts.",
        OWN;
    VISIBLE_DELAY_NS_P99: "visible_delay_ns_p99", "Visible after p99", "ms", Format::NsAsMs,
        "99th percentile of the time from the intended start of a batch until another session saw its rows.",
        OWN;
}
