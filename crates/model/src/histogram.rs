//! Latencies of one kind (transaction, commit, response), in nanoseconds.
//!
//! Two sources fill them: the client's loop records each latency as it happens, a procedure inside
//! the database hands back a log-linear histogram in microseconds (see [`LogLinear`]).

use hdrhistogram::Histogram;

/// Longest latency that is told apart, in ns: one hour. Longer ones are recorded as one hour.
pub const HIGHEST_NS: u64 = 3_600_000_000_000;

/// HDR histogram of latencies in ns with three significant digits, and their exact sum.
#[derive(Debug, Clone)]
pub struct Latencies {
    histogram: Histogram<u64>,
    sum_ns: u128,
    max_ns: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    /// An empty set.
    #[must_use]
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

    /// Adds `count` latencies that lie near `ns`; their exact sum is given with [`Self::add_sum`].
    pub fn record_bucket(&mut self, ns: u64, count: u64) {
        self.histogram.saturating_record_n(ns.clamp(1, HIGHEST_NS), count);
    }

    /// Adds the exact sum and maximum (ns) of latencies that came as buckets.
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

    /// Number of latencies.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Exact sum in ns.
    #[must_use]
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Exact mean in ns, `None` when empty.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    /// Exact maximum in ns, `None` when empty.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max_ns)
    }

    /// Latency in ns at quantile `q` (0…1), `None` when empty. Never above the exact maximum.
    #[must_use]
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.histogram.value_at_quantile(q).min(self.max_ns))
    }

    /// The HDR histogram itself, for writing it in HdrHistogram's log format.
    #[must_use]
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// Wraps a histogram read back from disk; sum and maximum are then those of its buckets.
    #[must_use]
    pub fn from_histogram(histogram: Histogram<u64>) -> Latencies {
        let sum_ns =
            histogram.iter_recorded().map(|v| u128::from(v.value_iterated_to()) * u128::from(v.count_at_value())).sum();
        let max_ns = if histogram.is_empty() { 0 } else { histogram.max() };
        Latencies { histogram, sum_ns, max_ns }
    }
}

/// The bucket layout that a procedure inside a database counts in: values in µs, 64 buckets per
/// power of two, so that a bucket is at most 1/64 of its value wide.
///
/// `index(v) = 64·e + floor(64·v / 2^e) − 64` with `e = floor(log2 v)`, for `1 ≤ v < 2^36` (19 h).
/// The formula is continuous at powers of two, so a rounding error in `e` lands in the same bucket.
#[derive(Debug, Clone, Copy)]
pub struct LogLinear;

impl LogLinear {
    /// Buckets per power of two.
    pub const PER_OCTAVE: u32 = 64;
    /// Powers of two covered.
    pub const OCTAVES: u32 = 36;
    /// Number of buckets.
    pub const BUCKETS: usize = (Self::PER_OCTAVE * Self::OCTAVES) as usize;

    /// Bucket of `us`; 0 is counted with 1 and what is too large with the last bucket.
    #[must_use]
    pub fn index(us: u64) -> usize {
        let v = us.max(1);
        let e = v.ilog2();
        let sub = (u128::from(v) * u128::from(Self::PER_OCTAVE)) >> e;
        let index = u128::from(e * Self::PER_OCTAVE) + sub - u128::from(Self::PER_OCTAVE);
        usize::try_from(index).unwrap_or(usize::MAX).min(Self::BUCKETS - 1)
    }

    /// Middle of bucket `index`, in ns.
    #[must_use]
    pub fn middle_ns(index: usize) -> u64 {
        let index = index.min(Self::BUCKETS - 1) as u64;
        let per = u64::from(Self::PER_OCTAVE);
        let (e, sub) = (index / per, index % per);
        let low = (1u64 << e) as f64 * (1.0 + sub as f64 / per as f64);
        let width = (1u64 << e) as f64 / per as f64;
        // The database's clock ticks in µs, so a bucket narrower than that holds one value only.
        let middle_us = if width <= 1.0 { low.ceil() } else { low + width / 2.0 };
        (middle_us * 1000.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn empty_has_no_figures() {
        let l = Latencies::new();
        assert_eq!((l.count(), l.mean_ns(), l.max_ns(), l.quantile_ns(0.5)), (0, None, None, None));
    }

    #[test]
    fn quantiles_stay_within_the_maximum() {
        let mut l = Latencies::new();
        for ns in [1_000, 2_000, 3_000_123] {
            l.record(ns);
        }
        assert_eq!(l.max_ns(), Some(3_000_123));
        assert_eq!(l.quantile_ns(1.0), Some(3_000_123));
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
            prop_assert_eq!(merged.max_ns(), a.iter().chain(&b).max().copied());
        }

        #[test]
        fn a_bucket_is_near_its_values(us in 1u64..(1 << 36)) {
            let middle = LogLinear::middle_ns(LogLinear::index(us)) as f64 / 1000.0;
            prop_assert!((middle - us as f64).abs() <= (us as f64 / 64.0).max(0.001), "{us} µs in bucket of {middle}");
        }

        #[test]
        fn buckets_rise_with_their_values(a in 1u64..(1 << 36), b in 1u64..(1 << 36)) {
            prop_assert!((a <= b) == (LogLinear::index(a) <= LogLinear::index(b)) || LogLinear::index(a) == LogLinear::index(b));
        }
    }
}
