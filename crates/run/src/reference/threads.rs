//! Work on all CPUs at once: what the references of CPU and memory have in common.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use loadline_storage::{run_only_when_idle, use_huge_pages};

use super::Subject;

/// Shortest and longest time of a measurement, unless one call takes longer.
pub(super) const SAMPLE: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_millis(600);
const ROUND: Duration = Duration::from_millis(20);
/// A measurement ends when this number of its fastest rounds differ by at most this share.
const ALIKE: (usize, f64) = (3, 0.02);

/// Number of threads that do the work of `sessions`: more than CPUs are not faster, and each needs memory.
pub(super) fn threads(sessions: u32) -> u32 {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    sessions.clamp(1, u32::try_from(cpus).unwrap_or(u32::MAX))
}

/// Number of threads that do the queries of the jobs of a test, each with its parallel workers.
pub(super) fn threads_of_queries(subject: Subject<'_>) -> u32 {
    threads(subject.request.jobs.saturating_mul(subject.request.work.parallel_workers().unwrap_or(1)))
}

/// Moves `memory` into huge pages. If that fails, returns a note for the limit's text.
pub(super) fn in_huge_pages<T>(memory: &[T]) -> String {
    use_huge_pages(memory).err().map_or(String::new(), |e| format!(" (in pages as the kernel chose: {e})"))
}

/// Calls the work of `threads` threads again and again, at the same time, in rounds of the same calls; `make` makes a thread's
/// work, which gets the number of the call in its round, from 0. Returns calls per second of all together in the fastest round:
/// other work on the machine, and data that it pushed out of the caches, make rounds slower, and no round is faster than the
/// machine. So it goes on until the fastest rounds are alike.
pub(super) fn calls_per_s<W: FnMut(u32) + Send>(
    threads: u32,
    interrupted: &AtomicBool,
    make: impl Fn(u32) -> W,
) -> Result<f64, String> {
    let mut works: Vec<W> = (0..threads).map(make).collect();
    let (start, mut calls, mut rates) = (Instant::now(), 1_u32, Vec::new());
    loop {
        let took = round(&mut works, calls)?;
        rates.push(f64::from(calls) * f64::from(threads) / took.as_secs_f64().max(1e-9));
        rates.sort_unstable_by(|a, b| b.total_cmp(a));
        let alike = rates.get(ALIKE.0 - 1).is_some_and(|rate| rate * (1.0 + ALIKE.1) >= rates[0]);
        let elapsed = start.elapsed();
        if elapsed >= LONGEST || (elapsed >= SAMPLE && alike) || interrupted.load(Ordering::Relaxed) {
            return Ok(rates[0]);
        }
        // The first calls touch memory, and are slower.
        if took < ROUND / 2 {
            let more = ROUND.as_nanos() / took.as_nanos().max(1);
            calls = calls.saturating_mul(more.min(100) as u32);
            rates.clear();
        }
    }
}

/// Time in which each of `works` is called `calls` times, from the start of the first to the end of the last.
fn round<W: FnMut(u32) + Send>(works: &mut [W], calls: u32) -> Result<Duration, String> {
    let run = |work: &mut W| {
        let start = Instant::now();
        (0..calls).for_each(&mut *work);
        (start, Instant::now())
    };
    let times: thread::Result<Vec<(Instant, Instant)>> = thread::scope(|scope| {
        let spawn = |(i, work)| {
            let thread = thread::Builder::new().name(format!("reference-{i}"));
            thread.spawn_scoped(scope, move || run(work))
        };
        let started: io::Result<Vec<_>> = works.iter_mut().enumerate().map(spawn).collect();
        Ok::<_, io::Error>(started?.into_iter().map(thread::ScopedJoinHandle::join).collect())
    })
    .map_err(|e| format!("no thread could be started: {e}"))?;
    let times = times.map_err(|_| "a thread of the reference failed".to_owned())?;
    let (first, last) = (times.iter().map(|t| t.0).min(), times.iter().map(|t| t.1).max());
    first.zip(last).map(|(first, last)| last - first).ok_or_else(|| "the reference has no thread".to_owned())
}

/// Runs `measure` while no CPU sleeps. To wake one up may take longer than a short message, which is no limit of the
/// machine: with other work beside it, a database does not wait for that.
pub(super) fn awake<T>(measure: impl FnOnce() -> T) -> T {
    /// Set when dropped, also by a panic.
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let done = AtomicBool::new(false);
    let spin = || {
        while run_only_when_idle().is_ok() && !done.load(Ordering::Relaxed) {
            (0..1000).for_each(|_| std::hint::spin_loop());
        }
    };
    thread::scope(|scope| {
        let _done = Done(&done);
        for _ in 0..threads(u32::MAX) {
            // Without such a thread the CPU may sleep.
            let _ = thread::Builder::new().name("awake".to_owned()).spawn_scoped(scope, spin);
        }
        measure()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn all_threads_work_and_their_calls_add_up() {
        let calls: [AtomicU64; 3] = Default::default();
        let start = Instant::now();
        let rate = calls_per_s(3, &AtomicBool::new(false), |thread| {
            let calls = &calls[thread as usize];
            move |_| {
                thread::sleep(Duration::from_millis(5));
                calls.fetch_add(1, Ordering::Relaxed);
            }
        });
        let (rate, elapsed) = (rate.unwrap(), start.elapsed().as_secs_f64());
        let all: Vec<u64> = calls.iter().map(|c| c.load(Ordering::Relaxed)).collect();
        assert!(all.iter().all(|n| *n > 1), "{all:?}");
        // No round is faster than the machine, and the fastest not slower than their mean.
        let made = all.iter().sum::<u64>() as f64;
        assert!(rate >= made / elapsed && rate <= 3.0 / 0.005, "{rate}, {made} in {elapsed} s");
    }

    #[test]
    fn a_long_call_is_made_once_and_slow_rounds_do_not_count() {
        let calls = AtomicU64::new(0);
        let work = |_| {
            let before = calls.fetch_add(1, Ordering::Relaxed);
            thread::sleep(if before == 0 { LONGEST } else { ROUND });
        };
        let rate = calls_per_s(1, &AtomicBool::new(false), |_| work).unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert!(rate > 0.0 && rate <= 1.0 / LONGEST.as_secs_f64(), "{rate}");
        let often_slow = |_| {
            let fast = calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(3);
            thread::sleep(if fast { ROUND } else { 4 * ROUND });
        };
        let rate = calls_per_s(1, &AtomicBool::new(false), |_| often_slow).unwrap();
        assert!(rate > 0.5 / ROUND.as_secs_f64() && rate <= 1.0 / ROUND.as_secs_f64(), "{rate}");
    }

    #[test]
    fn more_sessions_than_cpus_have_as_many_threads_as_cpus() {
        let cpus = threads(u32::MAX);
        assert_eq!((threads(0), threads(1), threads(cpus), threads(cpus + 1)), (1, 1, cpus, cpus));
    }
}
