//! Bounds of tests: of those in `data/bound.txt`, and of arbitrary figures.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{lines, record, with};
use loadline_analyze::{BoundBy, bound, bound_of_sweep, fill_bounded_by, sweeps};
use loadline_model::{TestRecord, column};
use proptest::prelude::*;

const TABLE: &str = include_str!("../data/bound.txt");

#[test]
fn tests_are_bound_by_what_the_table_says() {
    for line in lines(TABLE, &record("pg", 1, 1)) {
        let ([test], expected) = (line.tests.as_slice(), line.expected) else { panic!("{}", line.expected) };
        let said = bound(test).map_or("none".to_owned(), |b| b.sentence());
        let is_said = match expected.split_at(2) {
            ("= ", whole) => said == whole,
            (_, part) => part.split_once(':').is_some_and(|(by, why)| {
                said.split_once(": ").is_some_and(|(is, because)| is == by && because.contains(why.trim_start()))
            }),
        };
        assert!(is_said, "{expected}\nis {said}");
    }
}

/// The test of `name` with all figures of that base.
fn base(name: &str) -> TestRecord {
    lines(TABLE, &record("pg", 1, 1)).into_iter().find(|line| line.base == name).unwrap().tests.remove(0)
}

#[test]
fn a_peak_at_one_job_may_hide_a_single_writer() {
    let one = |test: u32, jobs: u32, tps: f64| {
        let figures = [
            (column::COMMIT_THROUGHPUT_TPS, tps),
            (column::COMMIT_LATENCY_MS, f64::from(jobs) / tps * 1e3),
            (column::LOG_FILE_SYNC_MS, 0.8 / tps * 1e3),
            (column::COMMIT_TIME_NS_MEAN, 0.85 / tps * 1e9),
            (column::COMMITS_PER_REDO_SYNC, 1.0),
        ];
        with(record("sqlite", test, jobs), &figures)
    };
    let records = [one(1, 1, 4_980.0), one(2, 2, 4_700.0), one(3, 8, 4_600.0)];
    assert_eq!(bound(&records[0]).unwrap().by, BoundBy::LogSync);
    let b = bound_of_sweep(&sweeps(&records)[0], &records).unwrap();
    assert_eq!(
        b.sentence(),
        "single writer: throughput does not grow with jobs (4,980 tps with 1, 4,600 with 8); 1.00 commits per sync with 8 \
         jobs, and on average 0.85 of the jobs in a commit: commits run one at a time"
    );
    // One job alone only waits for the log.
    assert_eq!(bound_of_sweep(&sweeps(&records[..1])[0], &records[..1]).unwrap().by, BoundBy::LogSync);
}

#[test]
fn repetitions_with_different_limits_are_unknown() {
    let mut records = [base("log"), base("log"), with(base("log"), &[(column::CPU_BUSY_PCT, 95.0)])];
    for (i, r) in records.iter_mut().enumerate() {
        r.test = i as u32 + 1;
        r.repetition = r.test;
    }
    let b = bound_of_sweep(&sweeps(&records)[0], &records).unwrap();
    assert_eq!(b.by, BoundBy::Unknown);
    assert!(b.because.starts_with("repetitions differ (CPU, log sync); one of them: "), "{}", b.because);
    assert_eq!(bound_of_sweep(&sweeps(&records[..2])[0], &records[..2]).unwrap().by, BoundBy::LogSync);
}

#[test]
fn the_column_holds_the_short_cause() {
    let mut records = [base("log"), base("reads")];
    assert_eq!(column::BOUNDED_BY.plain(&records[0]), "", "not before it is filled");
    fill_bounded_by(&mut records);
    let cells = records.each_ref().map(|r| column::BOUNDED_BY.plain(r));
    assert_eq!(cells, ["log sync", "storage reads"]);
    let mut unknown = [with(record("pg", 1, 1), &[(column::COMMIT_THROUGHPUT_TPS, 5.0)])];
    fill_bounded_by(&mut unknown);
    assert_eq!(column::BOUNDED_BY.plain(&unknown[0]), "", "empty if unknown");
}

/// Ids of all figures in the table.
fn read() -> Vec<&'static str> {
    let words = TABLE.split(['"', ' ', '\n']).filter_map(column::column).filter(|c| c.is_figure()).map(|c| c.id);
    words.collect::<BTreeSet<_>>().into_iter().collect()
}

fn any_figure() -> impl Strategy<Value = f64> {
    let odd = [0.0, 1.0, 95.0, 1e300, f64::NAN, f64::NEG_INFINITY];
    prop_oneof![prop::sample::select(odd.to_vec()), 0.0..100.0f64, -1e6..1e6f64]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn absent_figures_are_never_used(
        figures in prop::collection::btree_map(prop::sample::select(read()), any_figure(), 0..16),
        jobs in prop_oneof![0..10u32, Just(u32::MAX)],
    ) {
        let mut r = record("pg", 1, jobs);
        r.figures = figures.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
        let Some(b) = bound(&r) else { return Ok(()) };
        prop_assert!(!b.because.is_empty() && !b.because.contains('\n'));
        prop_assert!(!b.because.contains("NaN") && !b.because.contains("inf"));
        for id in &b.from {
            prop_assert!(r.figure(id).is_some_and(f64::is_finite), "{id} is read but absent: {}", b.because);
        }
        let shown: BTreeMap<&str, &str> =
            TABLE.lines().filter_map(|line| line.strip_prefix("evidence ")?.split_once(": ")).collect();
        let is_shown = match shown.get(b.by.name()) {
            Some(ids) => ids.split(' ').any(|id| b.from.iter().any(|from| from.id == id)),
            None => b.by == BoundBy::Unknown,
        };
        prop_assert!(is_shown, "{b:?}");
        // All figures in the text are named in `from`: without them the text changes.
        let mut without = r.clone();
        b.from.iter().filter(|id| **id != column::COMMIT_THROUGHPUT_TPS).for_each(|id| { without.figures.remove(id.id); });
        if !b.from.is_empty() && b.from != [column::COMMIT_THROUGHPUT_TPS] {
            prop_assert_ne!(bound(&without), Some(b));
        }
    }
}
