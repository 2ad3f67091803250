//! Differences of the variants of a plan in words: the names of arms in tables and charts.

use std::collections::BTreeMap;

use loadline_database::redact;
use loadline_model::variant::{Letter, VariantSpec};

use super::differing;
use crate::plan::{DEFAULT_TARGET, PlanError, PlanSpec, value};

/// Distinction of the variants, in words; an error if one is the same as another.
pub(super) fn labels(
    specs: &[PlanSpec],
    arms: &[VariantSpec],
    vias: &[Option<String>],
) -> Result<Vec<String>, PlanError> {
    let target = |n: usize| redact(specs[n].target.as_deref().unwrap_or(DEFAULT_TARGET));
    let none = BTreeMap::new();
    let settings: Vec<_> = specs.iter().map(|spec| spec.setting.as_ref().unwrap_or(&none)).collect();
    let switch = |n: usize| arms[n].switch.as_deref();
    let reads = |n: usize| switch(n).is_some_and(|text| text.contains(ARM_VARIABLE));
    let is_same: [&dyn Fn(usize, usize) -> bool; 6] = [
        &|m, n| target(m) == target(n),
        &|m, n| settings[m] == settings[n],
        &|m, n| specs[m].driver == specs[n].driver,
        &|m, n| specs[m].parameters == specs[n].parameters,
        &|m, n| switch(m) == switch(n) && !reads(n),
        &|m, n| vias[m] == vias[n],
    ];
    let all = 0..specs.len();
    for (m, n) in all.clone().flat_map(|n| (0..n).map(move |m| (m, n))) {
        if is_same.iter().all(|is_same| is_same(m, n)) {
            return value(format!(
                "arms {} and {} are the same: let them differ in --setting-a and --setting-b, --target-…, --driver-…, --parameter-…, --via or \
                 --switch-… (one command for both must have {ARM_VARIABLE} in its text, which is A or B)",
                Letter::nth(m),
                Letter::nth(n)
            ));
        }
    }
    let [targets, _, drivers, parameters, switches, ways] = is_same.map(|is_same| all.clone().any(|n| !is_same(0, n)));
    let names = differing(settings.iter().copied());
    let label = |(n, arm): (usize, &VariantSpec)| {
        let letter = Letter::nth(n);
        let mut named: Vec<String> = targets.then(|| target(n)).into_iter().collect();
        named.extend(names.iter().map(|name| match settings[n].get(*name) {
            Some(value) => format!("{name}={value}"),
            None => format!("{name} as it is"),
        }));
        if drivers {
            named.push(specs[n].driver.map_or_else(|| "preferred driver".to_owned(), |d| format!("{d} driver")));
        }
        if parameters {
            let all =
                arm.parameters.iter().flat_map(|(code, of)| of.iter().map(move |(k, v)| format!("{code}.{k}={v}")));
            let given = all.collect::<Vec<_>>().join(", ");
            named.push(if given.is_empty() { "parameters as they are".to_owned() } else { given });
        }
        if let Some(text) = switch(n)
            && switches
        {
            let is_shared = all.clone().any(|other| other != n && switch(other) == switch(n));
            let with = if is_shared { format!(" ({ARM_VARIABLE}={letter})") } else { String::new() };
            named.push(shortened(text) + &with);
        }
        if ways {
            named.push(vias[n].as_ref().map_or_else(|| "direct".to_owned(), |via| format!("through {via}")));
        }
        let given = arm.label.as_deref().map(str::trim);
        if given.is_some_and(|label| label.is_empty() || label.chars().any(char::is_control)) {
            return value(format!("the label of arm {letter} must have a character, and no line break"));
        }
        Ok(format!("{letter}: {}", given.map_or_else(|| named.join(", "), str::to_owned)))
    };
    arms.iter().enumerate().map(label).collect()
}

/// The variable that tells a command of the user's which arm it brings about.
pub(crate) const ARM_VARIABLE: &str = "LOADLINE_ARM";
/// Most characters of a command in the name of an arm.
const MOST_OF_COMMAND: usize = 48;

/// The beginning of a command, on one line.
fn shortened(command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() <= MOST_OF_COMMAND {
        return line;
    }
    line.chars().take(MOST_OF_COMMAND - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use loadline_model::Driver;

    use super::super::tests::{set, spec, variants};
    use super::*;

    fn labels(variant: Vec<VariantSpec>) -> Vec<String> {
        let spec = spec(VariantSpec::default(), VariantSpec::default());
        variants(&PlanSpec { variant: Some(variant), ..spec }).into_iter().map(|variant| variant.label).collect()
    }

    #[test]
    fn variants_are_named_by_what_they_differ_in() {
        let default = VariantSpec::default;
        let client = || VariantSpec { driver: Some(Driver::Client), ..default() };
        let other = VariantSpec { target: Some("postgres://ann:tops3cret@host/db".to_owned()), ..default() };
        let switch = |text: &str| VariantSpec { switch: Some(text.to_owned()), ..default() };
        let one = "./mount.sh $LOADLINE_ARM";
        let switched = ["A", "B"].map(|arm| format!("{arm}: {one} (LOADLINE_ARM={arm})"));
        let three = vec![set("x", "1"), set("x", "2"), VariantSpec { setting: set("x", "1").setting, ..client() }];
        for (variants, said) in [
            (
                vec![set("wal_compression", "off"), set("wal_compression", "on")],
                ["A: wal_compression=off", "B: wal_compression=on"].as_slice(),
            ),
            (vec![default(), set("fsync", "off")], &["A: fsync as it is", "B: fsync=off"]),
            (vec![default(), other], &["A: postgres-temp:", "B: postgres://ann@host/db"]),
            (vec![client(), default()], &["A: client driver", "B: preferred driver"]),
            (vec![switch(one), switch(one)], &switched.each_ref().map(String::as_str)),
            (three, &["A: x=1, preferred driver", "B: x=2, preferred driver", "C: x=1, client driver"]),
        ] {
            assert_eq!(labels(variants), said);
        }
        let long = "psql -qh /run -U postgres -c 'alter system set full_page_writes=off' -c 'select pg_reload_conf()'";
        let labelled = VariantSpec { label: Some("fpw".into()), ..switch(&format!("{long} ")) };
        let long = labels(vec![switch(long), labelled]);
        assert!(long[0].ends_with('…') && long[0].chars().count() < 60 && long[1] == "B: fpw", "{long:?}");
        let rows = BTreeMap::from([("lgwr-lat25".to_owned(), BTreeMap::from([("rows".to_owned(), 50)]))]);
        let variants = variants(&spec(default(), VariantSpec { parameters: rows, ..default() }));
        assert_eq!(variants[1].label, "B: lgwr-lat25.rows=50");
        assert_eq!(variants[1].workloads[0].parameters["rows"], 50);
        assert!(variants[0].workloads[0].parameters.is_empty());
    }
}
