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
    let named = records.iter().zip(["first", "second", "third"]);
    let runs: Vec<_> = named.map(|(all, label)| ("p".to_owned(), Platform::of(label, all))).collect();
    histories(&runs, None)
}

/// A test with `rows` per transaction.
fn rows(test: u32, rows: f64) -> TestRecord {
    with(measured("p", test, 1, 100.0, 1.0), &[(column::ROWS_PER_TX, rows)])
}

#[test]
fn a_series_is_a_figure_of_equal_work_with_the_means_of_each_run() {
    let all = of_three(|run| {
        let tps = f64::from(100 * (run + 1));
        (1..=4).map(|test| measured("p", test, test.div_ceil(2), tps + f64::from(test % 2) * 2.0, 1.0)).collect()
    });
    let seen: Vec<_> = all.iter().map(|h| (h.jobs, h.metric.column.id, h.main, h.points.len())).collect();
    let (main, time) = ("commit_throughput_tps", "commit_latency_ms");
    assert_eq!(seen, [(1, main, true, 3), (1, time, false, 3), (2, main, true, 3), (2, time, false, 3)]);
    assert_eq!(all[0].points, [(0, 101.0), (1, 201.0), (2, 301.0)]);
    let open = of_three(|_| {
        let figures = [(column::RATE_TPS, 50.0), (column::RESPONSE_TIME_NS_MEAN, 2e6)];
        vec![with(measured("p", 1, 1, 50.0, 1.0), &figures)]
    });
    let seen: Vec<_> = open.iter().map(|h| (h.metric.column.id, h.points[0].1)).collect();
    assert_eq!(seen, [("response_time_ns_mean", 2e6)], "an open loop has its response time");
}

#[test]
fn another_setup_is_another_series_and_unequal_work_is_left_out_by_the_newest() {
    let swept = |test: u32, of: i64| TestRecord {
        swept: Some("rows_per_tx".to_owned()),
        parameters: [("rows".to_owned(), of)].into(),
        ..rows(test, of as f64)
    };
    let client = |run| if run == 0 { Driver::Client } else { Driver::Database };
    type Case<'a> = (&'a dyn Fn(u32) -> Vec<TestRecord>, &'a [&'a [usize]], usize);
    // By series of the main figure: runs with a point; and runs left out of the first.
    let cases: [Case<'_>; 5] = [
        (&|run| vec![TestRecord { driver: client(run), ..rows(1, 1.0) }], &[&[1, 2], &[0]], 0),
        (&|_| vec![swept(1, 10), swept(2, 20)], &[&[0, 1, 2], &[0, 1, 2]], 0),
        (&|run| vec![rows(1, if run == 0 { 7.0 } else { 1.0 })], &[&[1, 2]], 1),
        (&|run| vec![rows(1, if run == 2 { 7.0 } else { 1.0 })], &[&[2]], 2),
        (&|run| vec![TestRecord { valid: run == 0, ..rows(1, 1.0) }], &[&[0]], 2),
    ];
    for (of, points, left_out) in cases {
        let all = of_three(of);
        let runs = |h: &History| h.points.iter().map(|(run, _)| *run).collect::<Vec<_>>();
        assert_eq!(all.iter().filter(|h| h.main).map(runs).collect::<Vec<_>>(), points, "{all:?}");
        assert_eq!(all[0].left_out.len(), left_out, "{all:?}");
    }
}
