use loadline_model::Random;
use proptest::prelude::*;

use super::*;
use crate::paired::simulated::Machine;

/// Nightly runs whose noise is 5 %.
const NIGHTLY: Machine = Machine { noise: 0.05, ..Machine::QUIET };

/// Runs of `machine`, those of `from` on being `ratio` times as fast.
fn stepped(machine: Machine, seed: u64, runs: usize, steps: &[(usize, f64)]) -> Vec<f64> {
    let mut figures = machine.series(&mut Random::new(seed), runs);
    for (from, ratio) in steps {
        figures.iter_mut().skip(*from).for_each(|f| *f *= ratio);
    }
    figures
}

fn alone(figures: &[f64]) -> Trend {
    judge(&[figures.to_vec()], 0.05).trends.remove(0).unwrap()
}

/// In how many of 100 series `is` holds.
fn count(machine: Machine, runs: usize, steps: &[(usize, f64)], is: impl Fn(&Trend) -> bool) -> usize {
    (0..100).filter(|seed| is(&alone(&stepped(machine, *seed, runs, steps)))).count()
}

#[test]
fn planted_steps_are_found_where_they_are_and_flat_series_have_none() {
    let trend = alone(&stepped(NIGHTLY, 1, 24, &[(10, 0.8)]));
    let [change] = trend.changes.as_slice() else { panic!("{trend:?}") };
    assert_eq!(change.at, 10, "{change:?}");
    assert!(change.possible[0] <= 10 && change.possible[1] >= 10 && change.p < 0.001, "{change:?}");
    assert!((change.ratio - 0.8).abs() < 0.05 && (change.after / change.before - 0.8).abs() < 0.05, "{change:?}");
    let interval = change.interval.unwrap();
    assert!(interval.low < change.ratio && change.ratio < interval.high && interval.high < 0.9, "{change:?}");
    assert!(!trend.gradual && trend.perhaps.is_none() && trend.detectable.is_none(), "{trend:?}");

    let twice = alone(&stepped(NIGHTLY, 2, 36, &[(12, 0.8), (24, 1.5)]));
    assert_eq!(twice.changes.iter().map(|c| c.at).collect::<Vec<_>>(), [12, 24], "{twice:?}");

    // Three standard deviations above 5 of 100.
    for machine in [NIGHTLY, Machine { stalls: 0.05, ..NIGHTLY }, Machine { heavy: true, ..NIGHTLY }] {
        let found = count(machine, 16, &[], |t| !t.changes.is_empty());
        assert!(found <= 11, "{machine:?}: {found} of 100 flat series");
    }
    let flat = alone(&stepped(NIGHTLY, 3, 16, &[]));
    assert!(flat.changes.is_empty() && flat.detectable.is_some_and(|d| (0.05..0.2).contains(&d)), "{flat:?}");
}

#[test]
fn the_place_is_possible_and_the_interval_holds_the_ratio() {
    let truth = |t: &Trend, place: usize| match t.changes.as_slice() {
        [c] => {
            c.possible[0] <= place
                && place <= c.possible[1]
                && c.interval.is_some_and(|i| i.low <= 0.8 && 0.8 <= i.high)
        }
        _ => false,
    };
    // 95 % each, some with a second change: 85 of 100, less three standard deviations.
    let right = count(NIGHTLY, 24, &[(12, 0.8)], |t| truth(t, 12));
    assert!(right >= 75, "{right} of 100");
}

#[test]
fn single_bad_runs_are_no_level_and_hide_none() {
    for place in [0, 7, 18, 19] {
        let mut bad = stepped(NIGHTLY, 4, 20, &[]);
        bad[place] *= 0.2;
        let trend = alone(&bad);
        assert!(trend.changes.is_empty(), "{place}: {trend:?}");
        assert_eq!(trend.perhaps.map(|p| p.since), (place == 19).then_some(19), "{place}: {trend:?}");
    }
    let stalling = Machine { stalls: 0.05, ..NIGHTLY };
    let found = count(stalling, 24, &[(12, 0.7)], |t| t.changes.iter().any(|c| (11..=13).contains(&c.at)));
    assert!(found >= 90, "{found} of 100");
}

#[test]
fn a_change_in_the_last_runs_is_perhaps_one_until_as_many_runs_as_said_show_it() {
    for last in 1..LEAST {
        let figures = stepped(NIGHTLY, 6, 20, &[(20 - last, 0.6)]);
        let trend = alone(&figures);
        let Some(Perhaps { since, more: Some(more) }) = trend.perhaps else { panic!("{last}: {trend:?}") };
        assert!(trend.changes.is_empty() && since == 20 - last, "{last}: {trend:?}");
        let grown = alone(&stepped(NIGHTLY, 6, 20 + more, &[(20 - last, 0.6)]));
        assert!(grown.changes.iter().any(|c| c.at == since), "{last} and {more} more: {grown:?}");
    }
    let flat = count(NIGHTLY, 20, &[], |t| t.perhaps.is_some());
    assert!(flat <= 5, "{flat} of 100 flat series");
}

#[test]
fn a_drift_is_not_taken_for_a_step_and_a_step_not_for_a_drift() {
    let drift = Machine { noise: 0.02, drift: 0.3, ..Machine::QUIET };
    let (drifts, steps) = (
        count(drift, 24, &[], |t| t.gradual || t.changes.is_empty()),
        count(NIGHTLY, 24, &[(12, 0.75)], |t| t.gradual),
    );
    assert!(drifts >= 90 && steps <= 10, "{drifts} and {steps} of 100");
}

#[test]
fn series_are_judged_together() {
    let mut series: Vec<Vec<f64>> = (10..29).map(|seed| stepped(NIGHTLY, seed, 20, &[])).collect();
    series.push(stepped(NIGHTLY, 9, 20, &[(10, 0.7)]));
    series.push(vec![1.0; LEAST_RUNS - 1]);
    let judged = judge(&series, 0.05);
    let changed: Vec<usize> =
        (0..21).filter(|n| judged.trends[*n].as_ref().is_some_and(|t| !t.changes.is_empty())).collect();
    assert_eq!((changed, judged.judged), (vec![19], 20), "{judged:?}");
    assert!((judged.level - 0.05 / 20.0).abs() < 1e-12 && judged.trends[20].is_none());
    // The same change is found alone in one series with less certainty.
    assert!((judge(&series[19..20], 0.05).level - 0.05).abs() < 1e-12);
}

#[test]
fn figures_without_noise_and_unusable_ones() {
    let exact: Vec<f64> = (0..12).map(|n| if n < 6 { 100.0 } else { 101.0 }).collect();
    let trend = alone(&exact);
    assert_eq!(trend.changes.iter().map(|c| (c.at, c.possible)).collect::<Vec<_>>(), [(6, [6, 6])], "{trend:?}");
    let same = alone(&[7.0; 20]);
    assert_eq!(same, Trend::default());
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut figures = vec![1.0; 10];
        figures[3] = bad;
        assert_eq!(judge(&[figures], 0.05).trends, [None]);
    }
    assert_eq!(judge(&[], 0.05).trends, []);
}

#[test]
fn intervals_are_those_of_the_rank_sum_test() {
    // R: wilcox.test(c(0.8, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46), c(1.15, 0.88, 0.9, 0.74, 1.21),
    // conf.int = TRUE): difference 0.305, interval -0.15 to 0.76 (its help: permeability constants of the placenta).
    let first = [0.8, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
    let second = [1.15, 0.88, 0.9, 0.74, 1.21];
    let (ratio, interval) = level::ratio(&second, &first, 0.05).unwrap();
    assert!((ratio.ln() - 0.305).abs() < 1e-9, "{ratio}");
    let interval = interval.unwrap();
    assert!((interval.low.ln() + 0.15).abs() < 1e-9 && (interval.high.ln() - 0.76).abs() < 1e-9, "{interval:?}");
    // Of 70 ways to choose four of eight, the most extreme two have 2.9 %.
    let (four, more) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
    assert!(level::ratio(&four, &more, 0.03).unwrap().1.is_some());
    assert!(level::ratio(&four, &more, 0.02).unwrap().1.is_none());
    let long: Vec<f64> = (0..40).map(f64::from).collect();
    let (ratio, interval) = level::ratio(&long, &long, 0.05).unwrap();
    assert!(ratio == 1.0 && interval.unwrap().low.ln() <= -4.0 && interval.unwrap().low.ln() >= -7.0, "{interval:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_figures_are_judged(series in prop::collection::vec(prop::collection::vec(prop_oneof![
        Just(1.0), Just(f64::MAX), Just(f64::MIN_POSITIVE), 0.1f64..1e9, prop::num::f64::ANY
    ], 0..24), 0..3)) {
        let judged = judge(&series, 0.05);
        prop_assert_eq!(judged.trends.len(), series.len());
        for (figures, trend) in series.iter().zip(&judged.trends) {
            for change in trend.iter().flat_map(|t| &t.changes) {
                prop_assert!(change.at >= LEAST && change.at + LEAST <= figures.len() && change.p <= 0.05);
                prop_assert!(change.possible[0] <= change.at && change.at <= change.possible[1]);
            }
            let again = judge(std::slice::from_ref(figures), 0.05);
            prop_assert_eq!(again.trends[0].is_some(), trend.is_some());
        }
        prop_assert_eq!(judge(&series, 0.05), judged, "the same runs give the same answer");
    }
}
