//! Whether throughput is steady: when the window may open after a warm-up, and whether it stayed so in the window. Pure
//! functions of evenly spaced values of [`STEP_S`].
//!
//! The methods were chosen by simulation and on real warm-ups: docs/steady.md.

mod change;
pub mod simulated;
mod trend;

pub use change::{Departure, Kind, LEAST_CHANGE, LEAST_VALUES, departure};
pub use trend::{Trend, trend};

use crate::stats::{averaged, mean};

/// Time of a value, s.
pub const STEP_S: f64 = 0.1;
/// A time without work that is an outage, s.
pub const OUTAGE_S: f64 = 0.5;
/// Values between two looks.
pub const LOOK_EVERY: usize = 5;
/// Looks without a trend, one after the other, after which throughput is steady.
pub const LOOKS: usize = 5;
/// Values at the first look.
pub const FIRST_LOOK: usize = 50;
/// Above this the trend of a look is one: 10 %, two-sided.
pub const TREND_Z: f64 = 1.645;
/// Fewest and most values of a look: with fewer a trend is not seen, more are averaged.
const VALUES: (usize, usize) = (20, 60);
/// Fewest transactions in a value.
const LEAST_TRANSACTIONS: u32 = 4;

/// Time after which a warm-up may be over at the earliest, s.
pub const EARLIEST_S: f64 = (FIRST_LOOK + (LOOKS - 1) * LOOK_EVERY) as f64 * STEP_S;

/// What a look saw in the last half of a warm-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Look {
    /// Too few values: the warm-up is too short, or transactions take too long for it. Holds the time needed, s.
    TooShort(f64),
    /// Nothing completed in it.
    Nothing,
    /// The trend, as a share of the mean per second, and whether it is one.
    Trend(f64, bool),
}

/// Number of values of [`STEP_S`] to average if `jobs` busy jobs complete `rate` transactions per second: at least as long as a
/// transaction takes, and as four take together. Shorter ones would only show when transactions end.
#[must_use]
pub fn steps(rate: f64, jobs: u32) -> usize {
    // The cast saturates.
    (f64::from(jobs.max(LEAST_TRANSACTIONS)) / rate / STEP_S).ceil().max(1.0) as usize
}

/// The same for the last half of `rates`, the transactions per second since the load began.
#[must_use]
pub fn steps_of(rates: &[f64], jobs: u32) -> usize {
    let level = rates.get(rates.len() / 2..).and_then(mean).filter(|level| *level > 0.0);
    level.map_or(1, |level| steps(level, jobs))
}

/// Fewest values of `each_s` without work that are an outage. With few transactions in a value (`sparse`) one without any may be
/// chance.
#[must_use]
pub fn outage(each_s: f64, sparse: bool) -> usize {
    // The cast saturates.
    ((OUTAGE_S / each_s - 1e-9).ceil() as usize).max(if sparse { 2 } else { 1 })
}

/// Looks at `values`, all since the load began, in means of `least` or more.
#[must_use]
pub fn look(values: &[f64], least: usize) -> Look {
    let half = values.get(values.len() / 2..).unwrap_or_default();
    let Some(level) = mean(half).filter(|level| *level > 0.0) else {
        return if values.len() < FIRST_LOOK { Look::TooShort(EARLIEST_S) } else { Look::Nothing };
    };
    let needed = least.saturating_mul(2 * VALUES.0).max(FIRST_LOOK);
    if values.len() < needed {
        return Look::TooShort(needed.saturating_add((LOOKS - 1) * LOOK_EVERY) as f64 * STEP_S);
    }
    let each = least.max(half.len().div_ceil(VALUES.1));
    let Some(trend) = trend(&averaged(half, each)) else { return Look::Nothing };
    Look::Trend(trend.slope / level / (each as f64 * STEP_S), trend.z.abs() >= TREND_Z)
}

/// Whether a warm-up is over: none of the last looks, in means of `least` or more, saw a trend. `values` are all since the load
/// began.
#[must_use]
pub fn is_warm(values: &[f64], least: usize) -> bool {
    (0..LOOKS).all(|back| {
        let before = values.len().checked_sub(back * LOOK_EVERY).and_then(|n| values.get(..n));
        before.is_some_and(|values| matches!(look(values, least), Look::Trend(_, false)))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::simulated::{Course, Plant};
    use super::*;

    /// When the window opens, s.
    fn opens(values: &[f64]) -> Option<f64> {
        (1..=values.len())
            .filter(|n| n % LOOK_EVERY == 0)
            .find(|n| is_warm(&values[..*n], 1))
            .map(|n| n as f64 * STEP_S)
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

    proptest! {
        #[test]
        fn never_panics(values in prop::collection::vec(any::<f64>(), 0..200), jobs in 0u32..5000) {
            let _ = (is_warm(&values, steps_of(&values, jobs)), departure(&values, 5));
        }

        #[test]
        fn the_scale_does_not_matter(values in prop::collection::vec(50f64..1e5, 50..120)) {
            let scaled: Vec<f64> = values.iter().map(|v| v * 8.0).collect();
            prop_assert_eq!(is_warm(&values, 1), is_warm(&scaled, 1));
        }
    }
}
