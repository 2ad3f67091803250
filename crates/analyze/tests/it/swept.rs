//! Sweeps over other parameters than jobs, and peaks by a workload's own KPI.

use crate::common::measured;
use loadline_analyze::compare::{ComparedAt, Platform, compare};
use loadline_analyze::sweep::{LoadLine, Saturation, sweeps};
use loadline_model::{TestRecord, column};

/// A load of `rows` rows per transaction, as a point of a sweep over them.
fn load(platform: &str, test: u32, rows: u32, rows_per_s: f64) -> TestRecord {
    let mut r = measured(platform, test, 1, rows_per_s / f64::from(rows), 0.3);
    r.workload = "DBL-11".to_owned();
    r.group = "data-load".to_owned();
    r.kpis = vec!["rows_per_s".to_owned(), "commit_throughput_tps".to_owned()];
    r.swept = Some("rows_per_tx".to_owned());
    r.parameters.insert("rows".to_owned(), i64::from(rows));
    r.parameters.insert("payload".to_owned(), 100);
    r.set(column::ROWS_PER_S, rows_per_s);
    r.set(column::ROWS_PER_TX, f64::from(rows));
    r.set(column::REDO_KIB_PER_TX, f64::from(rows));
    r
}

/// A study like the published one: rows per transaction with one job, then jobs with two rows.
fn study(platform: &str, speed: f64) -> Vec<TestRecord> {
    let sizes = [(1, 5_609.0), (2, 8_360.0), (10, 20_220.0), (100, 27_020.0)];
    let mut all: Vec<TestRecord> =
        sizes.iter().zip(1..).map(|((rows, rate), test)| load(platform, test, *rows, rate * speed)).collect();
    for (jobs, test) in [(1, 5), (2, 6), (4, 7)] {
        let mut r = load(platform, test, 2, 8_000.0 * f64::from(jobs) * speed);
        r.swept = None;
        r.jobs = jobs;
        all.push(r);
    }
    all
}

#[test]
fn a_sweep_over_rows_is_not_one_over_jobs() {
    let all = sweeps(&study("a", 1.0));
    assert_eq!(all.len(), 2);
    let (rows, jobs) = (&all[0], &all[1]);
    assert_eq!((rows.over.as_str(), jobs.over.as_str()), ("rows_per_tx", "jobs"));
    assert_eq!(rows.points.iter().map(|p| (p.at, p.jobs)).collect::<Vec<_>>(), [(1, 1), (2, 1), (10, 1), (100, 1)]);
    assert_eq!(jobs.points.iter().map(|p| p.at).collect::<Vec<_>>(), [1, 2, 4]);
    assert_eq!(rows.parameters.keys().collect::<Vec<_>>(), ["payload"], "the swept parameter is not a common one");
    assert_eq!(jobs.parameters["rows"], 2);
    // Rows per second rise with the size although transactions per second fall.
    assert_eq!(rows.rate, column::ROWS_PER_S);
    assert_eq!(rows.peak().unwrap().at, 100);
    assert!(matches!(rows.saturation(), Saturation::Rising { jobs: 100, previous_jobs: 10, .. }));
    assert_eq!(
        rows.load_line(None),
        LoadLine::Unknown { why: "the sweep was over work, not over load" },
        "more rows are not more load"
    );
    assert!(matches!(jobs.load_line(None), LoadLine::Power { jobs: 4, throughput, .. } if throughput == 32_000.0));
}

#[test]
fn other_parameters_or_jobs_are_other_sweeps() {
    let mut records = study("a", 1.0)[..4].to_vec();
    records[3].jobs = 8;
    records[2].parameters.insert("payload".to_owned(), 7);
    assert_eq!(sweeps(&records).len(), 3);
}

#[test]
fn without_a_rate_among_the_kpis_or_its_figure_throughput_counts() {
    let mut records = study("a", 1.0);
    records.iter_mut().for_each(|r| r.kpis = vec!["commit_latency_ms".to_owned(), "rows_per_s".to_owned()]);
    assert_eq!(sweeps(&records)[0].peak().unwrap().at, 1);
    let mut records = study("a", 1.0);
    records.iter_mut().for_each(|r| r.leave_out(column::ROWS_PER_S, "not counted"));
    assert_eq!(sweeps(&records)[0].rate, column::COMMIT_THROUGHPUT_TPS);
}

#[test]
fn sweeps_over_the_same_are_compared_value_by_value() {
    let (a, b) = (study("a", 1.0), study("b", 2.0));
    let sides = [("a", &a), ("b", &b)].map(|(label, records)| Platform::new(label, records));
    let all = compare(&sides);
    assert_eq!(all.iter().map(|c| c.over.as_str()).collect::<Vec<_>>(), ["rows_per_tx", "jobs"]);
    assert_eq!(all[0].rows.iter().map(|r| r.at).skip(1).collect::<Vec<_>>(), [1, 2, 10, 100].map(ComparedAt::Jobs));
    for row in all.iter().flat_map(|c| &c.rows) {
        let f = row.factor(column::ROWS_PER_S).unwrap();
        assert!((f.factor.value - 2.0).abs() < 1e-9, "{row:?}");
    }
    // Only one side swept rows: refused, and not compared with the sweep over jobs.
    let all = compare(&[sides[0], Platform { records: &b[4..], ..sides[1] }]);
    let said: Vec<_> = all.iter().filter_map(|c| c.refused.as_deref()).collect();
    assert_eq!(said, ["'b' has no test of DBL-11 over rows_per_tx"]);
}
