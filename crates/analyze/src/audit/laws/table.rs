//! The table of laws, in the order of the docs: docs/audit.md and `loadline audit --laws` are drawn from it.

use super::Check::Own;
use super::{Law, blocks, cpu, elapsed, group_commit, hardware, little, neighbours, order, percentiles, products};
use super::{shares, sweep, waits, work};
use crate::audit::judge::Side;

const KIB_PER_MIB: f64 = 1.0 / 1024.0;
const MIB_PER_BYTE: f64 = 1.0 / 1_048_576.0;
const DIFFERENT: Side = Side::Never("one of these figures is wrong, or they are not of the same test");
const WINDOWS: Side = products::WINDOWS;
/// Of what is checked with another law, or with the table as a whole.
const NOTHING: fn(&crate::audit::context::Context<'_>, &mut crate::audit::finding::Findings) = |_, _| {};

/// Id, name and check of a law; then what holds, the sets of columns with any of which it can be checked, what is more than a
/// warning, and what it likely means if it is broken.
macro_rules! laws {
    ($($id:literal, $name:literal, $check:expr, $formula:literal, $needs:literal, $tolerance:literal, $meaning:literal;)*) => {
        /// All laws, in the order of the docs.
        pub static LAWS: &[&Law] = &[$(&Law {
            id: $id,
            name: $name,
            formula: $formula,
            needs: $needs,
            tolerance: $tolerance,
            meaning: $meaning,
            check: $check,
        }),*];
    };
}

laws! {
    "little", "Little's law", Own(little::check),
        "tps × commit_latency_ms / 1000 ≤ jobs",
        "jobs tps commit_latency_ms; jobs tps transaction_time_ns_mean; jobs io_per_s commit_latency_ms; jobs \
         block_reads_per_s read_time_us_mean",
        "an error if it is above in some rows and the others are near it, or the columns are named by our ids; else \
         above it, or below it by a common time or factor, or alone, is a warning. One transaction per job, which \
         began before the window, and 1 % where the other rows do not agree, are no error. Jobs may be the product \
         of two columns, and of an open loop the time may hold a wait",
        "A wrong digit or unit; jobs per node; transactions that overlap in one session";
    "dilution", "Diluted throughput", Own(NOTHING),
        "tps × commit_latency_ms / 1000 = jobs, for jobs that do nothing else",
        "jobs tps commit_latency_ms; jobs tps transaction_time_ns_mean; jobs io_per_s commit_latency_ms; jobs \
         block_reads_per_s read_time_us_mean",
        "always a warning: it assumes that jobs do not think",
        "The average contains ramp-up, stragglers or other time without load; the rate without it is jobs / latency";
    "waits", "Little's law for a part of the transaction", Own(waits::waits),
        "tps × time of a part ≤ jobs; redo_writes_per_s × redo_write_time_us / 10⁶ ≤ nodes",
        "jobs tps log_file_sync_ms; jobs tps sql_service_time_s; jobs tps commit_time_ns_mean; redo_writes_per_s \
         redo_write_time_us",
        "1 %, and one transaction per job, which began before the window; a warning for waits of the database, \
         which may be those of all sessions, and for commit times, with 25 %, which may be those of a sample",
        "A wrong digit or unit, or waits that are not per transaction";
    "time-parts", "A part of a time is no longer than the whole", Own(waits::parts),
        "log_file_sync_ms, commit_time_ns_mean, sql_service_time_s ≤ commit_latency_ms",
        "commit_latency_ms log_file_sync_ms; commit_latency_ms commit_time_ns_mean; commit_latency_ms \
         sql_service_time_s; transaction_time_ns_mean commit_time_ns_mean; transaction_time_ns_mean \
         sql_service_time_s",
        "0.1 %; a warning for log_file_sync_ms, which may be per wait rather than per commit, and for commit times, \
         with 25 %, which may be those of a sample",
        "A wrong digit or unit, or times of different transactions";
    "kilobyte", "Which kilobyte was meant", Own(NOTHING),
        "tps × redo_kib_per_tx = redo_mib_per_s, with 1,024 or 1,000 bytes and kilobytes",
        "tps redo_kib_per_tx redo_mib_per_s",
        "a warning if only another unit than the printed one fits",
        "The unit is that with which the rows agree";
    "redo-rate", "Rate × size = bandwidth", products::of(&["tps", "redo_kib_per_tx"], KIB_PER_MIB, &["redo_mib_per_s"], "redo_mib_per_s", DIFFERENT, DIFFERENT, 0.01),
        "tps × redo_kib_per_tx / 1024 = redo_mib_per_s",
        "tps redo_kib_per_tx redo_mib_per_s",
        "1 %, and none where the other rows agree within their digits; a warning beside commits_database, as the \
         database then counts over an interval of its own",
        "A wrong digit or unit, or redo and transactions of different times";
    "redo-bytes", "Redo per transaction, twice", products::of(&["redo_bytes_per_tx"], KIB_PER_MIB, &["redo_kib_per_tx"], "redo_kib_per_tx", DIFFERENT, DIFFERENT, 0.001),
        "redo_bytes_per_tx / 1024 = redo_kib_per_tx",
        "redo_bytes_per_tx redo_kib_per_tx",
        "none",
        "A wrong digit or unit";
    "read-rate", "Blocks × block size = bytes read", products::of(&["block_reads_per_s", "block_bytes"], MIB_PER_BYTE, &["read_mib_per_s"], "read_mib_per_s", Side::Never("fewer bytes were read than the blocks have"), Side::Unless("more bytes than these blocks have: reads are counted as calls of several blocks"), 0.02),
        "block_reads_per_s × block_bytes / 1024² = read_mib_per_s",
        "block_reads_per_s block_bytes read_mib_per_s",
        "2 %, and none where the other rows agree within their digits",
        "Reads are counted as calls of several blocks, another block size, or a wrong digit";
    "io-rate", "I/O × its size = bandwidth", products::of(&["io_per_s", "block_bytes"], MIB_PER_BYTE, &["data_mib_per_s"], "data_mib_per_s", Side::Unless("the requests are smaller than stated, or not all of them are in the bandwidth"), Side::Unless("the requests are larger than stated, or the bandwidth holds more than they"), 0.02),
        "io_per_s × block_bytes / 1024² = data_mib_per_s",
        "io_per_s block_bytes data_mib_per_s",
        "always a warning: requests may have other sizes",
        "Requests of another size than stated, or a bandwidth of something else";
    "rows", "Rows = transactions × rows per transaction", products::of(&["tps", "rows_per_tx"], 1.0, &["rows_per_s"], "rows_per_tx", DIFFERENT, DIFFERENT, 0.005),
        "tps × rows_per_tx = rows_per_s",
        "tps rows_per_tx rows_per_s",
        "0.5 %, and none where the other rows agree within their digits",
        "A wrong digit; where rows per transaction are printed as 0, their true number is the recomputed one";
    "commits", "Commits = throughput × time", products::of(&["tps", "elapsed_s"], 1.0, &["commits"], "commits", Side::Never("the rate is higher than commits / time"), Side::Never("the rate is lower than commits / time"), 0.01),
        "tps × elapsed_s = commits",
        "tps elapsed_s commits",
        "1 %, and none where the other rows agree within their digits",
        "The rate is that of another time than the printed one, or a wrong digit";
    "commits-database", "Commits as the database counts them", products::of(&["commits"], 1.0, &["commits_database"], "commits", Side::Unless( "the database counted fewer: its snapshots are of a shorter time, or not all were committed", ), Side::Unless("the database counted more: others committed, or its snapshots are of a longer time"), 0.01),
        "commits = commits_database",
        "commits commits_database",
        "1 %",
        "Others committed as well, or commits were lost";
    "redo-syncs", "Syncs = rate × time", products::of(&["redo_sync_writes_per_s", "elapsed_s"], 1.0, &["redo_syncs"], "redo_syncs", WINDOWS, WINDOWS, 0.01),
        "redo_sync_writes_per_s × elapsed_s = redo_syncs",
        "redo_sync_writes_per_s elapsed_s redo_syncs",
        "always a warning: the rate is that of the database's own interval",
        "Counted over another time, or a wrong digit";
    "commits-per-sync", "Commits per sync, recomputed", products::of(&["tps"], 1.0, &["redo_sync_writes_per_s", "commits_per_redo_sync"], "commits_per_redo_sync", WINDOWS, WINDOWS, 0.02),
        "tps / redo_sync_writes_per_s = commits_per_redo_sync",
        "tps redo_sync_writes_per_s commits_per_redo_sync",
        "always a warning: the database's commits may be other ones",
        "The database counted commits that the throughput does not hold";
    "tx-rate", "Throughput, twice", products::of(&["commit_throughput_tps"], 1.0, &["tx_per_s"], "tx_per_s", DIFFERENT, DIFFERENT, 0.01),
        "commit_throughput_tps = tx_per_s",
        "commit_throughput_tps tx_per_s",
        "1 %, and none where the other rows agree within their digits",
        "A wrong digit, or one of them counts something else";
    "mean-time", "Mean transaction time, twice", products::of(&["commit_latency_ms"], 1e6, &["transaction_time_ns_mean"], "transaction_time_ns_mean", DIFFERENT, DIFFERENT, 0.01),
        "commit_latency_ms × 10⁶ = transaction_time_ns_mean",
        "commit_latency_ms transaction_time_ns_mean",
        "1 %, and none where the other rows agree within their digits",
        "A wrong digit or unit, or one of them times something else";
    "limit-share", "Share of the limit, recomputed", products::of(&["tps"], 100.0, &["limit_tps", "limit_share_pct"], "limit_share_pct", DIFFERENT, DIFFERENT, 0.01),
        "tps / limit_tps × 100 = limit_share_pct",
        "tps limit_tps limit_share_pct",
        "1 %",
        "A wrong digit, or the limit of another test";
    "operations", "Operations = jobs × operations per job", products::of(&["jobs", "mops_per_s_per_job"], 1.0, &["mops_per_s"], "mops_per_s", DIFFERENT, DIFFERENT, 0.01),
        "jobs × mops_per_s_per_job = mops_per_s",
        "jobs mops_per_s_per_job mops_per_s",
        "1 %, and none where the other rows agree within their digits",
        "A wrong digit";
    "device-share", "Share of the bytes from the device, recomputed", products::of(&["device_read_mib_per_s"], 100.0, &["read_mib_per_s", "device_read_share_pct"], "device_read_share_pct", WINDOWS, WINDOWS, 0.02),
        "device_read_mib_per_s / read_mib_per_s × 100 = device_read_share_pct",
        "device_read_mib_per_s read_mib_per_s device_read_share_pct",
        "always a warning",
        "A wrong digit, or figures of different times";
    "redo-blocks", "Blocks of redo and their padding", Own(blocks::redo),
        "redo_blocks_per_s × block size ≥ redo bytes; what is more is padding, per write or per transaction",
        "redo_blocks_per_s redo_mib_per_s; redo_blocks_per_s tps redo_kib_per_tx",
        "always a warning, as the size of a block is inferred: a row with more bytes than its blocks hold, or with \
         another share of padding than the others",
        "The size is the smallest power of two that holds the bytes. Padding per transaction: commits end a block; \
         per write: groups do";
    "data-blocks", "Blocks written and their bytes", Own(blocks::data),
        "physical_written_blocks_per_s × block size = physical_written_mib_per_s × 1024², or less redo_mib_per_s",
        "physical_written_blocks_per_s physical_written_mib_per_s",
        "a warning where no size of a block fits, or a row does not agree with the others",
        "Bytes that hold more than data blocks: redo, temporary files, mirrors, a doublewrite buffer";
    "group-commit", "Group commit", Own(group_commit::group),
        "tps / redo_writes_per_s ≤ jobs; tps / redo_sync_writes_per_s ≤ jobs; commits_per_redo_sync ≤ jobs",
        "jobs tps redo_writes_per_s; jobs tps redo_sync_writes_per_s; jobs tps redo_syncs elapsed_s; jobs \
         commits_per_redo_sync",
        "always a warning: commits need not wait; also where one test has a third of the commits per write that the \
         test with fewer jobs and no more throughput has",
        "Commits did not wait for the log (NOWAIT, asynchronous commit, a loop in the database), so their time is \
         not that of a durable commit; or a wrong digit";
    "syncs", "Syncs that are commits", Own(group_commit::syncs),
        "redo_sync_writes_per_s = tps, where the database counts commits that waited",
        "tps redo_sync_writes_per_s",
        "2 %; only where most rows agree; always a warning",
        "A wrong digit; otherwise commits that did not wait";
    "cpu-parts", "Parts of the busy CPU time", Own(cpu::parts),
        "cpu_user_pct + cpu_sys_pct = cpu_busy_pct",
        "cpu_busy_pct cpu_user_pct cpu_sys_pct",
        "none where the parts exceed the whole, or where the other rows agree; else a missing part is a warning",
        "A wrong digit, or figures of different times";
    "cpu-sum", "CPU time is busy, idle or waiting", Own(cpu::sum),
        "cpu_busy_pct + cpu_idle_pct + cpu_iowait_pct = 100, or all parts of the CPU time",
        "cpu_busy_pct cpu_idle_pct; cpu_user_pct cpu_sys_pct cpu_idle_pct",
        "none above 100, or where the other rows agree; else a missing part is a warning",
        "A wrong digit; idle that holds iowait or not; a part that is not printed, such as steal";
    "share", "No share exceeds its whole", Own(shares::shares),
        "0 ≤ x_pct ≤ 100",
        "cpu_busy_pct; cpu_user_pct; cpu_sys_pct; cpu_idle_pct; cpu_iowait_pct; client_cpu_pct; device_util_pct; \
         data_device_util_pct; cache_hit_pct; flash_cache_write_pct; reads_within_512us_pct; checkpoint_share_pct; \
         write_pct; outside_tx_pct; thinking_pct; connecting_pct",
        "none; a warning where most rows exceed 100, as they are then shares of one CPU",
        "A wrong digit, or CPU time in percent of one CPU";
    "cache-hits", "Reads = gets × misses", Own(shares::hits),
        "block_gets_per_s × (1 − cache_hit_pct / 100) = block_reads_per_s",
        "block_gets_per_s cache_hit_pct block_reads_per_s",
        "2 %; none where the other rows agree within their digits",
        "A wrong digit, or reads that bypass the cache";
    "percentiles", "Percentiles rise", Own(percentiles::order),
        "min ≤ p50 ≤ p90 ≤ p95 ≤ p99 ≤ p99.9 ≤ max",
        "transaction_time_ns_p50 transaction_time_ns_p99; transaction_time_ns_p95; transaction_time_ns_min \
         transaction_time_ns_p50; transaction_time_ns_min transaction_time_ns_max; transaction_time_ns_p50 \
         transaction_time_ns_max; transaction_time_ns_p99 transaction_time_ns_max; commit_time_ns_p50 \
         commit_time_ns_p99; commit_time_ns_p99 commit_time_ns_max; response_time_ns_p50 response_time_ns_p99; \
         response_time_ns_p99 response_time_ns_max; read_time_us_p50 read_time_us_p99; visible_delay_ns_p50 \
         visible_delay_ns_p99",
        "none",
        "A wrong digit, exchanged columns, or percentiles of different tests";
    "mean", "The mean that percentiles allow", Own(percentiles::mean),
        "0.5·p50 + 0.01·p99 − … ≤ mean ≤ 0.5·p50 + 0.49·p99 + 0.01·max: no value lies below the mark before it or \
         above the one behind it",
        "commit_latency_ms transaction_time_ns_min; commit_latency_ms transaction_time_ns_p50; commit_latency_ms \
         transaction_time_ns_p95; commit_latency_ms transaction_time_ns_p99; commit_latency_ms \
         transaction_time_ns_max; transaction_time_ns_mean transaction_time_ns_p50; transaction_time_ns_mean \
         transaction_time_ns_p99; transaction_time_ns_mean transaction_time_ns_max; commit_time_ns_mean \
         commit_time_ns_p50; commit_time_ns_mean commit_time_ns_p99; commit_time_ns_mean commit_time_ns_max; \
         response_time_ns_mean response_time_ns_p50",
        "2 %, for percentiles of histograms; a mean above p99 without a maximum is a warning",
        "A wrong digit or unit, or mean and percentiles of different times";
    "inside", "Percentiles of a part", Own(percentiles::inside),
        "commit_time_ns_x ≤ transaction_time_ns_x, for p50, p99 and max",
        "commit_time_ns_p50 transaction_time_ns_p50; commit_time_ns_p99 transaction_time_ns_p99; commit_time_ns_max \
         transaction_time_ns_max",
        "2 %, for percentiles of histograms; for p50 and p99 a warning, with 25 %, as commit times may be those of \
         a sample",
        "A wrong digit or unit, or times of different transactions";
    "hardware", "What hardware can do", Own(hardware::check),
        "bandwidth per node ≤ that of the fastest device, network or memory; time of a durable write ≥ that of memory",
        "redo_mib_per_s; physical_written_mib_per_s; read_mib_per_s; data_mib_per_s; device_write_mib_per_s; \
         device_read_mib_per_s; replica_link_mib_per_s; log_file_sync_ms; redo_write_time_us; redo_sync_time_us; \
         read_time_us_mean",
        "a warning above what one device or link does; an error above what a whole machine does, if the table has \
         its nodes",
        "A wrong unit or digit, figures from a cache, or a cluster that is not in the table";
    "elapsed", "Elapsed against nominal time", Own(elapsed::check),
        "elapsed_s = nominal time, the round number just below the shortest test",
        "elapsed_s tps; elapsed_s rows_per_s",
        "info up to 1 %, then a warning; a warning for a test that took 5 % more or less than the others; nothing \
         else where Little's law shows that the average is not diluted",
        "Sessions started late or ended late, and the average is taken over all of it; the corrected rate is tps × \
         elapsed / nominal";
    "same-work", "The same work in each test", Own(work::work),
        "redo_kib_per_tx, redo_bytes_per_tx and statements_per_tx are the same over the jobs of a workload, and so \
         are commits / tps, rows_per_s / tps, and a setting within a sweep",
        "redo_kib_per_tx; redo_bytes_per_tx; statements_per_tx; jobs rows_per_tx; tps commits; tps rows_per_s",
        "3 %, or six times the median deviation of the series; always a warning",
        "Other redo than that of the transactions (checkpoints, the first change of a block after one), a wrong \
         digit, or other work";
    "nominal-work", "The work that the workload is defined by", Own(work::nominal),
        "redo_kib_per_tx within the range of the workload in loadline's catalogue",
        "workload redo_kib_per_tx",
        "the range of the workload; always a warning",
        "The test is not quite that workload, and does not compare with others of it";
    "neighbours", "Curves do not jump", Own(neighbours::neighbours),
        "a figure, or its share of one that it follows, lies where the other tests of the sweep put it",
        "jobs; rows_per_tx; threads; rate_tps; tps; commit_latency_ms",
        "Student's t (1 in 16,000) times the spread with which the other rows miss each other, with that of the \
         other columns; and 3 %, 8 % at the ends. One wrong cell must explain all that stands out in its row. Always \
         a warning",
        "A wrong digit, or a test that something else disturbed";
    "relations", "Relations that the other rows show", Own(NOTHING),
        "a × b = c, a + b = c, (b / a − 1) × 100 = c, a / b = constant, for any columns of numbers, also unknown ones",
        "",
        "the digits of all rows but one, or one in five, must show it, with 8 bits more than chance; a proportion \
         must hold on both sides of the row. Always a warning",
        "A wrong digit, or figures of another test";
    "falling-throughput", "Throughput beyond its peak", Own(sweep::saturation),
        "tps does not fall as jobs rise, up to saturation",
        "jobs tps",
        "0.5 %; always an info",
        "More jobs than the platform serves: they wait for each other, and throughput falls below its peak";
    "job-order", "Jobs rise in a sweep", Own(order::job_order),
        "jobs of a row ≥ jobs of the row above, in a series that rises everywhere else",
        "jobs",
        "always a warning",
        "A wrong digit, or a test of another sweep";
    "test-numbers", "No test is missing", Own(order::gaps),
        "test of a row = test of the row above + 1, where most tests follow each other",
        "test",
        "an info; a warning where one number does not fit between its neighbours, or stands apart at an end from \
         all others, which follow each other",
        "A test was made and left out";
    "duplicates", "No test twice", Own(order::duplicates),
        "two rows differ; one test has one result",
        "jobs; test; tps",
        "equal rows are a warning, one test with two results an error",
        "A row was copied, or a test was numbered twice";
    "cells", "Cells hold figures", Own(NOTHING),
        "a figure is a number ≥ 0; jobs, nodes, elapsed_s > 0",
        "",
        "negative numbers, and no jobs with throughput, are errors; no throughput with jobs, what is no number, or \
         all nines, a warning",
        "A counter that was reset, a division by nothing, a number too long for its cell";
}
