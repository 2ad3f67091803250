//! What bounds a test, end to end: each test makes one cause on purpose.

use std::path::Path;

use crate::common::figures::figure;
use crate::common::{Server, json_of, lat1, measured, report, results, words};

/// One row that all jobs change, held for a while: `pg_sleep` keeps its lock without a CPU.
const ONE_ROW: &str = r#"
code = "ONE-ROW"
summary = "all jobs change the same row"
program = [{ execute = "change" }, { execute = "hold" }]
[[table]]
name = "t"
rows = 1
column = [{ name = "id", type = "int", fill = "key" }, { name = "n", type = "int", fill = "zero" }]
[[statement]]
name = "change"
sql = "UPDATE {t} SET n = n + 1"
effect = { change = 1 }
[[statement]]
name = "hold"
sql = "SELECT pg_sleep(0.003)"
effect = { read = 1 }
"#;

/// Runs it for a moment and returns its tests as the JSON report has them.
fn tests_of(target: &str, options: &str) -> Vec<serde_json::Value> {
    let dir = results();
    let short = "--duration 2s --warmup 300ms --no-probe";
    let line = format!("run --target {target} {short} --results {} {options}", dir.path().display());
    report_of(&measured(&words(&line)).folder())
}

fn report_of(folder: &Path) -> Vec<serde_json::Value> {
    let json = report(folder, "--format json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let tests = json["runs"][0]["tests"].as_array().unwrap().clone();
    assert!(!tests.is_empty());
    // The CSV says the same; an unknown cause is an empty cell.
    let csv = report(folder, "--format csv --columns bounded_by");
    let cells = tests.iter().map(|t| t["bounded_by"].as_str().unwrap_or(""));
    assert!(csv.lines().skip(1).eq(cells), "{csv}");
    tests
}

#[track_caller]
fn assert_bounded(test: &serde_json::Value, by: &str) {
    assert_eq!(test["bounded_by"], by, "{test:#}");
}

#[test]
#[ignore = "nightly: what bounds a test is another thing while others use the CPUs"]
fn locks_log_and_cpu_of_postgres_are_told_apart() {
    // The session that writes the log waits 5 ms first, and the others wait for it.
    let server = Server::start(&["commit_delay=5000", "commit_siblings=0"]);
    let dir = results();
    let one_row = dir.path().join("one-row.toml");
    std::fs::write(&one_row, ONE_ROW).unwrap();
    let url = server.url();
    let log = tests_of(&url, "--workload LGWR-LAT1 --jobs 8 --driver client");
    assert_bounded(&log[0], "log sync");
    let locks = tests_of(&url, &format!("--workload-file {} --jobs 8 --driver client", one_row.display()));
    assert_bounded(&locks[0], "locks");
    assert!(figure(&locks[0], "lock_wait_pct") > 50.0, "{:#}", locks[0]);
    let cpu = tests_of(&url, "--workload PLS-ADD --jobs 1");
    assert_bounded(&cpu[0], "CPU");
    let busy = figure(&cpu[0], "session_cpu_pct") + figure(&cpu[0], "session_cpu_wait_pct");
    assert!(busy > 80.0 && figure(&cpu[0], "client_job_cpu_pct") < 20.0, "{:#}", cpu[0]);
}

#[test]
#[ignore = "nightly: what bounds a test is another thing while others use the CPUs"]
fn a_single_writer_the_client_and_a_rate_are_told_apart() {
    let sqlite = tests_of("sqlite:", "--workload LGWR-LAT1 --jobs 1,8");
    assert_bounded(&sqlite[1], "single writer");
    assert!(figure(&sqlite[1], "writer_wait_pct") > 50.0, "{:#}", sqlite[1]);
    assert_eq!(figure(&sqlite[0], "writer_wait_pct"), 0.0, "one job has nobody to wait for");
    let rate = tests_of("sqlite:", "--workload LGWR-LAT1 --jobs 2 --rate 100");
    assert_bounded(&rate[0], "requested rate");
    let null = tests_of("null:", "--workload LGWR-LAT1 --jobs 1");
    assert_bounded(&null[0], "client");
}

#[test]
#[ignore = "nightly: what bounds a test is another thing while others use the CPUs"]
fn waits_for_a_place_in_the_log_are_told_from_its_sync() {
    // Eight jobs share a buffer for two transactions, and no commit waits.
    let test = &tests_of("wal:?buffer=1MiB", "--workload LGWR-THR --jobs 8")[0];
    assert_bounded(test, "log write");
    assert!(figure(test, "log_write_wait_pct") > 50.0, "{test:#}");
    assert_eq!(figure(test, "log_file_sync_ms"), 0.0, "{test:#}");
}

/// Many jobs with large payloads in a small log buffer: the lock under which they copy into it, not the sync, has their time.
#[test]
#[ignore = "nightly: what bounds a test is another thing while others use the CPUs"]
fn the_insert_lock_of_the_log_of_postgres_is_named() {
    let test = &tests_of("postgres-temp:", "--setting wal_buffers=64kB --workload LGWR-LAT125 --jobs 32")[0];
    assert_bounded(test, "log write");
    let seen = test["waits"]["sessions"].as_object().unwrap();
    let most = seen.iter().max_by_key(|(_, n)| n.as_u64()).unwrap().0;
    assert_eq!(most, "LWLock:WALInsert", "{test:#}");
    assert!(figure(test, "log_write_wait_pct") > 50.0, "{test:#}");
}

/// How fast the device is, and who else uses the CPUs, depends on the machine: the cause must be the largest part.
#[test]
#[ignore = "nightly: what bounds a test is another thing while others use the CPUs"]
fn storage_is_the_cause_if_most_of_the_time_is_spent_on_it() {
    // Changes a row in each of so many blocks that writing them takes longer than the log; each commit is followed by a checkpoint.
    let scattered = "--workload DBWR-THR --parameter DBWR-THR.blocks=500";
    let checkpoints = "--setting wal_autocheckpoint=1 --size 32MiB --jobs 1 --force";
    let writes = &tests_of("sqlite:", &format!("{scattered} {checkpoints}"))[0];
    let reads = &tests_of("postgres-temp:", "--workload STO-READ --size 32MiB --jobs 2 --allow-cached")[0];
    for (test, wait, by) in [(writes, "write_wait_pct", "storage writes"), (reads, "read_wait_pct", "storage reads")] {
        let waits_for_cpu = ["session_cpu_wait_pct", "client_job_cpu_wait_pct"];
        let waits_for_cpu: f64 = waits_for_cpu.iter().filter_map(|id| test[id].as_f64()).sum();
        // A wait that the database times contains that for a CPU, and CPU time of the system calls.
        let slept = 100.0 - figure(test, "session_cpu_pct");
        let wait = figure(test, wait).min(slept) - waits_for_cpu;
        assert!(slept < 100.0, "{test:#}");
        if wait > 55.0 {
            assert_bounded(test, by);
        }
    }
}

/// The devices of a machine do not let each cause be made on purpose: these are figures of a made-up test.
#[test]
fn figures_of_storage_name_it_in_every_report() {
    let dir = results();
    let folder = lat1("sqlite:", dir.path(), "--jobs 4 --duration 300ms --warmup 200ms --no-probe").folder();
    let tests = folder.join("tests.jsonl");
    let measured = json_of(&tests);
    const QUIET: [(&str, f64); 12] = [
        ("cpu_busy_pct", 30.0),
        ("client_cpu_pct", 10.0),
        ("client_cpu_us_per_tx", 0.0),
        ("outside_tx_pct", 0.0),
        ("session_cpu_pct", 15.0),
        ("session_cpu_wait_pct", 5.0),
        ("log_file_sync_ms", 0.0),
        ("writer_wait_pct", 10.0),
        ("write_wait_pct", 10.0),
        ("read_wait_pct", 10.0),
        ("log_write_wait_pct", 0.0),
        ("lock_wait_pct", 0.0),
    ];
    for (wait, by) in [("read_wait_pct", "storage reads"), ("write_wait_pct", "storage writes")] {
        let mut test = measured.clone();
        test.as_object_mut().unwrap().remove("checksum");
        for (id, value) in QUIET.into_iter().chain([(wait, 60.0)]) {
            test[id] = value.into();
            test["absent"].as_object_mut().unwrap().remove(id);
        }
        // Valid, however busy the machine was.
        test["valid"] = true.into();
        test["checks"] = serde_json::json!([]);
        std::fs::write(&tests, format!("{test}\n")).unwrap();
        assert_eq!(report_of(&folder)[0]["bounded_by"], by);
        assert!(report(&folder, "--format html").contains(by));
    }
}

#[test]
#[ignore = "nightly: what bounds a test is another thing while others use the CPUs"]
fn client_session_and_the_way_between_them_share_the_time_of_one_job() {
    let server = Server::start(&[]);
    let test = &tests_of(&server.url(), "--workload SRV-QUERY1 --jobs 1 --driver client")[0];
    // Idle time is sampled, so it can only be cut to the time asleep; CPU times are exact.
    for [run, wait] in [["session_cpu_pct", "session_cpu_wait_pct"], ["client_job_cpu_pct", "client_job_cpu_wait_pct"]]
    {
        let both = figure(test, run) + figure(test, wait);
        assert!(figure(test, run) > 3.0 && both <= 105.0, "{run}: {test:#}");
    }
    assert!(figure(test, "session_idle_pct") > 0.0, "{test:#}");
    // Which of the three is the largest depends on the machine.
    assert!(["CPU", "client", "round trip"].contains(&test["bounded_by"].as_str().unwrap_or("")), "{test:#}");
}
