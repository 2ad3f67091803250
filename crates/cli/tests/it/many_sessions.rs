//! End to end: jobs that share a thread.

use crate::common::figures::{check, figure, passed};
use crate::common::mariadb::Maria;
use crate::common::{Server, on, results, signal, sound, start_on, tests_of, wait_for};
use nix::sys::signal::Signal;
use serde_json::Value;

/// One test of `workload` with these options.
fn test(target: &str, workload: &str, options: &str) -> Value {
    let short = format!("--workload {workload} --duration 1.5s --warmup 300ms --no-probe {options}");
    let dir = results();
    let ran = on(target, dir.path(), &short);
    assert!(ran.code <= 1, "{}", ran.said());
    tests_of(&ran.folder()).remove(0)
}

/// Nothing is lost or counted twice, whoever runs the job.
fn counted(test: &Value) {
    assert_eq!(figure(test, "errors"), 0.0, "{test:#}");
    assert!(sound(test), "{test:#}");
    for id in ["commits-database", "commits-window", "work-evidence", "commits-per-sync"] {
        passed(test, id);
    }
    let answered_late = |id| test["checks"].as_array().unwrap().iter().any(|c| c["id"] == id);
    assert!(answered_late("read-late") && figure(test, "read_late_us") > 0.0, "{test:#}");
    assert!(figure(test, "read_late_p99_us") >= figure(test, "read_late_us") / 100.0);
}

#[test]
fn jobs_that_share_threads_lose_and_miscount_nothing() {
    let server = Server::start(&["max_connections=120"]);
    let many = test(&server.url(), "TP-LIGHT", "--driver client --jobs 40 --sessions-per-thread 20");
    assert_eq!(figure(&many, "sessions_per_thread"), 20.0);
    counted(&many);
    // Over TCP, transactions of several statements, and a thread for each if asked for.
    let tcp = server.tcp("boss", Some("tops3cret"));
    let shared = "--driver client --jobs 8 --sessions-per-thread 4";
    let on_two = test(&tcp, "TP-MEDIUM", shared);
    assert_eq!(figure(&on_two, "sessions_per_thread"), 4.0);
    counted(&on_two);
    let own = test(&tcp, "TP-MEDIUM", "--driver client --jobs 8 --sessions-per-thread 1");
    assert_eq!(figure(&own, "sessions_per_thread"), 1.0);
    assert!(own["read_late_us"].is_null() && own["absent"]["read_late_us"].is_string(), "{own:#}");
    // An open loop sleeps in its fiber until a transaction is due.
    let open = test(&server.url(), "TP-LOOKUP", &format!("{shared} --rate 400"));
    let kept = check(&open, "rate")["outcome"] == "passed";
    assert_eq!(kept, figure(&open, "tx_per_s") >= 400.0 * 0.98, "{open:#}");
    // What is late is made up for, but no more is asked for.
    assert!(figure(&open, "tx_per_s") < 400.0 * 1.5, "{open:#}");
    assert!(figure(&open, "response_time_ns_p50") >= figure(&open, "transaction_time_ns_p50"), "{open:#}");
}

#[test]
fn mariadb_and_the_log_share_threads_too() {
    let server = Maria::start(&["--max-connections=120"]);
    let many = test(&server.url("root"), "TP-LIGHT", "--driver client --jobs 40 --sessions-per-thread 20");
    assert_eq!(figure(&many, "sessions_per_thread"), 20.0);
    counted(&many);
    let log = test("wal:", "LGWR-LAT1", "--jobs 200 --sessions-per-thread 100");
    passed(&log, "commits-per-sync");
    passed(&log, "commits-database");
    assert!(log["absent"].to_string().contains("log"), "the parts of a commit are unknown: {log:#}");
    let null = test("null:", "LGWR-LAT1", "--jobs 20000");
    assert!(sound(&null) && figure(&null, "sessions_per_thread") >= 1000.0, "{null:#}");
}

#[test]
fn a_lost_server_or_an_interrupt_ends_all_jobs_of_a_thread() {
    let mut server = Server::start(&["max_connections=80"]);
    let dir = results();
    let url = server.url();
    let begin = |results: &str| {
        let long = "--workload TP-LOOKUP --driver client --jobs 60 --sessions-per-thread 30 --duration 30s --warmup 300ms --no-probe";
        start_on(&url, dir.path().join(results), long)
    };
    let sessions = |n: &str| {
        let found = server.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '%job%'");
        found.is_ok_and(|count| count.trim().parse::<u32>().unwrap_or(0) >= n.parse().unwrap())
    };
    let stopped = begin("stopped");
    wait_for("60 sessions", || sessions("60"));
    signal(&stopped, Signal::SIGINT);
    assert_eq!(stopped.wait_with_output().unwrap().status.code(), Some(130));
    let lost = begin("lost");
    wait_for("60 sessions", || sessions("60"));
    server.kill();
    let out = lost.wait_with_output().unwrap();
    assert!(matches!(out.status.code(), Some(1 | 3)), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(String::from_utf8_lossy(&out.stderr).contains("lost"), "{}", String::from_utf8_lossy(&out.stderr));
}
