//! Limits of CPU and memory: the work of a transaction without a database, by as many threads as there are jobs and CPUs.

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use loadline_database::Work;
use loadline_model::column;
use loadline_model::format::bytes;
use loadline_storage::{run_only_when_idle, use_huge_pages};
use loadline_workload::{Loop, LoopRows, Looping, Stream, sum};

use super::{Part, References, Sample, Subject};
use crate::test::MIB;

/// Size of all source buffers of copies, and of all target buffers, bytes: more than the caches of a CPU's own.
const COPIED_BYTES: usize = 64 << 20;
/// Maximum size of the memory that is read, bytes.
const MAX_READ_BYTES: f64 = 256.0 * MIB;
/// Maximum size of the rows of a table in memory, bytes.
const MAX_ROWS_BYTES: u64 = 128 << 20;
const NO_ROWS: &str = "the table has no rows";
/// Shortest and longest time of a measurement, unless one call takes longer.
pub(super) const SAMPLE: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_millis(600);
const ROUND: Duration = Duration::from_millis(20);
/// A measurement ends when this number of its fastest rounds differ by at most this share.
const ALIKE: (usize, f64) = (3, 0.02);

/// Loads: the rows, already parsed, are copied from one place to another.
pub(super) struct Copies;

impl Part for Copies {
    fn sample(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<Sample>, String> {
        let row_bytes = row_bytes(subject)?;
        let threads = threads(subject.request.jobs);
        let rows = (COPIED_BYTES / threads as usize / row_bytes).max(1);
        let copies_per_s = calls_per_s(threads, &references.interrupted, |_| {
            // The first call touches the pages.
            let (from, mut to) = (vec![1_u8; rows * row_bytes], vec![0_u8; rows * row_bytes]);
            move |_| copy(black_box(&from), &mut to, row_bytes)
        })?;
        Ok(Some(Sample::new(copies_per_s * rows as f64, "copies of the rows in memory")))
    }

    fn per_tx(&self, subject: Subject<'_>) -> Result<f64, String> {
        Ok(subject.request.work.program.mean_rows_changed_per_tx())
    }
}

fn copy(from: &[u8], to: &mut [u8], row_bytes: usize) {
    for (from, to) in from.chunks_exact(row_bytes).zip(to.chunks_exact_mut(row_bytes)) {
        to.copy_from_slice(from);
    }
    black_box(to);
}

fn row_bytes(subject: Subject<'_>) -> Result<usize, String> {
    let work = &subject.request.work;
    let table = work.program.bulk_tables().into_iter().next().unwrap_or(0);
    match work.workload.tables.get(table).map(|table| table.value_bytes(&work.params)) {
        Some(bytes) if bytes > 0 => Ok(bytes as usize),
        _ => Err("the workload adds no rows".to_owned()),
    }
}

/// Procedural code: the computations of a transaction, compiled.
pub(super) struct Kernel;

impl Part for Kernel {
    fn sample(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<Sample>, String> {
        let (program, threads) = (&subject.request.work.program, threads(subject.request.jobs));
        let compute = |_| {
            |_| {
                let _ = black_box(program.compute());
            }
        };
        let per_s = calls_per_s(threads, &references.interrupted, compute)?;
        Ok(Some(Sample::new(per_s, format!("the same computations, compiled, by {threads} threads"))))
    }
}

/// A scan of cached rows: as many bytes are read from memory.
#[derive(Default)]
pub(super) struct Memory {
    words: Vec<u64>,
}

impl Part for Memory {
    fn sample(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<Sample>, String> {
        if subject.figures.is_none() {
            return Ok(None);
        }
        let wanted = self.per_tx(subject)?.min(MAX_READ_BYTES) as usize;
        // Not zeros, which the system maps to one page.
        self.words.resize(wanted.div_ceil(8).max(1), 1);
        let pages = in_huge_pages(&self.words);
        let (words, threads) = (&self.words, threads_of_queries(subject));
        let read = |_| {
            |_| {
                let _ = black_box(sum(black_box(words)));
            }
        };
        let reads = calls_per_s(threads, &references.interrupted, read)?;
        let size = size_of_val(&words[..]) as f64;
        let of = format!("reads of {} of memory{pages} by {threads} threads", bytes(size));
        Ok(Some(Sample::new(reads * size, of)))
    }

    /// Bytes of the tables that a transaction reads, as stored by the database: of the columns that it reads, if these are apart.
    fn per_tx(&self, subject: Subject<'_>) -> Result<f64, String> {
        Ok(subject.figure(column::DATA_MIB_PER_S)? / subject.figure(column::COMMIT_THROUGHPUT_TPS)? * MIB)
    }
}

/// Rows of the last workload that was measured: the next one usually needs the same.
#[derive(Default)]
pub(crate) struct LastRows(Mutex<Option<(Work, Rows)>>);

#[derive(Clone)]
struct Rows {
    of: Arc<LoopRows>,
    /// A note if they are not in huge pages.
    pages: String,
}

impl LastRows {
    fn for_work(&self, work: &Work) -> Rows {
        let names = |of: &Work| of.workload.tables.iter().map(|t| t.name.clone()).collect::<Vec<_>>();
        let is_same = |of: &Work| {
            (&of.params, of.seed, of.payload) == (&work.params, work.seed, work.payload) && names(of) == names(work)
        };
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Others are freed before new ones are made.
        let known = last.take().filter(|(of, _)| is_same(of));
        let (_, rows) = last.insert(known.unwrap_or_else(|| (work.clone(), Rows::new(work))));
        rows.clone()
    }
}

impl Rows {
    fn new(work: &Work) -> Rows {
        let of = LoopRows::new(&work.workload.tables, &work.params, work.seed, work.payload, MAX_ROWS_BYTES);
        let pages = of.memory().map(in_huge_pages).find(|note| !note.is_empty()).unwrap_or_default();
        Rows { of: Arc::new(of), pages }
    }
}

pub(super) struct Loops {
    pub(super) of: Loop,
    /// Rows of the large table in the database, once they are known.
    pub(super) all_rows: u64,
}

impl Part for Loops {
    /// Work of the loop ([`Loop::work`]) per second.
    fn sample(&mut self, subject: Subject<'_>, references: &References) -> Result<Option<Sample>, String> {
        let (work, threads) = (subject.request.work.as_ref(), threads_of_queries(subject));
        let Rows { of: rows, pages } = references.rows.for_work(work);
        let (held, all) = (rows.rows(), rows.of_all);
        self.all_rows = all;
        if held == 0 {
            return Err(NO_ROWS.to_owned());
        }
        let streams: Result<Vec<Stream>, _> = (0..threads).map(|job| work.stream(job)).collect();
        let streams = streams.map_err(|e| e.to_string())?;
        let query = |thread: u32| {
            let (start, mut looping) = (&streams[thread as usize], Looping::new(self.of, &rows));
            let (mut stream, mut first) = (start.clone(), true);
            move |call| {
                if call == 0 {
                    stream = start.clone();
                }
                // A wrong number of rows would be an error of the database as well.
                let _ = black_box(stream.transaction(black_box(&mut looping)));
                black_box(&looping);
                if std::mem::take(&mut first) {
                    // What it keeps of the first query, the next ones fill again.
                    let _ = in_huge_pages(looping.memory());
                }
            }
        };
        let transactions = calls_per_s(threads, &references.interrupted, query)?;
        let which =
            if held < all { format!("the first {held} of {all} rows") } else { format!("the same {held} rows") };
        let of = format!("the same queries as loops over {which} in memory{pages}, by {threads} threads");
        Ok(Some(Sample::new(transactions * self.of.work(held), of)))
    }

    fn per_tx(&self, _: Subject<'_>) -> Result<f64, String> {
        // No rows: nothing was measured, which has another reason.
        if self.all_rows == 0 { Err(NO_ROWS.to_owned()) } else { Ok(self.of.work(self.all_rows)) }
    }
}

/// Number of threads that do the work of `sessions`: more than CPUs are not faster, and each needs memory.
fn threads(sessions: u32) -> u32 {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    sessions.clamp(1, u32::try_from(cpus).unwrap_or(u32::MAX))
}

/// Number of threads that do the queries of the jobs of a test, each with its parallel workers.
fn threads_of_queries(subject: Subject<'_>) -> u32 {
    threads(subject.request.jobs.saturating_mul(subject.request.work.parallel_workers().unwrap_or(1)))
}

/// Moves `memory` into huge pages. If that fails, returns a note for the limit's text.
fn in_huge_pages<T>(memory: &[T]) -> String {
    use_huge_pages(memory).err().map_or(String::new(), |e| format!(" (in pages as the kernel chose: {e})"))
}

/// Calls the work of `threads` threads again and again, at the same time, in rounds of the same calls; `make` makes a thread's
/// work, which gets the number of the call in its round, from 0. Returns calls per second of all together in the fastest round:
/// other work on the machine, and data that it pushed out of the caches, make rounds slower, and no round is faster than the
/// machine. So it goes on until the fastest rounds are alike.
fn calls_per_s<W: FnMut(u32) + Send>(
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

    #[test]
    fn rows_are_copied_whole() {
        let from: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let mut to = vec![0; from.len()];
        copy(&from, &mut to, 144);
        let whole = from.len() / 144 * 144;
        assert_eq!(to[..whole], from[..whole]);
        assert!(to[whole..].iter().all(|b| *b == 0), "no part of a row");
    }
}
