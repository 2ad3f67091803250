//! The thread of a test that waits: it takes the snapshots at window start and window end, counts what the jobs have done, and tells
//! once a second what each has reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use loadline_collect::os::{CostMeter, Server, least_disturbed};
use loadline_collect::{CollectError, PendingReading, Recent, Sampler, Second, Surroundings, WindowReading};
use loadline_database::{Observer, TargetError};
use loadline_model::Snapshot;
use loadline_model::snapshot::{WaitSample, counter};
use loadline_storage::{before_others, now_ns};

use crate::schedule::{Reported, SECOND_NS, STEP_NS, Schedule, Shared};
use crate::warmup::{Counts, LEAD_NS, WarmedUp, Warmup, next_count_ns};
use crate::{Request, RunningJobs, TestHooks, WindowReadings};

/// How long to wait for jobs to pass window start or window end before its snapshot is taken anyway.
const PASS_TIMEOUT: Duration = Duration::from_millis(1000);
/// How long the jobs that have passed the window end still make load for those that have not.
const LOAD_STAYS: Duration = Duration::from_secs(10);
/// How long to wait for the first transaction of every job. Then the window is set anyway; the test is refused if a
/// job is still missing.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// From so many jobs on, what reads counters runs before them: else it has a few thousandths of a CPU, and reads for a minute.
pub(crate) const MANY_JOBS: u32 = 64;

/// Progress of a test: about once a second, and when all jobs have passed window start and window end.
#[derive(Debug)]
pub struct Tick {
    /// Seconds since the jobs began.
    pub elapsed_s: f64,
    pub when: TickAt,
    /// Completed transactions of each job.
    pub jobs: Vec<Reported>,
    pub start_ns: u64,
    /// Readings of the sampler; none during the warm-up.
    pub second: Second,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TickAt {
    Second,
    WindowStart,
    WindowEnd,
    /// Jobs are still to end, more than a second after it.
    Ending,
}

/// Time between two questions whether the window may start, ns.
pub(crate) const HOLD_NS: u64 = 2 * STEP_NS;

/// How long after a whole second of the window jobs are asked what they did in it: in-database slices that ended with it have
/// reported by then.
const SETTLE_NS: u64 = STEP_NS / 2;

/// The test's own thread, which waits, counts what the jobs have done, and reports once a second.
pub(crate) struct Watch<'a, T> {
    shared: &'a Shared,
    start_ns: u64,
    tick: T,
    pub(crate) recent: Option<Recent>,
    next_tick_ns: u64,
    next_count_ns: u64,
    pub(crate) counts: Counts,
}

impl<'a, T: FnMut(&Tick)> Watch<'a, T> {
    pub(crate) fn new(shared: &'a Shared, start_ns: u64, tick: T) -> Watch<'a, T> {
        let next_tick_ns = start_ns + SECOND_NS;
        let mut watch =
            Watch { shared, start_ns, tick, recent: None, next_tick_ns, next_count_ns: 0, counts: Counts::default() };
        watch.count_next();
        watch
    }

    fn ended(&self) -> bool {
        self.shared.stopped() || self.shared.all_ended()
    }

    fn count(&mut self) {
        self.counts.count(self.shared);
        self.count_next();
    }

    fn count_next(&mut self) {
        self.next_count_ns = next_count_ns(self.start_ns, now_ns());
    }

    fn tick(&mut self, when: TickAt) {
        let second = self.recent.as_mut().map(Recent::second).unwrap_or_default();
        let now = now_ns();
        let elapsed_s = now.saturating_sub(self.start_ns) as f64 / 1e9;
        let jobs = self.shared.progress.iter().map(|job| job.reported(now)).collect();
        (self.tick)(&Tick { elapsed_s, when, jobs, start_ns: self.start_ns, second });
    }

    pub(crate) fn tick_from_now(&mut self) {
        self.next_tick_ns = now_ns() + SECOND_NS;
    }

    pub(crate) fn tick_if_due(&mut self, when: TickAt) {
        let now = now_ns();
        if now >= self.next_tick_ns {
            self.tick(when);
            self.next_tick_ns += (now.saturating_sub(self.next_tick_ns) / SECOND_NS + 1) * SECOND_NS;
        }
    }

    /// Waits until `ns` on the clock, or until the jobs have ended.
    fn wait_until(&mut self, ns: u64) {
        while now_ns() < ns && !self.ended() {
            let now = now_ns();
            if now >= self.next_count_ns {
                self.count();
            }
            self.tick_if_due(TickAt::Second);
            let next = ns.min(self.next_tick_ns).min(self.next_count_ns);
            std::thread::sleep(Duration::from_nanos(next.saturating_sub(now).min(50_000_000)));
        }
    }

    /// Waits until the window end, with a tick after each whole second of it.
    fn in_window(&mut self, schedule: &Schedule) {
        self.next_tick_ns = schedule.open_ns + SECOND_NS + SETTLE_NS;
        // What is left is told with the window end.
        self.wait_until(schedule.close_ns.saturating_sub(SECOND_NS / 2));
        self.next_tick_ns = u64::MAX;
        self.wait_until(schedule.close_ns);
    }

    /// Waits until all running jobs have passed window start or window end: their counters are then visible. Goes on counting.
    fn wait_passed(&mut self, passed: &AtomicU32, most: Duration) {
        let deadline = Instant::now() + most;
        while passed.load(Ordering::Relaxed) < self.shared.jobs() && Instant::now() < deadline && !self.ended() {
            if now_ns() >= self.next_count_ns {
                self.count();
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Waits until the warm-up is nearly over: its length may be unknown, and the window held back. Returns the window start, and what the
    /// warm-up was.
    pub(crate) fn warm_up(&mut self, request: &Request, hooks: &mut dyn TestHooks) -> (u64, WarmedUp) {
        let began_ns = now_ns();
        let mut warmed = WarmedUp::default();
        let mut open_ns = match request.warmup {
            Warmup::Seconds(s) => began_ns + (s * 1e9) as u64,
            Warmup::UntilSteady { most_s, steady } => {
                let last_ns = began_ns + ((most_s * 1e9) as u64).saturating_sub(LEAD_NS);
                let due = request.load.rate_tps.map(|rate| (rate / 1e9, self.start_ns));
                let mut is_steady = false;
                while !is_steady && now_ns() < last_ns && !self.ended() {
                    self.wait_until(self.next_count_ns.min(last_ns));
                    self.count();
                    warmed.load = self.counts.load(began_ns, now_ns(), request.jobs, due);
                    is_steady = steady(&warmed.load);
                }
                warmed.steady = Some(is_steady);
                now_ns() + LEAD_NS
            }
        };
        open_ns = self.hold(hooks, open_ns);
        warmed.taken_s = (open_ns - began_ns) as f64 / 1e9;
        (open_ns, warmed)
    }

    /// Waits as long as the window is held back, which is to start at `open_ns`. Returns when it does.
    fn hold(&mut self, hooks: &mut dyn TestHooks, open_ns: u64) -> u64 {
        // The first look is only where the next begins.
        let mut next_ns = open_ns.saturating_sub(LEAD_NS + HOLD_NS);
        while hooks.holds() {
            self.wait_until(next_ns);
            if self.ended() || hooks.may_open() {
                return open_ns.max(now_ns() + LEAD_NS);
            }
            next_ns = now_ns() + HOLD_NS;
        }
        open_ns
    }

    /// Waits for the start of another window after one that does not count. Returns when it starts.
    pub(crate) fn hold_again(&mut self, hooks: &mut dyn TestHooks) -> u64 {
        self.recent = None;
        self.tick_from_now();
        self.hold(hooks, now_ns() + LEAD_NS)
    }
}

/// Readings at window start and window end, with the surroundings there.
type Watched = (WindowReadings, Option<[Surroundings; 2]>);

/// Waits for window start and window end, and takes the snapshots there; and reads what surrounds the test, if the
/// database's processes are given. `None`: the window does not count, by `is_repeated`, which is asked when all jobs have passed it.
pub(crate) fn watch_window(
    schedule: &Schedule,
    watch: &mut Watch<'_, impl FnMut(&Tick)>,
    sampler: &Sampler,
    server: Option<(&Server, &CostMeter)>,
    is_repeated: impl FnOnce() -> bool,
) -> Result<Option<Watched>, String> {
    let text = |e: CollectError| e.to_string();
    let shared = watch.shared;
    // Requested in advance, so that the sampler does nothing else at that moment.
    let at_start = sampler.reading_at("start", schedule.open_ns).map_err(text);
    watch.wait_until(schedule.open_ns);
    watch.wait_passed(&shared.after_start, PASS_TIMEOUT);
    let after_start = sampler.reading("start, passed by all jobs").map_err(text);
    let at_end = sampler.reading_at("end", schedule.close_ns).map_err(text);
    let look = |(server, meter): (&Server, &CostMeter)| {
        before_others(shared.jobs() >= MANY_JOBS, || {
            let around = Surroundings::read(server);
            Surroundings { cost: meter.read(around.at_ns, around.processes.as_ref()), ..around }
        })
    };
    let around_open = server.map(look);
    watch.tick(TickAt::WindowStart);
    watch.in_window(schedule);
    watch.wait_passed(&shared.after_end, PASS_TIMEOUT);
    watch.count();
    if shared.stopped() {
        // Do not wait for a snapshot that is still to come.
        return Err("interrupted".to_owned());
    }
    // Before the jobs end: a session that ends publishes what it did after the window.
    let after_end = sampler.reading("end, passed by all jobs").map_err(text);
    let all_passed = shared.after_end.load(Ordering::Relaxed) == shared.jobs() && !shared.any_ended();
    if all_passed && is_repeated() {
        return Ok(None);
    }
    let around = around_open.zip(server.map(look)).map(|(open, close)| [open, close]);
    watch.tick(TickAt::WindowEnd);
    // Jobs that ended now would leave the machine to the long transactions of others, whose parts in the window would grow.
    watch.wait_passed(&shared.after_end, LOAD_STAYS);
    shared.stop.store(true, Ordering::Relaxed);
    let (after_start, after_end) = (after_start?, after_end?);
    // If the jobs ended before, read the counters now.
    let reading = |announced: PendingReading, at_ns: u64, now: &WindowReading| {
        if now_ns() < at_ns { Ok(now.clone()) } else { announced.wait().map_err(text) }
    };
    let readings = WindowReadings {
        at_start: reading(at_start?, schedule.open_ns, &after_start)?,
        at_end: reading(at_end?, schedule.close_ns, &after_end)?,
        after_start,
        after_end,
    };
    Ok(Some((readings, around)))
}

/// Waits until every job has completed its first transaction. Returns what all of them wait for, if that is not the
/// database's own work.
pub(crate) fn wait_started(shared: &Shared, crew: &dyn RunningJobs) -> Option<TargetError> {
    let begin = Instant::now();
    // A job that has ended already makes the test refused: do not wait.
    while shared.started.load(Ordering::Relaxed) < shared.jobs() && !shared.any_ended() && !shared.stopped() {
        if begin.elapsed() >= START_TIMEOUT {
            // Jobs wait for each other's locks too, but not all of them. The question takes seconds in which one may start.
            let none_started = || shared.started.load(Ordering::Relaxed) == 0;
            if !none_started() {
                return None;
            }
            let found = crew.hindrance()?;
            let when = format!("no job completed a transaction in {} s: ", START_TIMEOUT.as_secs());
            return none_started().then(|| found.after(&when));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

/// A snapshot is repeated if it took longer than the fastest so far by this factor and this time, ns: then somebody waited
/// for a CPU, and the moment of its counters is uncertain.
const DISTURBED: (u64, u64) = (3, 5_000_000);

/// Reads snapshots, each with the jobs' own count: a snapshot read late is compared with what the jobs had done by then.
pub(crate) struct Observed {
    pub(crate) observer: Box<dyn Observer>,
    /// `None` for the in-database driver, whose jobs report only once a slice.
    pub(crate) counting: Option<Arc<Shared>>,
    /// How long a snapshot took so far, at least.
    pub(crate) fastest_ns: u64,
}

impl Observed {
    /// Reads a snapshot. Returns how long that took, ns, and the snapshot.
    fn read(&mut self) -> (u64, Result<Snapshot, TargetError>) {
        let completed = |shared: &Option<Arc<Shared>>| shared.as_ref().map(|s| s.completed() as f64);
        let failed = |shared: &Arc<Shared>| shared.failed_commits.load(Ordering::Relaxed) as f64;
        let (begin_ns, before) = (now_ns(), completed(&self.counting));
        let mut snapshot = self.observer.snapshot();
        let (took_ns, after) = (now_ns().saturating_sub(begin_ns), completed(&self.counting));
        if let Ok(snapshot) = &mut snapshot {
            let failed = self.counting.as_ref().map(failed);
            for (name, count) in
                [(counter::JOBS_BEFORE, before), (counter::JOBS_AFTER, after), (counter::FAILED_COMMITS, failed)]
            {
                snapshot.counters.extend(count.map(|n| (name.to_owned(), n)));
            }
        }
        (took_ns, snapshot)
    }
}

impl Observer for Observed {
    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let usual_ns = self.fastest_ns.saturating_mul(DISTURBED.0).saturating_add(DISTURBED.1);
        let (took_ns, snapshot) = least_disturbed(|took_ns| took_ns > usual_ns, || self.read());
        if snapshot.is_ok() {
            self.fastest_ns = self.fastest_ns.min(took_ns);
        }
        snapshot
    }

    fn sample_waits(&mut self) -> Result<Option<WaitSample>, TargetError> {
        self.observer.sample_waits()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;

    /// Takes so many ms for each snapshot, which holds its number. One transaction completes meanwhile.
    struct Slow(Vec<u64>, u64, Arc<Shared>);

    impl Observer for Slow {
        fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
            std::thread::sleep(Duration::from_millis(self.0[self.1 as usize]));
            self.1 += 1;
            self.2.progress[0].set(self.1);
            Ok(Snapshot { at_ns: self.1, ..Snapshot::default() })
        }
    }

    #[test]
    fn a_disturbed_snapshot_is_read_again_and_has_the_jobs_count() {
        let shared = Arc::new(Shared::new(1, Arc::new(AtomicBool::new(false))));
        let slow = Slow(vec![0, 400, 0, 400, 500, 600], 0, Arc::clone(&shared));
        let mut observed = Observed { observer: Box::new(slow), counting: Some(shared), fastest_ns: u64::MAX };
        let mut next = || {
            let snapshot = observed.snapshot().unwrap();
            let count = |name: &str| snapshot.counters[name];
            (snapshot.at_ns, count(counter::JOBS_BEFORE), count(counter::JOBS_AFTER))
        };
        assert_eq!(next(), (1, 0.0, 1.0));
        assert_eq!(next(), (3, 2.0, 3.0), "the second took too long");
        assert_eq!(next(), (4, 3.0, 4.0), "the shortest of three");
    }
}
