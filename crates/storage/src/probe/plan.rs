//! The measured points, and their order.

use loadline_model::probe::Operation;

/// Sizes of sync writes, bytes: 512 B to 1 MiB.
pub const SYNC_SIZES: [u64; 12] =
    [512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20];
/// Sizes of random reads, bytes.
pub const READ_SIZES: [u64; 3] = [4 << 10, 8 << 10, 16 << 10];
/// Random reads in flight.
pub const READ_DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Size of sequential transfers, bytes.
pub const SEQUENTIAL_SIZE: u64 = 1 << 20;
/// Sequential transfers in flight: one, and enough for the device's bandwidth.
pub const SEQUENTIAL_DEPTHS: [u32; 2] = [1, 8];

/// One row of the result.
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
}
