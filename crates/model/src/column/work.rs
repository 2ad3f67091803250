//! Columns of work: queries, rows, bytes and operations per second, and how far it is shared or made visible.

use super::{Column, OWN, define};
use crate::format::Format;

/// Work of one transaction, known from the program and its data, times the transactions done.
const VOLUME: &[(&str, &str)] = &[("*", "the workload's own count per transaction × transactions completed / window")];

define! {
    QUERIES_PER_S: "queries_per_s", "Queries", "1/s", Format::Integer,
        "Queries that completed inside the common window, per second of it, over all jobs.", OWN;
    QUERY_TIME_US_MEAN: "query_time_us_mean", "Query time", "µs", Format::Fixed(1),
        "Mean time of a query: mean transaction time / queries of a transaction, for workloads that only read.", OWN;
    ROWS_PER_S: "rows_per_s", "Rows", "1/s", Format::Integer,
        "Rows read or changed per second, over all jobs; of a scan all rows that it goes through, whether they pass its filter or not.",
        VOLUME;
    DATA_MIB_PER_S: "data_mib_per_s", "Data", "MiB/s", Format::Fixed(1),
        "Bytes of table (or of new rows) that the work goes through per second, wherever they come from: the size that the database gives for the tables.",
        VOLUME;
    MOPS_PER_S: "mops_per_s", "Operations", "million/s", Format::Fixed(3),
        "Operations of procedural code per second, all jobs together, in millions.", VOLUME;
    MOPS_PER_S_PER_JOB: "mops_per_s_per_job", "Operations per job", "million/s", Format::Fixed(3),
        "Operations of procedural code per second and job, in millions.", &[("*", "mops_per_s / jobs")];
    GROUPS: "groups", "Groups", "", Format::Integer,
        "Groups that a grouping makes: different values that the column grouped by has in the data.", VOLUME;
    SPEED_UP: "speed_up", "Speed-up", "×", Format::Fixed(2),
        "Throughput as a multiple of that of the same query with one worker, in the same run.",
        &[("*", "queries per second / those of the valid test with one worker, same jobs and repetition")];
    SQL_SERVICE_TIME_S: "sql_service_time_s", "SQL service time", "s", Format::Fixed(6),
        "Mean time that the statements of a transaction took, its commit left out.",
        &[("*", "mean transaction time less mean commit time, the jobs' own clocks")];
    INDEXES: "indexes", "Indexes", "", Format::Integer,
        "Indexes of the table that is loaded, that of its primary key among them.", OWN;
    VISIBLE_DELAY_NS_P50: "visible_delay_ns_p50", "Visible after p50", "ms", Format::NsAsMs,
        "Median time from the moment at which a batch was meant to begin until another session saw its rows: what held it up before it began is in it.",
        OWN;
    VISIBLE_DELAY_NS_P99: "visible_delay_ns_p99", "Visible after p99", "ms", Format::NsAsMs,
        "99th percentile of the time from the moment at which a batch was meant to begin until another session saw its rows.",
        OWN;
}
