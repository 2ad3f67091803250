//! The warm-up: a fixed time, or until throughput is steady; and the counts by which that is judged.

use std::collections::BTreeSet;

use loadline_storage::now_ns;

use crate::schedule::{STEP_NS, Shared};

/// Time from the decision that a warm-up is over until the window starts, ns: in-database slices that began before end
/// before it.
pub(crate) const LEAD_NS: u64 = 2 * STEP_NS;

#[derive(Debug, Clone, Copy)]
pub enum Warmup {
    /// So many seconds after the first transaction of every job.
    Seconds(f64),
    UntilSteady {
        most_s: f64,
        /// Asked every 0.1 s.
        steady: fn(&Load) -> bool,
    },
}

/// The load so far, in values of 0.1 s.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Load {
    pub jobs: u32,
    /// Transactions per second.
    pub rates: Vec<f64>,
    /// Open loop: transactions that were due and had not completed. Divided by the rate it is the mean response time
    /// (Little's law); throughput itself is the rate.
    pub waiting: Vec<f64>,
}

#[derive(Debug, Clone, Default)]
pub struct WarmedUp {
    /// Time from the first transaction of every job until the window start, s.
    pub taken_s: f64,
    /// Whether throughput was steady, if that was asked.
    pub steady: Option<bool>,
    pub load: Load,
}

/// The next time to count after `now_ns`, of jobs that start at `start_ns`: between the slices of in-database jobs.
pub fn next_count_ns(start_ns: u64, now_ns: u64) -> u64 {
    let first_ns = start_ns + STEP_NS / 2;
    first_ns + (now_ns.saturating_sub(first_ns) / STEP_NS + 1) * STEP_NS
}

/// How many transactions all jobs had completed at times, ns, about [`STEP_NS`] apart and rising.
#[derive(Debug, Clone, Default)]
pub struct Counts(pub Vec<(u64, u64)>);

impl Counts {
    pub(crate) fn count(&mut self, shared: &Shared) {
        self.0.push((now_ns(), shared.completed()));
    }

    /// The sum of counts of several processes, at the times at which the first was counted, from when all are known until one no
    /// longer is.
    pub fn sum(all: &[Counts]) -> Counts {
        let ends = all.iter().flat_map(|counts| [counts.0.first(), counts.0.last()]).flatten();
        let times: BTreeSet<u64> =
            all.iter().take(1).flat_map(|counts| &counts.0).chain(ends).map(|(at, _)| *at).collect();
        let at = |ns: u64| Some((ns, all.iter().map(|counts| counts.at(ns)).sum::<Option<f64>>()? as u64));
        Counts(times.into_iter().filter_map(at).collect())
    }

    /// Transactions completed by `ns`, between two counts in proportion to time; `None` before the first and after the last.
    fn at(&self, ns: u64) -> Option<f64> {
        let after = self.0.partition_point(|(at, _)| *at < ns);
        let (b_ns, b) = *self.0.get(after)?;
        if b_ns == ns {
            return Some(b as f64);
        }
        let (a_ns, a) = *self.0.get(after.checked_sub(1)?)?;
        Some(a as f64 + (b.saturating_sub(a)) as f64 * (ns - a_ns) as f64 / (b_ns - a_ns) as f64)
    }

    /// The load of `jobs` jobs between two times, ns, in whole steps. `due`: rate per ns of an open loop, and when it began.
    pub fn load(&self, from_ns: u64, to_ns: u64, jobs: u32, due: Option<(f64, u64)>) -> Load {
        let first = self.0.first().map_or(from_ns, |(at, _)| from_ns.max(*at));
        let times = (0..).map(|i| first + i * STEP_NS).take_while(|at| *at <= to_ns);
        let counted: Vec<(u64, f64)> = times.map_while(|at| Some((at, self.at(at)?))).collect();
        let rates = counted.windows(2).filter_map(|w| Some((w.last()?.1 - w.first()?.1) / (STEP_NS as f64 / 1e9)));
        let waiting = due.into_iter().flat_map(|(per_ns, began_ns)| {
            // The first is due when it began.
            let of = move |(at, n): &(u64, f64)| (per_ns * at.saturating_sub(began_ns) as f64 + 1.0 - n).max(0.0);
            counted.iter().skip(1).map(of)
        });
        Load { jobs, rates: rates.collect(), waiting: waiting.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_several_processes_add_up_while_all_are_known() {
        let of = |from: u64, to: u64, step: usize, per: u64| {
            Counts((from..=to).step_by(step).map(|at| (at, (at - from) * per)).collect())
        };
        let sum = Counts::sum(&[of(100, 1100, 100, 2), of(150, 1050, 90, 3), of(50, 1150, 50, 5)]);
        let rates = sum.0.windows(2).map(|w| (w[1].1 - w[0].1) as f64 / (w[1].0 - w[0].0) as f64);
        assert!(rates.clone().count() > 5 && rates.clone().all(|rate| (rate - 10.0).abs() < 0.1));
        assert_eq!((sum.0.first().unwrap().0, sum.0.last().unwrap().0), (150, 1050));
        assert!(Counts::sum(&[of(0, 10, 1, 1), Counts::default()]).0.is_empty(), "one is not known");
        assert!(Counts::sum(&[]).0.is_empty());
    }

    #[test]
    fn counts_that_are_late_give_even_rates() {
        // 1000 transactions a second, counted at uneven times.
        let ms = [0u64, 100, 205, 290, 470, 600, 640];
        let counts = Counts(ms.iter().map(|ms| (5_000_000_000 + ms * 1_000_000, *ms)).collect());
        let load = counts.load(5_000_000_000, 5_600_000_000, 2, Some((1.1e-6, 5_000_000_000)));
        assert_eq!(load.rates.len(), 6);
        assert!(load.rates.iter().all(|r| (r - 1000.0).abs() < 1e-6), "{load:?}");
        // One transaction in eleven waits, and they add up.
        assert!((load.waiting[5] - 61.0).abs() < 1e-6, "{load:?}");
        assert_eq!(counts.load(5_000_000_000, 9_000_000_000, 2, None).rates.len(), 6, "no further than counted");
        let next = |now_ns| next_count_ns(7, now_ns) - now_ns;
        assert_eq!([next(7 + STEP_NS / 2), next(7 + STEP_NS)], [STEP_NS, STEP_NS / 2], "between the slices");
        assert!(Counts::default().load(0, 1 << 40, 1, None).rates.is_empty());
    }
}
