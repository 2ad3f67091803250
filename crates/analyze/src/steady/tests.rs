use proptest::prelude::*;

use super::simulated::{Course, Plant};
use super::*;

/// When the window opens, s.
fn opens(values: &[f64]) -> Option<f64> {
    (1..=values.len()).filter(|n| n % LOOK_EVERY == 0).find(|n| is_warm(&values[..*n], 1)).map(|n| n as f64 * STEP_S)
}

#[test]
fn a_plateau_opens_soon_and_an_approach_late() {
    let flat = Plant { noise: 0.05, correlation: 0.5, ..Plant::FLAT };
    let rises = Plant { course: Course::Approach(0.7, 2.0), ..flat };
    let at = |plant: Plant, seed| opens(&plant.series(seed, 600)).unwrap();
    for seed in 0..20 {
        assert!(at(flat, seed) >= EARLIEST_S - 1e-9);
        let t = at(rises, seed);
        assert!(rises.truth(t) > 0.97, "seed {seed}: {t} s");
    }
    let early = (0..20).filter(|seed| at(flat, *seed) < 15.0).count();
    assert!(early >= 15, "{early} of 20 plateaus");
}

#[test]
fn a_rise_that_goes_on_never_opens_and_says_how_fast() {
    let ramp = Plant { course: Course::Ramp(0.3, 100.0), noise: 0.02, ..Plant::FLAT };
    let values = ramp.series(1, 600);
    assert_eq!(opens(&values), None);
    let Look::Trend(per_s, true) = look(&values, 1) else { panic!("{:?}", look(&values, 1)) };
    // It rises by 0.007 a second; the mean of the last half is 0.615.
    assert!((per_s - 0.0114).abs() < 0.002, "{per_s}");
}

#[test]
fn long_transactions_need_a_long_warm_up() {
    let slow = |rate: f64, n: usize, jobs| look(&vec![rate; n], steps_of(&vec![rate; n], jobs));
    assert!(matches!(slow(8.0, 150, 1), Look::TooShort(s) if s > 20.0), "{:?}", slow(8.0, 150, 1));
    assert_eq!(slow(8.0, 300, 1), Look::Trend(0.0, false));
    assert!(matches!(slow(8.0, 300, 8), Look::TooShort(_)));
    assert_eq!(look(&[0.0; 100], steps_of(&[0.0; 100], 1)), Look::Nothing);
    assert_eq!(look(&[], 1), Look::TooShort(EARLIEST_S));
}

#[test]
fn trends_are_seen_and_noise_is_none() {
    // By hand: the slope of 0, 1, …, 9 with one 0.5 too high is 1 − 0.5 · 1.5 / 82.5 at place 3.
    let values: Vec<f64> = (0..10).map(|i| f64::from(i) + if i == 3 { 0.5 } else { 0.0 }).collect();
    let (slope, errors) = trend(&values).unwrap();
    assert!((slope - (1.0 - 0.75 / 82.5)).abs() < 1e-12 && errors > 10.0, "{slope} {errors}");
    assert_eq!(trend(&[0.1; 30]), Some((0.0, 0.0)));
    assert_eq!((trend(&[1.0; 4]), trend(&[f64::NAN; 30])), (None, None));
    for correlation in [0.0, 0.5, 0.8] {
        let flat = Plant { noise: 0.05, correlation, ..Plant::FLAT };
        let seen = |rise: f64| {
            let rising =
                |seed| flat.series(seed, 50).iter().zip(0..).map(|(v, i)| v + rise * f64::from(i)).collect::<Vec<_>>();
            (0..200).filter(|seed| trend(&rising(*seed)).unwrap().1.abs() > 1.645).count()
        };
        assert!(seen(0.0) <= 60 && seen(0.008) >= 180, "{correlation}: {} {}", seen(0.0), seen(0.008));
    }
}

/// What is seen in 20 windows of `n` values.
fn seen(course: Course, noise: f64, n: usize) -> Vec<Option<Departure>> {
    (0..20).map(|seed| departure(&Plant { course, noise, correlation: 0.5 }.series(seed, n), 5)).collect()
}

#[test]
fn falls_rises_stalls_and_outages_are_seen_where_they_were() {
    // A level between two times, noise, values of the window, how far off the ends may be, the levels that may be seen.
    for (level, [from_s, to_s], noise, n, most_off, levels) in [
        (0.62, [12.0, 20.0], 0.05, 200, 4, 0.57..0.67),
        (0.03, [3.0, 4.5], 0.05, 100, 1, 0.0..0.1),
        // An outage, in any noise and however little it cost.
        (0.0, [7.0, 9.5], 0.15, 300, 3, 0.0..0.1),
        (0.0, [7.0, 9.5], 0.35, 300, 3, 0.0..0.1),
        (0.0, [7.0, 8.0], 0.6, 300, 3, 0.0..0.1),
        (0.0, [7.0, 7.6], 0.05, 300, 3, 0.0..0.1),
    ] {
        for d in seen(Course::Level(level, from_s, to_s), noise, n) {
            let d = d.unwrap_or_else(|| panic!("{level} from {from_s} s"));
            let off = d.from.abs_diff((from_s * 10.0) as usize).max(d.to.abs_diff((to_s * 10.0) as usize));
            assert!(off <= most_off && levels.contains(&d.level), "{level} from {from_s} s: {d:?}");
        }
    }
    for d in seen(Course::Ramp(0.7, 20.0), 0.03, 200) {
        let d = d.unwrap();
        assert!((0.7..0.9).contains(&d.level) && d.from == 0 || (1.1..1.4).contains(&d.level) && d.to == 200, "{d:?}");
    }
    assert!(seen(Course::Level(0.03, 3.0, 3.3), 0.05, 100).iter().all(Option::is_none));
    // Levels without noise, and a window that began with nothing.
    let two = |a: f64, n: usize, b: f64| departure(&[vec![a; n], vec![b; 20 - n]].concat(), 5);
    assert_eq!(two(4.0, 12, 5.0), Some(Departure { from: 12, to: 20, level: 1.25 }));
    assert_eq!(two(5.0, 4, 0.0), Some(Departure { from: 4, to: 20, level: 0.0 }));
    assert_eq!(two(0.0, 19, 3.0).unwrap().level, 0.0);
    // A value without work may be chance; so many in a row are none.
    let gap = |n: usize| departure(&[vec![1.0; 50], vec![0.0; n], vec![1.0; 50]].concat(), 5);
    assert!(gap(4).is_none() && gap(5).is_some());
}

#[test]
fn flat_series_are_not_marked() {
    let marked = |n, correlation| {
        let of = |noise, seed| departure(&Plant { noise, correlation, ..Plant::FLAT }.series(seed, n), 5);
        (0..500).filter(|seed| of(if seed % 2 == 0 { 0.2 } else { 0.3 }, *seed).is_some()).count()
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
        let _ = (is_warm(&values, steps_of(&values, jobs)), departure(&values, values.len() % 7));
        prop_assert_eq!(departure(&vec![level; values.len()], 1), None);
    }

    #[test]
    fn the_scale_does_not_matter(seed: u64, power in -10i32..10) {
        let values = Plant { course: Course::Level(0.6, 5.0, 10.0), noise: 0.1, correlation: 0.3 }.series(seed, 100);
        // By a power of 2, so that nothing is rounded.
        let scaled: Vec<f64> = values.iter().map(|v| v * 2f64.powi(power)).collect();
        prop_assert_eq!(departure(&values, 5), departure(&scaled, 5));
        prop_assert_eq!(is_warm(&values, 1), is_warm(&scaled, 1));
    }
}
