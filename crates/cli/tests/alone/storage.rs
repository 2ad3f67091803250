//! The storage and database-writer groups, end to end: where reads come from is proved, or the test is
//! invalid; and the proof of the server group that they come from the cache.

use crate::alone;
use crate::common::*;

/// Runs `workloads` on `target` in short windows and returns the tests.
fn measure(target: &str, workloads: &[&str], more: &str) -> Vec<Value> {
    let dir = results();
    let short = "--duration 800ms --warmup 300ms --no-probe";
    let ran = on(target, dir.path(), &format!("--workload {} {short} {more}", workloads.join(",")));
    let tests = tests_of(&ran.folder());
    assert!(!tests.is_empty(), "{}", ran.said());
    tests
}

/// A row takes 420 bytes or more, and less than `most`.
fn row_bytes(test: &Value, most: f64) {
    let per_row = figure(test, "data_mib_per_s") * 1024.0 * 1024.0 / figure(test, "rows_per_s");
    assert!((420.0..most).contains(&per_row), "a row takes {per_row} bytes");
}

/// Proofs of a test of each workload on any database.
fn proved(tests: &[Value], block_bytes: f64) {
    for test in tests {
        assert_eq!(figure(test, "block_bytes"), block_bytes);
        match test["workload"].as_str().unwrap() {
            "SRV-QUERY1" | "SRV-SCAN" => passed(test, "cache-hit"),
            "STO-WRITE" => passed(test, "data-written"),
            "DBWR-THR" => ["data-written", "rows-changed"].iter().for_each(|id| passed(test, id)),
            "DBWR-CKPT" => through_a_checkpoint(test),
            _ => from_the_device(test),
        }
    }
}

/// Throughput inside and outside of the checkpoint make up the whole.
fn through_a_checkpoint(test: &Value) {
    passed(test, "checkpoint");
    let share = figure(test, "checkpoint_share_pct") / 100.0;
    assert!(share > 0.0 && share < 1.0, "{share}");
    let whole = figure(test, "checkpoint_tps") * share + figure(test, "calm_tps") * (1.0 - share);
    let tps = figure(test, "commit_throughput_tps");
    assert!((whole / tps - 1.0).abs() < 0.01, "{whole} of {tps}");
    assert!(figure(test, "calm_time_ns_p99") > 0.0);
}

#[test]
fn sqlite_reads_from_the_device_and_from_its_cache() {
    let _alone = alone();
    let workloads = ["SRV-QUERY1", "STO-READ", "STO-READ-ASYNC", "DBWR-THR", "DBWR-CKPT"];
    let tests = measure("sqlite:", &workloads, "--jobs 2 --size 32MiB");
    // A second job's rows wait in the log while the first makes a checkpoint: too much of so short a window.
    let write = measure("sqlite:", &["STO-WRITE"], "--jobs 1");
    [&tests, &write].into_iter().for_each(|tests| proved(tests, 1024.0));
    row_bytes(&write[0], 600.0);
    let of = |code: &str| tests.iter().find(|t| t["workload"] == code).unwrap();
    let [query, read, batch] = ["SRV-QUERY1", "STO-READ", "STO-READ-ASYNC"].map(of);
    assert!(figure(query, "cache_hit_pct") >= 99.9 && query["data_source"].is_null());
    assert!(figure(query, "block_gets_per_s") > figure(query, "queries_per_s"), "a query walks down a tree");
    assert!(figure(of("DBWR-CKPT"), "physical_written_blocks_per_s") > 0.0, "it had something to write");
    let [mean, p50, p99] = ["mean", "p50", "p99"].map(|part| figure(read, &format!("read_time_us_{part}")));
    assert!(mean > 0.0 && p50 > 0.0 && p99 >= p50, "{mean} {p50} {p99}");
    assert!((0.0..=100.0).contains(&figure(read, "reads_within_512us_pct")));
    assert!(batch["absent"]["read_time_us_p50"].is_string(), "a batch is no single read");
}

/// Alone in its file: what other tables leave between its blocks costs reads.
#[test]
fn a_scan_of_sqlite_reads_many_blocks_at_once_from_the_device() {
    let _alone = alone();
    let tests = measure("sqlite:", &["STO-SCAN"], "--jobs 2 --size 32MiB");
    proved(&tests, 1024.0);
    let scan = &tests[0];
    let (data, read) = (figure(scan, "data_mib_per_s"), figure(scan, "read_mib_per_s"));
    assert!((data / read - 1.0).abs() < 0.25, "{data} MiB/s of the table, {read} MiB/s read");
    // Of a small table what is read ahead is dropped at each pass. On a device slower than the passes it is
    // dropped before it is used; the test says so.
    let many_at_once = figure(scan, "device_reads_per_s") < figure(scan, "block_reads_per_s") / 4.0;
    let in_vain = figure(scan, "device_read_share_pct") > 130.0;
    assert_eq!(in_vain, scan["notes"].to_string().contains("\"device-read-more\""));
    assert!(many_at_once || in_vain, "{scan}");
}

#[test]
fn a_private_postgres_has_the_cache_that_each_workload_needs() {
    let _alone = alone();
    let workloads = ["SRV-QUERY1", "STO-READ", "STO-WRITE", "STO-RANDOM", "DBWR-THR", "DBWR-CKPT"];
    let tests = measure("postgres-temp:", &workloads, "--jobs 2 --size 32MiB");
    proved(&tests, 8192.0);
    let of = |code: &str| tests.iter().filter(|t| t["workload"] == code).collect::<Vec<_>>();
    let read = of("STO-READ")[0];
    assert!(figure(read, "read_time_us_mean") > 0.0, "a superuser's sessions have their reads timed");
    let (waits, calls) = (figure(read, "read_wait_pct"), figure(read, "block_reads_per_s"));
    let of_means = calls * figure(read, "read_time_us_mean") / 1e6 / 2.0 * 100.0;
    assert!((waits / of_means - 1.0).abs() < 1e-6 && waits < 105.0, "{waits} % of 2 jobs, {of_means} % by their mean");
    let mixes = of("STO-RANDOM");
    let percent: Vec<f64> = mixes.iter().map(|t| figure(t, "write_pct")).collect();
    assert_eq!(percent, [20.0, 50.0, 20.0], "both mixes with one job, then the sweep");
    for mix in mixes {
        ["rows-changed", "data-written"].iter().for_each(|id| passed(mix, id));
        let (io, writes) = (figure(mix, "io_per_s"), figure(mix, "physical_writes_per_s"));
        assert!(writes > 0.0 && io > writes, "{io} {writes}");
        assert!((0.0..=100.0).contains(&figure(mix, "buffer_wait_pct")));
        assert!(mix["notes"].to_string().contains("\"buffer-waits-sampled\""), "a superuser's are the same");
    }
    let made = of("STO-WRITE")[0];
    let (rows, written) = (figure(made, "data_mib_per_s"), figure(made, "physical_written_mib_per_s"));
    let noted = made["notes"].to_string().contains("\"growth-is-written\"");
    assert!(noted || written < 1.7 * rows, "{written} MiB/s written for {rows} MiB/s of rows: {}", made["notes"]);
    let writer = of("DBWR-THR")[0];
    let (blocks, mib) = (figure(writer, "physical_written_blocks_per_s"), figure(writer, "physical_written_mib_per_s"));
    assert!(blocks > 0.0 && (mib / (blocks / 128.0) - 1.0).abs() < 1e-6, "{blocks} blocks of 8 KiB, {mib} MiB");
    assert_eq!(of("DBWR-CKPT")[0]["driver"], "client");
}

#[test]
fn a_private_mariadb_reads_past_the_page_cache() {
    let _alone = alone();
    let workloads = ["SRV-SCAN", "STO-READ", "STO-WRITE", "DBWR-THR", "DBWR-CKPT"];
    let tests = measure("mariadb-temp:", &workloads, "--jobs 2 --size 32MiB");
    proved(&tests, 16384.0);
    let of = |code: &str| tests.iter().find(|t| t["workload"] == code).unwrap();
    let why = &of("STO-READ")["absent"]["read_wait_pct"];
    assert_eq!(why, "the database does not time its reads", "nothing stands for its own clock");
    row_bytes(of("STO-WRITE"), 900.0);
}

#[test]
fn a_users_cache_that_holds_the_data_makes_the_test_invalid_unless_allowed() {
    let _alone = alone();
    let server = Server::start(&["shared_buffers=128MB"]);
    let small = "--jobs 1 --size 8MiB";
    let test = measure(&server.url(), &["STO-READ"], small).remove(0);
    assert_eq!((&test["valid"], &test["data_source"]), (&Value::Bool(false), &Value::from("cached")));
    let test = measure(&server.url(), &["STO-READ"], &format!("{small} --allow-cached")).remove(0);
    assert!(sound(&test) && test["data_source"] == "cached", "{}", test["invalid_reason"]);
    assert!(test["forced"].as_str().unwrap().contains("--allow-cached"), "{}", test["forced"]);
    assert_eq!(outcome(&test, "data-source"), "noted");
}
