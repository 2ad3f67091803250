//! Estimated duration of a plan's tests.

use loadline_analyze::rate::WINDOWS;
use loadline_database::kind_of;
use loadline_model::plan::{Jobs, Plan, PlannedWorkload};
use loadline_workload::{Workload, Workloads};

use super::sweep::SweepPoints;
use super::{planned, workloads_of};
use crate::reference::around_test_s;

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
    /// Of each workload, in the plan's order.
    tests: Vec<Tests>,
    /// Windows of a test, with those in which its rate is searched.
    windows: usize,
    /// How often each is made.
    pub repeat: u32,
}

/// Tests of a workload in one repetition.
struct Tests {
    number: f64,
    each_s: f64,
}

impl Tests {
    fn all_s(&self) -> f64 {
        self.number * self.each_s
    }
}

impl DurationEstimate {
    pub fn new(plan: &Plan) -> DurationEstimate {
        let (steps, exact) = match &plan.jobs {
            Jobs::List(list) => (list.len() as f64, true),
            Jobs::Auto { .. } => (TYPICAL_STEPS, false),
        };
        let limited = plan.probe && kind_of(&plan.target).is_ok_and(|kind| kind.no_limit.is_none());
        // Without those of files that are not read, whose plan is refused, the estimate is of the others.
        let known = workloads_of(plan).unwrap_or_default();
        let windows = if plan.load.objective.is_some() { 1 + WINDOWS } else { 1 };
        let tests = |w: &PlannedWorkload| {
            let found = if limited { known.find(&w.code).ok() } else { None };
            let limits_s = found.map_or(0.0, |workload| limits_s(&workload));
            let window_s = scan_s(&known, w, plan.idle_s()).unwrap_or(plan.duration_s);
            let each_s = (plan.warmup_s + window_s + OVERHEAD_S) * windows as f64 + limits_s;
            Tests { number: SweepPoints::new(&known, w).count(steps) * plan.node_counts().len().max(1) as f64, each_s }
        };
        let tests = plan.workloads.iter().map(tests).collect();
        let repeat = match &plan.paired {
            Some(paired) => 2 * paired.pairs * paired.variants.len().saturating_sub(1) as u32,
            None => plan.repeat,
        };
        DurationEstimate { steps, exact, tests, windows, repeat }
    }

    pub fn total_s(&self) -> f64 {
        self.left_s(1, 0, 0)
    }

    /// Mean duration of a window, with what is around it, s.
    pub fn window_s(&self) -> f64 {
        let number: f64 = self.tests.iter().map(|t| t.number).sum();
        self.tests.iter().map(Tests::all_s).sum::<f64>() / number.max(1.0) / self.windows as f64
    }

    /// Remaining duration, s, after all tests before and `done` ones of the workload at `index` in `repetition` (from 1).
    pub fn left_s(&self, repetition: u32, index: usize, done: usize) -> f64 {
        let here = self.tests.get(index).map_or(0.0, |t| (t.number - done as f64).max(1.0) * t.each_s);
        let later: f64 = self.tests.iter().skip(index + 1).map(Tests::all_s).sum();
        let once: f64 = self.tests.iter().map(Tests::all_s).sum();
        here + later + once * f64::from(self.repeat.saturating_sub(repetition))
    }
}

/// Assumed time of a statement that changes one row, s.
const ROW_S: f64 = 80e-6;

/// About how long a scan of `workload` takes, s, over sizes or `idle_s`: by its highest rate of redo, and row by row.
fn scan_s(known: &Workloads, workload: &PlannedWorkload, idle_s: &[f64]) -> Option<f64> {
    let (found, params) = planned(known, workload, &Default::default(), 0).ok()?;
    let (scan, redo) = (found.scan.as_ref()?, found.redo?);
    let of = |name: &str| params.get(name) as f64;
    // Idle times have the largest size, and the mean of the sizes is half of it.
    let sizes = match idle_s.len() {
        0 => ((of(&scan.most_kib) / of(&scan.step_kib)).floor() + 1.0) / 2.0,
        n => n as f64,
    };
    let kib = of(&scan.samples) * sizes * of(&scan.most_kib);
    let idle_s = of(&scan.samples) * idle_s.iter().sum::<f64>();
    let paced_s = kib / 1024.0 / of(&scan.pace_mib);
    let rows_s = kib * 1024.0 / of(redo.payload) * ROW_S;
    Some(idle_s + if paced_s.is_finite() { rows_s.max(paced_s) } else { rows_s })
}

fn limits_s(workload: &Workload) -> f64 {
    workload.limits.iter().map(|limit| around_test_s(*limit)).sum()
}

#[cfg(test)]
mod tests {
    use loadline_workload::{CATALOGUE, Limit};

    use super::*;
    use crate::testing::planned;

    fn estimated(plan: &str) -> DurationEstimate {
        DurationEstimate::new(&planned(plan))
    }

    #[test]
    fn measurements_of_limits_take_time() {
        let length = |target: &str, probe: bool| {
            let more = format!("target = '{target}'\nprobe = {probe}");
            estimated(&format!("workload = ['SRV-QUERY1', 'LGWR-LAT1']\njobs = [1, 2, 4]\n{more}"))
        };
        let (with, without) = (length("sqlite:", true), length("sqlite:", false));
        let [log, statements] = [Limit::Log, Limit::Statements].map(around_test_s);
        let more =
            |repetition, index, done| with.left_s(repetition, index, done) - without.left_s(repetition, index, done);
        assert!((more(1, 0, 0) - 3.0 * (log + statements)).abs() < 1e-9, "{}", more(1, 0, 0));
        assert!((more(1, 1, 2) - log).abs() < 1e-9, "the last one of LGWR-LAT1: {}", more(1, 1, 2));
        assert_eq!(length("null:", true).total_s(), length("null:", false).total_s(), "it has no limits");
    }

    #[test]
    fn a_search_takes_its_windows() {
        let plain = "target = 'sqlite:'\nworkload = ['TP-LIGHT']\njobs = 2\nprobe = false\n";
        let (plain, searched) = (estimated(plain), estimated(&format!("{plain}rate = 'auto'\np99 = '5ms'")));
        assert!((searched.window_s() - plain.total_s()).abs() < 1e-9);
        assert!((searched.total_s() - (1 + WINDOWS) as f64 * plain.total_s()).abs() < 1e-9);
    }

    #[test]
    fn the_help_of_no_probe_is_true() {
        for workload in CATALOGUE.iter().filter(|w| !w.limits.is_empty()) {
            let saved_s = limits_s(workload);
            assert!((0.4..=4.0).contains(&saved_s), "{}: {saved_s} s", workload.code);
        }
    }
}
