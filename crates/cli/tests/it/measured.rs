//! Figures of runs: what must hold of them stands in tables (`data/demands`), which `common/demands.rs` reads.

use crate::common::*;

#[test]
fn costs_of_a_transaction_are_those_of_all_processes_and_log_switches_as_many_as_files() {
    hold_runs(include_str!("data/demands/cost.toml"), &[]);
}

#[test]
fn a_window_is_seen_to_grow_old_on_each_database() {
    hold_runs(include_str!("data/demands/aging.toml"), &[]);
}

#[test]
fn jobs_that_think_differ_draw_skewed_keys_or_are_thousands_keep_to_their_load() {
    hold_runs(include_str!("data/demands/populations.toml"), &[]);
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn new_sessions_are_in_the_books() {
    hold_runs(include_str!("data/demands/sessions.toml"), &[]);
}

#[test]
#[cfg(feature = "servers")]
fn jobs_that_meet_at_their_rows_never_fail_and_mixes_are_their_parts() {
    hold_runs(include_str!("data/demands/tp.toml"), &[]);
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn data_are_loaded_and_counted_on_every_database() {
    hold_runs(include_str!("data/demands/load.toml"), &[]);
}

#[test]
fn each_test_has_its_limit_or_the_reason() {
    hold_runs(include_str!("data/demands/limits.toml"), &[]);
}

#[test]
#[cfg(feature = "servers")]
fn queries_and_procedures_have_their_figures() {
    hold_runs(include_str!("data/demands/analytics.toml"), &[]);
}

#[test]
#[cfg(feature = "servers")]
fn workers_come_or_the_test_is_invalid() {
    let plenty = "min_parallel_table_scan_size=0 parallel_setup_cost=0 parallel_tuple_cost=0";
    let server = Server::start(&words(&format!("max_parallel_workers=2 max_parallel_workers_per_gather=4 {plenty}")));
    hold_runs(include_str!("data/demands/workers.toml"), &[("{url}", &server.url())]);
}

#[test]
#[cfg(feature = "servers")]
fn jobs_that_read_are_spread_over_standbys_and_counted_there() {
    hold_runs(include_str!("data/demands/nodes.toml"), &[]);
}

#[test]
#[cfg(feature = "servers")]
fn with_a_binary_log_commits_in_a_procedure_wait_and_are_counted_once() {
    hold_runs(include_str!("data/demands/binlog.toml"), &[]);
}

fn scanned_on(targets: [&str; 2]) {
    targets.iter().for_each(|target| hold_runs(include_str!("data/demands/scan.toml"), &[("{target}", target)]));
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "every workload in a window: ./test")]
fn commit_time_by_redo_is_scanned() {
    scanned_on(["wal:", "sqlite:"]);
}

#[test]
#[ignore = "nightly: every workload in a window on every server"]
fn commit_time_by_redo_is_scanned_on_servers() {
    scanned_on(["postgres-temp:", "mariadb-temp:"]);
}

#[test]
#[ignore = "nightly: whether throughput is steady is up to others on the machine"]
fn an_in_database_warm_up_lasts_until_it_is_steady() {
    hold_runs(include_str!("data/demands/steady.toml"), &[]);
}

/// Which figures name which cause is tested with made-up ones (`analyze/tests/it/bound.rs`).
#[test]
#[ignore = "nightly: what bounds a test is another thing while others use the CPUs"]
fn each_cause_that_is_made_is_named() {
    hold_runs_often(include_str!("data/demands/bounds.toml"), &[("{data}", DATA)], 10, 1);
}
