//! Work of a job of the client driver between two transactions: it waits for an intended start (open loop), thinks, or opens a new
//! session.
//!
//! The last two are part of the jobs' time and counted apart, so that what is left of it is loadline's own loop.

use std::sync::{Arc, Mutex, PoisonError};

use loadline_database::{Canceller, ClientSession, TargetError};
use loadline_model::Random;
use loadline_storage::now_ns;

use crate::job::Books;
use crate::schedule::{Schedule, Shared, sleep_until};

/// While the window is not set, a job that thinks looks for it after this time, ns: less than its start is set ahead.
const LOOK_NS: u64 = 50_000_000;

/// Intended starts of one job's transactions: evenly spaced and shifted between jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    interval_ns: f64,
    next: u64,
    origin_ns: f64,
}

impl Pace {
    /// For job `job` of `jobs`, which start `rate_tps` transactions per second in total, from `start_ns` on.
    pub fn new(rate_tps: f64, job: u32, jobs: u32, start_ns: u64) -> Pace {
        let interval_ns = f64::from(jobs) * 1e9 / rate_tps;
        let shift = interval_ns * f64::from(job) / f64::from(jobs);
        Pace { interval_ns, next: 0, origin_ns: start_ns as f64 + shift }
    }

    pub fn next_start_ns(&mut self) -> u64 {
        // Multiplied, not added, so that rounding errors do not accumulate.
        let start = self.origin_ns + self.interval_ns * self.next as f64;
        self.next += 1;
        start as u64
    }
}

/// Think times of a job: exponentially distributed, from a random stream of their own, so that keys and values of the
/// transactions are those of a job that does not think.
#[derive(Debug, Clone)]
pub struct Think {
    mean_ns: f64,
    random: Random,
}

impl Think {
    pub fn new(mean_s: f64, seed: u64, job: u32) -> Think {
        // Another factor than in the draws of the transactions.
        let random = Random::new(seed ^ (u64::from(job) + 1).wrapping_mul(0xd1b5_4a32_d192_ed03));
        Think { mean_ns: mean_s * 1e9, random }
    }

    /// The next, ns. By inversion: −mean · ln(1 − u) with u even in [0, 1) (Devroye, Non-Uniform Random Variate Generation, 1986,
    /// chapter II.2).
    pub fn next_ns(&mut self) -> u64 {
        let u = (self.random.next() >> 11) as f64 / (1_u64 << 53) as f64;
        (-(1.0 - u).ln() * self.mean_ns) as u64
    }
}

pub type Open<'a> = Box<dyn Fn() -> Result<Box<dyn ClientSession>, TargetError> + 'a>;

pub enum Session<'a> {
    Fixed(&'a mut (dyn ClientSession + 'static)),
    Renewed(Renewed<'a>),
}

/// A session that is replaced after some transactions.
pub struct Renewed<'a> {
    /// The session now; `None` if none could be opened.
    pub now: Option<Box<dyn ClientSession>>,
    /// Transactions of a session.
    pub every: u64,
    /// Transactions that the job had completed when it was opened.
    pub since: u64,
    pub open: Open<'a>,
    /// Ends a call of the session that is open now.
    pub canceller: CurrentCanceller,
}

pub type CurrentCanceller = Arc<Mutex<Canceller>>;

/// Cancels the session that is the `current` one at the moment at which it is called.
pub(crate) fn canceller_of(current: &CurrentCanceller) -> Canceller {
    let now = |of: &CurrentCanceller| of.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (cancelled, asked) = (Arc::clone(current), Arc::clone(current));
    Canceller::new(move || now(&cancelled).cancel()).asking(move || now(&asked).hindrance())
}

impl Session<'_> {
    #[inline]
    pub(crate) fn get(&mut self) -> Option<&mut dyn ClientSession> {
        match self {
            Session::Fixed(session) => Some(&mut **session),
            Session::Renewed(renewed) => Some(renewed.now.as_mut()?.as_mut()),
        }
    }

    /// Closes the session and opens another one if it has done its transactions. After an error the job has no session.
    pub(crate) fn renew(
        &mut self,
        books: &mut Books<'_>,
        schedule: &mut Schedule,
        shared: &Shared,
    ) -> Result<(), TargetError> {
        let Session::Renewed(renewed) = self else { return Ok(()) };
        if books.job.total < renewed.since + renewed.every || shared.stopped() {
            return Ok(());
        }
        renewed.since = books.job.total;
        if let Some(mut old) = renewed.now.take() {
            // Before it ends, because its end may be counted after the window's.
            old.publish_counters()?;
        }
        let connecting_ns = now_ns();
        let new = (renewed.open)()?;
        *renewed.canceller.lock().unwrap_or_else(PoisonError::into_inner) = new.canceller();
        renewed.now = Some(new);
        let end_ns = now_ns();
        shared.update(schedule);
        books.connected(schedule, connecting_ns, end_ns);
        Ok(())
    }
}

/// Thinks, if the job does. Calls `passed` as [`wait`] does.
pub(crate) fn think<'b>(
    think: Option<&mut Think>,
    books: &mut Books<'b>,
    schedule: &mut Schedule,
    shared: &Shared,
    passed: impl FnMut(u64, &Schedule, &mut Books<'b>),
) {
    let Some(think) = think else { return };
    let began_ns = now_ns();
    let until_ns = began_ns + think.next_ns();
    let now = wait(until_ns, books, schedule, shared, passed);
    books.thought(schedule, began_ns, now, now >= until_ns);
}

/// Waits until `until_ns`, between two transactions; returns when it ended. Calls `passed` after each piece of it, with the time: the
/// window end may come meanwhile. The window start is said before it comes: until then nothing more will be done, and thousands of jobs
/// that publish their counters at the same moment would make the first transactions of the window slow.
pub(crate) fn wait<'b>(
    until_ns: u64,
    books: &mut Books<'b>,
    schedule: &mut Schedule,
    shared: &Shared,
    mut passed: impl FnMut(u64, &Schedule, &mut Books<'b>),
) -> u64 {
    let mut now = now_ns();
    while now < until_ns && !shared.stopped() {
        shared.update(schedule);
        passed(until_ns.min(schedule.open_ns), schedule, books);
        let next = if schedule.is_pending() { now + LOOK_NS } else { schedule.close_ns };
        sleep_until(if next > now { next.min(until_ns) } else { until_ns }, shared);
        now = now_ns();
        shared.update(schedule);
        passed(now, schedule, books);
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_times_are_exponential_and_follow_from_seed_and_job() {
        let (n, mean_s) = (200_000, 0.01);
        let draws = |seed, job| {
            let mut think = Think::new(mean_s, seed, job);
            (0..n).map(move |_| think.next_ns() as f64 / 1e9).collect::<Vec<f64>>()
        };
        for (seed, job) in [(42, 0), (42, 1), (7, 4095)] {
            let all = draws(seed, job);
            let mean = all.iter().sum::<f64>() / f64::from(n);
            let variance = all.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / f64::from(n);
            // Standard errors: mean / √n, and mean² · √(8 / n) because the fourth central moment is 9 · mean⁴.
            assert!((mean / mean_s - 1.0).abs() < 4.0 / f64::from(n).sqrt(), "{mean}");
            assert!((variance / mean_s.powi(2) - 1.0).abs() < 4.0 * (8.0 / f64::from(n)).sqrt(), "{variance}");
            for (quantile, at) in [(0.5, 2.0_f64.ln()), (0.99, 100.0_f64.ln())] {
                let below = all.iter().filter(|t| **t < at * mean_s).count() as f64 / f64::from(n);
                let error = (quantile * (1.0 - quantile) / f64::from(n)).sqrt();
                assert!((below - quantile).abs() < 4.0 * error, "{quantile}: {below}");
            }
            assert_eq!(all, draws(seed, job), "the same seed and job draw the same");
        }
        let [a, b, c] = [draws(42, 0), draws(42, 1), draws(43, 0)];
        let centred = |t: &f64| t / mean_s - 1.0;
        let correlation = |x: &[f64], y: &[f64]| {
            x.iter().zip(y).map(|(x, y)| centred(x) * centred(y)).sum::<f64>() / f64::from(n) * f64::from(n).sqrt()
        };
        for other in [&b[..], &c, &a[1..]] {
            assert!(correlation(&a, other).abs() < 4.0, "streams and successive draws are independent");
        }
    }

    #[test]
    fn all_jobs_together_keep_the_rate() {
        let (rate, jobs, start) = (1000.0, 7, 5_000_000_000);
        let mut starts: Vec<u64> = (0..jobs)
            .flat_map(|job| {
                let mut pace = Pace::new(rate, job, jobs, start);
                (0..200).map(move |_| pace.next_start_ns()).collect::<Vec<_>>()
            })
            .collect();
        starts.sort_unstable();
        assert_eq!(starts[0], start);
        for pair in starts.windows(2) {
            assert!((pair[1] - pair[0]).abs_diff(1_000_000) <= 1000, "evenly spaced: {pair:?}");
        }
    }
}
