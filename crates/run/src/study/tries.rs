//! Second tries: a test whose only fault is that others disturbed it is measured again, at once, and once more at the end of the run.
//! Which try counts: `loadline_model::tries`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use loadline_collect::Surroundings;
use loadline_collect::os::{DiskCounters, DiskRates, Server};
use loadline_load::Around;
use loadline_model::disturbance::DISTURBANCES;
use loadline_model::plan::Plan;
use loadline_model::tries::{MOST_TRIES, TryOutcome, split, tries};
use loadline_model::{TestRecord, column};

use super::Context;
use crate::figures::disturbance::shares;
use crate::plan::duration::DurationEstimate;
use crate::test::Test;

/// Longest time to wait for a quiet machine, s.
const MOST_WAIT_S: f64 = 10.0;
/// Time over which is looked whether it is quiet.
const LOOK: Duration = Duration::from_millis(500);

/// What follows a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Done,
    AtOnce,
    AtEnd,
}

/// Time for tries after the first, s.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Budget {
    /// That all of them may take, with waiting.
    most_s: f64,
    /// That they took so far.
    spent_s: f64,
}

impl Budget {
    fn allows(self, try_s: f64) -> bool {
        self.spent_s + try_s <= self.most_s
    }
}

/// What follows after these tries of a test, if another takes `try_s`.
fn next(made: &[TryOutcome], budget: Budget, try_s: f64) -> Next {
    let disturbed = !made.is_empty() && made.iter().all(|outcome| outcome.severity().is_some());
    match made.len() {
        n if !disturbed || n >= MOST_TRIES || !budget.allows(try_s) => Next::Done,
        1 => Next::AtOnce,
        _ => Next::AtEnd,
    }
}

/// The second tries of a run.
pub(super) struct Tries {
    budget: Budget,
    /// Planned time of a window with what is around it, s.
    pub(super) window_s: f64,
    /// Windows that do not count.
    pub(super) others: Vec<TestRecord>,
    /// Numbers of the first windows of the tests that are to be measured again now.
    due: Vec<u32>,
    /// Whether the plan is done, and only what is due is measured.
    pub(super) is_end: bool,
    /// When the try under way began, with the wait before it.
    began: Option<Instant>,
}

impl Tries {
    /// Of a run of `plan`, of which `counting` and `others` are stored.
    pub(super) fn new(plan: &Plan, counting: &[TestRecord], others: Vec<TestRecord>) -> Tries {
        let length = DurationEstimate::of(plan);
        let window_s = length.window_s();
        let budget = Budget { most_s: plan.patience * length.total_s(), spent_s: 0.0 };
        let mut tries = Tries { budget, window_s, others, due: Vec::new(), is_end: false, began: None };
        // How long a killed run waited is not stored.
        let again = tries.others.iter().chain(counting).filter(|r| r.try_of.is_some());
        tries.budget.spent_s = again.map(|r| MOST_WAIT_S + tries.try_s(&[r])).sum();
        tries
    }

    /// About how long a try like that of `windows` takes, s.
    fn try_s(&self, windows: &[&TestRecord]) -> f64 {
        windows.iter().map(|r| r.figure(column::ELAPSED_S).unwrap_or(0.0).max(self.window_s)).sum()
    }

    /// Books the time of the try under way, which has ended or failed. Returns whether there was one.
    pub(super) fn end_try(&mut self) -> bool {
        let took_s = self.began.take().map(|began| began.elapsed().as_secs_f64());
        self.budget.spent_s += took_s.unwrap_or(0.0);
        took_s.is_some()
    }

    /// What follows after the tries of the test whose first window is number `first`, among `all` windows.
    fn next<'a>(&self, all: impl Iterator<Item = &'a TestRecord> + Clone, first: u32) -> Next {
        let tries = tries(all, first);
        let outcomes: Vec<TryOutcome> = tries.iter().map(|windows| TryOutcome::of_windows(windows)).collect();
        next(&outcomes, self.budget, tries.last().map_or(0.0, |windows| self.try_s(windows)))
    }
}

impl Context<'_> {
    pub(super) fn next_test(&self) -> u32 {
        self.newest().map_or(0, |r| r.test) + 1
    }

    /// The window that was measured last.
    pub(super) fn newest(&self) -> Option<&TestRecord> {
        self.windows().max_by_key(|r| r.test)
    }

    fn windows(&self) -> impl Iterator<Item = &TestRecord> + Clone {
        self.records.iter().chain(&self.tries.others)
    }

    pub(super) fn add_record(&mut self, record: TestRecord) {
        let again = record.try_of.is_some();
        self.records.push(record);
        if again {
            self.records.append(&mut self.tries.others);
            (self.records, self.tries.others) = split(std::mem::take(&mut self.records));
        }
    }

    /// The try that counts so far of a test that is due again and of which `is_meant`, with the number of its first window. Waits until
    /// the machine is quiet; the try begins now.
    pub(super) fn due_again(&mut self, is_meant: impl Fn(&TestRecord) -> bool) -> Option<(u32, TestRecord)> {
        let first_of = |r: &TestRecord| r.try_of.unwrap_or(r.test);
        let (first, record) = loop {
            let due = |r: &&TestRecord| is_meant(r) && self.tries.due.contains(&first_of(r));
            let record = self.records.iter().find(due)?.clone();
            let first = first_of(&record);
            self.tries.due.retain(|due| *due != first);
            // The time may have gone to other tests.
            if self.tries.next(self.windows(), first) != Next::Done {
                break (first, record);
            }
        };
        self.tries.end_try();
        self.tries.began = Some(Instant::now());
        self.step(format!("test {first} was disturbed: waiting for the machine to be quiet"));
        let Budget { most_s, spent_s } = self.tries.budget;
        let windows = if record.variant.is_some() { 2.0 } else { 1.0 };
        let most_s = (most_s - spent_s - windows * self.tries.try_s(&[&record])).clamp(0.0, MOST_WAIT_S);
        let devices = ["log", "data"].map(|role| self.side.info.device(role));
        wait_for_quiet(Duration::from_secs_f64(most_s), devices, &self.interrupted);
        Some((first, record))
    }

    /// Judges the try that just ended: the first, whose first window has this `number`, or another one `try_of` a test.
    pub(super) fn judge_try(&mut self, number: u32, try_of: Option<u32>) {
        let first = try_of.unwrap_or(number);
        if try_of.is_some() {
            self.tries.end_try();
        }
        if !self.tries.is_end && self.tries.next(self.windows(), first) == Next::AtOnce {
            self.tries.due.push(first);
        }
    }

    /// Time until the end of the run, s: `planned_s`, or that of the tries at the end.
    pub(super) fn left_s(&self, planned_s: f64) -> f64 {
        if self.tries.is_end { (self.tries.due.len() + 1) as f64 * self.tries.window_s } else { planned_s }
    }

    /// The first windows of the tests of which `is_meant` that are not done.
    fn not_done<'a>(&'a self, is_meant: impl Fn(&TestRecord) -> bool + 'a) -> impl Iterator<Item = u32> + 'a {
        let firsts = self.records.iter().filter(move |r| is_meant(r)).map(|r| r.try_of.unwrap_or(r.test));
        firsts.filter(|first| self.tries.next(self.windows(), *first) != Next::Done)
    }

    /// Whether tests of the workload `code` may be measured once more at the end.
    pub(super) fn may_be_tried_again(&self, code: &str) -> bool {
        self.not_done(|r| r.workload == code).next().is_some()
    }

    /// Whether tests of the plan, which is done, are to be measured once more.
    pub(super) fn has_due_at_end(&mut self) -> bool {
        self.tries.end_try();
        self.tries.due = self.not_done(|_| true).collect();
        self.tries.is_end = true;
        !self.tries.due.is_empty()
    }
}

/// Waits until nothing on this machine disturbs as much as makes a test disturbed, for at most `most`.
fn wait_for_quiet(most: Duration, devices: [Option<&str>; 2], interrupted: &AtomicBool) {
    let until = Instant::now() + most;
    let read = || (Surroundings::read(&Server::Inside), devices.map(|d| DiskCounters::local(d?).ok()));
    let mut before = read();
    while Instant::now() < until && !interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
        let now = read();
        if is_quiet(&before, &now) {
            return;
        }
        before = now;
    }
}

/// What is read to see whether the machine is quiet.
type Look = (Surroundings, [Option<DiskCounters>; 2]);

fn is_quiet(before: &Look, now: &Look) -> bool {
    let seconds = now.0.at_ns.saturating_sub(before.0.at_ns) as f64 / 1e9;
    let rates = before.1.iter().zip(&now.1).filter_map(|(a, b)| DiskRates::between(a.as_ref()?, b.as_ref()?, seconds));
    let util_pct = rates.map(|rates| rates.util_pct).reduce(f64::max);
    let readings = [before.0.clone(), now.0.clone()];
    let mut seen = Test::default();
    shares(&mut seen, &Around { readings, server: Server::Inside, own: vec![std::process::id()] }, None, util_pct);
    DISTURBANCES.iter().all(|kind| seen.figure(kind.column).is_none_or(|pct| !kind.is_disturbing(pct)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tries_so_far_and_the_time_left_say_what_follows() {
        use TryOutcome::{Disturbed, Refused, Undisturbed};
        let left = |s: f64| Budget { most_s: 30.0, spent_s: 30.0 - s };
        let none = Budget::default();
        let d = Disturbed(1.2);
        for (made, budget, follows) in [
            (&[][..], left(30.0), Next::Done),
            (&[Undisturbed][..], left(30.0), Next::Done),
            (&[Refused][..], left(30.0), Next::Done),
            (&[d][..], left(30.0), Next::AtOnce),
            (&[d][..], left(5.0), Next::AtOnce),
            (&[d][..], left(4.9), Next::Done),
            (&[d][..], none, Next::Done),
            (&[d, Undisturbed][..], left(30.0), Next::Done),
            (&[d, Refused][..], left(30.0), Next::Done),
            (&[d, d][..], left(30.0), Next::AtEnd),
            (&[d, Disturbed(900.0)][..], left(5.0), Next::AtEnd),
            (&[d, d][..], left(4.9), Next::Done),
            (&[d, d, d][..], left(30.0), Next::Done),
        ] {
            assert_eq!(next(made, budget, 5.0), follows, "{made:?} {budget:?}");
        }
    }

    #[test]
    fn a_machine_that_is_never_quiet_is_waited_for_in_bounded_time() {
        let interrupted = AtomicBool::new(true);
        let began = Instant::now();
        wait_for_quiet(Duration::from_secs(600), [None, None], &interrupted);
        assert!(began.elapsed() < Duration::from_secs(60), "a user who stops is not kept waiting");
    }
}
