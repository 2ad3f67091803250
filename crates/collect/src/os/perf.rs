//! Hardware events of threads (perf_event_open(2)): instructions and cache misses, in user mode and in the kernel.

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::sync::Arc;

use nix::errno::Errno;
use nix::libc;

use crate::error::read;

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
/// `PERF_TYPE_HARDWARE`, `PERF_COUNT_HW_INSTRUCTIONS` and `PERF_COUNT_HW_CACHE_MISSES` of the kernel's
/// `include/uapi/linux/perf_event.h`.
const HARDWARE: u32 = 0;
const EVENTS: [u64; 2] = [1, 3];
/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`.
const TIMES: u64 = 3;
/// The bit `inherit`: also threads and processes that these start.
const INHERIT: u64 = 2;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// `struct perf_event_attr` as it was first, which each kernel takes (`PERF_ATTR_SIZE_VER0`).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
}

/// Why the kernel does not count hardware events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PerfRefused {
    /// Answer: an `errno`.
    pub errno: i32,
    /// `kernel.perf_event_paranoid`, if it can be read.
    pub paranoid: Option<i32>,
}

impl std::fmt::Display for PerfRefused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let paranoid = self.paranoid.map_or("unknown".to_owned(), |level| level.to_string());
        let errno = Errno::from_raw(self.errno);
        match errno {
            Errno::EACCES | Errno::EPERM => write!(
                f,
                "the kernel does not permit perf events ({}; perf_event_paranoid is {paranoid}): run as root or with CAP_PERFMON, or set it \
                 to 1 or less; in a container they may be forbidden all the same",
                errno
            ),
            Errno::ENOENT | Errno::ENODEV | Errno::EOPNOTSUPP => write!(
                f,
                "this machine has no hardware counters that the kernel can use ({}; perf_event_paranoid is {paranoid}), as most virtual ones",
                errno
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
            return Err(refused(Errno::EBUSY));
        }
        *out = count * wanted / counted;
    }
    Ok(out)
}

/// Counters of threads, in the order of [`EVENTS`].
#[derive(Debug, Clone)]
pub(super) struct PerfEvents(Arc<Vec<[File; 2]>>);

impl PerfEvents {
    /// Counts the events of these threads, and of what they start, from now on.
    pub(super) fn open(threads: impl Iterator<Item = i32>) -> Result<PerfEvents, PerfRefused> {
        let mut files = Vec::new();
        for id in threads {
            match [open(EVENTS[0], id), open(EVENTS[1], id)] {
                [Ok(a), Ok(b)] => files.push([a, b]),
                // It has just ended.
                [Err(Errno::ESRCH), _] | [_, Err(Errno::ESRCH)] => {}
                [Err(errno), _] | [_, Err(errno)] => return Err(refused(errno)),
            }
        }
        Ok(PerfEvents(Arc::new(files)))
    }

    pub(super) fn read(&self) -> Result<Counts, PerfRefused> {
        let mut sums = Counts::default();
        for of_thread in self.0.iter() {
            for (sums, file) in sums.iter_mut().zip(of_thread) {
                let counts = count(file).map_err(|e| refused(e.raw_os_error().map_or(Errno::EIO, Errno::from_raw)))?;
                sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum = sum.saturating_add(n));
            }
        }
        Ok(sums)
    }
}

/// Whether the kernel counts hardware events of this process.
///
/// # Errors
/// Why it does not.
pub fn perf_events() -> Result<(), PerfRefused> {
    PerfEvents::open(std::iter::once(0)).map(drop)
}

fn refused(errno: Errno) -> PerfRefused {
    PerfRefused { errno: errno as i32, paranoid: read(PARANOID).ok().and_then(|text| text.trim().parse().ok()) }
}

#[allow(unsafe_code)]
fn open(event: u64, thread: i32) -> Result<File, Errno> {
    let attributes = Attributes {
        kind: HARDWARE,
        size: size_of::<Attributes>() as u32,
        config: event,
        read_format: TIMES,
        flags: INHERIT,
        ..Attributes::default()
    };
    // SAFETY: the structure is of the size that it states, and the kernel only reads it.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, thread, -1, -1, CLOSE_ON_EXEC) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(Errno::last)?;
    // SAFETY: the kernel has just opened it, and nobody else has it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// The count, with those of threads that the thread started, and its times.
fn count(mut file: &File) -> std::io::Result<[u64; 3]> {
    let mut bytes = [[0; 8]; 3];
    file.read_exact(bytes.as_flattened_mut())?;
    Ok(bytes.map(u64::from_ne_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_counts_or_says_why_not() {
        assert_eq!(size_of::<Attributes>(), 64);
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
            PerfEvents::open(std::iter::once(i32::MAX)).is_ok_and(|events| events.0.is_empty())
                || perf_events().is_err()
        );
    }
}
