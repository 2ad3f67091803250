//! The slowest transactions of a job.

/// Jobs of a test whose slowest transactions are kept, the first ones.
pub const WATCHED_JOBS: u32 = 256;
/// Transactions that a job keeps at least.
const KEPT: usize = 4096;

/// The slowest transactions of a job that completed in the window or were in progress at its end: all, or at least 4,096 of those above a
/// floor.
#[derive(Debug, Clone, Default)]
pub struct Slowest {
    /// Start and end of each, ns.
    pub kept: Vec<[u64; 2]>,
    /// Length above which none is missing, ns.
    pub floor_ns: u64,
}

impl Slowest {
    /// None so far, and room for all that are kept: nothing is allocated while a job runs.
    pub(crate) fn with_room() -> Slowest {
        Slowest { kept: Vec::with_capacity(2 * KEPT), floor_ns: 0 }
    }

    #[inline]
    pub fn add(&mut self, start_ns: u64, end_ns: u64) {
        let length = |of: &[u64; 2]| of[1].saturating_sub(of[0]);
        if end_ns.saturating_sub(start_ns) <= self.floor_ns && self.floor_ns > 0 {
            return;
        }
        self.kept.push([start_ns, end_ns]);
        if self.kept.len() == 2 * KEPT {
            let (.., least, _) = self.kept.select_nth_unstable_by_key(KEPT, |of| std::cmp::Reverse(length(of)));
            self.floor_ns = length(least);
            self.kept.truncate(KEPT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_of_the_slowest_is_missing() {
        let mut slowest = Slowest::default();
        let lengths: Vec<u64> = (1..30_000).map(|i| i * 7919 % 10_007 + 1).collect();
        lengths.iter().for_each(|ns| slowest.add(0, *ns));
        let Slowest { kept, floor_ns } = slowest;
        assert!((KEPT..2 * KEPT).contains(&kept.len()) && floor_ns > 0, "{} above {floor_ns}", kept.len());
        let above = |all: Vec<u64>| {
            let mut above: Vec<u64> = all.into_iter().filter(|ns| *ns > floor_ns).collect();
            above.sort_unstable();
            above
        };
        assert_eq!(above(kept.iter().map(|of| of[1]).collect()), above(lengths));
    }
}
