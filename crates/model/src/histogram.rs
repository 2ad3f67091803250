//! Latencies of one kind (transaction, commit, response), ns. The client driver records each one; the in-database
//! driver returns the times of a slice at once.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};

/// Longest latency recorded, ns: one hour. Longer ones count as one hour.
pub const HIGHEST_NS: u64 = 3_600_000_000_000;

/// HDR histogram of latencies in ns with three significant digits, and their exact sum.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "Parts", try_from = "Parts")]
pub struct Latencies {
    histogram: Histogram<u64>,
    sum_ns: u128,
    max_ns: u64,
}

/// [`Latencies`] for another process: nothing is lost.
#[derive(Serialize, Deserialize)]
struct Parts {
    /// In HdrHistogram's V2 format.
    histogram: Vec<u8>,
    sum_ns: u128,
    max_ns: u64,
}

impl From<Latencies> for Parts {
    fn from(Latencies { histogram: of, sum_ns, max_ns }: Latencies) -> Parts {
        let mut histogram = Vec::new();
        // Writing into memory cannot fail, and the counts of a histogram fit its own format.
        let _ = V2Serializer::new().serialize(&of, &mut histogram);
        Parts { histogram, sum_ns, max_ns }
    }
}

impl TryFrom<Parts> for Latencies {
    type Error = &'static str;

    fn try_from(Parts { histogram, sum_ns, max_ns }: Parts) -> Result<Latencies, Self::Error> {
        let bounds = |h: &Histogram<u64>| (h.low(), h.high(), h.sigfig());
        Deserializer::new()
            .deserialize(&mut histogram.as_slice())
            .ok()
            .filter(|read| bounds(read) == bounds(&Latencies::new().histogram))
            .map(|histogram| Latencies { histogram, sum_ns, max_ns })
            .ok_or("its histogram is damaged")
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    /// An empty set.
    pub fn new() -> Latencies {
        // The bounds are constants that `new_with_bounds` accepts: a test proves it.
        #[allow(clippy::expect_used)]
        let histogram = Histogram::new_with_bounds(1, HIGHEST_NS, 3).expect("constant bounds are valid");
        Latencies { histogram, sum_ns: 0, max_ns: 0 }
    }

    /// Adds one latency in ns.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns.clamp(1, HIGHEST_NS));
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds `count` latencies near `ns`; add their exact sum with [`Self::add_sum`].
    pub fn record_bucket(&mut self, ns: u64, count: u64) {
        self.histogram.saturating_record_n(ns.clamp(1, HIGHEST_NS), count);
    }

    /// Adds the exact sum and maximum (ns) of latencies added with [`Self::record_bucket`].
    pub fn add_sum(&mut self, sum_ns: u128, max_ns: u64) {
        self.sum_ns += sum_ns;
        self.max_ns = self.max_ns.max(max_ns);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Latencies) {
        // Equal bounds: `add` cannot fail.
        let _ = self.histogram.add(&other.histogram);
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Exact sum in ns.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Exact mean in ns, `None` when empty.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    /// Exact maximum in ns, `None` when empty.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max_ns)
    }

    /// Latency in ns at quantile `q` (0…1), `None` when empty. Never above the exact maximum.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.histogram.value_at_quantile(q).min(self.max_ns))
    }

    /// Their standard deviation as a share of their mean, from the histogram's buckets; 0 when empty.
    pub fn spread(&self) -> f64 {
        let mean = self.histogram.mean();
        if mean > 0.0 { self.histogram.stdev() / mean } else { 0.0 }
    }

    /// The HDR histogram, to be written in HdrHistogram's log format.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_stay_within_the_maximum_and_empty_has_no_figures() {
        let mut l = Latencies::new();
        assert_eq!((l.count(), l.mean_ns(), l.max_ns(), l.quantile_ns(0.5)), (0, None, None, None));
        [1_000, 2_000, 3_000_123].into_iter().for_each(|ns| l.record(ns));
        assert_eq!((l.max_ns(), l.quantile_ns(1.0)), (Some(3_000_123), Some(3_000_123)));
        assert_eq!(l.mean_ns(), Some(3_003_123.0 / 3.0));
    }

    proptest! {
        #[test]
        fn merged_counts_and_sums_add_up(a in prop::collection::vec(1u64..HIGHEST_NS, 0..50),
                                         b in prop::collection::vec(1u64..HIGHEST_NS, 0..50)) {
            let fill = |values: &[u64]| {
                let mut l = Latencies::new();
                values.iter().for_each(|v| l.record(*v));
                l
            };
            let mut merged = fill(&a);
            merged.merge(&fill(&b));
            prop_assert_eq!(merged.count() as usize, a.len() + b.len());
            prop_assert_eq!(merged.sum_ns(), a.iter().chain(&b).map(|v| u128::from(*v)).sum::<u128>());
            let parts = || Parts::from(merged.clone());
            let again = Latencies::try_from(parts()).unwrap();
            prop_assert!(again.histogram == merged.histogram && again.sum_ns() == merged.sum_ns());
            prop_assert_eq!(again.max_ns(), merged.max_ns());
            let mut half = parts();
            half.histogram.truncate(half.histogram.len() / 2);
            prop_assert!(Latencies::try_from(half).is_err());
            prop_assert_eq!(merged.max_ns(), a.iter().chain(&b).max().copied());
        }
    }
}
