//! Bounds of tests: of those in `data/bound.txt`, and of arbitrary figures.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{is_as, lines, record};
use loadline_analyze::{BoundBy, bound, fill_bounded_by};
use loadline_model::column;
use proptest::prelude::*;

const TABLE: &str = include_str!("../data/bound.txt");

#[test]
fn tests_are_bound_by_what_the_table_says() {
    for line in lines(TABLE, &record("pg", 1, 1)) {
        let ([test], expected) = (line.tests.as_slice(), line.expected) else { panic!("{}", line.expected) };
        let said = bound(test).map_or("none".to_owned(), |b| b.sentence());
        assert!(is_as(&said, expected), "{expected}\nis {said}");
        let mut filled = [test.clone()];
        assert_eq!(column::BOUNDED_BY.plain(&filled[0]), "", "not before it is filled");
        fill_bounded_by(&mut filled);
        let short = said.split_once(": ").map_or("", |(by, _)| by);
        assert_eq!(column::BOUNDED_BY.plain(&filled[0]), if short == "limit unknown" { "" } else { short });
    }
}

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
