//! When to delay a write for jobs that are about to commit.
//!
//! Jobs that commit in a loop split into two halves that alternate: one half waits while the records of the other
//! are written. If jobs commit again sooner than a write takes, a short delay lets all of them share one write. The
//! writer learns from measured times whether this pays; after each miss it pauses for longer.

/// Weight of the newest value in a running mean: 1/2^this.
const SHIFT: u32 = 3;

/// Longest pause after misses, groups.
const MAX_SKIPPED: u32 = 256;

/// How many jobs to wait for, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Number of waiting commits at which the write starts.
    pub(crate) goal: usize,
    /// Latest start of the write.
    pub(crate) deadline_ns: u64,
    /// Commits that waited when the plan was made.
    pub(crate) begun_with: usize,
}

/// Experience of the writer so far.
#[derive(Debug)]
pub(crate) struct Gather {
    /// Running mean of the time from one durable commit of a job to its next commit.
    back_ns: Option<u64>,
    /// Running mean of a write and its sync.
    write_ns: Option<u64>,
    /// Groups left in this pause.
    skip: u32,
    /// Length of the pause after the next miss, groups.
    next_skip: u32,
}

fn mean(of: &mut Option<u64>, value: u64) {
    *of = Some(match *of {
        None => value,
        Some(old) if value >= old => old + ((value - old) >> SHIFT),
        Some(old) => old - ((old - value) >> SHIFT),
    });
}

impl Gather {
    pub(crate) fn new() -> Self {
        Self { back_ns: None, write_ns: None, skip: 0, next_skip: 1 }
    }

    /// A job commits again.
    pub(crate) fn came_back(&mut self, after_ns: u64) {
        mean(&mut self.back_ns, after_ns);
    }

    /// A group was written and synced.
    pub(crate) fn wrote(&mut self, ns: u64) {
        mean(&mut self.write_ns, ns);
    }

    /// Whether to delay the next write, after a group that woke `released` jobs while `queued` others wait.
    pub(crate) fn plan(&mut self, released: usize, queued: usize, now_ns: u64) -> Option<Plan> {
        if released == 0 || released + queued < 2 {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        let (back, write) = (self.back_ns?, self.write_ns?);
        // The last job commits after about twice the mean; that must be well within a write.
        if back.saturating_mul(2) > write {
            return None;
        }
        let patience = back.saturating_mul(4).max(write / 4).min(write);
        Some(Plan { goal: released + queued, deadline_ns: now_ns.saturating_add(patience), begun_with: queued })
    }

    /// Evaluates a plan: the write started with `commits`.
    pub(crate) fn went(&mut self, plan: Plan, commits: usize) {
        let (hoped, came) = (plan.goal - plan.begun_with, commits.saturating_sub(plan.begun_with));
        if came * 4 >= hoped * 3 {
            self.next_skip = 1;
        } else {
            self.skip = self.next_skip;
            self.next_skip = (self.next_skip * 2).min(MAX_SKIPPED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taught(back: u64, write: u64) -> Gather {
        let mut gather = Gather::new();
        gather.came_back(back);
        gather.wrote(write);
        gather
    }

    #[test]
    fn waits_for_released_jobs_if_they_commit_sooner_than_a_write_takes() {
        assert_eq!(taught(100, 1000).plan(30, 2, 5000), Some(Plan { goal: 32, deadline_ns: 5400, begun_with: 2 }));
        assert_eq!(taught(600, 1000).plan(30, 2, 5000), None);
        assert_eq!(Gather::new().plan(30, 2, 0), None, "nothing learned yet");
        assert_eq!(taught(1, 1000).plan(1, 0, 0), None, "a single job");
    }

    #[test]
    fn pauses_for_longer_after_each_miss_until_it_pays_again() {
        let mut gather = taught(100, 1000);
        for misses in 0..4 {
            let plan = gather.plan(10, 0, 0).unwrap();
            gather.went(plan, 2);
            for _ in 0..1 << misses {
                assert_eq!(gather.plan(10, 0, 0), None);
            }
        }
        let plan = gather.plan(10, 0, 0).unwrap();
        gather.went(plan, 9);
        assert!(gather.plan(10, 0, 0).is_some());
    }
}
