//! Runs the slices of the in-database driver. The database runs and times the loop. loadline only ends a slice once a
//! second and at window start and window end: sessions publish their counters when a call returns.

use std::sync::atomic::Ordering;

use loadline_database::{DatabaseSession, Slice, TargetError};
use loadline_storage::now_ns;
use loadline_workload::Replay;

use crate::client_job::{Timing, sleep_until};
use crate::job::{Books, Held, JobResult};
use crate::schedule::{Schedule, Shared};

/// Runs job `job` until `shared` stops it. `kinds` follows its transactions, if they are of several kinds.
pub(crate) fn run(
    job: u32,
    session: &mut dyn DatabaseSession,
    mut kinds: Option<Replay>,
    timing: Timing,
    shared: &Shared,
    tally: Held<'_>,
) -> JobResult {
    let mut books = Books::watching(job, tally);
    let mut schedule = Schedule::pending(timing.start_ns);
    let (mut after_start, mut after_end) = (false, false);
    sleep_until(timing.start_ns, shared);
    while !shared.stopped() {
        shared.update(&mut schedule);
        let begin_ns = now_ns();
        let until_ns = schedule.slice_end(begin_ns);
        let outcome = session.run_slice(until_ns);
        // The window is set far enough ahead: a slice started without it ends before the window start, except for its
        // last transaction.
        shared.update(&mut schedule);
        if books.job.first_start_ns.is_none() {
            shared.started.fetch_add(1, Ordering::Relaxed);
        }
        let ended_ns = match outcome {
            Ok(slice) => {
                add_slice(&mut books, &mut kinds, &schedule, begin_ns, until_ns, &slice);
                slice.end.map_or_else(now_ns, |end| end.end_ns)
            }
            Err(e) => {
                // The work of the failed slice is unknown: the job cannot continue to count.
                books.failed(&schedule, begin_ns, now_ns(), &e);
                let text = match e {
                    TargetError::Lost(text) | TargetError::NoSpace(text) => text,
                    e => format!("a slice of the in-database driver failed and its count is lost: {e}"),
                };
                books.job.lost = Some(text);
                break;
            }
        };
        if let Some(progress) = shared.progress_of(job) {
            progress.report(books.job.total, ended_ns);
        }
        // By loadline's clock. By the server's clock the last transaction may have ended slightly before that moment;
        // waiting for the next slice would read the counters one slice late.
        books.job.ran_until_ns = books.job.ran_until_ns.max(now_ns());
        if !after_start && books.job.ran_until_ns >= schedule.open_ns {
            after_start = true;
            shared.after_start.fetch_add(1, Ordering::Relaxed);
        }
        if !after_end && books.job.ran_until_ns >= schedule.close_ns {
            after_end = true;
            shared.after_end.fetch_add(1, Ordering::Relaxed);
        }
    }
    books.job
}

/// Adds a slice from `begin_ns` to `until_ns`. All but its last transaction ended before `until_ns`, and no slice
/// crosses window start or window end, so they all count or none does.
fn add_slice(
    books: &mut Books<'_>,
    kinds: &mut Option<Replay>,
    schedule: &Schedule,
    begin_ns: u64,
    until_ns: u64,
    slice: &Slice,
) {
    if slice.each.is_none() {
        // A histogram does not say which transaction was slow, or of which kind.
        (*kinds, books.job.slowest) = (None, None);
    }
    let inside = begin_ns >= schedule.open_ns && until_ns <= schedule.close_ns;
    let n = slice.transaction.count();
    books.lost(inside, slice.lost);
    books.job.total += n;
    books.tally.with(|tally| tally.total += n);
    if n > 0 || slice.end.is_some() {
        books.job.first_start_ns.get_or_insert(slice.first_start_ns);
    }
    if inside && n > 0 {
        books.job.completed += n;
        books.job.sum_ns += u64::try_from(slice.transaction.sum_ns()).unwrap_or(u64::MAX);
        books.tally.with(|tally| {
            tally.transaction.merge(&slice.transaction);
            tally.commit.merge(&slice.commit);
            if let Some(count) = tally.per_step.get_mut(schedule.step(begin_ns)) {
                *count += n;
            }
        });
    }
    for [start_ns, end_ns] in slice.each.iter().flatten() {
        let kind = kinds.as_mut().and_then(Replay::next_kind);
        if inside {
            books.may_be_slow(*start_ns, *end_ns);
            if let Some(kind) = kind {
                books.tally.with(|tally| tally.record_kind(kind, end_ns.saturating_sub(*start_ns)));
            }
        }
    }
    if let Some(end) = slice.end {
        let kind = kinds.as_mut().and_then(Replay::next_kind);
        books.completed(schedule, kind, end.start_ns, Some(end.commit_ns), end.end_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tally;
    use loadline_database::{Attempts, Canceller, SliceEnd};
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, Mutex};

    /// A database that runs a slice in its way.
    struct Fake(fn(u64) -> Slice);

    impl DatabaseSession for Fake {
        fn run_slice(&mut self, until_ns: u64) -> Result<Slice, TargetError> {
            Ok((self.0)(until_ns))
        }

        fn canceller(&self) -> Canceller {
            Canceller::new(|| ())
        }
    }

    /// Transactions of 3 ms, of which the commit takes 1 ms.
    fn steady(until_ns: u64) -> Slice {
        let mut slice = Slice { first_start_ns: now_ns(), ..Slice::default() };
        loop {
            let start_ns = now_ns();
            std::thread::sleep(std::time::Duration::from_millis(3));
            let end_ns = now_ns();
            if end_ns >= until_ns {
                slice.end = Some(SliceEnd { start_ns, commit_ns: end_ns - 1_000_000, end_ns });
                return slice;
            }
            slice.transaction.record(end_ns - start_ns);
            slice.each.get_or_insert_default().push([start_ns, end_ns]);
            slice.commit.record(1_000_000);
        }
    }

    /// One transaction, by a clock 1 µs behind loadline's.
    fn behind(until_ns: u64) -> Slice {
        let start_ns = now_ns();
        std::thread::sleep(std::time::Duration::from_nanos(until_ns.saturating_sub(start_ns)));
        let end = SliceEnd { start_ns, commit_ns: start_ns, end_ns: until_ns - 1_000 };
        Slice { first_start_ns: start_ns, end: Some(end), ..Slice::default() }
    }

    /// Runs a job with a window that starts after 250 ms. Also returns how long after window start and window end the
    /// job passed them, ns.
    fn through(slice: fn(u64) -> Slice, window_ns: u64) -> (JobResult, Tally, Schedule, [u64; 2]) {
        let start_ns = now_ns();
        let open_ns = start_ns + 250_000_000;
        let schedule = Schedule { start_ns, open_ns, close_ns: open_ns + window_ns };
        let shared = Shared::new(1, Arc::new(AtomicBool::new(false)));
        let wait = |passed: &std::sync::atomic::AtomicU32, edge_ns: u64| {
            while passed.load(Ordering::Relaxed) == 0 && now_ns() < schedule.close_ns + 2_000_000_000 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            now_ns() - edge_ns
        };
        std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                let tally = Mutex::new(Tally::new(window_ns, false));
                let job =
                    run(0, &mut Fake(slice), None, Timing { start_ns, window_ns }, &shared, Held::new(&tally, true));
                (job, tally.into_inner().unwrap())
            });
            shared.set_window(schedule);
            let waited = [wait(&shared.after_start, schedule.open_ns), wait(&shared.after_end, schedule.close_ns)];
            shared.stop.store(true, Ordering::Relaxed);
            let (job, tally) = running.join().unwrap();
            (job, tally, schedule, waited)
        })
    }

    #[test]
    fn what_completes_in_the_window_is_counted_once() {
        let (result, tally, schedule, _) = through(steady, 1_300_000_000);
        assert!(result.ran_through(&schedule) && result.lost.is_none());
        assert_eq!(tally.per_step.iter().sum::<u64>(), tally.transaction.count());
        assert_eq!(tally.transaction.count(), tally.commit.count());
        assert!(result.total > tally.transaction.count(), "warm-up and tail are in the total only");
        let share = result.time_in_transactions_ns() / schedule.window_ns() as f64;
        // Each of them took 3 ms or more, the first perhaps before the window.
        let least_ns = (tally.transaction.count() - 1) as f64 * 3e6;
        assert!(result.time_in_transactions_ns() >= least_ns && share <= 1.001, "{share} {least_ns}");
    }

    #[test]
    fn a_slice_counts_in_the_window_that_holds_it_and_its_last_transaction_where_it_ends() {
        const MS: u64 = 1_000_000;
        let schedule = Schedule { start_ns: 0, open_ns: 4000 * MS, close_ns: 5000 * MS };
        let tally = Mutex::new(Tally::new(schedule.window_ns(), false));
        let mut books = Books::watching(0, Held::new(&tally, true));
        // Two of 400 ms, and one of 100 ms that ends 10 ms after its slice.
        let slice = |begin_ms: u64| {
            let each = [0, 400].map(|at| [(begin_ms + at) * MS, (begin_ms + at + 400) * MS]);
            let end_ns = (begin_ms + 1010) * MS;
            let end = Some(SliceEnd { start_ns: end_ns - 100 * MS, commit_ns: end_ns - 20 * MS, end_ns });
            let lost = Attempts { conflicts: 1, failed_commits: 2 };
            let mut slice =
                Slice { first_start_ns: begin_ms * MS, each: Some(each.into()), end, lost, ..Slice::default() };
            each.iter().for_each(|[start, end]| slice.transaction.record(end - start));
            (0..2).for_each(|_| slice.commit.record(5 * MS));
            slice
        };
        let mut add = |begin_ms: u64, slice: &Slice| {
            let (begin_ns, until_ns) = (begin_ms * MS, (begin_ms + 1000) * MS);
            add_slice(&mut books, &mut None, &schedule, begin_ns, until_ns, slice);
            (books.job.total, books.job.completed, books.job.sum_ns / MS, books.job.first_start_ns.map(|ns| ns / MS))
        };
        assert_eq!(add(2000, &Slice { end: None, ..slice(2000) }), (2, 0, 0, Some(2000)));
        assert_eq!(add(3000, &slice(3000)), (5, 1, 100, Some(2000)));
        assert_eq!(add(4000, &slice(4000)), (8, 3, 900, Some(2000)));
        assert_eq!(add(5000, &slice(5000)), (11, 3, 900, Some(2000)));
        assert_eq!(
            [books.job.age_at_open_ns, books.job.age_at_close_ns, books.job.failed_commits],
            [90 * MS, 90 * MS, 8]
        );
        let ends: Vec<u64> = books.job.slowest.as_ref().unwrap().kept.iter().map(|[_, end]| end / MS).collect();
        assert_eq!(ends, [4010, 4400, 4800, 5010]);
        // A histogram does not say which were slow.
        add_slice(&mut books, &mut None, &schedule, 6000 * MS, 7000 * MS, &Slice { each: None, ..slice(6000) });
        assert!(books.job.slowest.is_none());
        drop(books);
        let tally = tally.into_inner().unwrap();
        assert_eq!([tally.total, tally.transaction.count(), tally.commit.count()], [14, 3, 3]);
        assert_eq!([tally.conflicts, tally.conflicts_total, tally.failed_commits], [1, 5, 2]);
        assert_eq!((tally.per_step[0], tally.per_step.iter().sum::<u64>()), (3, 3));
    }

    #[test]
    fn an_edge_is_passed_when_the_slice_returns() {
        let (result, _, schedule, [open, close]) = through(behind, 900_000_000);
        // Otherwise the counters of the window start would be read at the window end.
        assert!(open < schedule.window_ns() / 2, "{open}");
        assert!(close < 1_000_000_000 && result.ran_through(&schedule), "{close}");
    }
}
