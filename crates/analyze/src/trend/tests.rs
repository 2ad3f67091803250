use loadline_model::Random;
use proptest::prelude::*;

use super::*;
use crate::paired::simulated::Machine;

/// Nightly runs whose noise is 5 %.
const NIGHTLY: Machine = Machine { noise: 0.05, ..Machine::QUIET };
const STALLING: Machine = Machine { stalls: 0.05, ..NIGHTLY };

/// Runs of `machine`, those of `from` on being `ratio` times as fast.
fn stepped(machine: Machine, seed: u64, runs: usize, steps: &[(usize, f64)]) -> Vec<f64> {
    let mut figures = machine.series(&mut Random::new(seed), runs);
    for (from, ratio) in steps {
        figures.iter_mut().skip(*from).for_each(|f| *f *= ratio);
    }
    figures
}

fn alone(figures: &[f64]) -> Vec<Change> {
    judge(&[figures.to_vec()], 0.05).changes.remove(0).unwrap()
}

#[test]
fn planted_steps_are_found_where_they_are() {
    let exact = [[100.0; 6], [101.0; 6]].concat();
    let bad = |place: usize| {
        let mut bad = stepped(NIGHTLY, 4, 20, &[]);
        bad[place] *= 0.2;
        bad
    };
    let cases: [(Vec<f64>, &[usize]); 9] = [
        (stepped(NIGHTLY, 1, 24, &[(10, 0.8)]), &[10]),
        (stepped(NIGHTLY, 2, 36, &[(12, 0.8), (24, 1.5)]), &[12, 24]),
        (stepped(NIGHTLY, 3, 16, &[]), &[]),
        (exact, &[6]),
        (vec![7.0; 20], &[]),
        // A single bad run is no level.
        (bad(0), &[]),
        (bad(7), &[]),
        (bad(18), &[]),
        (bad(19), &[]),
    ];
    for (figures, places) in cases {
        let found = alone(&figures);
        assert_eq!(found.iter().map(|c| c.at).collect::<Vec<_>>(), places, "{found:?}");
    }
    let change = alone(&stepped(NIGHTLY, 1, 24, &[(10, 0.8)])).remove(0);
    assert!((change.ratio - 0.8).abs() < 0.05 && (change.after / change.before - 0.8).abs() < 0.05, "{change:?}");
    let interval = change.interval.unwrap();
    assert!(change.p < 0.001 && interval.contains(change.ratio) && interval.high < 0.9, "{change:?}");
}

/// In how many of 100 series something holds: three standard deviations beside what is expected of it at 95 %.
#[test]
fn errors_and_power_are_as_said() {
    type Holds = fn(&[Change]) -> bool;
    type Case<'a> = (Machine, usize, &'a [(usize, f64)], Holds, std::ops::RangeInclusive<usize>);
    let changed: Holds = |found| !found.is_empty();
    let truth: Holds =
        |found| matches!(found, [c] if c.at.abs_diff(12) <= 1 && c.interval.is_some_and(|i| i.contains(0.8)));
    let cases: [Case<'_>; 5] = [
        (NIGHTLY, 16, &[], changed, 0..=11),
        (STALLING, 16, &[], changed, 0..=11),
        (Machine { heavy: true, ..NIGHTLY }, 16, &[], changed, 0..=11),
        // The interval is of 95 %, and some series have a second change.
        (NIGHTLY, 24, &[(12, 0.8)], truth, 75..=100),
        (STALLING, 24, &[(12, 0.7)], |found| found.iter().any(|c| (11..=13).contains(&c.at)), 90..=100),
    ];
    for (machine, runs, steps, holds, expected) in cases {
        let found = (0..100).filter(|seed| holds(&alone(&stepped(machine, *seed, runs, steps)))).count();
        assert!(expected.contains(&found), "{machine:?} {steps:?}: {found} of 100");
    }
}

#[test]
fn series_are_judged_together() {
    let mut series: Vec<Vec<f64>> = (10..29).map(|seed| stepped(NIGHTLY, seed, 20, &[])).collect();
    series.push(stepped(NIGHTLY, 9, 20, &[(10, 0.7)]));
    series.push(vec![1.0; LEAST_RUNS - 1]);
    let judged = judge(&series, 0.05);
    let changed = |n: &usize| judged.changes[*n].as_ref().is_some_and(|found| !found.is_empty());
    assert_eq!(((0..21).filter(changed).collect::<Vec<_>>(), judged.judged), (vec![19], 20), "{judged:?}");
    assert!((judged.level - 0.05 / 20.0).abs() < 1e-12 && judged.changes[20].is_none());
    assert!((judge(&series[19..20], 0.05).level - 0.05).abs() < 1e-12, "alone it is more certain");
}

#[test]
fn intervals_are_those_of_the_rank_sum_test() {
    // R: wilcox.test(c(0.8, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46), c(1.15, 0.88, 0.9, 0.74, 1.21),
    // conf.int = TRUE): difference 0.305, interval -0.15 to 0.76 (its help: permeability constants of the placenta).
    let first = [0.8, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
    let second = [1.15, 0.88, 0.9, 0.74, 1.21];
    let (value, interval) = ratio(&second, &first, 0.05).unwrap();
    let interval = interval.unwrap();
    for (found, by_r) in [(value, 0.305), (interval.low, -0.15), (interval.high, 0.76)] {
        assert!((found.ln() - by_r).abs() < 1e-9, "{found} {by_r}");
    }
    // Of 70 ways to choose four of eight, the most extreme two have 2.9 %.
    let (four, more) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
    assert_eq!([0.03, 0.02].map(|error| ratio(&four, &more, error).unwrap().1.is_some()), [true, false]);
    let long: Vec<f64> = (0..40).map(f64::from).collect();
    let (value, interval) = ratio(&long, &long, 0.05).unwrap();
    assert!(value == 1.0 && interval.is_some_and(|i| (-7.0..=-4.0).contains(&i.low.ln())), "{interval:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_figures_are_judged(series in prop::collection::vec(prop::collection::vec(prop_oneof![
        Just(1.0), Just(f64::MAX), Just(f64::MIN_POSITIVE), 0.1f64..1e9, prop::num::f64::ANY
    ], 0..24), 0..3)) {
        let judged = judge(&series, 0.05);
        prop_assert_eq!(judged.changes.len(), series.len());
        for (figures, trend) in series.iter().zip(&judged.changes) {
            for change in trend.iter().flatten() {
                prop_assert!(change.at >= LEAST && change.at + LEAST <= figures.len() && change.p <= 0.05);
            }
            let usable = figures.len() >= LEAST_RUNS && figures.iter().all(|f| f.is_finite() && *f > 0.0);
            prop_assert_eq!(trend.is_some(), usable);
        }
        prop_assert_eq!(judge(&series, 0.05), judged, "the same runs give the same answer");
    }
}
