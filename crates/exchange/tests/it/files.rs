//! What the tools wrote, figure by figure: against the printed text, and against sums over the raw lines of logs.

use loadline_exchange::{Absence, Tool, Warning};
use loadline_model::column::*;

use crate::{absent, contents, figure, files, latencies, near, one, read, test_of};

#[test]
fn pgbench_states_throughput_and_mean_and_no_percentiles() {
    let test = one(Tool::Pgbench, &["pgbench-tpcb.txt"]);
    assert_eq!((test.record.workload.as_str(), test.record.jobs), ("PGBENCH-TPC-B-SORT-OF", 4));
    assert_eq!(figure(&test, TX_PER_S), 5544.876722);
    assert_eq!(figure(&test, COMMIT_THROUGHPUT_TPS), figure(&test, TX_PER_S));
    assert_eq!((figure(&test, COMMITS), figure(&test, ERRORS), figure(&test, ELAPSED_S)), (10930.0, 0.0, 2.0));
    assert!(near(figure(&test, TRANSACTION_TIME_NS_MEAN), 718_000.0, 1e-9));
    assert!(matches!(absent(&test, TRANSACTION_TIME_NS_P99), Absence::NotIn { .. }));
    assert_eq!(test.series.rows, [[Some(0.0), Some(5466.0), Some(0.715)]]);
    assert_eq!((test.record.parameters["scale"], test.warnings.len()), (1, 0));
}

#[test]
fn pgbench_runs_of_a_number_of_transactions_and_of_scripts() {
    let select = one(Tool::Pgbench, &["pgbench-select.txt"]);
    assert_eq!((select.record.workload.as_str(), figure(&select, COMMITS)), ("PGBENCH-SELECT-ONLY", 100.0));
    assert!(near(figure(&select, ELAPSED_S), 100.0 / 14699.397325, 1e-9));
    // The figures of one script are not those of the test.
    let scripts = one(Tool::Pgbench, &["pgbench-scripts.txt"]);
    assert_eq!((figure(&scripts, TX_PER_S), figure(&scripts, COMMITS)), (5016.419961, 4937.0));
    let parameters = ["weight-1", "weight-2"].map(|name| scripts.record.parameters[name]);
    assert_eq!((scripts.record.workload.as_str(), parameters), ("PGBENCH-TPC-B-SORT-OF-SELECT-ONLY", [2, 5]));
}

#[test]
fn pgbench_with_timestamps_partitions_and_newer_versions() {
    let test = one(Tool::Pgbench, &["pgbench-partitions.txt"]);
    assert_eq!((figure(&test, TX_PER_S), figure(&test, COMMITS)), (1482.648205, 4684.0));
    assert_eq!((test.record.parameters["partitions"], test.record.parameters.get("max-tries")), (2, None));
    let begins: Vec<f64> = test.series.rows.iter().map(|row| row[0].unwrap()).collect();
    assert!(begins[0] == 0.0 && near(begins[1], 0.998, 1e-4) && near(begins[2], 1.996, 1e-4), "{begins:?}");
    // An interval without transactions has no latency, and with --rate none is that of a transaction.
    let text = contents("pgbench-partitions.txt")
        .replace("1887.2 tps, lat 0.928 ms stddev 3.815", "0.0 tps, lat -nan ms stddev -nan");
    assert_eq!(test_of(Tool::Pgbench, &text).series.rows[1][1..], [Some(0.0), None]);
    let open = text.replace("initial connection", "rate limit schedule lag: avg 0.1 (max 1.0) ms\ninitial connection");
    assert_eq!(test_of(Tool::Pgbench, &open).series.columns, ["t_s", "commit_throughput_tps"]);
    let newer = text.replace("pgbench (15.18 (Debian 15.18-0+deb12u1))", "pgbench (18.1, server 17.4 (Debian 17.4-1))");
    let group = read(Tool::Pgbench, &[("f", &newer)]).unwrap().remove(0);
    assert_eq!(group.version.as_deref(), Some("18.1"));
    assert!(group.tests[0].record.notes.contains(&"the server was PostgreSQL 17.4".to_owned()));
    // --connect: what the report states of it is there.
    let connect = text.replace("initial connection time", "average connection time");
    assert!(test_of(Tool::Pgbench, &connect).record.figure(CONNECT_TIME_NS_MEAN).is_some());
}

#[test]
fn logs_of_all_threads_give_the_percentiles() {
    let test = one(Tool::Pgbench, &["pgbench-tries.txt", "pgbench-tries.32652", "pgbench-tries.32652.1"]);
    let texts = contents("pgbench-tries.32652") + &contents("pgbench-tries.32652.1");
    let mut us: Vec<u64> = texts.lines().filter_map(|line| line.split(' ').nth(2)?.parse().ok()).collect();
    us.sort_unstable();
    assert_eq!((us.len(), latencies(&test, "transaction").count(), figure(&test, COMMITS)), (117, 117, 117.0));
    // --rate: times are from the scheduled start, so they are response times.
    assert_eq!(absent(&test, TRANSACTION_TIME_NS_MEAN), &Absence::OpenLoop);
    let mean = us.iter().sum::<u64>() as f64 / us.len() as f64 * 1e3;
    assert!(near(figure(&test, RESPONSE_TIME_NS_MEAN), mean, 1e-9));
    for (column, q) in [(RESPONSE_TIME_NS_P50, 0.5), (RESPONSE_TIME_NS_P99, 0.99), (RESPONSE_TIME_NS_MAX, 1.0)] {
        let exact = us[(us.len() as f64 * q).ceil() as usize - 1] as f64 * 1e3;
        assert!(near(figure(&test, column), exact, 1.1e-3), "{column}: {} for {exact}", figure(&test, column));
    }
    assert_eq!((figure(&test, CONFLICTS), figure(&test, ERRORS)), (0.0, 0.0));
    assert!(test.started_s.is_some_and(|s| (s - 1_795_471_143.0).abs() < 2.0));
    assert!(test.warnings.is_empty(), "{:?}", test.warnings);
    // The log of the only report may stand before it.
    let groups = files(Tool::Pgbench, &["pgbench-rate.32572", "pgbench-rate.txt"]);
    let rate = &groups[0].tests[0];
    assert_eq!((figure(rate, COMMITS), latencies(rate, "transaction").count()), (92.0, 92), "4 were skipped");
}

#[test]
fn a_sample_gives_percentiles_and_no_course() {
    let test = one(Tool::Pgbench, &["pgbench-sample.txt", "pgbench-sample.32551"]);
    assert_eq!((figure(&test, TX_PER_S), figure(&test, COMMITS)), (1764.849412, 3508.0));
    assert!(test.series.rows.is_empty() && test.record.figure(TRANSACTION_TIME_NS_P99).is_some());
}

#[test]
fn intervals_leave_the_reports_own_counts() {
    let test = one(Tool::Pgbench, &["pgbench-intervals.txt", "pgbench-intervals.log"]);
    assert_eq!((figure(&test, COMMITS), figure(&test, ERRORS), figure(&test, CONFLICTS)), (9599.0, 2653.0, 4207.0));
    assert_eq!(figure(&test, TRANSACTION_TIME_NS_MAX), 55_719_000.0);
    assert!(test.histograms.is_empty());
    // pgbench rounds the begin of the first interval down; those after it are whole, and none is cut off by the end.
    assert_eq!(test.series.column("commit_throughput_tps").unwrap(), [Some(5447.0)]);
    // With two threads an interval is whole if both have it.
    let (report, log) = (contents("pgbench-intervals.txt"), contents("pgbench-intervals.log"));
    let late = log.replace("1795471438", "1795471440");
    let late = late.lines().rev().map(|line| format!("{line}\n")).collect::<String>();
    let both = read(Tool::Pgbench, &[("r", &report), ("l.1", &log), ("l.1.1", &late)]).unwrap();
    assert!(both[0].tests[0].series.rows.is_empty(), "{:?}", both[0].tests[0].series);
}

#[test]
fn sysbench_is_distinguished_by_what_a_transaction_does() {
    let rw = one(Tool::Sysbench, &["sysbench-rw.txt"]);
    assert_eq!((rw.record.workload.as_str(), rw.record.jobs), ("SYSBENCH-OLTP-R14-W4-O2", 2));
    assert_eq!((figure(&rw, TX_PER_S), figure(&rw, COMMITS), figure(&rw, CONFLICTS)), (148.39, 330.0, 4.0));
    assert!(near(figure(&rw, STATEMENTS_PER_TX), (4676.0 + 1323.0) / 330.0, 1e-9));
    // The mean is printed with two decimals, the sum of the same times with more digits.
    assert!(near(figure(&rw, TRANSACTION_TIME_NS_MEAN), 4426.77e6 / 330.0, 1e-9));
    assert!(near(figure(&rw, TRANSACTION_TIME_NS_MAX), 1004.82e6, 1e-9));
    assert_eq!(rw.series.rows, [[Some(0.0), Some(220.70)], [Some(1.0), Some(107.01)]]);
    // Its 95th percentile by its own histogram is what it prints.
    let all = latencies(&rw, "transaction");
    assert!(all.count() == 330 && near(all.quantile_ns(0.95).unwrap() as f64, 4.82e6, 2e-3));
    let point = one(Tool::Sysbench, &["sysbench-point.txt"]);
    assert_eq!(point.record.workload, "SYSBENCH-OLTP-R1-W0-O0");
    assert!(near(figure(&point, TRANSACTION_TIME_NS_P99), 0.70e6, 1e-9), "--percentile=99");
    assert!(rw.warnings.is_empty() && point.warnings.is_empty(), "{:?} {:?}", rw.warnings, point.warnings);
}

#[test]
fn sysbench_on_files_has_reads_and_writes() {
    let test = one(Tool::Sysbench, &["sysbench-fileio.txt"]);
    assert_eq!((test.record.group.as_str(), test.record.workload.as_str()), ("storage", "SYSBENCH-FILEIO-RANDOM-R-W"));
    assert_eq!((figure(&test, BLOCK_READS_PER_S), figure(&test, PHYSICAL_WRITES_PER_S)), (12885.82, 8590.55));
    assert_eq!((figure(&test, READ_MIB_PER_S), figure(&test, PHYSICAL_WRITTEN_MIB_PER_S)), (201.34, 134.23));
    assert!(near(figure(&test, IO_PER_S), 12885.82 + 8590.55, 1e-9));
    assert!(figure(&test, BLOCK_BYTES) == 16384.0 && test.warnings.is_empty(), "{:?}", test.warnings);
}

#[test]
fn fio_has_a_test_for_each_job() {
    let read = one(Tool::Fio, &["fio-read.json"]);
    assert_eq!((read.record.workload.as_str(), read.record.jobs), ("FIO-RANDREAD-4K-RR", 2));
    assert_eq!((figure(&read, IO_PER_S), figure(&read, BLOCK_READS_PER_S)), (19171.656687, 19171.656687));
    assert!(near(figure(&read, READ_MIB_PER_S), 78_527_105.0 / 1_048_576.0, 1e-9));
    assert!(near(figure(&read, READ_TIME_US_P99), 667.648, 1e-9) && near(figure(&read, ELAPSED_S), 1.002, 1e-9));
    assert_eq!(figure(&read, TRANSACTION_TIME_NS_P50), 70144.0);
    assert!(read.record.figure(PHYSICAL_WRITES_PER_S).is_none(), "it wrote nothing: absent, not 0");
    let two = files(Tool::Fio, &["fio-two-jobs.json"]);
    let codes: Vec<&str> = two[0].tests.iter().map(|t| t.record.workload.as_str()).collect();
    assert_eq!((codes, two[0].version.as_deref()), (vec!["FIO-WRITE-128K-A", "FIO-READ-64K-B"], Some("3.33")));
    for test in &two[0].tests {
        for (column, q) in [(TRANSACTION_TIME_NS_P50, 0.5), (TRANSACTION_TIME_NS_P99, 0.99)] {
            // fio's buckets are 1.6 % wide, and it states the end of one.
            let computed = latencies(test, "transaction").quantile_ns(q).unwrap() as f64;
            assert!(near(computed, figure(test, column), 0.02), "{column}: {computed}");
        }
    }
    let mixed = one(Tool::Fio, &["fio-mixed-bins.json"]);
    let [all, reads, writes] = ["transaction", "read", "write"].map(|kind| latencies(&mixed, kind).count());
    assert_eq!((all, reads), (reads + writes, 7229));
    assert!(near(figure(&mixed, READ_TIME_US_P99), 1433.6, 1e-9));
    // Jobs that ran together are no repetitions.
    let mut output: serde_json::Value = serde_json::from_str(&contents("fio-read.json")).unwrap();
    let job = output["jobs"][0].clone();
    output["jobs"].as_array_mut().unwrap().push(job);
    let groups = crate::read(Tool::Fio, &[("two.json", &output.to_string())]).unwrap();
    let seen: Vec<_> = groups[0].tests.iter().map(|t| (t.record.workload.as_str(), t.record.jobs)).collect();
    assert_eq!(seen, [("FIO-RANDREAD-4K-RR-1-OF-2", 1), ("FIO-RANDREAD-4K-RR-2-OF-2", 1)]);
}

#[test]
fn hammerdb_counts_new_orders() {
    let alone = one(Tool::HammerDb, &["hammerdb-result.json"]);
    assert!(near(figure(&alone, TX_PER_S), 128_176.0 / 60.0, 1e-9) && alone.record.jobs == 24);
    assert!(matches!(absent(&alone, ELAPSED_S), Absence::NotIn { .. }));
    let timed = one(Tool::HammerDb, &["hammerdb-result.json", "hammerdb-timing.json"]);
    assert!(near(figure(&timed, TRANSACTION_TIME_NS_P99), 13.309e6, 1e-9));
    assert!(near(figure(&timed, COMMIT_LATENCY_MS), 5.765, 1e-9));
    // The documentation's own example: twice as many calls were timed as new orders were counted.
    assert!(matches!(timed.warnings[..], [Warning::Apart { .. }]), "{:?}", timed.warnings);
    let log = one(Tool::HammerDb, &["hammerdb-log.txt"]);
    assert_eq!((figure(&log, TX_PER_S), figure(&log, ELAPSED_S)), (figure(&alone, TX_PER_S), 300.0));
    assert_eq!(files(Tool::HammerDb, &["hammerdb-log.txt"])[0].product, "MariaDB");
    // A service may wrap what the command prints.
    let wrapped = format!("{{\"job\": {}}}", contents("hammerdb-result.json"));
    assert_eq!(test_of(Tool::HammerDb, &wrapped).record.figures, alone.record.figures);
    // Versions before 4.0 state the two the other way round.
    let old = "Vuser 1:5 Active Virtual Users configured\nVuser 1:TEST RESULT : System achieved 60501 SQL Server TPM at 13207 NOPM\n";
    let groups = read(Tool::HammerDb, &[("old.log", old)]).unwrap();
    assert!(near(figure(&groups[0].tests[0], TX_PER_S), 13_207.0 / 60.0, 1e-9) && groups[0].product == "SQL Server");
}

#[test]
fn reports_one_after_another_are_tests_of_one_file() {
    let text = contents("pgbench-tpcb.txt") + &contents("pgbench-select.txt");
    let groups = read(Tool::Pgbench, &[("sweep.txt", &text)]).unwrap();
    assert_eq!(groups[0].tests.iter().map(|t| t.record.jobs).collect::<Vec<_>>(), [4, 2]);
    let text = contents("sysbench-rw.txt") + &contents("sysbench-point.txt");
    assert_eq!(read(Tool::Sysbench, &[("sweep.txt", &text)]).unwrap()[0].tests.len(), 2);
}

#[test]
fn older_reports_of_pgbench_are_read() {
    let text = "transaction type: <builtin: TPC-B (sort of)>\nscaling factor: 10\nquery mode: prepared\nnumber of clients: 8\n\
                number of threads: 2\nduration: 60 s\nnumber of transactions actually processed: 60000\n\
                latency average = 8.000 ms\ntps = 999.000000 (including connections establishing)\n\
                tps = 1000.100000 (excluding connections establishing)\n";
    let test = test_of(Tool::Pgbench, text);
    assert_eq!((figure(&test, TX_PER_S), test.record.parameters["query-mode-prepared"]), (1000.1, 1));
    assert!(matches!(absent(&test, ERRORS), Absence::NotIn { .. }));
    // 9.6 divides the time asked for, which is 0, by a number of transactions.
    let text = text.replace("duration: 60 s\n", "").replace("60000\n", "59000/60000\n");
    let test = test_of(Tool::Pgbench, &text.replace("average = 8.000", "average: 0.000"));
    assert_eq!(absent(&test, TRANSACTION_TIME_NS_MEAN), &Absence::PrintedZero);
    assert_eq!(test.warnings, [Warning::FewerThanAsked { made: 59000.0, asked: 60000.0 }]);
}

#[test]
fn line_ends_and_marks_of_windows_change_nothing() {
    for (tool, file) in crate::bad::FIRST {
        let text = format!("\u{feff}{}", contents(file).replace('\n', "\r\n"));
        let [unix, windows] = [contents(file), text].map(|text| test_of(tool, &text));
        assert_eq!((unix.record, unix.series), (windows.record, windows.series), "{tool}");
    }
}
