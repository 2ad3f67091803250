//! Latencies of one kind (transaction, commit, response), ns. The client driver records each one; the in-database
//! driver returns the times of a slice at once.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer as V2Deserializer, Serializer as _, V2Serializer};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest latency recorded, ns: one hour. Longer ones count as one hour.
pub const HIGHEST_NS: u64 = 3_600_000_000_000;

/// HDR histogram of latencies in ns with three significant digits, and their exact sum. For another process nothing is lost.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Latencies {
    /// Sent in HdrHistogram's V2 format.
    #[serde(serialize_with = "as_v2", deserialize_with = "of_v2")]
    histogram: Histogram<u64>,
    sum_ns: u128,
    max_ns: u64,
}

fn as_v2<S: Serializer>(histogram: &Histogram<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut bytes: Vec<u8> = Vec::new();
    // Writing into memory cannot fail, and the counts of a histogram fit its own format.
    let _ = V2Serializer::new().serialize(histogram, &mut bytes);
    Serialize::serialize(&bytes, serializer)
}

fn of_v2<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Histogram<u64>, D::Error> {
    let bytes: Vec<u8> = Vec::deserialize(deserializer)?;
    let read: Option<Histogram<u64>> = V2Deserializer::new().deserialize(&mut bytes.as_slice()).ok();
    let bounds = |h: &Histogram<u64>| (h.low(), h.high(), h.sigfig());
    let read = read.filter(|read| bounds(read) == bounds(&Latencies::new().histogram));
    read.ok_or_else(|| D::Error::custom("a histogram of latencies is damaged"))
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    pub fn new() -> Latencies {
        // The bounds are constants that `new_with_bounds` accepts: a test proves it.
        #[allow(clippy::expect_used)]
        let histogram = Histogram::new_with_bounds(1, HIGHEST_NS, 3).expect("constant bounds are valid");
        Latencies { histogram, sum_ns: 0, max_ns: 0 }
    }

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

    pub fn merge(&mut self, other: &Latencies) {
        // Equal bounds: `add` cannot fail.
        let _ = self.histogram.add(&other.histogram);
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    pub fn max_ns(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max_ns)
    }

    /// Latency in ns at quantile `q` (0…1), `None` when empty. Never above the exact maximum.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.histogram.value_at_quantile(q).min(self.max_ns))
    }

    /// Mean, median, 99th percentile and maximum, ns; `None` when empty.
    pub fn summary_ns(&self) -> Option<[f64; 4]> {
        Some([self.mean_ns()?, self.quantile_ns(0.5)? as f64, self.quantile_ns(0.99)? as f64, self.max_ns()? as f64])
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
            let mut sent = serde_json::to_value(&merged).unwrap();
            let again: Latencies = serde_json::from_value(sent.clone()).unwrap();
            prop_assert!(again.histogram == merged.histogram && again.sum_ns() == merged.sum_ns());
            prop_assert_eq!(again.max_ns(), merged.max_ns());
            let bytes = sent["histogram"].as_array_mut().unwrap();
            bytes.truncate(bytes.len() / 2);
            prop_assert!(serde_json::from_value::<Latencies>(sent).is_err());
            prop_assert_eq!(merged.max_ns(), a.iter().chain(&b).max().copied());
        }
    }
}
