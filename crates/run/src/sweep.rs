//! Which job count comes next: rise until throughput no longer grows.

/// A step grew if its throughput is above the best so far by this share.
pub const GROWTH: f64 = 0.05;
/// A sweep ends after so many steps in a row that did not grow: one alone can be a dip (two jobs
/// that wait for each other's flush are often no faster than one).
pub const FLAT_STEPS: usize = 2;

/// Next job count of an automatic sweep after the tests in `done` (job count and throughput, in
/// order), or `None` when it has ended. It starts at 1 and doubles, at most to `max`.
#[must_use]
pub fn next_jobs(done: &[(u32, f64)], max: u32) -> Option<u32> {
    let Some((last, _)) = done.last() else { return Some(1) };
    let (mut best, mut flat) = (0.0_f64, 0);
    for (_, tps) in done {
        if *tps > best * (1.0 + GROWTH) {
            flat = 0;
        } else {
            flat += 1;
        }
        best = best.max(*tps);
    }
    if flat >= FLAT_STEPS || *last >= max {
        return None;
    }
    Some(last.saturating_mul(2).min(max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(max: u32, tps: impl Fn(u32) -> f64) -> Vec<u32> {
        let mut done = Vec::new();
        while let Some(jobs) = next_jobs(&done, max) {
            done.push((jobs, tps(jobs)));
            assert!(done.len() < 40, "a sweep ends");
        }
        done.into_iter().map(|(j, _)| j).collect()
    }

    #[test]
    fn it_rises_until_throughput_is_flat() {
        assert_eq!(sweep(1024, |_| 1000.0), [1, 2, 4], "a single writer");
        assert_eq!(sweep(1024, |j| f64::from(j.min(16)) * 100.0), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(sweep(1024, |j| if j == 2 { 5000.0 } else { 5200.0 * f64::from(j.min(8)) }), [1, 2, 4, 8, 16, 32]);
        assert_eq!(sweep(1024, |_| 0.0), [1, 2], "nothing at all ends at once");
    }

    #[test]
    fn it_never_passes_the_maximum() {
        assert_eq!(sweep(97, f64::from), [1, 2, 4, 8, 16, 32, 64, 97]);
        assert_eq!(sweep(1, f64::from), [1]);
    }
}
