//! Waiting for a quiet machine before a test, and second tries: a test whose only fault is that others disturbed it is measured again,
//! at once, and once more at the end of the run. Which try counts: `loadline_model::tries`.

use std::sync::Arc;
use std::time::Instant;

use loadline_load::Place;
use loadline_model::live::Held;
use loadline_model::plan::Plan;
use loadline_model::tries::{MOST_TRIES, disturbed, measured, split, tries};
use loadline_model::{TestRecord, column};

use super::Context;
use super::quiet::{Hold, Others};
use crate::plan::duration::DurationEstimate;

/// Longest time that a try waits for a quiet machine, s.
const MOST_WAIT_S: f64 = 10.0;

/// Next step after a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Done,
    AtOnce,
    AtEnd,
}

/// Next step after tries of a test that were [disturbed] so far, which was `measured` so often, if another takes `try_s` of the `left_s` of
/// patience.
fn next(made: &[Option<f64>], measured: u32, left_s: f64, try_s: f64) -> Next {
    let all_disturbed = !made.is_empty() && made.iter().all(Option::is_some);
    match measured {
        n if !all_disturbed || n >= MOST_TRIES || try_s > left_s => Next::Done,
        1 => Next::AtOnce,
        _ => Next::AtEnd,
    }
}

pub(super) struct Tries {
    /// Time for tries after the first and for waiting, as a share of what the plan takes.
    patience: f64,
    /// Estimated time of the plan, s.
    planned_s: f64,
    /// When the run began, or went on.
    run_began: Instant,
    /// Time of tries after the first and of waiting so far, s.
    spent_s: f64,
    /// Share of `spent_s` from before the run went on, s.
    earlier_s: f64,
    /// Whether the machine was not quiet for as long as a try may wait, and no test since was undisturbed.
    in_vain: bool,
    /// Planned time of a window with what is around it, s.
    pub(super) window_s: f64,
    /// Windows that do not count.
    pub(super) others: Vec<TestRecord>,
    /// Tests up to this number are of a run that had ended: none of them is measured again.
    pub(super) settled: u32,
    /// Numbers of the first windows of the tests that are to be measured again now.
    due: Vec<u32>,
    /// Whether the plan is done, and only what is due is measured.
    pub(super) is_end: bool,
    /// When the second try under way began, and about how long it takes without waiting, s.
    began: Option<(Instant, f64)>,
}

impl Tries {
    /// Of a run of `plan`, of which `counting` and `others` are stored.
    pub(super) fn new(plan: &Plan, counting: &[TestRecord], others: Vec<TestRecord>) -> Tries {
        let length = DurationEstimate::new(plan);
        let mut tries = Tries {
            patience: plan.patience,
            planned_s: length.total_s(),
            run_began: Instant::now(),
            spent_s: 0.0,
            earlier_s: 0.0,
            in_vain: false,
            window_s: length.window_s(),
            others,
            settled: 0,
            due: Vec::new(),
            is_end: false,
            began: None,
        };
        // How long a killed run waited is not stored.
        let again = tries.others.iter().chain(counting).filter(|r| r.try_of.is_some());
        tries.earlier_s = again.map(|r| MOST_WAIT_S + tries.try_s(&[r])).sum();
        tries.spent_s = tries.earlier_s;
        tries
    }

    /// Time that waits and tries after the first may still take, s: a share of what the plan takes without them.
    fn left_s(&self) -> f64 {
        let so_far_s = self.run_began.elapsed().as_secs_f64() - (self.spent_s - self.earlier_s);
        self.patience * self.planned_s.max(so_far_s) - self.spent_s
    }

    /// About how long a try like that of `windows` takes, s.
    fn try_s(&self, windows: &[&TestRecord]) -> f64 {
        windows.iter().map(|r| r.figure(column::ELAPSED_S).unwrap_or(0.0).max(self.window_s)).sum()
    }

    /// Books the time of the try under way, which has ended or failed. Returns whether there was one.
    pub(super) fn end_try(&mut self) -> bool {
        let Some((began, _)) = self.began.take() else { return false };
        self.spent_s += began.elapsed().as_secs_f64();
        true
    }

    /// How long the try under way may wait for a quiet machine, s.
    fn wait_s(&self) -> f64 {
        let most_s = match self.began {
            Some((began, try_s)) => self.left_s() - began.elapsed().as_secs_f64() - try_s,
            // Whoever always disturbs is not waited for before each test: what is left is for second tries.
            None if self.in_vain => 0.0,
            None => self.left_s() - self.window_s,
        };
        most_s.clamp(0.0, MOST_WAIT_S)
    }

    /// Next step after the tries of the test whose first window is number `first`, among `all` windows.
    fn next<'a>(&self, all: impl Iterator<Item = &'a TestRecord> + Clone, first: u32) -> Next {
        let tries = tries(all, first);
        let made: Vec<Option<f64>> = tries.iter().map(|windows| disturbed(windows)).collect();
        let measured = tries.iter().map(|windows| measured(windows)).sum();
        next(&made, measured, self.left_s(), tries.last().map_or(0.0, |windows| self.try_s(windows)))
    }
}

impl Context<'_> {
    pub(super) fn next_test(&self) -> u32 {
        self.newest().map_or(0, |r| r.test) + 1
    }

    pub(super) fn newest(&self) -> Option<&TestRecord> {
        self.windows().max_by_key(|r| r.test)
    }

    pub(super) fn windows(&self) -> impl Iterator<Item = &TestRecord> + Clone {
        self.records.iter().chain(&self.tries.others)
    }

    pub(super) fn add_record(&mut self, mut record: TestRecord) {
        record.tries = measured(&[&record]);
        let again = record.try_of.is_some();
        self.records.push(record);
        if again {
            self.records.append(&mut self.tries.others);
            (self.records, self.tries.others) = split(std::mem::take(&mut self.records));
        }
    }

    /// Begins the try that is due again of a test of which `is_meant`: the number of its first window, and the try that counts so far.
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
        let windows = if record.variant.is_some() { 2.0 } else { 1.0 };
        self.tries.began = Some((Instant::now(), windows * self.tries.try_s(&[&record])));
        Some((first, record))
    }

    /// Waits until others are quiet, as far as patience goes, before a test without a window.
    pub(super) fn wait_until_quiet(&mut self, test: u32, try_of: Option<u32>) {
        let (mut hold, interrupted) = (self.hold(Others::beside(self)), Arc::clone(&self.interrupted));
        hold.wait(&interrupted, || self.step(format!("test {test}: {}", Held::Waits)));
        self.book_hold(&hold, try_of);
    }

    /// Wait at the end of the warm-up.
    pub(super) fn hold(&self, others: Others) -> Hold {
        // Jobs of other processes on this machine are not distinguished from others while they work.
        Hold::new(others, if matches!(self.place, Place::Remote(_)) { 0.0 } else { self.tries.wait_s() })
    }

    /// Books what a try waited, and a window that did not count. A second try is booked as a whole.
    pub(super) fn book_hold(&mut self, hold: &Hold, try_of: Option<u32>) {
        self.tries.in_vain |= hold.in_vain;
        if try_of.is_none() {
            self.tries.spent_s += hold.waited_s;
        }
    }

    /// Judges the try that just ended: the first, whose first window has this `number`, or another one `try_of` a test.
    pub(super) fn judge_try(&mut self, number: u32, try_of: Option<u32>) {
        let first = try_of.unwrap_or(number);
        let made = tries(self.windows(), first);
        let was_quiet = made.last().is_some_and(|last| last.iter().all(|r| r.valid));
        self.tries.in_vain &= !was_quiet;
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
        let is_open = |first: &u32| *first > self.tries.settled;
        firsts.filter(is_open).filter(|first| self.tries.next(self.windows(), *first) != Next::Done)
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_tries_so_far_and_the_time_left_say_what_follows() {
        let d = Some(1.2);
        assert_eq!(next(&[d], 2, 30.0, 5.0), Next::AtEnd, "of two windows of the same jobs none was quiet");
        for (made, left_s, follows) in [
            (&[][..], 30.0, Next::Done),
            (&[None][..], 30.0, Next::Done),
            (&[d][..], 30.0, Next::AtOnce),
            (&[d][..], 5.0, Next::AtOnce),
            (&[d][..], 4.9, Next::Done),
            (&[d][..], 0.0, Next::Done),
            (&[d, None][..], 30.0, Next::Done),
            (&[d, d][..], 30.0, Next::AtEnd),
            (&[d, Some(900.0)][..], 5.0, Next::AtEnd),
            (&[d, d][..], 4.9, Next::Done),
            (&[d, d, d][..], 30.0, Next::Done),
        ] {
            assert_eq!(next(made, made.len() as u32, left_s, 5.0), follows, "{made:?} {left_s}");
        }
    }

    #[test]
    fn a_machine_that_is_never_quiet_is_waited_for_in_bounded_time() {
        let mut tries = Tries::new(&Plan::default(), &[], Vec::new());
        (tries.patience, tries.planned_s, tries.window_s) = (0.3, 100.0, 4.0);
        assert_eq!(tries.wait_s(), MOST_WAIT_S);
        tries.in_vain = true;
        assert_eq!(tries.wait_s(), 0.0, "whoever always disturbs is not waited for before each test");
        tries.in_vain = false;
        tries.spent_s = 25.0;
        assert_eq!(tries.wait_s(), 1.0, "a second try stays possible");
        tries.began = Some((Instant::now(), 2.0));
        assert!((2.0..=3.0).contains(&tries.wait_s()), "the window of a second try takes of the time too");
        tries.spent_s = 31.0;
        assert_eq!(tries.wait_s(), 0.0);
        tries.run_began -= Duration::from_secs(240);
        assert!(tries.wait_s() > 9.0, "a plan that takes longer than was estimated has more of it");
        (tries.began, tries.spent_s) = (None, 52.0);
        assert!((0.39..1.0).contains(&tries.wait_s()), "but not for what its waits and tries took");
    }

    #[test]
    fn tries_before_a_run_went_on_took_nothing_of_its_time_since() {
        let again = TestRecord { try_of: Some(1), ..TestRecord::default() };
        let mut tries = Tries::new(&Plan::default(), &[], vec![again]);
        (tries.patience, tries.planned_s) = (0.3, 100.0);
        tries.run_began -= Duration::from_secs(240);
        assert!(tries.spent_s >= MOST_WAIT_S, "they are booked");
        assert!((72.0..73.0).contains(&(tries.left_s() + tries.spent_s)), "a share of all 240 s");
    }
}
