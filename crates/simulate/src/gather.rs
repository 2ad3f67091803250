//! The reference log writer's rule of when to delay a write for jobs that are about to commit (`logwriter/src/gather.rs`).
//!
//! It is a second implementation: a model that shared the code of what it models could not disagree with it. A test holds one against
//! the other, call by call.

/// Weight of the newest value in a running mean: 1/2^this.
const SHIFT: u32 = 3;
/// Longest pause after misses, groups.
const MAX_SKIPPED: u32 = 256;

/// How many jobs to wait for, and until when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Plan {
    /// Waiting commits with which the write starts.
    pub(crate) goal: usize,
    /// Latest start of the write, ticks.
    pub(crate) deadline: u64,
    began_with: usize,
}

/// What the writer has learned. Times are in ticks.
#[derive(Debug)]
pub(crate) struct Gather {
    on: bool,
    back: Option<u64>,
    write: Option<u64>,
    skip: u32,
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
    pub(crate) fn new(on: bool) -> Gather {
        Gather { on, back: None, write: None, skip: 0, next_skip: 1 }
    }

    /// A job commits again, this long after its last commit was durable.
    pub(crate) fn came_back(&mut self, after: u64) {
        mean(&mut self.back, after);
    }

    /// A group was written.
    pub(crate) fn wrote(&mut self, time: u64) {
        mean(&mut self.write, time);
    }

    /// Whether to delay the next write, after a group of `released` jobs, while `queued` wait.
    pub(crate) fn plan(&mut self, released: usize, queued: usize, now: u64) -> Option<Plan> {
        if !self.on || released == 0 || released + queued < 2 {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        let (back, write) = (self.back?, self.write?);
        if back.saturating_mul(2) > write {
            return None;
        }
        let patience = back.saturating_mul(4).max(write / 4).min(write);
        Some(Plan { goal: released + queued, deadline: now.saturating_add(patience), began_with: queued })
    }

    /// The write of a plan started with `commits`.
    pub(crate) fn went(&mut self, plan: Plan, commits: usize) {
        let (hoped, came) = (plan.goal - plan.began_with, commits.saturating_sub(plan.began_with));
        if came * 4 >= hoped * 3 {
            self.next_skip = 1;
        } else {
            self.skip = self.next_skip;
            self.next_skip = (self.next_skip * 2).min(MAX_SKIPPED);
        }
    }
}
