//! Whether a series has a trend: Mann (1945) and Kendall (1975), with the variance of Hamed and Rao (1998, Journal of
//! Hydrology 204), which holds for autocorrelated values.

use crate::stats::{mean, median};

/// Values above which autocorrelations of ranks are significant, times √n: 5 %, two-sided.
const SIGNIFICANT: f64 = 1.96;
/// Lower bound of the factor by which autocorrelation changes the variance: a few negative correlations by chance must not
/// make it zero.
const LEAST_FACTOR: f64 = 0.1;

/// The trend of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Standard normal without a trend; positive if values rise.
    pub z: f64,
    /// Median slope of all pairs of values (Sen 1968), per value.
    pub slope: f64,
}

/// The trend of `values`, which are evenly spaced; `None` for fewer than 5, or if one is not finite. Its time grows with
/// the square of their number.
#[must_use]
pub fn trend(values: &[f64]) -> Option<Trend> {
    if values.len() < 5 || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let pairs = || values.iter().enumerate().flat_map(|(i, a)| values.iter().skip(i + 1).map(move |b| b - a));
    let score: f64 = pairs().map(|d| if d == 0.0 { 0.0 } else { d.signum() }).sum();
    let apart = (0..values.len()).flat_map(|i| 1..values.len() - i);
    let slopes: Vec<f64> = pairs().zip(apart).map(|(d, apart)| d / apart as f64).collect();
    let slope = median(&slopes)?;
    let n = values.len() as f64;
    let level: Vec<f64> = values.iter().enumerate().map(|(i, v)| v - slope * i as f64).collect();
    let variance = n * (n - 1.0) * (2.0 * n + 5.0) / 18.0 * factor(&ranks(&level));
    // The correction for continuity.
    let z = (score.abs() - 1.0).max(0.0).copysign(score) / variance.sqrt();
    Some(Trend { z, slope })
}

/// By how much autocorrelation multiplies the variance of the score.
fn factor(ranks: &[f64]) -> f64 {
    let n = ranks.len() as f64;
    let Some(middle) = mean(ranks) else { return 1.0 };
    let off: Vec<f64> = ranks.iter().map(|r| r - middle).collect();
    let all: f64 = off.iter().map(|o| o * o).sum();
    if all == 0.0 {
        return 1.0;
    }
    let of_lag = |lag: usize| {
        let correlation = off.iter().zip(off.iter().skip(lag)).map(|(a, b)| a * b).sum::<f64>() / all;
        let left = n - lag as f64;
        let weight = left * (left - 1.0) * (left - 2.0);
        if correlation.abs() > SIGNIFICANT / n.sqrt() { weight * correlation } else { 0.0 }
    };
    let sum: f64 = (1..ranks.len().saturating_sub(2)).map(of_lag).sum();
    (1.0 + 2.0 * sum / (n * (n - 1.0) * (n - 2.0))).max(LEAST_FACTOR)
}

/// Ranks from 1; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<(usize, f64)> = values.iter().copied().enumerate().collect();
    sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equal in sorted.chunk_by(|a, b| a.1 == b.1) {
        let rank = before as f64 + (equal.len() as f64 + 1.0) / 2.0;
        for (at, _) in equal {
            if let Some(of) = ranks.get_mut(*at) {
                *of = rank;
            }
        }
        before += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::steady::simulated::Plant;

    #[test]
    fn the_score_is_that_of_a_worked_example() {
        // By hand: 5 values, one of 10 pairs falls, so S = 8; var = 5·4·15/18 = 16.667, z = 7/4.0825.
        let t = trend(&[1.0, 2.0, 4.0, 3.0, 5.0]).unwrap();
        assert!((t.slope - 1.0).abs() < 1e-12, "{t:?}");
        assert!(t.z > 1.7, "{t:?}");
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 7.0]), [2.5, 1.0, 2.5, 4.0]);
        assert_eq!(trend(&[1.0; 30]), Some(Trend { z: 0.0, slope: 0.0 }));
        assert_eq!(trend(&[1.0; 4]), None);
        assert_eq!(trend(&[1.0, 2.0, f64::NAN, 3.0, 4.0, 5.0]), None);
    }

    #[test]
    fn autocorrelation_widens_and_a_rise_is_seen() {
        let share = |plant: Plant| {
            let seen = (0..200).filter(|seed| trend(&plant.series(*seed, 50)).is_some_and(|t| t.z.abs() > 1.645));
            seen.count() as f64 / 200.0
        };
        let flat = Plant { noise: 0.05, ..Plant::FLAT };
        assert!((0.04..0.2).contains(&share(flat)), "{}", share(flat));
        let widened = |correlation| {
            let of = |seed| factor(&ranks(&Plant { correlation, ..flat }.series(seed, 50)));
            mean(&(0..200).map(of).collect::<Vec<_>>()).unwrap()
        };
        assert!((0.7..1.3).contains(&widened(0.0)) && widened(0.8) > 1.5, "{} {}", widened(0.0), widened(0.8));
        let rising = |i: usize, seed| flat.series(seed, 50).get(i).map(|v| v + 0.004 * i as f64).unwrap_or_default();
        let found = (0..50).filter(|s| trend(&(0..50).map(|i| rising(i, *s)).collect::<Vec<_>>()).unwrap().z > 1.645);
        assert!(found.count() > 45);
    }

    proptest! {
        #[test]
        fn backwards_is_the_opposite_and_scale_does_not_matter(
            values in prop::collection::vec(-1e6f64..1e6, 5..60), scale in 0.1f64..100.0
        ) {
            let of = |v: Vec<f64>| trend(&v).unwrap();
            let (t, scaled) = (of(values.clone()), of(values.iter().map(|v| v * scale).collect()));
            let back = of(values.iter().rev().copied().collect());
            // The variance may differ: without its slope the pair of values that gave it is equal but for rounding.
            prop_assert!(t.z * back.z <= 0.0 && t.z.is_finite() && (t.slope + back.slope).abs() <= 1e-9 * t.slope.abs());
            prop_assert!((t.slope * scale - scaled.slope).abs() <= 1e-9 * scaled.slope.abs().max(1e-3));
        }

        #[test]
        fn never_panics(values in prop::collection::vec(any::<f64>(), 0..40)) {
            let _ = trend(&values);
        }
    }
}
