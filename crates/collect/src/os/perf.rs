//! Hardware events of threads (perf_event_open(2)): instructions and cache misses, in user mode and in the kernel.

use std::io;
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use perf_event::events::Hardware;
use perf_event::{Builder, CountAndTime, Counter};

use crate::read;

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const EVENTS: [Hardware; 2] = [Hardware::INSTRUCTIONS, Hardware::CACHE_MISSES];

/// Why the kernel does not count hardware events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PerfRefused {
    /// Answer: an `errno`.
    pub errno: i32,
    /// `kernel.perf_event_paranoid`, if it can be read.
    pub paranoid: Option<i32>,
}

impl PerfRefused {
    fn from_error(error: &io::Error) -> PerfRefused {
        let paranoid = read(PARANOID).ok().and_then(|text| text.trim().parse().ok());
        PerfRefused { errno: error.raw_os_error().unwrap_or(Errno::EIO as i32), paranoid }
    }
}

impl std::fmt::Display for PerfRefused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let paranoid = self.paranoid.map_or("unknown".to_owned(), |level| level.to_string());
        match Errno::from_raw(self.errno) {
            errno @ (Errno::EACCES | Errno::EPERM) => write!(
                f,
                "the kernel does not permit perf events ({errno}; perf_event_paranoid is {paranoid}): run as root or with CAP_PERFMON, or \
                 set it to 1 or less; in a container they may be forbidden all the same"
            ),
            errno @ (Errno::ENOENT | Errno::ENODEV | Errno::EOPNOTSUPP) => write!(
                f,
                "this machine has no hardware counters that the kernel can use ({errno}; perf_event_paranoid is {paranoid}), as most \
                 virtual ones"
            ),
            Errno::EBUSY => {
                f.write_str("no hardware counter was free for the database's threads: others were counting")
            }
            Errno::EMFILE => f.write_str("perf events need two open files per thread of the server: raise ulimit -n"),
            errno => write!(f, "the kernel does not count perf events here ({errno})"),
        }
    }
}

/// Of each of [`EVENTS`], over all threads: its count, and the time, ns, for which it was to be counted and for which it was.
pub(super) type Counts = [[u64; 3]; 2];

/// How often the events happened between two readings, scaled up if the counters had to be shared with others.
pub(super) fn grown_counts(before: &Counts, after: &Counts) -> Result<[f64; 2], PerfRefused> {
    let mut out = [0.0; 2];
    for ((out, before), after) in out.iter_mut().zip(before).zip(after) {
        let [count, wanted, counted] = std::array::from_fn(|i| after[i].saturating_sub(before[i]) as f64);
        if counted == 0.0 {
            return Err(PerfRefused::from_error(&Errno::EBUSY.into()));
        }
        *out = count * wanted / counted;
    }
    Ok(out)
}

/// Counters of threads, in the order of [`EVENTS`].
#[derive(Debug)]
pub(super) struct PerfEvents(Mutex<Vec<[Counter; 2]>>);

impl PerfEvents {
    /// Counts the events of these threads, and of what they start, from now on.
    pub(super) fn open(threads: impl Iterator<Item = i32>) -> Result<PerfEvents, PerfRefused> {
        let mut counters = Vec::new();
        for id in threads {
            match (open(EVENTS[0], id), open(EVENTS[1], id)) {
                (Ok(a), Ok(b)) => counters.push([a, b]),
                // It has just ended.
                (Err(e), _) | (_, Err(e)) if e.raw_os_error() == Some(Errno::ESRCH as i32) => {}
                (Err(e), _) | (_, Err(e)) => return Err(PerfRefused::from_error(&e)),
            }
        }
        Ok(PerfEvents(Mutex::new(counters)))
    }

    pub(super) fn read(&self) -> Result<Counts, PerfRefused> {
        let mut sums = Counts::default();
        for of_thread in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            for (sums, counter) in sums.iter_mut().zip(of_thread) {
                let CountAndTime { count, time_enabled, time_running } =
                    counter.read_count_and_time().map_err(|e| PerfRefused::from_error(&e))?;
                sums.iter_mut()
                    .zip([count, time_enabled, time_running])
                    .for_each(|(sum, n)| *sum = sum.saturating_add(n));
            }
        }
        Ok(sums)
    }
}

fn open(event: Hardware, thread: i32) -> io::Result<Counter> {
    let mut builder = Builder::new().kind(event).observe_pid(thread);
    builder.include_kernel().include_hv().inherit(true).enabled(true);
    builder.build()
}

/// Whether the kernel counts hardware events of this process.
pub fn perf_events() -> Result<(), PerfRefused> {
    PerfEvents::open(std::iter::once(0)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_counts_or_says_why_not() {
        match PerfEvents::open(std::iter::once(0)) {
            Ok(events) => {
                let before = events.read().unwrap();
                let sum = std::hint::black_box((0..1_000_000_u64).fold(0, |a, b| a ^ std::hint::black_box(b)));
                let grown = grown_counts(&before, &events.read().unwrap()).unwrap();
                assert!(grown[0] >= 1e6, "{sum}: {before:?} {grown:?}");
            }
            Err(why) => assert!(why.errno != 0 && why.to_string().len() > 20, "{why}"),
        }
        let denied = PerfRefused { errno: Errno::EACCES as i32, paranoid: Some(4) };
        assert!(["EACCES", "perf_event_paranoid is 4", "1 or less"].iter().all(|w| denied.to_string().contains(w)));
        let none = PerfRefused { errno: Errno::ENOENT as i32, paranoid: None };
        assert!(none.to_string().contains("ENOENT"), "{none}");
        let scaled = grown_counts(&[[10, 100, 50]; 2], &[[110, 300, 150]; 2]);
        assert_eq!(scaled, Ok([200.0; 2]), "counted for half of the time");
        let never = grown_counts(&[[0; 3]; 2], &[[0, 100, 0]; 2]);
        assert!(never.is_err_and(|why| why.to_string().contains("no hardware counter was free")), "not 0");
        // A thread that has ended is none.
        assert!(
            PerfEvents::open(std::iter::once(i32::MAX)).is_ok_and(|events| events.0.lock().unwrap().is_empty())
                || perf_events().is_err()
        );
    }
}
