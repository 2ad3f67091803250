//! Points of a sweep. An automatic sweep over jobs rises until throughput no longer grows.

use loadline_model::Column;
use loadline_model::plan::PlannedWorkload;
use loadline_workload::{Sweep, Workloads};

/// Throughput grows if it exceeds the best so far by this share.
pub const GROWTH: f64 = 0.05;
/// A sweep ends after so many steps in a row without growth. One can be a dip: two jobs that wait for each other's flush.
pub const FLAT_STEPS: usize = 2;

/// Next job count of an automatic sweep, from 1 doubled up to `max`; `None` at its end. `done`: job counts and throughput so far.
pub fn next_jobs(done: &[(u32, f64)], max: u32) -> Option<u32> {
    let Some((last, _)) = done.last() else { return Some(1) };
    let (mut best, mut flat) = (0.0_f64, 0);
    for (_, tps) in done {
        if *tps > best * (1.0 + GROWTH) {
            flat = 0;
        } else {
            flat += 1;
        }
        best = best.max(*tps);
    }
    if flat >= FLAT_STEPS || *last >= max {
        return None;
    }
    Some(last.saturating_mul(2).min(max))
}

/// A parameter that is swept, with one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweptParameter {
    pub name: String,
    /// Values, ascending.
    pub values: Vec<i64>,
    pub column: &'static Column,
}

/// The tests of a workload in one repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepPoints {
    pub parameter: Option<SweptParameter>,
    /// Whether a sweep over jobs follows, or is the only sweep.
    pub over_jobs: bool,
}

impl SweepPoints {
    pub fn new(known: &Workloads, workload: &PlannedWorkload) -> SweepPoints {
        let none = SweepPoints { parameter: None, over_jobs: true };
        let Ok(found) = known.find(&workload.code) else { return none };
        match &found.sweep {
            Sweep::Jobs => SweepPoints { over_jobs: found.scan.is_none(), ..none },
            Sweep::Once => SweepPoints { over_jobs: false, ..none },
            Sweep::Parameter { name, values, column, then_jobs } => {
                let (values, over_jobs) = match workload.parameters.get(name) {
                    // The sweep over jobs uses that value.
                    Some(_) if *then_jobs => return none,
                    Some(value) => (vec![*value], false),
                    None => (values.clone(), *then_jobs),
                };
                SweepPoints { parameter: Some(SweptParameter { name: name.clone(), values, column }), over_jobs }
            }
        }
    }

    /// Number of points, if a sweep over jobs has `steps`.
    pub fn count(&self, steps: f64) -> f64 {
        let values = self.parameter.as_ref().map_or(0, |swept| swept.values.len());
        let jobs = if self.over_jobs { steps } else { 0.0 };
        (values as f64 + jobs).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_sweep_ignores_the_job_list() {
        let planned = |code: &str, parameters: &[(&str, i64)]| PlannedWorkload {
            parameters: parameters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            ..PlannedWorkload::new(code, loadline_model::Driver::Client)
        };
        let count = |code: &str, parameters: &[(&str, i64)]| {
            SweepPoints::new(&Workloads::default(), &planned(code, parameters)).count(4.0)
        };
        assert_eq!(count("LGWR-LAT1", &[]), 4.0);
        assert_eq!(count("DA-AGG", &[]), 3.0, "10, 10⁴ and 10⁶ groups");
        assert_eq!(count("DA-AGG", &[("groups", 10)]), 1.0);
        assert_eq!(count("DBL-11", &[]), 12.0, "eight numbers of rows, then the jobs");
        assert_eq!(count("DBL-11", &[("rows", 2)]), 4.0);
        assert_eq!(count("DBL-INDEX", &[]), 1.0);
        assert_eq!(count("LGWR-SIZE", &[]), 1.0, "a scan");
    }

    fn sweep(max: u32, tps: impl Fn(u32) -> f64) -> Vec<u32> {
        let mut done = Vec::new();
        while let Some(jobs) = next_jobs(&done, max) {
            done.push((jobs, tps(jobs)));
            assert!(done.len() < 40, "a sweep ends");
        }
        done.into_iter().map(|(j, _)| j).collect()
    }

    #[test]
    fn it_rises_until_throughput_is_flat_and_never_passes_the_maximum() {
        assert_eq!(sweep(1024, |_| 1000.0), [1, 2, 4], "a single writer");
        assert_eq!(sweep(1024, |j| f64::from(j.min(16)) * 100.0), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(sweep(1024, |j| if j == 2 { 5000.0 } else { 5200.0 * f64::from(j.min(8)) }), [1, 2, 4, 8, 16, 32]);
        assert_eq!(sweep(1024, |_| 0.0), [1, 2], "nothing at all ends at once");
        assert_eq!(sweep(97, f64::from), [1, 2, 4, 8, 16, 32, 64, 97]);
        assert_eq!(sweep(1, f64::from), [1]);
    }
}
