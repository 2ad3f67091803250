//! Runs in pairs of windows: `loadline ab`, of variants, each given by flags with its letter; `loadline replica-cost`, of levels of
//! replication.

use loadline_model::Driver;
use loadline_model::plan::{JobsSpec, TimeSpec};
use loadline_model::variant::VariantSpec;
use loadline_run::PlanSpec;
use loadline_run::plan::add_parameters;
use loadline_run::plan::levels::default_delays;

use crate::args::{AbArgs, PairedCommand, ReplicaCostArgs};
use crate::exit::Failure;
use crate::run;

pub(crate) fn measure(paired: &PairedCommand, command: Vec<String>) -> Result<u8, Failure> {
    match paired {
        PairedCommand::Ab(args) => ab(args, command),
        PairedCommand::ReplicaCost(args) => {
            run::measure(&args.run, command, PlanSpec::default(), Vec::new(), |spec| Ok(with_levels(args, spec)))
        }
    }
}

fn ab(args: &AbArgs, command: Vec<String>) -> Result<u8, Failure> {
    let targets = args.variants.0.iter().filter_map(|arm| arm.target.as_ref());
    let urls = targets.chain(args.via.via.iter().flatten()).cloned().collect();
    run::measure(&args.run, command, PlanSpec::default(), urls, |spec| with_variants(args, spec))
}

fn names_workloads(spec: &PlanSpec) -> bool {
    [&spec.workload, &spec.group, &spec.workload_file, &spec.pgbench_script].iter().any(|list| list.is_some())
}

/// `spec` with the variants of the flags, each key of which overrides the plan file's.
fn with_variants(args: &AbArgs, mut spec: PlanSpec) -> Result<PlanSpec, Failure> {
    if !names_workloads(&spec) {
        return Err(Failure::usage(
            "name what the arms are compared by, such as --workload LGWR-LAT25 (see `loadline workloads`)",
        ));
    }
    let given = &args.variants.0;
    let variants = spec.variant.get_or_insert_default();
    variants.resize(variants.len().max(given.len()), VariantSpec::default());
    for (variant, given) in variants.iter_mut().zip(given.clone()) {
        variant.setting.extend(given.setting);
        for (code, of) in given.parameters {
            add_parameters(&mut variant.parameters, &code, of);
        }
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

/// `spec` with the levels of the flags, each of which overrides the plan file's key. Unless it says otherwise, a small transaction is
/// measured, as an application commits it.
fn with_levels(args: &ReplicaCostArgs, spec: PlanSpec) -> PlanSpec {
    let usual = PlanSpec {
        target: Some("postgres-temp:".to_owned()),
        workload: (!names_workloads(&spec)).then(|| vec!["LGWR-LAT1".to_owned()]),
        jobs: Some(JobsSpec::One(1)),
        driver: Some(Driver::Client),
        duration: Some(TimeSpec::Seconds(2.0)),
        warmup: Some(TimeSpec::Seconds(0.5)),
        ..PlanSpec::default()
    };
    let mut spec = usual.overridden_by(spec);
    args.levels.set(&mut spec);
    args.pairs.set(&mut spec);
    if spec.standby.is_none() {
        spec.delay.get_or_insert_with(default_delays);
    }
    // Levels are compared with the baseline, and a limit takes as long as a window.
    spec.probe = Some(false);
    spec
}
