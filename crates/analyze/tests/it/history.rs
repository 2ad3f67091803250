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
    let labels = ["first", "second", "third"];
    let runs: Vec<Platform<'_>> = records.iter().zip(labels).map(|(all, label)| Platform::of(label, all)).collect();
    histories(&runs, None)
}

fn points(history: &History) -> Vec<(usize, f64)> {
    history.points.clone()
}

#[test]
fn a_series_is_a_figure_of_equal_work_with_the_means_of_each_run() {
    let all = of_three(|run| {
        let tps = f64::from(100 * (run + 1));
        (1..=4).map(|test| measured("p", test, test.div_ceil(2), tps + f64::from(test % 2) * 2.0, 1.0)).collect()
    });
    let seen: Vec<_> = all.iter().map(|h| (h.jobs, h.metric.column.id, h.main, points(h).len())).collect();
    let (main, time) = ("commit_throughput_tps", "commit_latency_ms");
    assert_eq!(seen, [(1, main, true, 3), (1, time, false, 3), (2, main, true, 3), (2, time, false, 3)]);
    assert_eq!(points(&all[0]), [(0, 101.0), (1, 201.0), (2, 301.0)]);
}

#[test]
fn another_setup_is_another_series_and_unequal_work_is_left_out_by_the_newest() {
    let all = of_three(|run| {
        let r = measured("p", 1, 1, 100.0, 1.0);
        vec![if run == 0 { TestRecord { driver: Driver::Client, ..r } } else { r }]
    });
    assert_eq!(all.iter().map(|h| points(h).len()).collect::<Vec<_>>(), [2, 2, 1, 1], "{all:?}");

    let rows = |run: u32, changed: u32| if run == changed { 7.0 } else { 1.0 };
    for (changed, kept) in [(0, vec![1, 2]), (2, vec![2])] {
        let all =
            of_three(|run| vec![with(measured("p", 1, 1, 100.0, 1.0), &[(column::ROWS_PER_TX, rows(run, changed))])]);
        assert_eq!(points(&all[0]).iter().map(|p| p.0).collect::<Vec<_>>(), kept, "{all:?}");
        assert!(all[0].left_out.iter().all(|(_, why)| why.contains("unequal work")), "{all:?}");
        assert_eq!(all[0].left_out.len() + kept.len(), 3);
    }
    let all = of_three(|run| vec![TestRecord { valid: run == 0, ..measured("p", 1, 1, 100.0, 1.0) }]);
    assert_eq!((points(&all[0]).len(), all[0].left_out.len()), (1, 2), "{all:?}");
}

#[test]
fn swept_values_are_series_of_their_own_and_an_open_loop_has_its_response_time() {
    let all = of_three(|_| {
        let swept = |test: u32, rows: i64| {
            let r = with(measured("p", test, 1, 100.0, 1.0), &[(column::ROWS_PER_TX, rows as f64)]);
            TestRecord { swept: Some("rows_per_tx".to_owned()), parameters: [("rows".to_owned(), rows)].into(), ..r }
        };
        vec![swept(1, 10), swept(2, 20)]
    });
    let seen: Vec<_> = all.iter().filter(|h| h.main).map(|h| (h.swept.clone(), points(h).len())).collect();
    assert_eq!(seen, [10, 20].map(|at| (Some(("rows_per_tx".to_owned(), at)), 3)), "{all:?}");
    let open = of_three(|_| {
        let figures = [(column::RATE_TPS, 50.0), (column::RESPONSE_TIME_NS_MEAN, 2e6)];
        vec![with(measured("p", 1, 1, 50.0, 1.0), &figures)]
    });
    let seen: Vec<_> = open.iter().map(|h| (h.metric.column.id, points(h)[0].1)).collect();
    assert_eq!(seen, [("response_time_ns_mean", 2e6)], "{open:?}");
}
