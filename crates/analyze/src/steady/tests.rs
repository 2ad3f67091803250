use proptest::prelude::*;

use super::*;
use crate::paired::simulated::{level, series};

/// When the window opens, s.
fn opens(values: &[f64]) -> Option<f64> {
    (1..=values.len()).filter(|n| n % LOOK_EVERY == 0).find(|n| is_warm(&values[..*n], 1)).map(|n| n as f64 * STEP_S)
}

#[test]
fn a_plateau_opens_soon_an_approach_late_and_a_rise_that_goes_on_never() {
    let approach = |t: f64| 1.0 - 0.7 * (-t / 2.0).exp();
    let at = |truth: fn(f64) -> f64| (0..20).map(move |seed| opens(&series(truth, 0.05, 0.5, seed, 600)).unwrap());
    assert!(at(|_| 1.0).all(|s| s > 6.9) && at(|_| 1.0).filter(|s| *s < 15.0).count() >= 15);
    assert!(at(approach).all(|s| approach(s) > 0.97), "{:?}", at(approach).collect::<Vec<_>>());
    let values = series(|t| 0.3 + 0.007 * t, 0.02, 0.0, 1, 600);
    assert_eq!(opens(&values), None);
    // The mean of the last half is 0.615.
    assert!(matches!(look(&values, 1), Look::Trend(per_s, true) if (per_s - 0.0114).abs() < 0.002));
}

#[test]
fn trends_are_seen_and_noise_is_none() {
    // By hand: the slope of 0, 1, …, 9 with one 0.5 too high is 1 − 0.5 · 1.5 / 82.5 at place 3.
    let values: Vec<f64> = (0..10).map(|i| f64::from(i) + if i == 3 { 0.5 } else { 0.0 }).collect();
    let (slope, errors) = trend(&values).unwrap();
    assert!((slope - (1.0 - 0.75 / 82.5)).abs() < 1e-12 && errors > 10.0, "{slope} {errors}");
    assert_eq!([trend(&[0.1; 30]), trend(&[1.0; 4]), trend(&[f64::NAN; 30])], [Some((0.0, 0.0)), None, None]);
    for (correlation, rise) in [(0.0, 0.0), (0.5, 0.0), (0.8, 0.0), (0.0, 0.008), (0.5, 0.008), (0.8, 0.008)] {
        let rising = |seed| series(|t| 1.0 + rise * t / STEP_S, 0.05, correlation, seed, 50);
        let seen = (0..200).filter(|seed| trend(&rising(*seed)).unwrap().1.abs() > 1.645).count();
        assert!(if rise > 0.0 { seen >= 180 } else { seen <= 60 }, "{correlation} {rise}: {seen}");
    }
}

#[test]
fn a_window_grows_old_only_by_more_than_it_scatters() {
    let of =
        |fall: f64, correlation, seed| drift(&series(|t| 1.0 - fall * t / 6.0, 0.05, correlation, seed, 60)).unwrap();
    for correlation in [0.0, 0.5, 0.9] {
        let falls = |fall| (0..200).filter(|seed| of(fall, correlation, *seed).errors <= -Drift::LIMIT).count();
        assert!(falls(0.0) <= 12, "{correlation}: {}", falls(0.0));
        assert!(correlation > 0.5 || falls(0.2) >= 180, "{correlation}: {}", falls(0.2));
    }
    // A cache that is filled at first hides a fall from a line through all.
    let later = |seed| series(|t| (0.7 + 0.1 * t).min(1.0 - 0.07 * (t - 3.0)), 0.05, 0.0, seed, 60);
    let seen = |from: usize, limit: f64| {
        (0..200).filter(|seed| drift(&later(*seed)[from..]).unwrap().errors <= -limit).count()
    };
    assert!(seen(30, Drift::LIMIT_OF_HALF) >= 150 && seen(0, Drift::LIMIT) <= 12);
    let rise = drift(&(0..60).map(|i| 100.0 + f64::from(i)).collect::<Vec<_>>()).unwrap();
    assert!(rise.errors >= Drift::LIMIT && (rise.change - 59.0 / 129.5).abs() < 1e-9, "{rise:?}");
    let still = drift(&[7.0; 60]).unwrap();
    assert_eq!((still.change, still.errors, still.least()), (0.0, 0.0, None));
    assert_eq!([drift(&[0.0; 60]), drift(&[1.0; 5])], [None, None]);
}

/// Findings in 20 windows of `n` values.
fn seen(truth: impl Fn(f64) -> f64, noise: f64, n: usize) -> Vec<Option<Departure>> {
    (0..20).map(|seed| departure(&series(&truth, noise, 0.5, seed, n), 5)).collect()
}

#[test]
fn falls_rises_stalls_and_outages_are_seen_where_they_were() {
    // A level between two times, noise, values of the window, how far off the ends may be, the levels that may be seen.
    for (planted, [from_s, to_s], noise, n, most_off, levels) in [
        (0.62, [12.0, 20.0], 0.05, 200, 4, 0.57..0.67),
        (0.03, [3.0, 4.5], 0.05, 100, 1, 0.0..0.1),
        // An outage, in any noise and however little it cost.
        (0.0, [7.0, 9.5], 0.35, 300, 3, 0.0..0.1),
        (0.0, [7.0, 8.0], 0.6, 300, 3, 0.0..0.1),
        (0.0, [7.0, 7.6], 0.05, 300, 3, 0.0..0.1),
    ] {
        for d in seen(level(planted, from_s, to_s), noise, n) {
            let d = d.unwrap_or_else(|| panic!("{planted} from {from_s} s"));
            let [start, end] = [from_s, to_s].map(|s| (s * 10.0) as usize);
            let off = d.values.start.abs_diff(start).max(d.values.end.abs_diff(end));
            assert!(off <= most_off && levels.contains(&d.level), "{planted} from {from_s} s: {d:?}");
        }
    }
    for Departure { values, level } in seen(|t| 0.7 + 0.015 * t, 0.03, 200).into_iter().map(Option::unwrap) {
        let low = (0.7..0.9).contains(&level) && values.start == 0;
        assert!(low || (1.1..1.4).contains(&level) && values.end == 200, "{values:?}: {level}");
    }
    assert!(seen(level(0.03, 3.0, 3.3), 0.05, 100).iter().all(Option::is_none));
    // Levels without noise, a window that began with nothing, and values without work: one may be chance, so many in a row are none.
    let parts = |all: &[(f64, usize)]| departure(&all.iter().flat_map(|(v, n)| vec![*v; *n]).collect::<Vec<_>>(), 5);
    let some = |from, to, level| Some(Departure { values: from..to, level });
    assert_eq!(parts(&[(4.0, 12), (5.0, 8)]), some(12, 20, 1.25));
    assert_eq!(parts(&[(5.0, 4), (0.0, 16)]), some(4, 20, 0.0));
    assert_eq!(parts(&[(0.0, 19), (3.0, 1)]), some(0, 19, 0.0));
    assert_eq!([4, 5].map(|n| parts(&[(1.0, 50), (0.0, n), (1.0, 50)])), [None, some(50, 55, 0.0)]);
}

#[test]
fn flat_series_are_not_marked() {
    let marked = |n, correlation| {
        let noise = |seed| if seed % 2 == 0 { 0.2 } else { 0.3 };
        let values = |seed| series(|_| 1.0, noise(seed), correlation, seed, n);
        (0..500).filter(|seed| departure(&values(*seed), 5).is_some()).count()
    };
    for n in [20, 40, 100, 300] {
        let all = [marked(n, 0.0), marked(n, 0.8)];
        assert!(all.iter().all(|marked| *marked <= 12), "{n} values: {all:?} of 500");
    }
}

proptest! {
    #[test]
    fn nothing_panics_and_a_constant_is_steady(
        values in prop::collection::vec(any::<f64>(), 0..200), jobs in 0u32..5000, level in 0.1f64..1e6
    ) {
        let _ = (is_warm(&values, steps(level, jobs, STEP_S)), departure(&values, values.len() % 7));
        prop_assert_eq!(departure(&vec![level; values.len()], 1), None);
    }

    #[test]
    fn the_scale_does_not_matter(seed: u64, power in -10i32..10) {
        let values = series(level(0.6, 5.0, 10.0), 0.1, 0.3, seed, 100);
        // By a power of 2, so that nothing is rounded.
        let scaled: Vec<f64> = values.iter().map(|v| v * 2f64.powi(power)).collect();
        prop_assert_eq!(departure(&values, 5), departure(&scaled, 5));
        prop_assert_eq!(is_warm(&values, 1), is_warm(&scaled, 1));
    }
}
