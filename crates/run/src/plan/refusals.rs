//! Options that make no sense together: `refusals.toml`, with one sentence for each of its rows.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use loadline_model::Driver;
use loadline_model::plan::{JobsSpec, RateSpec};
use serde::Deserialize;

use super::{PlanError, PlanSpec, is_auto, levels, value, variants};

/// A request of a specification: its key in `refusals.toml`, in words, and whether it is made.
type Mode = (&'static str, &'static str, fn(&PlanSpec) -> bool);

/// Requests on which other options depend.
const MODES: [Mode; 15] = [
    ("scripts", "pgbench scripts", |s| s.pgbench_script.is_some()),
    ("no-scripts", "a run without pgbench scripts", |s| s.pgbench_script.is_none()),
    ("agents", "a run with agents", |s| s.agents.is_some()),
    ("no-agents", "a run without agents", |s| s.agents.is_none()),
    ("no-hub", "a run without a hub", |s| s.hub.is_none()),
    ("open-loop", "an open loop", |s| s.rate.is_some()),
    ("no-search", "a run without --rate auto", |s| !is_given(s, "rate auto")),
    ("populations", "a plan with populations", |s| s.populations.is_some()),
    ("given-warmup", "a warm-up of a given length", |s| !is_given(s, "warmup auto")),
    ("arms", "two arms or more", |s| !levels::are_in(s) && variants::are_in(s)),
    ("levels", "levels of replication", levels::are_in),
    ("targets", "arms with targets of their own", |s| s.variant.iter().flatten().any(|of| of.target.is_some())),
    ("via", "jobs through a proxy", |s| s.via.is_some()),
    ("aging", "a window in parts (--aging)", |s| s.aging == Some(true)),
    ("pairs", "windows compared in pairs, of two arms or of levels", |s| levels::are_in(s) || variants::are_in(s)),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    options: Vec<String>,
    with: String,
    why: String,
}

static REFUSALS: LazyLock<BTreeMap<String, Vec<Refusal>>> =
    LazyLock::new(|| toml::from_str(include_str!("refusals.toml")).unwrap_or_default());

/// Refuses an option of `spec` that makes no sense in it.
pub(super) fn check(spec: &PlanSpec) -> Result<(), PlanError> {
    for Refusal { options, with, why } in REFUSALS.values().flatten() {
        let made = MODES.iter().find(|(key, _, holds)| key == with && holds(spec));
        if let Some((_, mode, _)) = made
            && let Some(option) = options.iter().find(|option| is_given(spec, option))
        {
            // Some have no flag.
            let dashes = if ["populations", "variant", "facts"].contains(&option.as_str()) { "" } else { "--" };
            return value(format!("{dashes}{option} does not apply to {mode}: {why}"));
        }
    }
    Ok(())
}

/// Whether `spec` has an option that a row names.
fn is_given(spec: &PlanSpec, option: &str) -> bool {
    match option {
        "driver database" => spec.driver == Some(Driver::Database),
        "jobs auto" => matches!(spec.jobs, Some(JobsSpec::Word(_))),
        "rate auto" => matches!(spec.rate, Some(RateSpec::Text(_))),
        "nodes N,…" => spec.nodes.as_ref().is_some_and(|counts| counts.len() > 1),
        // Once is what every run does.
        "repeat" => spec.repeat.is_some_and(|n| n != 1),
        "warmup auto" => spec.warmup.as_ref().is_some_and(is_auto),
        key => spec.given().iter().any(|given| given == key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_options_and_a_mode_that_there_are() {
        let keys = PlanSpec::keys();
        assert!(!REFUSALS.is_empty(), "refusals.toml cannot be read");
        for Refusal { options, with, .. } in REFUSALS.values().flatten() {
            assert!(MODES.iter().any(|(key, ..)| key == with), "{with}");
            for option in options {
                let key = option.split(' ').next().unwrap_or_default();
                assert!(keys.iter().any(|known| known == key), "{option}");
            }
        }
    }
}
