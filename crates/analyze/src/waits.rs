//! Latencies in power-of-two buckets, like Oracle's wait histograms: up to 1 µs, 2 µs, 4 µs, … 512 µs, 1 ms, ….
//!
//! Bounds are powers of two of a microsecond, so '1 ms' is 1,024 µs and '1 s' 1,048,576 µs. The source histogram is
//! precise to 0.1 %, and so are the bounds.

use loadline_model::Latencies;
use serde::{Deserialize, Serialize};

/// One bucket: latencies above the previous bound, up to its own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bucket {
    /// Bound is 2^`power` µs.
    pub power: u32,
    pub count: u64,
    pub share_pct: f64,
    /// Share of all up to the bound, %.
    pub up_to_pct: f64,
}

impl Bucket {
    /// The bound as shown: `512 µs`, `1 ms`, `2 s`.
    pub fn label(&self) -> String {
        label(self.power)
    }
}

pub fn label(power: u32) -> String {
    let unit = ["µs", "ms", "s"];
    let step = (power / 10).min(2);
    format!("{} {}", 1u64.checked_shl(power - step * 10).unwrap_or(u64::MAX), unit[step as usize])
}

/// Latencies counted by bucket: a few hundred bytes, instead of 270 KiB for the full histogram.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Counts {
    counts: Vec<u64>,
}

impl Counts {
    pub fn from_latencies(latencies: &Latencies) -> Counts {
        let mut all = Counts::default();
        for value in latencies.histogram().iter_recorded() {
            // The lowest latency of a histogram value, so that a latency at the bound stays below it.
            let ns = latencies.histogram().lowest_equivalent(value.value_iterated_to());
            // The first bucket whose bound is not below it.
            let count = all.at(ns.div_ceil(1_000).next_power_of_two().trailing_zeros() as usize);
            *count = count.saturating_add(value.count_at_value());
        }
        all
    }

    pub fn merge(&mut self, other: &Counts) {
        other.counts.iter().enumerate().for_each(|(power, n)| *self.at(power) = self.at(power).saturating_add(*n));
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().copied().fold(0, u64::saturating_add)
    }

    /// The first to the last bucket in use; empty if there are none.
    pub fn buckets(&self) -> Vec<Bucket> {
        let total = self.count();
        let first = self.counts.iter().position(|n| *n > 0).unwrap_or(0);
        let mut seen: u64 = 0;
        let share = |n: u64| n as f64 / total.max(1) as f64 * 100.0;
        let of = |(power, count): (usize, &u64)| {
            seen = count.saturating_add(seen);
            Bucket { power: power as u32, count: *count, share_pct: share(*count), up_to_pct: share(seen) }
        };
        self.counts.iter().enumerate().skip(first).map(of).collect()
    }

    fn at(&mut self, power: usize) -> &mut u64 {
        if self.counts.len() <= power {
            self.counts.resize(power + 1, 0);
        }
        &mut self.counts[power]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_latency_at_the_bound_is_below_it() {
        let mut l = Latencies::new();
        [1, 1_000, 1_500, 512_000, 513_500, 1_024_000, 3_000_000_000].into_iter().for_each(|ns| l.record(ns));
        let all = Counts::from_latencies(&l).buckets();
        let of = |label: &str| all.iter().find(|b| b.label() == label).unwrap().count;
        let seen = [of("1 µs"), of("2 µs"), of("4 µs"), of("512 µs"), of("1 ms"), of("2 ms"), of("4 s")];
        assert_eq!(seen, [2, 1, 0, 1, 2, 0, 1]);
        assert_eq!(all.last().unwrap().label(), "4 s");
        assert!((all[9].up_to_pct - 4.0 / 7.0 * 100.0).abs() < 1e-9, "{:?}", all[9]);
        assert_eq!(Counts::from_latencies(&Latencies::new()).buckets(), []);
        assert_eq!([19, 21, 31].map(label), ["512 ms", "2 s", "2048 s"]);
    }

    proptest! {
        #[test]
        fn every_latency_is_in_one_bucket(all in prop::collection::vec(1u64..10_000_000_000, 1..60)) {
            let mut l = Latencies::new();
            all.iter().for_each(|ns| l.record(*ns));
            let buckets = Counts::from_latencies(&l).buckets();
            let one = |ns: &u64| { let mut l = Latencies::new(); l.record(*ns); Counts::from_latencies(&l) };
            let mut merged = Counts::default();
            all.iter().map(one).for_each(|c| merged.merge(&c));
            prop_assert_eq!(&buckets, &merged.buckets());
            prop_assert_eq!(buckets.iter().map(|b| b.count).sum::<u64>(), all.len() as u64);
            prop_assert!((buckets.last().unwrap().up_to_pct - 100.0).abs() < 1e-9);
            prop_assert!(buckets.windows(2).all(|w| w[0].power + 1 == w[1].power && w[0].up_to_pct <= w[1].up_to_pct));
            // Within the resolution of the histogram every latency lies below its bucket's bound.
            let last = 1000.0 * 2f64.powi(buckets.last().unwrap().power as i32) * 1.001;
            prop_assert!(all.iter().all(|ns| *ns as f64 <= last));
        }
    }
}
