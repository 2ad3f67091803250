//! Sweeps and comparisons of records made by hand.

use crate::common::{measured, record};
use loadline_analyze::compare::{ComparedAt, Platform, compare};
use loadline_analyze::sweep::{LoadLine, Saturation, sweeps};
use loadline_model::{Driver, TestRecord, column};
use proptest::prelude::*;

fn versus(a: &[TestRecord], b: &[TestRecord]) -> loadline_analyze::Comparison {
    let side = |label, records| Platform { payload: Some(Default::default()), ..Platform::new(label, records) };
    compare(&[side("a", a), side("b", b)]).remove(0)
}

#[test]
fn invalid_tests_are_shown_but_not_pooled() {
    let mut bad = measured("a", 2, 4, 9_999.0, 0.4);
    bad.valid = false;
    bad.invalid_reason = Some("Little's law fails".to_owned());
    let all = sweeps(&[measured("a", 1, 4, 100.0, 40.0), bad.clone()]);
    let point = &all[0].points[0];
    assert_eq!((point.tests.as_slice(), point.throughput().unwrap().mean), (&[1][..], 100.0));
    assert_eq!(point.refused[0].reason, "Little's law fails");
    assert_eq!(point.refused[0].figures["commit_throughput_tps"], 9_999.0);
    let only_bad = sweeps(&[bad]);
    assert_eq!(only_bad[0].peak(), None);
    assert_eq!(only_bad[0].saturation(), Saturation::Unknown);
    assert!(matches!(only_bad[0].load_line(None), LoadLine::Unknown { .. }));
}

#[test]
fn repetitions_give_means_and_maxima() {
    let mut tests = vec![measured("a", 1, 4, 90.0, 40.0), measured("a", 2, 4, 110.0, 40.0)];
    tests[0].set(column::COMMIT_TIME_NS_MAX, 5.0);
    tests[1].set(column::COMMIT_TIME_NS_MAX, 7.0);
    let all = sweeps(&tests);
    let point = &all[0].points[0];
    let tps = point.throughput().unwrap();
    assert_eq!((tps.mean, tps.n), (100.0, 2));
    // sd 14.142, t(1) 12.706: half width 127.06.
    assert!((tps.half_width().unwrap() - 127.06).abs() < 0.01);
    assert_eq!(point.figure(column::COMMIT_TIME_NS_MAX).unwrap().mean, 7.0);
    assert_eq!(point.figure(column::COMMIT_TIME_NS_MAX).unwrap().half_width(), None);
}

#[test]
fn different_work_is_never_pooled() {
    let mut all = [1, 2, 3, 4].map(|test| measured("a", test, 1, 1.0, 1.0));
    all[1].driver = Driver::Client;
    all[2].parameters.insert("payload".to_owned(), 7);
    all[3].set(column::RATE_TPS, 50.0);
    assert_eq!(sweeps(&all).len(), 4);
}

#[test]
fn the_load_line_follows_the_objective_or_the_power() {
    let tests: Vec<_> = [(1, 100.0, 1.0), (2, 190.0, 1.1), (4, 300.0, 1.4), (8, 310.0, 3.0)]
        .map(|(jobs, tps, ms)| measured("a", jobs, jobs, tps, ms))
        .into();
    let sweep = &sweeps(&tests)[0];
    assert!(matches!(sweep.load_line(None), LoadLine::Power { jobs: 4, at_least: false, .. }));
    assert!(matches!(sweep.load_line(Some(1_200_000)), LoadLine::Objective { jobs: 2, at_least: false, .. }));
    assert!(matches!(sweep.load_line(Some(9_000_000)), LoadLine::Objective { jobs: 8, at_least: true, .. }));
    assert!(matches!(sweep.load_line(Some(10)), LoadLine::NoneMeets { jobs: 1, .. }));
    assert_eq!(sweep.saturation(), Saturation::Saturated { peak_jobs: 8 }, "3 % more for twice the jobs is flat");
    let rising = [(1, 100.0), (2, 190.0), (4, 300.0)].map(|(jobs, tps)| measured("a", jobs, jobs, tps, 1.0));
    assert!(matches!(sweeps(&rising)[0].saturation(), Saturation::Rising { jobs: 4, previous_jobs: 2, .. }));
    let small = [(1, 100.0), (72, 351_000.0), (80, 367_848.0)].map(|(jobs, tps)| measured("a", jobs, jobs, tps, 1.0));
    let found = sweeps(&small)[0].saturation();
    assert!(
        matches!(found, Saturation::Rising { jobs: 80, .. }),
        "4.8 % more for 11 % more jobs is not flat: {found:?}"
    );
}

#[test]
fn one_point_or_a_given_rate_is_no_load_line() {
    let one = [measured("a", 1, 4, 100.0, 1.0), measured("a", 2, 4, 101.0, 1.0)];
    let mut bad = measured("a", 3, 8, 190.0, 1.1);
    bad.valid = false;
    let why = |tests: &[TestRecord], objective| match sweeps(tests)[0].load_line(objective) {
        LoadLine::Unknown { why } => why,
        line => panic!("{line:?}"),
    };
    for objective in [None, Some(9_000_000), Some(1)] {
        let with_invalid = [one[0].clone(), bad.clone()];
        assert!(why(&one, objective).contains("fewer than two valid job counts"));
        assert!(why(&with_invalid, objective).contains("fewer than two valid job counts"));
        let mut given: Vec<_> = [(1, 1), (2, 2)].map(|(test, jobs)| measured("a", test, jobs, 20.0, 1.0)).into();
        given.iter_mut().for_each(|r| r.set(column::RATE_TPS, 20.0));
        assert!(why(&given, objective).contains("rate was given"));
    }
    let mut parts: Vec<_> = [(1, 1), (2, 2)].map(|(test, jobs)| measured("a", test, jobs, 20.0, 1.0)).into();
    for r in &mut parts {
        r.kpis = vec!["checkpoint_tps".to_owned()];
        r.set(column::CHECKPOINT_TPS, 10.0);
    }
    assert!(why(&parts, None).contains("part of the window"));
}

#[test]
fn an_objective_missed_below_the_load_line_is_listed() {
    let tests = [measured("a", 1, 1, 10.0, 9.0), measured("a", 2, 2, 20.0, 1.0)];
    let LoadLine::Objective { jobs: 2, missed_below, .. } = sweeps(&tests)[0].load_line(Some(2_000_000)) else {
        panic!()
    };
    assert_eq!(missed_below, [1]);
}

#[test]
fn open_loop_latency_counts_from_the_intended_start() {
    let mut r = measured("a", 1, 1, 10.0, 1.0);
    r.set(column::RESPONSE_TIME_NS_MEAN, 5e6);
    assert_eq!(sweeps(&[r])[0].points[0].latency_ms(), Some(5.0));
}

#[test]
fn factors_above_one_favour_the_other_platform() {
    let c = versus(&[measured("a", 1, 4, 100.0, 40.0)], &[measured("b", 1, 4, 200.0, 20.0)]);
    let row = c.rows.iter().find(|row| row.at == ComparedAt::Jobs(4)).unwrap();
    for id in [column::COMMIT_THROUGHPUT_TPS, column::COMMIT_LATENCY_MS] {
        let f = row.factor(id).unwrap();
        assert_eq!((f.factor.value, f.factor.interval, f.n_base, f.n_other), (2.0, None, 1, 1), "{id}");
    }
    assert_eq!(row.caveat, None);
    assert_eq!(c.peak().unwrap().at, ComparedAt::Peak { base_jobs: 4, other_jobs: 4 });
}

#[test]
fn repetitions_on_both_sides_give_an_interval() {
    let twice = |p: &str, tps: f64| [measured(p, 1, 4, tps, 40.0), measured(p, 2, 4, tps * 1.01, 40.0)];
    let c = versus(&twice("a", 100.0), &twice("b", 200.0));
    let f = c.rows[1].factor(column::COMMIT_THROUGHPUT_TPS).unwrap().factor;
    let i = f.interval.unwrap();
    assert!(i.low < 2.0 && 2.0 < i.high && i.high < 2.1, "{i:?}");
}

proptest! {
    #[test]
    fn any_figures_are_handled_without_panic(rows in prop::collection::vec((1u32..9, any::<f64>(), any::<f64>(), any::<bool>()), 0..12)) {
        let tests: Vec<_> = rows.iter().enumerate().map(|(i, (jobs, tps, ms, valid))| {
            let mut r = record(if i % 2 == 0 { "a" } else { "b" }, i as u32, *jobs);
            // Not by `set`: a damaged file could contain it.
            r.figures.insert("commit_throughput_tps".to_owned(), *tps);
            r.figures.insert("commit_latency_ms".to_owned(), *ms);
            r.valid = *valid;
            r
        }).collect();
        for s in sweeps(&tests) {
            let _ = (s.saturation(), s.load_line(None), s.load_line(Some(1)));
        }
        let (a, b): (Vec<_>, Vec<_>) = tests.into_iter().partition(|r| r.platform == "a");
        let side = |label, records| Platform::new(label, records);
        for f in compare(&[side("a", &a), side("b", &b)]).iter().flat_map(|c| &c.rows).flat_map(|r| &r.factors) {
            prop_assert!(f.factor.value.is_finite() && f.factor.value > 0.0);
        }
    }
}

#[test]
fn each_number_of_nodes_is_compared_with_its_own() {
    let over = |platform: &str, speed: f64| {
        [(1, 100.0), (3, 250.0)].map(|(n, tps)| TestRecord { nodes: n, ..measured(platform, n, 4, tps * speed, 40.0) })
    };
    let (a, b) = (over("a", 1.0), over("b", 2.0));
    let factors = |b: &[TestRecord]| {
        let all = compare(&[Platform::new("a", &a), Platform::new("b", b)]);
        let factor =
            |c: &loadline_analyze::Comparison| Some(c.rows.get(1)?.factor(column::COMMIT_THROUGHPUT_TPS)?.factor.value);
        all.iter().map(|c| (c.nodes, factor(c), c.refused.clone())).collect::<Vec<_>>()
    };
    assert_eq!(factors(&b), [(Some(1), Some(2.0), None), (Some(3), Some(2.0), None)]);
    let lacks = "'b' has no test of LGWR-LAT1".to_owned();
    assert_eq!(factors(&b[1..]), [(Some(3), Some(2.0), None), (None, None, Some(lacks))]);
}
