//! Which jobs of a test each agent runs.

use std::collections::BTreeMap;

/// The jobs of one agent: a range, so that rows and random streams are those of the same jobs of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    /// Number of the agent in the run.
    pub(crate) agent: usize,
    /// Its first job.
    pub(crate) first: u32,
    /// Number of its jobs, at least 1.
    pub(crate) jobs: u32,
}

/// Spreads jobs evenly over agents, in the order of their numbers, each of which runs at most so many. An agent without jobs is left out; `None` if they are too
/// many.
pub(crate) fn spread(jobs: u32, most: &[(usize, u32)]) -> Option<Vec<Share>> {
    // The smallest limits first: what an agent cannot run is spread over those that can.
    let mut limits = most.to_vec();
    limits.sort_by_key(|(_, limit)| *limit);
    let (mut left, mut counts) = (jobs, BTreeMap::new());
    for (done, (agent, limit)) in limits.iter().enumerate() {
        let count = left.div_ceil((limits.len() - done) as u32).min(*limit);
        left -= count;
        counts.insert(*agent, count);
    }
    let mut first = 0;
    let shares = counts.into_iter().filter(|(_, jobs)| *jobs > 0).map(|(agent, jobs)| {
        let share = Share { agent, first, jobs };
        first += jobs;
        share
    });
    let shares = shares.collect();
    (left == 0).then_some(shares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_job_runs_once_and_as_evenly_as_limits_allow(
            jobs in 1u32..5000, limits in prop::collection::vec(0u32..600, 1..40),
        ) {
            let most: Vec<(usize, u32)> = limits.iter().copied().enumerate().collect();
            let all: u32 = limits.iter().sum();
            let Some(shares) = spread(jobs, &most) else {
                prop_assert!(jobs > all, "{jobs} of {all} are refused");
                return Ok(());
            };
            let mut next = 0;
            for share in &shares {
                prop_assert!(share.first == next && share.jobs >= 1 && share.jobs <= limits[share.agent]);
                next += share.jobs;
            }
            prop_assert_eq!(next, jobs);
            let highest = shares.iter().map(|s| s.jobs).max().unwrap();
            for (agent, limit) in &most {
                let has = shares.iter().find(|s| s.agent == *agent).map_or(0, |s| s.jobs);
                prop_assert!(has == *limit || has + 1 >= highest, "{shares:?}");
            }
        }
    }
}
