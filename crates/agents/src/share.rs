//! Which jobs of a test each agent runs.

use std::ops::Range;

/// Spreads jobs over agents in their order, as evenly as the most jobs that each runs allow. Each gets a range, so that rows and random
/// streams are those of one process. `None`: they are too many.
pub(crate) fn spread(jobs: u32, most: &[u32]) -> Option<Vec<Range<u32>>> {
    // The smallest limits first: what an agent cannot run is spread over those that can.
    let mut by_limit: Vec<usize> = (0..most.len()).collect();
    by_limit.sort_by_key(|agent| most.get(*agent));
    let (mut left, mut ranges) = (jobs, vec![0..0; most.len()]);
    for (done, agent) in by_limit.iter().enumerate() {
        let (Some(range), Some(limit)) = (ranges.get_mut(*agent), most.get(*agent)) else { continue };
        range.end = left.div_ceil((most.len() - done) as u32).min(*limit);
        left -= range.end;
    }
    let mut next = 0;
    for range in &mut ranges {
        *range = next..next + range.end;
        next = range.end;
    }
    (left == 0).then_some(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_job_runs_once_and_as_evenly_as_limits_allow(
            jobs in 1u32..5000, most in prop::collection::vec(0u32..600, 1..40),
        ) {
            let Some(ranges) = spread(jobs, &most) else {
                prop_assert!(jobs > most.iter().sum(), "{jobs} are refused");
                return Ok(());
            };
            prop_assert!(ranges.iter().cloned().flatten().eq(0..jobs), "{ranges:?}");
            let highest = ranges.iter().map(|range| range.len() as u32).max().unwrap();
            for (range, limit) in ranges.iter().zip(&most) {
                let has = range.len() as u32;
                prop_assert!(has == *limit || (has < *limit && has + 1 >= highest), "{ranges:?}");
            }
        }
    }
}
