//! Which tests of many runs make a series.

use crate::common::{measured, with};
use loadline_analyze::compare::Platform;
use loadline_analyze::compare::history::{History, histories};
use loadline_model::{Driver, TestRecord, column};

/// Three runs with the records that `of` makes of a run's number.
fn of_three(of: impl Fn(u32) -> Vec<TestRecord>) -> Vec<History> {
    let records = [0, 1, 2].map(|run| {
        let named = |r: TestRecord| TestRecord { run: format!("run-{run}"), ..r };
        of(run).into_iter().map(named).collect::<Vec<_>>()
    });
    let named = records.iter().zip(["0", "1", "2"]);
    let runs: Vec<_> = named.map(|(all, label)| ("p".to_owned(), Platform::new(label, all))).collect();
    histories(&runs, None)
}

/// A test with `rows` per transaction.
fn rows(test: u32, rows: f64) -> TestRecord {
    with(measured("p", test, 1, 100.0, 1.0), &[(column::ROWS_PER_TX, rows)])
}

#[test]
fn a_series_is_a_figure_of_equal_work_as_the_newest_run_has_it() {
    let by_jobs = |run: u32| {
        let tps = |test: u32| f64::from(100 * (run + 1) + test % 2 * 2);
        (1..=4).map(|test| measured("p", test, test.div_ceil(2), tps(test), 1.0)).collect()
    };
    let swept = |test: u32, of: i64| TestRecord {
        swept: Some("rows_per_tx".to_owned()),
        parameters: [("rows".to_owned(), of)].into(),
        ..rows(test, of as f64)
    };
    let open = [(column::RATE_TPS, 50.0), (column::RESPONSE_TIME_NS_MEAN, 2e6)];
    let client = |run| if run == 0 { Driver::Client } else { Driver::Database };
    type Case<'a> = (&'a dyn Fn(u32) -> Vec<TestRecord>, &'a str, &'a [(u32, &'a [usize])], usize);
    let tps = "commit_throughput_tps";
    // By series of the main figure: its place, and runs with a point; and the runs left out of the first.
    let cases: [Case<'_>; 7] = [
        (&by_jobs, tps, &[(1, &[0, 1, 2]), (2, &[0, 1, 2])], 0),
        (&|_| vec![with(measured("p", 1, 1, 50.0, 1.0), &open)], "response_time_ns_mean", &[(1, &[0, 1, 2])], 0),
        (&|run| vec![TestRecord { driver: client(run), ..rows(1, 1.0) }], tps, &[(1, &[1, 2]), (1, &[0])], 0),
        (&|_| vec![swept(1, 10), swept(2, 20)], tps, &[(10, &[0, 1, 2]), (20, &[0, 1, 2])], 0),
        (&|run| vec![rows(1, if run == 0 { 7.0 } else { 1.0 })], tps, &[(1, &[1, 2])], 1),
        (&|run| vec![rows(1, if run == 2 { 7.0 } else { 1.0 })], tps, &[(1, &[2])], 2),
        (&|run| vec![TestRecord { valid: run == 0, ..rows(1, 1.0) }], tps, &[(1, &[0])], 2),
    ];
    for (of, figure, series, left_out) in cases {
        let all = of_three(of);
        let runs = |h: &History| (h.at, h.points.iter().map(|(run, _)| run.parse().unwrap()).collect::<Vec<usize>>());
        let seen: Vec<_> = all.iter().filter(|h| h.main).map(runs).collect();
        assert_eq!(seen, series.iter().map(|(at, runs)| (*at, runs.to_vec())).collect::<Vec<_>>(), "{all:?}");
        assert_eq!((all[0].metric.column.id, all[0].left_out.len()), (figure, left_out), "{all:?}");
    }
    let all = of_three(by_jobs);
    let points: Vec<f64> = all[0].points.iter().map(|(_, figure)| *figure).collect();
    assert_eq!((points, all[1].metric.column.id), (vec![101.0, 201.0, 301.0], "commit_latency_ms"), "means of a run");
}
