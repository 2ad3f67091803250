//! When to hold a write back for jobs that are about to commit.
//!
//! Jobs that commit in a loop fall into two halves that take turns: those of one half wait for the
//! device while the others' records are written. Where they need less time to come back than a
//! write takes, it pays to let all of them into one write. Whether that is so is learned from the
//! jobs themselves; where it turns out wrong the writer leaves it for ever longer.

/// Weight of the newest value in a running mean: 1/2^this.
const SHIFT: u32 = 3;

/// How often it may be left out after it did not pay.
const MOST_SKIPPED: u32 = 256;

/// The jobs to wait for, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Commits that wait, at which the write begins.
    pub(crate) goal: usize,
    /// When it begins at the latest.
    pub(crate) deadline_ns: u64,
    /// Commits that waited when the plan was made.
    pub(crate) begun_with: usize,
}

/// What the writer has learned.
#[derive(Debug)]
pub(crate) struct Gather {
    on: bool,
    /// Running mean of the time from a job's records being durable to its next commit.
    back_ns: Option<u64>,
    /// Running mean of a write and its sync.
    write_ns: Option<u64>,
    /// Groups still to be left alone.
    skip: u32,
    /// Groups to leave alone after the next miss.
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
    pub(crate) fn new(on: bool) -> Self {
        Self { on, back_ns: None, write_ns: None, skip: 0, next_skip: 1 }
    }

    /// A job came back to commit again.
    pub(crate) fn came_back(&mut self, after_ns: u64) {
        mean(&mut self.back_ns, after_ns);
    }

    /// A group was written and synced.
    pub(crate) fn wrote(&mut self, ns: u64) {
        mean(&mut self.write_ns, ns);
    }

    /// Whether to wait, after a group that `released` jobs waited for, when `queued` others wait.
    pub(crate) fn plan(&mut self, released: usize, queued: usize, now_ns: u64) -> Option<Plan> {
        if !self.on || released == 0 || released + queued < 2 {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        let (back, write) = (self.back_ns?, self.write_ns?);
        // The last job is back after about twice the mean; that must be well within a write.
        if back.saturating_mul(2) > write {
            return None;
        }
        let patience = back.saturating_mul(4).max(write / 4).min(write);
        Some(Plan { goal: released + queued, deadline_ns: now_ns.saturating_add(patience), begun_with: queued })
    }

    /// How a plan went: the write began with `commits`.
    pub(crate) fn went(&mut self, plan: Plan, commits: usize) {
        let (hoped, came) = (plan.goal - plan.begun_with, commits.saturating_sub(plan.begun_with));
        if came * 4 >= hoped * 3 {
            self.next_skip = 1;
        } else {
            self.skip = self.next_skip;
            self.next_skip = (self.next_skip * 2).min(MOST_SKIPPED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taught(back: u64, write: u64) -> Gather {
        let mut gather = Gather::new(true);
        gather.came_back(back);
        gather.wrote(write);
        gather
    }

    #[test]
    fn waits_for_those_released_if_they_are_back_sooner_than_a_write_takes() {
        assert_eq!(taught(100, 1000).plan(30, 2, 5000), Some(Plan { goal: 32, deadline_ns: 5400, begun_with: 2 }));
        assert_eq!(taught(600, 1000).plan(30, 2, 5000), None);
        assert_eq!(Gather::new(true).plan(30, 2, 0), None, "nothing learned yet");
    }

    #[test]
    fn never_waits_for_a_job_alone_or_when_off() {
        assert_eq!(taught(1, 1000).plan(1, 0, 0), None);
        let mut off = taught(1, 1000);
        off.on = false;
        assert_eq!(off.plan(30, 2, 0), None);
    }

    #[test]
    fn is_left_out_for_longer_after_each_miss_until_it_pays_again() {
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
