//! How uncertain the mean of one window is, from the course of that window alone.
//!
//! Neighbouring values are alike, so means of batches are taken (Schmeiser, Operations Research 30 (1982) 556: 10 to 30 batches). What
//! correlation they keep widens the interval twice: by the variance of the mean, and by the degrees of freedom (Bayley and Hammersley,
//! JRSS Supplement 8 (1946) 184).
//!
//! It holds for a course that is steady, and says nothing of what differs from window to window: docs/statistics.md has both.

use crate::stats::{LongRun, averaged, long_run, mean, student_t_975};

/// Batches of a window. Of 10 the correlation is not known well enough: one interval in ten would be 25 times too wide.
const BATCHES: usize = 20;
/// Fewest values: two in each batch.
pub const LEAST_VALUES: usize = 2 * BATCHES;

/// Half width of the 95 % interval of the mean of `values`, as a share of it. They are evenly spaced in one window, each the mean
/// over its time. `None` with fewer than [`LEAST_VALUES`], or unless their mean is positive and all is finite.
pub fn half_width(values: &[f64]) -> Option<f64> {
    if values.len() < LEAST_VALUES {
        return None;
    }
    let means = averaged(values, values.len() / BATCHES);
    let level = mean(&means).filter(|level| *level > 0.0)?;
    let left: Vec<f64> = means.iter().map(|x| x - level).collect();
    let LongRun { variance, correlation } = long_run(&left);
    let worth = (left.len() as f64 - 1.0) * (1.0 - correlation) / (1.0 + correlation);
    // The cast saturates.
    let half = student_t_975((worth as usize).max(1))? * (variance / left.len() as f64).sqrt() / level;
    half.is_finite().then_some(half)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::paired::simulated::series;

    #[test]
    fn intervals_hold_the_true_mean_however_alike_neighbours_are() {
        for (n, correlation, most) in [
            (40, 0.0, 0.07),
            (40, 0.8, 0.08),
            (40, 0.5, 0.07),
            (40, 0.9, 0.09),
            (100, 0.0, 0.07),
            (100, 0.8, 0.07),
            (300, 0.9, 0.07),
            (600, 0.95, 0.07),
        ] {
            let missed = |seed: &u64| {
                let values = series(|_| 1.0, 0.1, correlation, *seed, n);
                (mean(&values).unwrap() - 1.0).abs() > half_width(&values).unwrap() * mean(&values).unwrap()
            };
            let missed = (0..1000).filter(missed).count() as f64 / 1000.0;
            assert!(missed <= most, "{n} values, correlation {correlation}: {missed}");
        }
    }

    #[test]
    fn the_interval_is_not_much_wider_than_it_must_be() {
        let widths = |n: usize| {
            let width = |seed| half_width(&series(|_| 1.0, 0.1, 0.0, seed, n)).unwrap();
            let mut all: Vec<f64> = (0..100).map(width).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        // 1.96 × 0.1 / √400.
        let typical = crate::stats::median(&widths(400)).unwrap();
        assert!((0.0098..0.0150).contains(&typical), "{typical}");
        let least = widths(LEAST_VALUES);
        assert!(least[90] < 3.0 * 1.96 * 0.1 / (LEAST_VALUES as f64).sqrt(), "{least:?}");
        assert_eq!(half_width(&[5.0; 40]), Some(0.0));
        assert_eq!((half_width(&[5.0; LEAST_VALUES - 1]), half_width(&[0.0; 40])), (None, None));
    }

    proptest! {
        #[test]
        fn never_panics(values in prop::collection::vec(any::<f64>(), 0..150)) {
            prop_assert!(half_width(&values).is_none_or(|half| half >= 0.0));
        }
    }
}
