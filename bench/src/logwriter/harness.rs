//! The common measurement: jobs commit in threads of this process; commits completed in a common window count, with the CPU
//! time of all threads.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use loadline_analyze::stats::median;
use loadline_model::random::Random;
use nix::sys::resource::UsageWho;

use crate::arena::{Outcome, cpu_s};

/// One job: each call commits one record, which is durable on return (or, in the contest of commits that do not wait, handed over).
pub(super) type Job = Box<dyn FnMut(&[u8]) -> Outcome<()> + Send>;

/// Open for the whole run, measured in slices.
pub(super) trait Contender {
    /// New jobs, for one slice.
    fn jobs(&self, count: u32) -> Outcome<Vec<Job>>;

    /// Bytes written so far; of a log, those that are durable.
    fn durable_bytes(&self) -> u64 {
        0
    }
}

/// Figures of one slice.
pub(super) struct Figures {
    /// Commits per second.
    pub(super) rate: f64,
    /// CPU time of all threads per commit, kernel included, µs.
    pub(super) cpu_us: f64,
    /// Bytes that became durable, MiB/s.
    pub(super) log_mib: f64,
}

/// How long a slice is.
#[derive(Clone, Copy)]
pub(super) struct Length {
    pub(super) warmup: Duration,
    pub(super) window: Duration,
}

/// On a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Count(AtomicU64);

/// Runs `jobs` jobs of `contender` with records of `bytes` random bytes.
pub(super) fn measure(contender: &dyn Contender, jobs: u32, bytes: usize, length: Length) -> Outcome<Figures> {
    let jobs = contender.jobs(jobs)?;
    let stop = AtomicBool::new(false);
    let begin = Barrier::new(jobs.len() + 1);
    let counts: Vec<Count> = jobs.iter().map(|_| Count::default()).collect();
    let times = || -> Outcome<_> {
        let total: u64 = counts.iter().map(|c| c.0.load(Ordering::Relaxed)).sum();
        Ok((Instant::now(), total, cpu_s(UsageWho::RUSAGE_SELF)?, contender.durable_bytes()))
    };
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, (mut job, count)) in jobs.into_iter().zip(&counts).enumerate() {
            let (stop, begin) = (&stop, &begin);
            threads.push(scope.spawn(move || -> Outcome<()> {
                let mut record = random(number, bytes);
                begin.wait();
                let mut done = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    // No two records are alike.
                    record[..8].copy_from_slice(&done.to_le_bytes());
                    job(&record)?;
                    done += 1;
                    count.0.store(done, Ordering::Relaxed);
                }
                Ok(())
            }));
        }
        begin.wait();
        std::thread::sleep(length.warmup);
        let opening = times();
        std::thread::sleep(length.window);
        let closing = times();
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a job panicked")??;
        }
        let (opening, closing) = (opening?, closing?);
        let commits = (closing.1 - opening.1) as f64;
        if commits == 0.0 {
            return Err("not one commit in the window".into());
        }
        let seconds = (closing.0 - opening.0).as_secs_f64();
        let log_mib = (closing.3 - opening.3) as f64 / seconds / super::MIB as f64;
        Ok(Figures { rate: commits / seconds, cpu_us: (closing.2 - opening.2) * 1e6 / commits, log_mib })
    })
}

/// Bytes that do not compress.
fn random(seed: usize, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(seed as u64);
    (0..bytes.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).take(bytes).collect()
}

/// Commits per turn of a duel.
const TURN: usize = 8;

/// Runs two contenders with one job each, alternating every few commits on one thread, so that other load on the storage
/// affects both equally. Returns the commits per second of each, from the median turn.
pub(super) fn duel(sides: [(&dyn Contender, usize); 2], length: Length) -> Outcome<Vec<f64>> {
    let sides = sides.map(|(contender, bytes)| Ok((contender.jobs(1)?, random(7, bytes), Vec::new())));
    let mut sides: Vec<(Vec<Job>, Vec<u8>, Vec<f64>)> = sides.into_iter().collect::<Outcome<_>>()?;
    let end = Instant::now() + length.warmup + length.window;
    let mut turn = 0_u64;
    while Instant::now() < end {
        for (jobs, record, took) in &mut sides {
            let begun = Instant::now();
            for _ in 0..TURN {
                turn += 1;
                record[..8].copy_from_slice(&turn.to_le_bytes());
                jobs[0](record)?;
            }
            took.push(begun.elapsed().as_secs_f64());
        }
    }
    let rate = |took: &Vec<f64>| median(took).map(|median| TURN as f64 / median).ok_or("not one turn in the window");
    Ok(sides.iter().map(|(_, _, took)| rate(took)).collect::<Result<_, _>>()?)
}
