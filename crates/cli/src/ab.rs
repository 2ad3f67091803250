//! `loadline ab`: a run of variants, each given by flags with its letter.

use loadline_model::variant::VariantSpec;
use loadline_run::PlanSpec;

use crate::args::{AbArgs, letters};
use crate::exit::Failure;
use crate::run;

pub(crate) fn ab(args: &AbArgs, command: Vec<String>) -> Result<u8, Failure> {
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
