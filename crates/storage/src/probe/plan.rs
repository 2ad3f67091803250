//! The measured points, their order, and what is counted of each.

use loadline_model::Latencies;
use loadline_model::probe::{Operation, ProbeRow};

/// Sizes of sync writes, bytes: 512 B to 1 MiB.
const SYNC_SIZES: [u64; 12] =
    [512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20];
/// Sizes of random reads, bytes.
const READ_SIZES: [u64; 3] = [4 << 10, 8 << 10, 16 << 10];
/// Random reads in flight.
const READ_DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Size of sequential transfers, bytes.
const SEQUENTIAL_SIZE: u64 = 1 << 20;
/// Sequential transfers in flight: one, and enough for the device's bandwidth.
const SEQUENTIAL_DEPTHS: [u32; 2] = [1, 8];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    pub operation: Operation,
    /// Bytes per operation.
    pub size: u64,
    /// Operations in flight.
    pub depth: u32,
}

/// All points, in the order of a round: reads before writes, and small writes before large ones, so that no slice starts
/// right after a burst. Mapped memory only if `pmem`.
pub fn points(pmem: bool) -> Vec<Point> {
    let mut all = Vec::new();
    for size in READ_SIZES {
        all.extend(READ_DEPTHS.map(|depth| Point { operation: Operation::RandomRead, size, depth }));
    }
    let sequential = |operation| SEQUENTIAL_DEPTHS.map(|depth| Point { operation, size: SEQUENTIAL_SIZE, depth });
    all.extend(sequential(Operation::SequentialRead));
    for size in SYNC_SIZES {
        let ways = [
            Operation::SyncWriteFdatasyncPrealloc,
            Operation::SyncWriteDsyncPrealloc,
            Operation::SyncWriteFdatasyncGrowing,
            Operation::SyncWriteDsyncGrowing,
        ];
        all.extend(ways.map(|operation| Point { operation, size, depth: 1 }));
    }
    if pmem {
        all.extend(SYNC_SIZES.map(|size| Point { operation: Operation::PmemPersist, size, depth: 1 }));
    }
    all.extend(sequential(Operation::SequentialWrite));
    all
}

/// Number of rounds and length of a slice, s, for `points` in `seconds`. Each point gets the same time, in up to three
/// slices. A slice is at least 10 ms, so a very short time is exceeded.
pub(crate) fn slices(points: usize, seconds: f64) -> (u32, f64) {
    let window = (seconds / points.max(1) as f64).max(0.01);
    let rounds = (window / 0.03).floor().clamp(1.0, 3.0);
    (rounds as u32, window / rounds)
}

const FOR_P99: u64 = 100;
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

    #[test]
    fn every_size_and_depth_is_there_once() {
        let all = points(true);
        let kib = |sizes: &[u64], depths: &[u32]| -> Vec<(u64, u32)> {
            sizes.iter().flat_map(|kib| depths.iter().map(move |depth| (kib << 10, *depth))).collect()
        };
        for operation in Operation::ALL {
            let found = all.iter().filter(|p| p.operation == operation).map(|p| (p.size, p.depth));
            let expected = match operation {
                Operation::RandomRead => kib(&[4, 8, 16], &[1, 2, 4, 8, 16, 32, 64]),
                Operation::SequentialRead | Operation::SequentialWrite => kib(&[1024], &[1, 8]),
                // Writes that wait, of 512 B to 1 MiB.
                _ => (9..=20).map(|power| (1 << power, 1)).collect(),
            };
            assert_eq!(found.collect::<Vec<_>>(), expected, "{operation}");
        }
        assert_eq!(points(false).len(), all.len() - 12);
        assert_eq!(all.last().map(|p| p.operation), Some(Operation::SequentialWrite), "the burst comes last");
    }

    #[test]
    fn the_budget_is_split_evenly() {
        let (rounds, slice) = slices(73, 29.2);
        assert_eq!(rounds, 3);
        assert!((f64::from(rounds) * slice * 73.0 - 29.2).abs() < 1e-9);
        let (rounds, slice) = slices(73, 0.5);
        assert_eq!((rounds, slice), (1, 0.01), "a slice has a length that can be measured");
        assert_eq!(slices(100, 7.0).0, 2);
    }

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
