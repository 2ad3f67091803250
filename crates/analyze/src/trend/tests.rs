use loadline_model::Random;

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
    judge(&[figures.to_vec()], 0.05).remove(0).unwrap()
}

#[test]
fn planted_steps_are_found_where_they_are() {
    // A single bad run is no level.
    let bad = |at: usize| stepped(NIGHTLY, 4, 20, &[(at, 0.2), (at + 1, 5.0)]);
    let cases: [(Vec<f64>, &[usize]); 9] = [
        (stepped(NIGHTLY, 1, 24, &[(10, 0.8)]), &[10]),
        (stepped(NIGHTLY, 2, 36, &[(12, 0.8), (24, 1.5)]), &[12, 24]),
        (stepped(NIGHTLY, 3, 16, &[]), &[]),
        ([[100.0; 6], [101.0; 6]].concat(), &[6]),
        (vec![7.0; 20], &[]),
        (bad(0), &[]),
        (bad(7), &[]),
        (bad(18), &[]),
        (bad(19), &[]),
    ];
    for (figures, places) in cases {
        let found = alone(&figures);
        assert_eq!(found.iter().map(|c| c.at).collect::<Vec<_>>(), places, "{found:?}");
    }
    let Change { before, after, ratio, interval, p, .. } = alone(&stepped(NIGHTLY, 1, 24, &[(10, 0.8)])).remove(0);
    assert!((ratio - 0.8).abs() < 0.05 && (after / before - 0.8).abs() < 0.05, "{ratio} {before} {after}");
    assert!(p < 0.001 && interval.is_some_and(|i| i.contains(ratio) && i.high < 0.9), "{p} {interval:?}");
    // What cannot be judged: too short, or not positive and finite.
    for odd in [vec![1.0; LEAST_RUNS - 1], vec![0.0; 9], vec![f64::NAN; 9], vec![f64::INFINITY; 9], Vec::new()] {
        assert_eq!(judge(&[odd], 0.05), [None]);
    }
    let far = [[f64::MIN_POSITIVE; 6], [f64::MAX; 6]].concat();
    assert_eq!(alone(&far)[0].at, 6);
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
    let judged = judge(&series, 0.05);
    let changed = |n: &usize| judged[*n].as_ref().is_some_and(|found| !found.is_empty());
    assert_eq!((0..20).filter(changed).collect::<Vec<_>>(), [19], "{judged:?}");
    // Alone it is more certain.
    let confidence = [&judged[19], &judge(&series[19..], 0.05)[0]].map(|found| found.as_ref().unwrap()[0].confidence);
    assert!((confidence[0] - 0.9975).abs() < 1e-12 && (confidence[1] - 0.95).abs() < 1e-12, "{confidence:?}");
}

#[test]
fn intervals_are_those_of_the_rank_sum_test() {
    // R: wilcox.test(c(0.8, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46), c(1.15, 0.88, 0.9, 0.74, 1.21),
    // conf.int = TRUE): difference 0.305, interval -0.15 to 0.76 (its help: permeability constants of the placenta).
    let first = [0.8, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46].map(f64::exp);
    let second = [1.15, 0.88, 0.9, 0.74, 1.21].map(f64::exp);
    let (value, interval) = ratio(&second, &first, 0.05).unwrap();
    let interval = interval.unwrap();
    for (found, by_r) in [(value, 0.305), (interval.low, -0.15), (interval.high, 0.76)] {
        assert!((found.ln() - by_r).abs() < 1e-9, "{found} {by_r}");
    }
    // Of 70 ways to choose four of eight, the most extreme two have 2.9 %.
    assert_eq!([0.03, 0.02].map(|error| outside(4, 4, error / 2.0)), [Some(0), None]);
}
