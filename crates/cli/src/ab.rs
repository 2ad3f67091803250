//! `loadline ab`: a run of two arms.

use std::collections::BTreeMap;

use loadline_model::Driver;
use loadline_model::arms::ArmSpec;
use loadline_run::PlanSpec;

use crate::args::AbArgs;
use crate::exit::Failure;
use crate::run;

pub(crate) fn ab(args: &AbArgs, command: Vec<String>) -> Result<u8, Failure> {
    run::measure(
        &args.run,
        command,
        PlanSpec::default(),
        [args.target_a.as_deref(), args.target_b.as_deref()],
        |spec| with_arms(args, spec),
    )
}

/// `spec` with the arms of the flags, each key of which overrides the plan file's.
fn with_arms(args: &AbArgs, mut spec: PlanSpec) -> Result<PlanSpec, Failure> {
    let AbArgs { target_a, target_b, setting_a, setting_b, driver_a, driver_b, switch_a, switch_b, .. } = args;
    let named = [&spec.workload, &spec.group, &spec.workload_file, &spec.pgbench_script];
    if named.iter().all(|list| list.is_none()) {
        return Err(Failure::usage(
            "name what the arms are compared by, such as --workload LGWR-LAT25 (see `loadline workloads`)",
        ));
    }
    let arm = |of: Option<ArmSpec>,
               label: &Option<String>,
               target: &Option<String>,
               setting: BTreeMap<String, String>,
               driver: Option<Driver>,
               switch: &Option<String>,
               more: &[(String, String, i64)]| {
        let mut arm = of.unwrap_or_default();
        arm.label = label.clone().or(arm.label);
        arm.target = target.clone().or(arm.target);
        arm.setting.extend(setting);
        arm.driver = driver.or(arm.driver);
        arm.switch = switch.clone().or(arm.switch);
        run::set_parameters(&mut arm.parameters, more);
        Some(arm)
    };
    let (setting_a, setting_b) = (run::unique("--setting-a", setting_a)?, run::unique("--setting-b", setting_b)?);
    spec.arm_a = arm(spec.arm_a, &args.label_a, target_a, setting_a, *driver_a, switch_a, &args.parameter_a);
    spec.arm_b = arm(spec.arm_b, &args.label_b, target_b, setting_b, *driver_b, switch_b, &args.parameter_b);
    args.pairs.set(&mut spec);
    args.precision.set(&mut spec);
    // Arms are compared with each other, and a limit takes as long as a window.
    spec.probe = Some(false);
    Ok(spec)
}
