//! `loadline replica-cost`: a run of levels of replication.

use loadline_model::Driver;
use loadline_model::plan::{JobsSpec, TimeSpec};
use loadline_run::PlanSpec;

use crate::args::ReplicaCostArgs;
use crate::exit::Failure;
use crate::run;

/// Workload unless flags or a plan file say otherwise: a small transaction, as an application commits it.
fn default() -> PlanSpec {
    PlanSpec {
        workload: Some(vec!["LGWR-LAT1".to_owned()]),
        jobs: Some(JobsSpec::One(1)),
        driver: Some(Driver::Client),
        duration: Some(TimeSpec::Seconds(2.0)),
        warmup: Some(TimeSpec::Seconds(0.5)),
        ..PlanSpec::default()
    }
}

pub(crate) fn replica_cost(args: &ReplicaCostArgs, command: Vec<String>) -> Result<u8, Failure> {
    run::measure(&args.run, command, default(), &[], |spec| Ok(with_levels(args, spec)))
}

/// `spec` with the levels of the flags, each of which overrides the plan file's key.
fn with_levels(args: &ReplicaCostArgs, mut spec: PlanSpec) -> PlanSpec {
    args.levels.set(&mut spec);
    args.pairs.set(&mut spec);
    if spec.standby.is_none() {
        spec.delay = spec.delay.or_else(|| Some(loadline_run::plan::levels::default_delays()));
    }
    // A plan file that says nothing of these means what the flags mean.
    let usual = default();
    let named = [&spec.workload, &spec.group, &spec.workload_file, &spec.pgbench_script];
    if named.iter().all(|list| list.is_none()) {
        spec.workload = usual.workload;
    }
    spec.driver = spec.driver.or(usual.driver);
    spec.duration = spec.duration.or(usual.duration);
    spec.warmup = spec.warmup.or(usual.warmup);
    spec.target = spec.target.or_else(|| Some("postgres-temp:".to_owned()));
    // Levels are compared with the baseline, and a limit takes as long as a window.
    spec.probe = Some(false);
    spec
}
