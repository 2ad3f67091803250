//! Work on all CPUs at once: what the references of CPU and memory have in common.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{RwLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use loadline_device::run_only_when_idle;

/// Time of a measurement, unless one call takes longer.
pub(super) const SAMPLE: Duration = Duration::from_millis(200);
/// The clock is read at most this often.
const BETWEEN_READINGS: Duration = Duration::from_micros(100);

/// Number of threads that do the work of `sessions`: more than CPUs are not faster, and each needs memory.
pub(super) fn threads(sessions: u32) -> u32 {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    sessions.clamp(1, u32::try_from(cpus).unwrap_or(u32::MAX))
}

/// Calls the work of `threads` threads again and again for [`SAMPLE`], at the same time; `make` makes a thread's work
/// within it. Returns calls per second of all together.
pub(super) fn calls_per_s<W: FnMut()>(
    threads: u32,
    interrupted: &AtomicBool,
    make: impl Fn(u32) -> W + Sync,
) -> Result<f64, String> {
    let gate = RwLock::new(());
    let (ready, is_ready) = mpsc::channel();
    let (gate, make) = (&gate, &make);
    let rates: Vec<thread::Result<f64>> = thread::scope(|scope| {
        let closed = gate.write();
        let run = |thread: u32, ready: mpsc::Sender<()>| {
            move || {
                let mut work = make(thread);
                // The first call touches memory; it is measured only if there is no time for a second one.
                let first = timed(&mut work);
                // The receiver waits for all; nobody else needs to know.
                let _ = ready.send(());
                drop(ready);
                let _open = gate.read();
                if first >= SAMPLE { 1.0 / first.as_secs_f64() } else { rate(&mut work, first, interrupted) }
            }
        };
        let started: Vec<_> = (0..threads)
            .map(|t| thread::Builder::new().name(format!("reference-{t}")).spawn_scoped(scope, run(t, ready.clone())))
            .collect::<io::Result<_>>()?;
        drop(ready);
        while is_ready.recv().is_ok() {}
        drop(closed);
        Ok::<_, io::Error>(started.into_iter().map(thread::ScopedJoinHandle::join).collect())
    })
    .map_err(|e| format!("no thread could be started: {e}"))?;
    let rates: thread::Result<Vec<f64>> = rates.into_iter().collect();
    rates.map(|rates| rates.iter().sum()).map_err(|_| "a thread of the reference failed".to_owned())
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

fn timed(work: &mut impl FnMut()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Calls per second of one thread.
fn rate(work: &mut impl FnMut(), one: Duration, interrupted: &AtomicBool) -> f64 {
    let batch = (BETWEEN_READINGS.as_nanos() / one.as_nanos().max(1)).max(1);
    let (start, mut calls) = (Instant::now(), 0);
    loop {
        (0..batch).for_each(|_| work());
        calls += batch;
        let elapsed = start.elapsed();
        if elapsed >= SAMPLE || interrupted.load(Ordering::Relaxed) {
            return calls as f64 / elapsed.as_secs_f64();
        }
    }
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
            move || {
                thread::sleep(Duration::from_millis(5));
                calls.fetch_add(1, Ordering::Relaxed);
            }
        });
        let (rate, elapsed) = (rate.unwrap(), start.elapsed().as_secs_f64());
        let all: Vec<u64> = calls.iter().map(|c| c.load(Ordering::Relaxed)).collect();
        assert!(all.iter().all(|n| *n > 1), "{all:?}");
        // Without the first calls, and over less than the whole time.
        let made = (all.iter().sum::<u64>() - 3) as f64;
        assert!(rate >= made / elapsed && rate <= 3.0 / 0.005, "{rate}, {made} in {elapsed} s");
    }

    #[test]
    fn a_long_call_is_made_once() {
        let calls = AtomicU64::new(0);
        let work = || {
            thread::sleep(SAMPLE);
            calls.fetch_add(1, Ordering::Relaxed);
        };
        let rate = calls_per_s(1, &AtomicBool::new(false), |_| work).unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert!(rate > 0.0 && rate <= 1.0 / SAMPLE.as_secs_f64(), "{rate}");
    }

    #[test]
    fn more_sessions_than_cpus_have_as_many_threads_as_cpus() {
        let cpus = threads(u32::MAX);
        assert_eq!((threads(0), threads(1), threads(cpus), threads(cpus + 1)), (1, 1, cpus, cpus));
    }
}
