//! `loadline ab`: a run of variants, each given by flags with its letter.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint};
use loadline_model::Driver;
use loadline_model::variant::{Letter, VariantSpec};
use loadline_run::PlanSpec;
use loadline_run::plan::options::driver;

use crate::args::{AbArgs, parameter, setting};
use crate::exit::Failure;
use crate::run;

/// What the flags with its letter give an arm: `--setting-a`, ….
#[derive(Debug, Clone, Default, PartialEq)]
struct ArmFlags {
    setting: Vec<(String, String)>,
    target: Option<String>,
    driver: Option<Driver>,
    parameter: Vec<(String, String, i64)>,
    switch: Option<String>,
    label: Option<String>,
}

/// The arms that flags give.
#[derive(Debug, Clone, Default)]
pub(crate) struct VariantFlags(Vec<ArmFlags>);

/// The names of a flag of all arms.
macro_rules! lettered {
    ($name:literal) => {
        [
            concat!($name, "-a"),
            concat!($name, "-b"),
            concat!($name, "-c"),
            concat!($name, "-d"),
            concat!($name, "-e"),
            concat!($name, "-f"),
            concat!($name, "-g"),
            concat!($name, "-h"),
        ]
    };
}

/// The flags of arms: names, value, and help.
const FLAGS: [([&str; Letter::MOST], &str, &str); 6] = [
    (lettered!("setting"), "NAME=VALUE", "Setting of the private server in arm {arm}; repeatable"),
    (lettered!("target"), "URL", "Target of arm {arm} [default: --target]"),
    (lettered!("driver"), "DRIVER", "Driver in arm {arm}"),
    (
        lettered!("parameter"),
        "CODE.NAME=N",
        "Parameter of a workload in arm {arm}, e.g. LGWR-LAT25.rows=50; repeatable",
    ),
    (
        lettered!("switch"),
        "COMMAND",
        "Command that brings arm {arm} about (a mount, a tuned profile, SET GLOBAL): sh runs it before each window of {arm}, that of A \
         also at the end, with LOADLINE_ARM={arm}. It is stored in the run: no passwords",
    ),
    (lettered!("label"), "NAME", "Name of arm {arm} in reports [default: what it differs in]"),
];

/// The letters of arms as flags have them.
fn letters() -> impl Iterator<Item = String> {
    (0..Letter::MOST).map(|n| Letter::nth(n).to_string().to_lowercase())
}

/// The flag `id`, such as `setting-a`.
fn flag(id: &'static str, value: &'static str, help: &str) -> Arg {
    let (name, letter) = id.split_once('-').unwrap_or((id, ""));
    let mut help = help.replace("{arm}", &letter.to_uppercase());
    if id == "setting-b" {
        help += ". More arms, each compared with A, have the same flags with -c to -h";
    }
    let arg = Arg::new(id).long(id).value_name(value).help(help).hide(letter > "b");
    match name {
        // A resumed run needs its password.
        "target" => arg.value_hint(ValueHint::Url),
        "setting" => arg.value_parser(setting).action(ArgAction::Append).conflicts_with("resume"),
        "parameter" => arg.value_parser(parameter).action(ArgAction::Append).conflicts_with("resume"),
        "driver" => arg.value_parser(driver()).conflicts_with("resume"),
        _ => arg.conflicts_with("resume"),
    }
}

impl Args for VariantFlags {
    fn augment_args(command: Command) -> Command {
        let all = FLAGS.into_iter().flat_map(|(ids, value, help)| ids.map(|id| flag(id, value, help)));
        all.fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for VariantFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<VariantFlags, clap::Error> {
        let mut flags = VariantFlags::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        fn all<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, id: &str) -> Vec<T> {
            matches.get_many(id).into_iter().flatten().cloned().collect()
        }
        let arm = |letter: String| {
            let text = |name: &str| matches.get_one::<String>(&format!("{name}-{letter}")).cloned();
            ArmFlags {
                setting: all(matches, &format!("setting-{letter}")),
                target: text("target"),
                driver: matches.get_one(&format!("driver-{letter}")).copied(),
                parameter: all(matches, &format!("parameter-{letter}")),
                switch: text("switch"),
                label: text("label"),
            }
        };
        self.0 = letters().map(arm).collect();
        let count = self.0.iter().rposition(|arm| *arm != ArmFlags::default()).map_or(0, |last| last + 1);
        self.0.truncate(count);
        Ok(())
    }
}

pub(crate) fn ab(args: &AbArgs, command: Vec<String>) -> Result<u8, Failure> {
    let urls: Vec<Option<String>> = args.variants.0.iter().map(|arm| arm.target.clone()).collect();
    run::measure(&args.run, command, PlanSpec::default(), &urls, |spec| with_variants(args, spec))
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
    args.pairs.set(&mut spec);
    args.precision.set(&mut spec);
    // Arms are compared with each other, and a limit takes as long as a window.
    spec.probe = Some(false);
    Ok(spec)
}
