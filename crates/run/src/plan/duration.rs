//! Estimated duration of a plan's tests.

use loadline_model::plan::{Jobs, Plan};

use super::sweep::SweepPoints;

/// Time per test outside warm-up and window, s: loading, sessions, counters.
const OVERHEAD_S: f64 = 0.6;
/// Assumed number of steps of an automatic sweep over jobs.
pub const TYPICAL_STEPS: f64 = 5.0;

/// Number of a plan's tests and their duration.
pub struct DurationEstimate {
    /// Number of job counts of a sweep over jobs.
    pub steps: f64,
    /// Whether `steps` is exact and not [`TYPICAL_STEPS`].
    pub exact: bool,
    /// Tests of each workload in one repetition, in the plan's order.
    tests: Vec<f64>,
    repeat: u32,
    per_test_s: f64,
}

impl DurationEstimate {
    /// Estimates the duration of `plan`.
    #[must_use]
    pub fn of(plan: &Plan) -> DurationEstimate {
        let (steps, exact) = match &plan.jobs {
            Jobs::List(list) => (list.len() as f64, true),
            Jobs::Auto { .. } => (TYPICAL_STEPS, false),
        };
        let tests = plan.workloads.iter().map(|w| SweepPoints::of(w).count(steps)).collect();
        let per_test_s = plan.warmup_s + plan.duration_s + OVERHEAD_S;
        DurationEstimate { steps, exact, tests, repeat: plan.repeat, per_test_s }
    }

    /// Duration of all tests, s.
    #[must_use]
    pub fn total_s(&self) -> f64 {
        self.left_s(1, 0, 0)
    }

    /// Remaining duration, s, after `done` tests of the workload at `index` in `repetition` (from 1), and all tests
    /// before.
    #[must_use]
    pub fn left_s(&self, repetition: u32, index: usize, done: usize) -> f64 {
        let here = (self.tests.get(index).copied().unwrap_or(1.0) - done as f64).max(1.0);
        let later: f64 = self.tests.iter().skip(index + 1).sum();
        let repeated = self.tests.iter().sum::<f64>() * f64::from(self.repeat.saturating_sub(repetition));
        (here + later + repeated) * self.per_test_s
    }
}
