//! Open loop: transactions start at fixed times, even if earlier ones have not ended.

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

    /// The next intended start, ns.
    pub fn next_start_ns(&mut self) -> u64 {
        // Multiplied, not added, so that rounding errors do not accumulate.
        let start = self.origin_ns + self.interval_ns * self.next as f64;
        self.next += 1;
        start as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
