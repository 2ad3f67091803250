//! The common measurement: jobs commit in threads of this process; commits completed in a common window count, with the CPU
//! time of all threads.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// One job: each call commits one record, which is durable on return (or, in the contest of commits that do not wait, handed
/// over).
pub(crate) type Job = Box<dyn FnMut(&[u8]) -> Outcome<()> + Send>;

/// A contestant: open for the whole run, measured in slices.
pub(crate) trait Contender {
    /// New jobs, for one slice.
    fn jobs(&self, count: usize) -> Outcome<Vec<Job>>;

    /// Durable bytes of the log.
    fn gauge(&self) -> u64 {
        0
    }
}

/// One contestant's figures of one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// Commits per second.
    pub(crate) rate: f64,
    /// CPU time of all threads per commit, kernel included, µs.
    pub(crate) cpu_us: f64,
}

/// How long a round is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    pub(crate) warmup: Duration,
    pub(crate) window: Duration,
}

/// On a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Count(AtomicU64);

/// CPU time of this process so far, µs.
pub(crate) fn cpu_us(who: UsageWho) -> Outcome<f64> {
    let usage = getrusage(who)?;
    let us = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 * 1e6 + t.tv_usec() as f64;
    Ok(us(usage.user_time()) + us(usage.system_time()))
}

/// Runs `jobs` jobs of `contender` with records of `bytes` random bytes. Returns its figures, and the growth of its gauge per
/// second.
pub(crate) fn measure(contender: &dyn Contender, jobs: usize, bytes: usize, length: Length) -> Outcome<(Figures, f64)> {
    let jobs = contender.jobs(jobs)?;
    let gauge = || contender.gauge();
    let stop = AtomicBool::new(false);
    let begin = Barrier::new(jobs.len() + 1);
    let counts: Vec<Count> = jobs.iter().map(|_| Count::default()).collect();
    let total = || counts.iter().map(|c| c.0.load(Ordering::Relaxed)).sum::<u64>();
    std::thread::scope(|scope| {
        let threads: Vec<_> = jobs
            .into_iter()
            .zip(&counts)
            .enumerate()
            .map(|(number, (mut job, count))| {
                let (stop, begin) = (&stop, &begin);
                scope.spawn(move || {
                    let mut record = random(number as u64 + 1, bytes);
                    begin.wait();
                    let mut done = 0_u64;
                    while !stop.load(Ordering::Relaxed) {
                        // No two records are alike.
                        record[..8].copy_from_slice(&done.to_le_bytes());
                        job(&record)?;
                        done += 1;
                        count.0.store(done, Ordering::Relaxed);
                    }
                    Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
                })
            })
            .collect();
        begin.wait();
        std::thread::sleep(length.warmup);
        let times = || {
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>((
                Instant::now(),
                total(),
                cpu_us(UsageWho::RUSAGE_SELF)?,
                gauge(),
            ))
        };
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
        let figures = Figures { rate: commits / seconds, cpu_us: (closing.2 - opening.2) / commits };
        Ok((figures, (closing.3 - opening.3) as f64 / seconds))
    })
}

/// Bytes that do not compress (splitmix64).
pub(crate) fn random(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed;
    let mut word = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    (0..bytes.div_ceil(8)).flat_map(|_| word().to_le_bytes()).take(bytes).collect()
}

/// Commits per turn of a duel.
const TURN: usize = 8;

/// Runs two contestants with one job each, alternating every few commits on one thread, so that other load on the storage
/// affects both equally. Returns the commits per second of each, from the median turn.
pub(crate) fn duel(
    one: (&dyn Contender, usize),
    other: (&dyn Contender, usize),
    length: Length,
) -> Outcome<(f64, f64)> {
    let sides = [one, other].map(|(contender, bytes)| Ok((contender.jobs(1)?, random(7, bytes), Vec::new())));
    let mut sides: Vec<(Vec<Job>, Vec<u8>, Vec<f64>)> = sides.into_iter().collect::<Outcome<_>>()?;
    let end = Instant::now() + length.warmup + length.window;
    let mut turn = 0_u64;
    while Instant::now() < end {
        for (jobs, record, took) in &mut sides {
            let job = jobs.first_mut().ok_or("no job")?;
            let begun = Instant::now();
            for _ in 0..TURN {
                turn += 1;
                record[..8].copy_from_slice(&turn.to_le_bytes());
                job(record)?;
            }
            took.push(begun.elapsed().as_secs_f64());
        }
    }
    let mut rates = sides.into_iter().map(|(_, _, mut took)| {
        took.sort_by(f64::total_cmp);
        took.get(took.len() / 2).map(|median| TURN as f64 / median)
    });
    match (rates.next().flatten(), rates.next().flatten()) {
        (Some(one), Some(other)) => Ok((one, other)),
        _ => Err("not one turn in the window".into()),
    }
}
