//! Figures that cannot be are in no test: capped, zero, wrapped and cut off ones, most of them from public bug reports.

use loadline_exchange::{Absence, Tool, Warning};
use loadline_model::column::*;

use crate::{absent, contents, figure, near, one, read, test_of, times_ms};

#[test]
fn what_is_beyond_a_histogram_is_a_bound() {
    let test = one(Tool::Sysbench, &["sysbench-capped.txt"]);
    let [mean, p50, p99, max] = times_ms(&test, TRANSACTION_TIMES);
    assert!(near(mean, 172_096.729, 1e-6) && near(max, 270_178.25, 1e-9), "{mean} {max}");
    assert_eq!((p50, p99, absent(&test, TRANSACTION_TIME_NS_P50)), (0.0, 0.0, &Absence::AtLeast { ns: 1e11 }));
    assert!(test.histograms.is_empty() && test.warnings.is_empty(), "{:?}", test.warnings);
    // The printed percentile alone is a bound as well.
    let text = contents("sysbench-capped.txt").replace("95th", "99th").replace("100000.000 |", "71026.007 |");
    let test = test_of(Tool::Sysbench, &text);
    assert_eq!(absent(&test, TRANSACTION_TIME_NS_P99), &Absence::AtLeast { ns: 1e11 });
    assert!(near(times_ms(&test, TRANSACTION_TIMES)[1], 71_026.0, 2e-3));
    let fast = contents("sysbench-capped.txt").replace("100000.000 |", "     0.001 |");
    assert_eq!(absent(&test_of(Tool::Sysbench, &fast), TRANSACTION_TIME_NS_P50), &Absence::AtMost { ns: 1e3 });
    // fio's histogram ends at 17 s.
    let text = contents("fio-depth.json").replace("757760", "17112760320").replace("1360161", "30000000000");
    let test = test_of(Tool::Fio, &text);
    assert!(matches!(absent(&test, TRANSACTION_TIME_NS_P99), Absence::AtLeast { .. }));
    assert_eq!(absent(&test, READ_TIME_US_P99), absent(&test, TRANSACTION_TIME_NS_P99));
}

#[test]
fn a_time_of_0_is_none() {
    let test = one(Tool::Sysbench, &["sysbench-no-histogram.txt"]);
    assert!(near(figure(&test, TRANSACTION_TIME_NS_MEAN), 2785.6, 1e-4));
    assert_eq!(absent(&test, TRANSACTION_TIME_NS_P99), &Absence::EmptyHistogram);
    let text = contents("sysbench-point.txt").replace("avg:                                    0.08", "avg: 0.00");
    let text = text.replace("sum:                                 4819.87", "sum: 0.00");
    assert_eq!(absent(&test_of(Tool::Sysbench, &text), TRANSACTION_TIME_NS_MEAN), &Absence::PrintedZero);
    let text = text.replace("99th percentile:                        0.70", "99th percentile: 0.00");
    assert_eq!(absent(&test_of(Tool::Sysbench, &text), TRANSACTION_TIME_NS_P99), &Absence::PrintedZero);
    let timing = contents("hammerdb-timing.json").replace("\"13.309\"", "\"0\"");
    let both = [("r", contents("hammerdb-result.json")), ("t", timing)];
    let groups = read(Tool::HammerDb, &both.each_ref().map(|(name, text)| (*name, text.as_str()))).unwrap();
    assert_eq!(absent(&groups[0].tests[0], TRANSACTION_TIME_NS_P99), &Absence::PrintedZero);
}

#[test]
fn intervals_that_cannot_be_are_named_and_in_no_series() {
    let test = one(Tool::Sysbench, &["sysbench-wrapped.txt"]);
    let tps: Vec<f64> = test.series.rows.iter().map(|row| row[1].unwrap()).collect();
    assert_eq!((tps, figure(&test, TX_PER_S)), (vec![1370.22, 1385.03, 1391.75, 1402.10], 1386.29));
    assert_eq!(test.series.rows[2][0], Some(3.0));
    assert!(matches!(test.warnings[..], [Warning::Interval { line: 15, end_s: 3.0, .. }]), "{:?}", test.warnings);
    // More than 16 jobs can make if none needs less than 6 ms, and more than the whole run made.
    for tps in ["5000.00", "18000.00"] {
        let text = contents("sysbench-wrapped.txt").replace("18446842801212211200.00", tps);
        assert!(matches!(test_of(Tool::Sysbench, &text).warnings[..], [Warning::Interval { .. }]), "{tps}");
    }
    // pgbench's clock was set while it ran.
    let text = contents("pgbench-tpcb.txt");
    let line = "progress: 1.5 s, 9000.0 tps, lat 18446744073709.551 ms stddev 1.0, 0 failed\ntransaction type:";
    let test = test_of(Tool::Pgbench, &text.replace("transaction type:", line));
    assert_eq!(test.warnings, [Warning::IntervalTime { line: 4, end_s: 1.5 }]);
    let test = test_of(Tool::Pgbench, &text.replace("1.0 s, 5466.0", "1.0 s, 54660.0"));
    assert!(matches!(test.warnings[..], [Warning::Interval { line: 3, .. }]), "{:?}", test.warnings);
    let test = test_of(Tool::Pgbench, &text.replace("5466.0 tps", "many tps"));
    assert!(matches!(test.warnings[..], [Warning::NoProgress { line: 3, .. }]), "{:?}", test.warnings);
}

#[test]
fn an_open_loop_states_its_rate_and_what_it_reached() {
    let test = one(Tool::Sysbench, &["sysbench-rate.txt"]);
    let [mean, _, _, max] = times_ms(&test, RESPONSE_TIMES);
    assert!((figure(&test, RATE_TPS), max) == (100.0, 13_809.70) && near(mean, 6873.91, 1e-5), "{mean} {max}");
    assert!(
        matches!(test.warnings[..], [Warning::RateMissed { asked: 100.0, reached_pct }] if near(reached_pct, 31.0, 0.01))
    );
    assert_eq!(absent(&test, TRANSACTION_TIME_NS_MEAN), &Absence::OpenLoop);
    assert_eq!(absent(&one(Tool::Sysbench, &["sysbench-rw.txt"]), RATE_TPS), &Absence::ClosedLoop);
}

#[test]
fn fio_says_how_a_job_ended() {
    for (file, said) in [("fio-error.json", 2), ("fio-error-code.json", 0)] {
        let test = one(Tool::Fio, &[file]);
        let (error, stopped) = (Warning::Error { code: 5 }, Warning::Stopped { ran_s: 9.12, asked_s: 30.0 });
        assert!(test.warnings[..2] == [error, stopped] && test.warnings.len() == 2 + said, "{:?}", test.warnings);
        assert!(near(figure(&test, BLOCK_READS_PER_S), 10_003.289, 1e-6), "{file}");
        assert!(near(figure(&test, PHYSICAL_WRITES_PER_S), 9977.083, 1e-6));
        assert_eq!((figure(&test, READ_TIME_US_MEAN), figure(&test, READ_TIME_US_P99)), (95.2114, 187.392));
        // Means of reads and writes can be joined by their numbers, percentiles cannot.
        let mean = (95_211.4 * 91_230.0 + 3800.2 * 90_991.0) / (91_230.0 + 90_991.0);
        assert!(near(figure(&test, TRANSACTION_TIME_NS_MEAN), mean, 1e-9));
        assert_eq!(absent(&test, TRANSACTION_TIME_NS_P99), &Absence::ReadsAndWrites);
    }
}

#[test]
fn the_jobs_of_fio_are_all_calls_under_way() {
    let test = one(Tool::Fio, &["fio-depth.json"]);
    let [_, p50, p99, max] = times_ms(&test, TRANSACTION_TIMES);
    assert_eq!((test.record.jobs, p50, p99, max), (64, 0.667648, 0.75776, 1.360161));
    assert!(test.warnings.is_empty(), "{:?}", test.warnings);
    // Synchronous engines have one call under way, whatever the depth.
    let text = contents("fio-depth.json").replace("libaio", "psync");
    let test = test_of(Tool::Fio, &text);
    assert_eq!(test.record.jobs, 1);
    assert!(matches!(test.warnings[..], [Warning::Apart { .. }]), "1 job cannot have 63.7 busy: {:?}", test.warnings);
    // A percentile is a bucket's end: up to its width above the maximum it is the maximum, further above none.
    let test = test_of(Tool::Fio, &contents("fio-depth.json").replace("757760", "1368064"));
    assert_eq!(times_ms(&test, TRANSACTION_TIMES)[2], 1.360161);
    let test = test_of(Tool::Fio, &contents("fio-depth.json").replace("757760", "13680640"));
    assert!(matches!(absent(&test, TRANSACTION_TIME_NS_P99), Absence::Above { .. }));
    // An option that stands several times is noted as often; the last one counts.
    let text =
        contents("fio-depth.json").replace("\"filename\":", "\"iodepth\": \"2\", \"iodepth\": \"4\", \"filename\":");
    let test = test_of(Tool::Fio, &text);
    assert!(
        test.record.jobs == 4
            && test.record.notes.iter().any(|note| note.contains("iodepth=64 ioengine=libaio numjobs=1"))
    );
    assert!(test.record.notes.iter().any(|note| note.contains("iodepth=2 iodepth=4")), "{:?}", test.record.notes);
}

#[test]
fn figures_that_contradict_each_other_are_told_or_left_out() {
    let text = contents("pgbench-tpcb.txt").replace("tps = 5544.876722", "tps = 9544.876722");
    let warnings = test_of(Tool::Pgbench, &text).warnings;
    assert!(matches!(warnings[..], [Warning::Apart { .. }, Warning::Apart { .. }]), "count and jobs: {warnings:?}");
    let text = contents("sysbench-rw.txt").replace("(148.39 per sec.)", "(300.00 per sec.)");
    assert!(matches!(test_of(Tool::Sysbench, &text).warnings[0], Warning::Apart { .. }));
    let text = contents("fio-read.json").replacen("19171.656687", "29171.656687", 1);
    assert!(matches!(test_of(Tool::Fio, &text).warnings[0], Warning::Apart { .. }));
    // A mean above the maximum: neither can be believed.
    let text = contents("sysbench-point.txt");
    let max = text.lines().find(|line| line.trim().starts_with("max:")).unwrap();
    let test = test_of(Tool::Sysbench, &text.replace(max, "max: 0.01"));
    assert_eq!(times_ms(&test, TRANSACTION_TIMES), [0.0; 4]);
    let result = contents("hammerdb-result.json").replace("128176 NOPM", "428176 NOPM");
    assert!(matches!(absent(&test_of(Tool::HammerDb, &result), TX_PER_S), Absence::Above { .. }));
    // A counter that wrapped, and one that is no number.
    for value in ["18446744073709551612 (0.000%)", "-nan"] {
        let text = contents("pgbench-tpcb.txt").replace("0 (0.000%)", value);
        assert!(matches!(absent(&test_of(Tool::Pgbench, &text), ERRORS), Absence::CannotBe(_)), "{value}");
    }
}

#[test]
fn a_run_that_was_aborted_is_told_of() {
    let text = contents("pgbench-tpcb.txt") + "pgbench: error: Run was aborted; the above results are incomplete.\n";
    assert!(matches!(test_of(Tool::Pgbench, &text).warnings[..], [Warning::Said(_)]));
    let text = contents("sysbench-rw.txt")
        .replace("SQL statistics:", "FATAL: mysql_stmt_execute() returned error 1205\nSQL statistics:");
    assert!(matches!(test_of(Tool::Sysbench, &text).warnings[..], [Warning::Said(_)]));
    let text =
        contents("hammerdb-log.txt").replace("Vuser 1:Test complete", "Vuser 3:FINISHED FAILED\nVuser 1:Test complete");
    assert!(matches!(test_of(Tool::HammerDb, &text).warnings[..], [Warning::Said(_)]));
}
