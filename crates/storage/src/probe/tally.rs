//! Counters of one measured point.

use loadline_model::Latencies;
use loadline_model::probe::ProbeRow;

use crate::probe::plan::Point;

/// Fewest samples for a 99th percentile.
const FOR_P99: u64 = 100;
/// Fewest samples for a 99.9th percentile.
const FOR_P999: u64 = 1000;

/// The samples of a point, over all its slices.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    /// Latencies of the operations completed in the windows.
    pub(crate) latencies: Latencies,
    /// Total length of the windows, ns.
    pub(crate) window_ns: u64,
    /// CPU time over `cpu_ops` operations, ns.
    pub(crate) cpu_ns: u64,
    /// Operations in the time of `cpu_ns`, which may include the warm-up.
    pub(crate) cpu_ops: u64,
    pub(crate) direct: bool,
}

impl Tally {
    pub(crate) fn new(direct: bool) -> Tally {
        Tally { latencies: Latencies::new(), window_ns: 0, cpu_ns: 0, cpu_ops: 0, direct }
    }

    /// The row; `None` if nothing completed.
    pub(crate) fn row(&self, point: &Point) -> Option<ProbeRow> {
        let samples = self.latencies.count();
        let at = |q, fewest| if samples >= fewest { self.latencies.quantile_ns(q) } else { None };
        let elapsed_s = self.window_ns as f64 / 1e9;
        if self.window_ns == 0 {
            return None;
        }
        let per_s = samples as f64 / elapsed_s;
        Some(ProbeRow {
            operation: point.operation,
            size_bytes: point.size,
            depth: point.depth,
            direct: self.direct,
            per_s,
            mib_per_s: per_s * point.size as f64 / f64::from(1 << 20),
            mean_ns: self.latencies.mean_ns()?,
            p50_ns: at(0.5, 1)?,
            p99_ns: at(0.99, FOR_P99),
            p999_ns: at(0.999, FOR_P999),
            max_ns: self.latencies.max_ns()?,
            cpu_ns_per_op: self.cpu_ns as f64 / self.cpu_ops.max(1) as f64,
            samples,
            elapsed_s,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_model::probe::Operation;

    fn row(samples: u64) -> Option<ProbeRow> {
        let mut tally = Tally::new(true);
        for i in 0..samples {
            tally.latencies.record(1000 + i);
            tally.window_ns += 1000 + i;
        }
        tally.row(&Point { operation: Operation::RandomRead, size: 4096, depth: 1 })
    }

    #[test]
    fn percentiles_need_samples_to_stand_on() {
        assert!(row(0).is_none());
        let few = row(99).unwrap();
        assert_eq!((few.p99_ns, few.p999_ns, few.samples), (None, None, 99));
        let some = row(100).unwrap();
        assert!(some.p99_ns.is_some() && some.p999_ns.is_none());
        let many = row(1000).unwrap();
        assert!(
            many.p50_ns <= many.p99_ns.unwrap() && many.p99_ns <= many.p999_ns && many.p999_ns.unwrap() <= many.max_ns
        );
        assert!((many.per_s * many.mean_ns / 1e9 - 1.0).abs() < 1e-9, "Little's law at depth 1");
    }
}
