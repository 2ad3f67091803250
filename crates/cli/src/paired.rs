//! Runs in pairs of windows: `loadline ab`, of variants, each given by flags with its letter; `loadline replica-cost`, of levels of
//! replication.

use loadline_model::Driver;
use loadline_model::plan::{JobsSpec, TimeSpec};
use loadline_model::variant::VariantSpec;
use loadline_run::PlanSpec;

use crate::args::{AbArgs, PairedCommand, ReplicaCostArgs, letters};
use crate::exit::Failure;
use crate::run;

pub(crate) fn measure(paired: &PairedCommand, command: Vec<String>) -> Result<u8, Failure> {
    match paired {
        PairedCommand::Ab(args) => ab(args, command),
        PairedCommand::ReplicaCost(args) => replica_cost(args, command),
    }
}

fn ab(args: &AbArgs, command: Vec<String>) -> Result<u8, Failure> {
    let urls: Vec<Option<String>> = args.variants.0.iter().map(|arm| arm.target.clone()).collect();
    // A resumed run needs their passwords.
    let default = PlanSpec { via: args.via.via.clone(), ..PlanSpec::default() };
    run::measure(&args.run, command, default, &urls, |spec| with_variants(args, spec))
}

/// `spec` with the variants of the flags, each key of which overrides the plan file's.
fn with_variants(args: &AbArgs, mut spec: PlanSpec) -> Result<PlanSpec, Failure> {
    let named = [&spec.workload, &spec.group, &spec.workload_file, &spec.pgbench_script];
    if named.iter().all(|list| list.is_none()) {
        return Err(Failure::usage(
            "name what the arms are compared by, such as --workload LGWR-LAT25 (see `loadline workloads`)",
        ));
    }
    let given = &args.variants.0;
    let variants = spec.variant.get_or_insert_default();
    variants.resize(variants.len().max(given.len()), VariantSpec::default());
    for ((variant, flags), letter) in variants.iter_mut().zip(given).zip(letters()) {
        variant.setting.extend(run::unique(&format!("--setting-{letter}"), &flags.setting)?);
        run::set_parameters(&mut variant.parameters, &flags.parameter);
        let given = flags.clone();
        variant.label = given.label.or(variant.label.take());
        variant.target = given.target.or(variant.target.take());
        variant.driver = given.driver.or(variant.driver);
        variant.switch = given.switch.or(variant.switch.take());
    }
    args.via.set(&mut spec);
    args.pairs.set(&mut spec);
    args.precision.set(&mut spec);
    // Arms are compared with each other, and a limit takes as long as a window.
    spec.probe = Some(false);
    Ok(spec)
}

/// Workload unless flags or a plan file say otherwise: a small transaction, as an application commits it.
fn usual() -> PlanSpec {
    PlanSpec {
        workload: Some(vec!["LGWR-LAT1".to_owned()]),
        jobs: Some(JobsSpec::One(1)),
        driver: Some(Driver::Client),
        duration: Some(TimeSpec::Seconds(2.0)),
        warmup: Some(TimeSpec::Seconds(0.5)),
        ..PlanSpec::default()
    }
}

fn replica_cost(args: &ReplicaCostArgs, command: Vec<String>) -> Result<u8, Failure> {
    run::measure(&args.run, command, usual(), &[], |spec| Ok(with_levels(args, spec)))
}

/// `spec` with the levels of the flags, each of which overrides the plan file's key.
fn with_levels(args: &ReplicaCostArgs, mut spec: PlanSpec) -> PlanSpec {
    args.levels.set(&mut spec);
    args.pairs.set(&mut spec);
    if spec.standby.is_none() {
        spec.delay = spec.delay.or_else(|| Some(loadline_run::plan::levels::default_delays()));
    }
    // A plan file that says nothing of these means what the flags mean.
    let usual = usual();
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
