//! How long the tests of a plan take, as far as that is known before they are made.

use loadline_model::plan::{Jobs, Plan};

use super::sweep::Points;

/// Time that a test takes besides warm-up and window, s: loading, sessions, counters.
const AROUND_S: f64 = 0.6;
/// Steps that an automatic sweep over jobs is assumed to have.
pub const TYPICAL_STEPS: f64 = 5.0;

/// How many tests a plan has, and how long they take.
pub struct Length {
    /// Job counts of a sweep over jobs.
    pub steps: f64,
    /// Whether that is not just [`TYPICAL_STEPS`].
    pub exact: bool,
    /// Tests of each workload in one repetition, in the plan's order.
    tests: Vec<f64>,
    repeat: u32,
    per_test_s: f64,
}

impl Length {
    /// That of `plan`.
    #[must_use]
    pub fn of(plan: &Plan) -> Length {
        let (steps, exact) = match &plan.jobs {
            Jobs::List(list) => (list.len() as f64, true),
            Jobs::Auto { .. } => (TYPICAL_STEPS, false),
        };
        let tests = plan.workloads.iter().map(|w| Points::of(w).count(steps)).collect();
        let per_test_s = plan.warmup_s + plan.duration_s + AROUND_S;
        Length { steps, exact, tests, repeat: plan.repeat, per_test_s }
    }

    /// Seconds that all tests take.
    #[must_use]
    pub fn total_s(&self) -> f64 {
        self.left_s(1, 0, 0)
    }

    /// Seconds that the rest takes when `done` tests of the workload at `index` have been made in `repetition`
    /// (from 1), and all tests before these.
    #[must_use]
    pub fn left_s(&self, repetition: u32, index: usize, done: usize) -> f64 {
        let here = (self.tests.get(index).copied().unwrap_or(1.0) - done as f64).max(1.0);
        let later: f64 = self.tests.iter().skip(index + 1).sum();
        let repeated = self.tests.iter().sum::<f64>() * f64::from(self.repeat.saturating_sub(repetition));
        (here + later + repeated) * self.per_test_s
    }
}
