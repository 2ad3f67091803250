//! The flags of the arms of `loadline ab`: each has the letter of its arm.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint};
use loadline_model::Letter;
use loadline_model::variant::VariantSpec;
use loadline_run::plan::add_parameters;
use loadline_run::plan::options::driver;

/// The arms that flags give, each by those with its letter: `--setting-a`, ….
#[derive(Debug, Clone, Default)]
pub(crate) struct VariantFlags(pub(crate) Vec<VariantSpec>);

/// The flags of arms: name, value, and help.
const FLAGS: [(&str, &str, &str); 6] = [
    ("setting", "NAME=VALUE", "Setting of the private server in arm {arm}; repeatable"),
    ("target", "URL", "Target of arm {arm} [default: --target]"),
    ("driver", "DRIVER", "Driver in arm {arm}"),
    ("parameter", "CODE.NAME=N", "Parameter of a workload in arm {arm}, e.g. LGWR-LAT25.rows=50; repeatable"),
    (
        "switch",
        "COMMAND",
        "Command that brings arm {arm} about (a mount, a tuned profile, SET GLOBAL): sh runs it, with LOADLINE_ARM={arm}, before each \
         window of {arm}; at the end that of A runs once more. It is stored in the run: no passwords",
    ),
    ("label", "NAME", "Name of arm {arm} in reports [default: what it differs in]"),
];

/// Flags of each arm, with its letter in their names.
static LETTERED: LazyLock<Vec<(String, &str, &str)>> = LazyLock::new(|| {
    type Flag = (&'static str, &'static str, &'static str);
    let lettered = |(name, value, help): Flag| letters().map(move |letter| (format!("{name}-{letter}"), value, help));
    FLAGS.into_iter().flat_map(lettered).collect()
});

/// The letters of arms as flags have them.
fn letters() -> impl Iterator<Item = String> {
    (0..Letter::MOST).map(|n| Letter::nth(n).to_string().to_lowercase())
}

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
        LETTERED.iter().fold(command, |command, (id, value, help)| command.arg(flag(id, value, help)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for VariantFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<VariantFlags, clap::Error> {
        let arm = |letter: String| {
            let text = |name: &str| matches.get_one::<String>(&format!("{name}-{letter}")).cloned();
            let settings = matches.get_many(&format!("setting-{letter}")).into_iter().flatten();
            let setting = unique(&format!("--setting-{letter}"), settings);
            let mut variant = VariantSpec {
                setting: setting.map_err(|why| clap::Error::raw(ErrorKind::ValueValidation, why))?,
                target: text("target"),
                driver: matches.get_one(&format!("driver-{letter}")).copied(),
                switch: text("switch"),
                label: text("label"),
                ..VariantSpec::default()
            };
            let parameters = matches.get_many::<(String, String, i64)>(&format!("parameter-{letter}"));
            for (code, name, value) in parameters.into_iter().flatten() {
                add_parameters(&mut variant.parameters, code, [(name.clone(), *value)]);
            }
            Ok(variant)
        };
        let mut arms = letters().map(arm).collect::<Result<Vec<VariantSpec>, clap::Error>>()?;
        arms.truncate(arms.iter().rposition(|arm| *arm != VariantSpec::default()).map_or(0, |last| last + 1));
        Ok(VariantFlags(arms))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Values by name; one that is given twice is refused.
pub(crate) fn unique<'a>(
    flag: &str,
    given: impl IntoIterator<Item = &'a (String, String)>,
) -> Result<BTreeMap<String, String>, String> {
    let mut all = BTreeMap::new();
    for (name, value) in given {
        if all.insert(name.clone(), value.clone()).is_some() {
            return Err(format!("{flag} {name} is given twice: keep one"));
        }
    }
    Ok(all)
}

pub(super) fn parameter(text: &str) -> Result<(String, String, i64), String> {
    let wrong =
        || format!("'{text}' is not a parameter of a workload: write CODE.NAME=N, for example LGWR-LAT25.rows=50");
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let (code, name) = name.split_once('.').ok_or_else(wrong)?;
    let value = value.trim().parse().map_err(|_| wrong())?;
    Ok((code.trim().to_owned(), name.trim().to_owned(), value))
}

pub(super) fn fact(text: &str) -> Result<(String, String), String> {
    let said = format!("'{text}' is not a fact: write NAME=VALUE, for example 'Launch year=2021'");
    text.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).ok_or(said)
}

pub(super) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("'{text}' is not a setting: write NAME=VALUE, for example wal_sync_method=open_datasync")),
    }
}
