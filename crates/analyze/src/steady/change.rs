//! What changed in the course of a window: a stall, a change of level, or a straight rise or fall.
//!
//! A stall is a time far below the median, or without any work. Of the rest, the change of level (at any time) or the straight line that leaves
//! the smaller squares is compared with its standard error, which holds for autocorrelated values: an autoregressive model
//! of order 1 of what it leaves, with Kendall's (1954) correction of bias. The limits are simulated: docs/steady.md.

use crate::stats::{averaged, long_run, mean, median};

/// Fewest values in which a change can be seen.
pub const LEAST_VALUES: usize = 10;
/// Most values; more are averaged.
const MOST_VALUES: usize = 60;
/// Changes below this share of the mean, and stalls that cost less of the window's work, are not worth a mark.
pub const LEAST_CHANGE: f64 = 0.1;
/// From so many standard errors on it is a change, with 100 values or more. Fewer need more: the time of the change is
/// chosen, and autocorrelation is estimated too low.
const LIMIT: f64 = 5.0;
const LIMIT_VALUES: f64 = 100.0;
const LIMIT_POWER: f64 = 0.36;
/// A stall is below this share of the median,
const STALL: f64 = 0.5;
/// and, in means of so many values, so many robust standard deviations of their noise below it. Longer means have less noise.
const STALL_STEPS: [(usize, f64); 2] = [(1, 7.0), (5, 3.5)];
/// An outage is at most this share of the median. It is a stall however noisy the other values are, and whatever it cost.
const OUTAGE: f64 = 0.02;
/// Standard deviations of a normal distribution in a median absolute deviation.
const MAD: f64 = 1.482_6;

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Departure {
    /// In which way.
    pub kind: Kind,
    /// First value after it began; of a straight line, 0.
    pub from: usize,
}

/// In which way throughput was not steady.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// For `long` values it was a `level` of the median; all such times cost a `lost` share of the work.
    Stall {
        /// Number of values.
        long: usize,
        /// Mean, as a share of the usual throughput.
        level: f64,
        /// Share of the work that all stalls cost.
        lost: f64,
        /// Number of stalls.
        times: usize,
    },
    /// It changed by this share of what it was before, at once; infinite if that was nothing.
    Level(f64),
    /// It changed by this share of its mean in a straight line.
    Line(f64),
}

/// What changed in `values`; `None` if nothing of note did, or there are too few. `outage`: fewest values one after the other
/// without work that cannot be chance.
#[must_use]
pub fn departure(values: &[f64], outage: usize) -> Option<Departure> {
    if values.len() < LEAST_VALUES || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let slow = |(each, errors): (usize, f64)| {
        let values: Vec<f64> = values.chunks_exact(each).filter_map(mean).collect();
        let (usual, floor) = usual(&values, errors)?;
        stalls(&values, each, usual, floor, 1).filter(|(_, lost)| *lost >= LEAST_CHANGE)
    };
    let dark = || usual(values, 0.0).and_then(|(usual, _)| stalls(values, 1, usual, OUTAGE * usual, outage.max(1)));
    let stall = STALL_STEPS.into_iter().find_map(slow).or_else(dark);
    stall.map(|(departure, _)| departure).or_else(|| change(values))
}

/// The usual value, and the floor below which a value is a stall: `errors` standard deviations lower.
fn usual(values: &[f64], errors: f64) -> Option<(f64, f64)> {
    match median(values).filter(|_| values.len() >= LEAST_VALUES)? {
        // It stalled for longer than not.
        0.0 => mean(values).map(|mean| (mean, mean * STALL)),
        usual => {
            // Of neighbours, so that a drift is no noise.
            let apart: Vec<f64> = values.iter().zip(values.iter().skip(1)).map(|(a, b)| (b - a).abs()).collect();
            let noise = MAD * median(&apart)? / std::f64::consts::SQRT_2;
            Some((usual, (usual * STALL).min(usual - errors * noise)))
        }
    }
}

/// The times of `least` values or more below `floor`, and the share of the work that they cost. Each value is a mean of `each`.
fn stalls(values: &[f64], each: usize, usual: f64, floor: f64, least: usize) -> Option<(Departure, f64)> {
    let stalled = |v: f64| v < floor;
    let lost_in = |of: &[f64]| of.iter().map(|v| usual - v).sum::<f64>();
    let (mut at, mut all) = (0, Vec::new());
    for run in values.chunk_by(|a, b| stalled(*a) == stalled(*b)) {
        if run.len() >= least && run.first().is_some_and(|v| stalled(*v)) {
            all.push((at, run));
        }
        at += run.len();
    }
    let lost = all.iter().map(|(_, run)| lost_in(run)).sum::<f64>() / (usual * values.len() as f64);
    let (from, worst) = all.iter().max_by(|a, b| lost_in(a.1).total_cmp(&lost_in(b.1)))?;
    let level = mean(worst)? / usual;
    let kind = Kind::Stall { long: worst.len() * each, level, lost, times: all.len() };
    Some((Departure { kind, from: from * each }, lost))
}

fn change(values: &[f64]) -> Option<Departure> {
    let each = values.len().div_ceil(MOST_VALUES);
    let skipped = values.len() % each;
    let v = averaged(values, each);
    let (n, middle) = (v.len() as f64, mean(&v)?);
    let (at, of_level) = best_level(&v, middle)?;
    let time = |i: usize| i as f64 - (n - 1.0) / 2.0;
    let spread = n * (n * n - 1.0) / 12.0;
    let slope = v.iter().enumerate().map(|(i, x)| time(i) * (x - middle)).sum::<f64>() / spread;
    let of_line = slope * slope * spread;
    let (before, after) = (mean(v.get(..at)?)?, mean(v.get(at..)?)?);
    let is_line = of_line > of_level;
    let fitted = |i: usize| match (is_line, i < at) {
        (true, _) => middle + slope * time(i),
        (false, true) => before,
        (false, false) => after,
    };
    let left: Vec<f64> = v.iter().enumerate().map(|(i, x)| x - fitted(i)).collect();
    let errors = (of_line.max(of_level) / long_run(&left).variance).sqrt();
    let (first, last) = if is_line { (fitted(0), fitted(v.len() - 1)) } else { (before, after) };
    let share = (last - first) / if is_line { middle } else { first };
    let limit = LIMIT * (LIMIT_VALUES / values.len() as f64).max(1.0).powf(LIMIT_POWER);
    let seen = errors > limit && (last - first).abs() >= LEAST_CHANGE * middle;
    let (kind, from) = if is_line { (Kind::Line(share), 0) } else { (Kind::Level(share), skipped + at * each) };
    seen.then_some(Departure { kind, from })
}

/// The split with the largest difference, and by how much it lowers the sum of squares.
fn best_level(values: &[f64], middle: f64) -> Option<(usize, f64)> {
    let n = values.len();
    let least = (n / 10).max(2);
    let mut sum = 0.0;
    let gains = values.iter().enumerate().map(|(i, v)| {
        sum += v - middle;
        let (before, after) = ((i + 1) as f64, (n - i - 1) as f64);
        (i + 1, sum * sum * n as f64 / (before * after))
    });
    gains.filter(|(at, _)| (least..=n - least).contains(at)).max_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::steady::simulated::{Course, Plant};

    /// What is seen in 20 windows of `n` values.
    fn seen(course: Course, noise: f64, n: usize) -> Vec<Option<Departure>> {
        (0..20).map(|seed| departure(&Plant { course, noise, correlation: 0.5 }.series(seed, n), 5)).collect()
    }

    #[test]
    fn a_fall_is_seen_where_it_was() {
        for d in seen(Course::Fall(0.62, 12.0), 0.05, 200) {
            let Some(Departure { kind: Kind::Level(share), from }) = d else { panic!("{d:?}") };
            assert!((share + 0.38).abs() < 0.05 && from.abs_diff(120) <= 4, "{d:?}");
        }
    }

    #[test]
    fn a_straight_rise_is_no_change_of_level() {
        for d in seen(Course::Ramp(0.7, 20.0), 0.03, 200) {
            let Some(Departure { kind: Kind::Line(share), from: 0 }) = d else { panic!("{d:?}") };
            assert!((share - 0.35).abs() < 0.08, "{share}");
        }
    }

    #[test]
    fn a_stall_is_seen_with_its_length_and_short_ones_are_not() {
        for d in seen(Course::Stall(0.03, 3.0, 1.5), 0.05, 100) {
            let Some(Departure { kind: Kind::Stall { long, level, lost, times: 1 }, from }) = d else {
                panic!("{d:?}")
            };
            assert!((long, from) == (15, 30) && level < 0.1 && (lost - 0.145).abs() < 0.02, "{d:?}");
        }
        assert!(seen(Course::Stall(0.03, 3.0, 0.3), 0.05, 100).iter().all(Option::is_none));
        let noisy = seen(Course::Stall(0.0, 6.0, 2.0), 0.35, 120);
        let found = noisy.iter().flatten().filter(|d| matches!(d.kind, Kind::Stall { .. })).count();
        assert!(found >= 18, "{found} of 20 in much noise");
        let mostly = departure(&[[5.0; 4].as_slice(), &[0.0; 16]].concat(), 5);
        assert!(matches!(mostly, Some(Departure { kind: Kind::Stall { long: 16, .. }, from: 4 })), "{mostly:?}");
    }

    #[test]
    fn an_outage_is_seen_in_any_noise_and_however_little_it_cost() {
        for (noise, long) in [(0.15, 2.5), (0.35, 2.5), (0.6, 1.0), (0.05, 0.6)] {
            for d in seen(Course::Stall(0.0, 7.0, long), noise, 300) {
                let Some(Departure { kind: Kind::Stall { long: values, .. }, from }) = d else {
                    panic!("{noise}: {d:?}")
                };
                assert!(values.abs_diff((long * 10.0) as usize) <= 3 && from.abs_diff(70) <= 3, "{noise}: {d:?}");
            }
        }
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
        fn a_constant_is_steady_and_nothing_panics(values in prop::collection::vec(any::<f64>(), 0..150), level in 0.1f64..1e6) {
            let _ = departure(&values, values.len() % 7);
            prop_assert_eq!(departure(&vec![level; values.len()], 1), None);
        }

        #[test]
        fn the_scale_does_not_matter(seed: u64, power in -10i32..10) {
            let values = Plant { course: Course::Fall(0.6, 5.0), noise: 0.1, correlation: 0.3 }.series(seed, 100);
            // By a power of 2, so that nothing is rounded.
            let scaled: Vec<f64> = values.iter().map(|v| v * 2f64.powi(power)).collect();
            prop_assert_eq!(departure(&values, 5), departure(&scaled, 5));
        }
    }
}
