//! The common window of a test: when jobs start, when the window starts and ends.
//!
//! The window is set after the first transaction of every job: with many sessions on few CPUs, some start late.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use loadline_model::Latencies;
use loadline_storage::now_ns;

/// Time between two counts, ns, and length of an in-database slice outside the window, when the job must react soon.
pub const STEP_NS: u64 = 100_000_000;
pub const SECOND_NS: u64 = 1_000_000_000;
/// A window shorter than this, ns, has a course by [`STEP_NS`].
const SHORT_WINDOW_NS: u64 = 20 * SECOND_NS;

/// The step by which transactions of a window are counted, ns: a second, or [`STEP_NS`] if it is short.
#[inline]
pub const fn course_step_ns(window_ns: u64) -> u64 {
    if window_ns < SHORT_WINDOW_NS { STEP_NS } else { SECOND_NS }
}

/// Times of one test, in ns on [`loadline_storage::now_ns`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    pub start_ns: u64,
    pub open_ns: u64,
    pub close_ns: u64,
}

impl Schedule {
    /// A window that is not set yet: no transaction counts.
    pub fn pending(start_ns: u64) -> Schedule {
        Schedule { start_ns, open_ns: u64::MAX, close_ns: u64::MAX }
    }

    pub fn is_pending(&self) -> bool {
        self.open_ns == u64::MAX
    }

    pub fn window_ns(&self) -> u64 {
        self.close_ns.saturating_sub(self.open_ns)
    }

    pub fn window_s(&self) -> f64 {
        self.window_ns() as f64 / 1e9
    }

    /// Whether a transaction that completed at `ns` counts.
    #[inline]
    pub fn counts(&self, ns: u64) -> bool {
        (self.open_ns..self.close_ns).contains(&ns)
    }

    pub fn part_inside(&self, from_ns: u64, to_ns: u64) -> u64 {
        to_ns.min(self.close_ns).saturating_sub(from_ns.max(self.open_ns))
    }

    /// Step of the window's course ([`course_step_ns`]) that contains `ns`. `ns` must be in the window.
    #[inline]
    pub fn step(&self, ns: u64) -> usize {
        let ns = ns.saturating_sub(self.open_ns);
        // Once a transaction: a division by a constant is a multiplication, one by a variable 30 cycles.
        let step = if self.window_ns() < SHORT_WINDOW_NS { ns / STEP_NS } else { ns / SECOND_NS };
        step as usize
    }

    /// End of an in-database slice that begins at `now_ns`: the next whole second counted from the window start, or
    /// window start or window end, whichever is first.
    pub fn slice_end(&self, now_ns: u64) -> u64 {
        if self.is_pending() {
            // At common times, so that counts taken between them hold the same slices of all jobs.
            let slices = now_ns.saturating_sub(self.start_ns) / STEP_NS + 1;
            return (self.start_ns + slices * STEP_NS).max(now_ns + STEP_NS / 10);
        }
        if now_ns >= self.close_ns {
            return now_ns + STEP_NS;
        }
        let bound = if now_ns < self.open_ns { self.open_ns } else { self.close_ns };
        let phase = self.open_ns % SECOND_NS;
        // Next time that is a whole number of seconds from the window start.
        let next = (now_ns + SECOND_NS - phase) / SECOND_NS * SECOND_NS + phase;
        let next = if next <= now_ns { next + SECOND_NS } else { next };
        next.min(bound)
    }
}

/// Windows that the jobs of a test may pass: one that others disturbed may be followed by another.
const MOST_WINDOWS: usize = 2;

/// Parts of the window whose transaction times are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    One,
    /// So many, equally long; in an open loop times are from when transactions were due.
    Equal(usize),
    /// Two, of which an instrument says which is under way ([`Shared::mark`]).
    Marked,
}

/// State shared by a test's jobs and its coordinator. A job writes only its own progress and the counters of jobs.
#[derive(Debug, Default)]
pub struct Shared {
    /// Jobs that have completed their first transaction.
    pub started: AtomicU32,
    /// The windows, as far as they are set: the last one counts.
    pub(crate) windows: [OnceLock<Schedule>; MOST_WINDOWS],
    /// Set when jobs may end: the snapshot of the window end has been taken.
    pub stop: AtomicBool,
    /// Jobs that have passed the window start and published their counters.
    pub after_start: AtomicU32,
    /// Jobs that have passed the window end and published their counters.
    pub after_end: AtomicU32,
    /// Transactions completed in a window that does not count.
    pub(crate) completed_before: AtomicU64,
    pub ended: AtomicU32,
    /// Number of the first job in the test.
    pub first_job: u32,
    /// Transactions completed so far, per job, for the progress line.
    pub progress: Vec<Progress>,
    /// COMMITs that failed so far, of all jobs of the client driver.
    pub failed_commits: AtomicU64,
    /// Times by part of the window, if it has parts ([`crate::Request::parts`]). A job adds its times in a part when it completes a
    /// transaction in another one, or ends.
    parts: Vec<Mutex<Latencies>>,
    /// Whether the second part is under way, of [`Parts::Marked`].
    marked: Option<AtomicBool>,
    pub interrupted: Arc<AtomicBool>,
    /// Why loadline ended the sessions of jobs that did not end. Set before it does so.
    pub cut: OnceLock<String>,
}

/// A job's progress, on its own cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Progress {
    completed: AtomicU64,
    /// The last report of a job that reports only now and then.
    report: Mutex<Option<Reported>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reported {
    pub completed: u64,
    pub at_ns: u64,
}

impl Progress {
    /// Publishes the count of a job that does so after each transaction.
    #[inline]
    pub fn set(&self, n: u64) {
        self.completed.store(n, Ordering::Relaxed);
    }

    /// Publishes what a job that reports now and then had completed at `at_ns`.
    pub fn report(&self, completed: u64, at_ns: u64) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(Reported { completed, at_ns });
        self.set(completed);
    }

    pub fn get(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// The job's count with the time for which it holds: that of its last report, or `now_ns` if it publishes each transaction.
    pub fn reported(&self, now_ns: u64) -> Reported {
        let report = *self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.unwrap_or_else(|| Reported { completed: self.get(), at_ns: now_ns })
    }
}

impl Shared {
    pub fn new(jobs: u32, interrupted: Arc<AtomicBool>) -> Shared {
        Shared { progress: (0..jobs).map(|_| Progress::default()).collect(), interrupted, ..Shared::default() }
    }

    /// For `jobs` jobs of a test, of which the first has this number.
    pub fn of_part(first_job: u32, jobs: u32, interrupted: Arc<AtomicBool>) -> Shared {
        Shared { first_job, ..Shared::new(jobs, interrupted) }
    }

    #[must_use]
    pub fn split(self, parts: Parts) -> Shared {
        let number = match parts {
            Parts::One => 0,
            Parts::Equal(number) => number,
            Parts::Marked => 2,
        };
        let marked = (parts == Parts::Marked).then(AtomicBool::default);
        Shared { parts: std::iter::repeat_with(Mutex::default).take(number).collect(), marked, ..self }
    }

    /// Says whether the second part is under way, of [`Parts::Marked`].
    pub fn mark(&self, is_second: bool) {
        self.marked.iter().for_each(|marked| marked.store(is_second, Ordering::Relaxed));
    }

    /// The part in which a transaction ended, and when its time began, which may have been due earlier; `None` without parts.
    #[inline]
    pub(crate) fn part(&self, schedule: &Schedule, [due_ns, start_ns]: [u64; 2], end_ns: u64) -> Option<(usize, u64)> {
        if self.parts.is_empty() || !schedule.counts(end_ns) {
            return None;
        }
        Some(match &self.marked {
            Some(marked) => (usize::from(marked.load(Ordering::Relaxed)), start_ns),
            None => ((end_ns.saturating_sub(schedule.open_ns) / self.part_ns(schedule)) as usize, due_ns),
        })
    }

    pub(crate) fn add_part(&self, part: usize, times: &Latencies) {
        if let Some(all) = self.parts.get(part) {
            all.lock().unwrap_or_else(PoisonError::into_inner).merge(times);
        }
    }

    /// Times of each part so far.
    pub fn parts(&self) -> Vec<Latencies> {
        self.parts.iter().map(|part| part.lock().unwrap_or_else(PoisonError::into_inner).clone()).collect()
    }

    pub fn part_ns(&self, schedule: &Schedule) -> u64 {
        schedule.window_ns().div_ceil(self.parts.len().max(1) as u64).max(1)
    }

    /// The progress of a job, by its number in the test.
    #[inline]
    pub(crate) fn progress_of(&self, job: u32) -> Option<&Progress> {
        self.progress.get(job.wrapping_sub(self.first_job) as usize)
    }

    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.interrupted.load(Ordering::Relaxed)
    }

    pub fn jobs(&self) -> u32 {
        self.progress.len() as u32
    }

    pub fn any_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed) > 0
    }

    pub fn all_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed) >= self.jobs()
    }

    /// The window that counts, once it is set.
    pub fn window(&self) -> Option<&Schedule> {
        self.windows.iter().rev().find_map(OnceLock::get)
    }

    /// Sets the window, or another one after one that all jobs have passed.
    pub fn set_window(&self, schedule: Schedule) {
        self.after_start.store(0, Ordering::Relaxed);
        self.after_end.store(0, Ordering::Relaxed);
        let unset = self.windows.iter().find(|window| window.get().is_none());
        let _ = unset.map(|window| window.set(schedule));
    }

    pub(crate) fn has_window_left(&self) -> bool {
        self.windows[MOST_WINDOWS - 1].get().is_none()
    }

    /// Updates a pending `schedule` once the window is set.
    #[inline]
    pub fn update(&self, schedule: &mut Schedule) {
        if schedule.is_pending()
            && let Some(set) = self.window()
        {
            *schedule = *set;
        }
    }

    /// The window after `schedule`, which the job has passed, if one is set.
    pub(crate) fn next_window(&self, schedule: &Schedule) -> Option<Schedule> {
        self.window().copied().filter(|next| next.open_ns > schedule.open_ns)
    }

    pub fn completed(&self) -> u64 {
        self.progress.iter().map(Progress::get).sum()
    }
}

pub fn sleep_until(ns: u64, shared: &Shared) {
    loop {
        let now = now_ns();
        if now >= ns || shared.stopped() {
            return;
        }
        // In short pieces, to notice an interrupt.
        std::thread::sleep(Duration::from_nanos((ns - now).min(100_000_000)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slices_are_short_end_at_start_and_end_and_never_cross_them(
            start in 1_000_000_000u64..5_000_000_000, warmup in 1u64..4_000_000_000, window in 1u64..9_000_000_000,
            at in 0.0f64..1.3,
        ) {
            let s = Schedule { start_ns: start, open_ns: start + warmup, close_ns: start + warmup + window };
            let now = start + ((warmup + window) as f64 * at) as u64;
            let end = s.slice_end(now);
            prop_assert!(end > now && end - now <= 1_000_000_000, "{now} to {end}");
            prop_assert!(!(now < s.open_ns && end > s.open_ns), "crosses the opening");
            prop_assert!(!(now < s.close_ns && end > s.close_ns), "crosses the close");
            let on_second = (end as i128 - s.open_ns as i128).rem_euclid(1_000_000_000) == 0;
            prop_assert!(now >= s.close_ns || on_second || end == s.open_ns || end == s.close_ns);
            let pending = Schedule::pending(start).slice_end(now);
            prop_assert!(pending >= now + STEP_NS / 10 && pending - now <= STEP_NS);
            prop_assert!((pending - start).is_multiple_of(STEP_NS) || pending == now + STEP_NS / 10, "at common times");
        }
    }
}
