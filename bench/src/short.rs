//! Whole plans with short windows: which tests are valid and what bounds them is asked, not their exact figures.

use std::path::Path;
use std::process::Command;

use loadline_database::OpenRequest;
use loadline_model::Plan;
use loadline_model::disturbance::judged;
use loadline_model::plan::{JobsSpec, TimeSpec};
use loadline_run::{Event, Listener, PlanSpec, Study, StudyError, StudyOutcome};
use loadline_store::StoredRun;

use crate::arena::Outcome;

/// Options of each test.
#[derive(Debug, clap::Args)]
pub(crate) struct Windows {
    /// Job counts of the sweeps over jobs
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4])]
    jobs: Vec<u32>,
    /// Window of each test, s
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Warm-up of each test, s
    #[arg(long, default_value_t = 0.3)]
    warmup: f64,
    /// Size of the data set
    #[arg(long, default_value = "96MiB")]
    size: String,
}

impl Windows {
    /// A plan for `target` that says nothing else.
    pub(crate) fn spec(&self, target: &str) -> PlanSpec {
        PlanSpec {
            target: Some(target.to_owned()),
            jobs: Some(JobsSpec::List(self.jobs.clone())),
            duration: Some(TimeSpec::Seconds(self.seconds)),
            warmup: Some(TimeSpec::Seconds(self.warmup)),
            size: Some(self.size.clone()),
            ..PlanSpec::default()
        }
    }
}

/// Runs a loadline that measures, and reads the run that it stored; its exit code says no more than the tests do, or it is an error.
pub(crate) fn stored(command: &mut Command) -> Outcome<(StoredRun, i32)> {
    let out = command.output()?;
    let said = String::from_utf8_lossy(&out.stdout);
    let code = out.status.code().filter(|code| (0..=1).contains(code));
    match said.lines().last().zip(code) {
        Some((folder, code)) => Ok((StoredRun::open(Path::new(folder))?, code)),
        None => Err(format!("{command:?}: {}", String::from_utf8_lossy(&out.stderr)).into()),
    }
}

/// Runs `plan`, with the targets of other arms in `others`, and prints each test as it ends.
pub(crate) fn study(plan: Plan, request: OpenRequest, others: Vec<OpenRequest>) -> Result<StudyOutcome, StudyError> {
    let results = request.scratch.clone();
    let place = Default::default();
    Study { plan, request, results, resume: None, command: Vec::new(), limits: None, others, place }.run(&mut Told)
}

struct Told;

impl Listener for Told {
    fn on(&mut self, event: Event<'_>) {
        if let Event::TestDone(r) = event {
            let judged = if r.valid { String::new() } else { format!("  {}", judged(r)) };
            eprintln!("    {} with {} jobs{judged}", r.workload, r.jobs);
        }
    }
}
