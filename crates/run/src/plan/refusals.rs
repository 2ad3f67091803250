//! Options that make no sense together, or with a workload: `refusals.toml`, with one sentence for each of its rows.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use loadline_model::plan::{JobsSpec, PlannedWorkload, RateSpec};
use loadline_model::{Capability, Driver};
use loadline_workload::{Instrument, Program, Sweep, Workload, Workloads};
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

/// A property of a planned workload: its key in `refusals.toml`, and whether the workload has it.
type Trait = (&'static str, fn(&PlanSpec, &PlannedWorkload, &Workload) -> bool);

/// Properties of workloads with which options do not go.
const TRAITS: [Trait; 9] = [
    ("database-driver", |_, w, _| w.driver == Driver::Database),
    ("scan", |_, _, of| of.scan.is_some()),
    ("own-times", |_, _, of| of.scan.is_some() || of.visible.is_some()),
    ("no-sweep-over-jobs", |_, _, of| of.sweep != Sweep::Jobs),
    ("storage-figures", |_, _, of| of.instruments.iter().any(|of| *of != Instrument::CacheHit)),
    ("no-shared-keys", |spec, w, of| !program(spec, w, of).draws_skewed()),
    ("levels-without-writes", |spec, w, of| levels::are_in(spec) && !program(spec, w, of).writes()),
    ("reading-scripts", |_, _, of| of.scripts.as_ref().is_some_and(|scripts| !scripts.allow_writes)),
    ("session-settings", |_, _, of| {
        let sets = |need: &Capability| matches!(need, Capability::CommitNowait | Capability::ParallelQuery);
        of.needs.iter().any(sets) || of.has(Instrument::Device)
    }),
];

/// A row; its first that applies is said.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    options: Vec<String>,
    with: String,
    why: String,
}

/// The rows: `refusal` of other options, and `workload`.
static REFUSALS: LazyLock<BTreeMap<String, Vec<Refusal>>> =
    LazyLock::new(|| toml::from_str(include_str!("refusals.toml")).unwrap_or_default());

/// Refuses an option of `spec` that makes no sense in it.
pub(super) fn check(spec: &PlanSpec) -> Result<(), PlanError> {
    refuse(spec, "refusal", ":", |with| {
        let (_, mode, _) = MODES.iter().find(|(key, _, holds)| *key == with && holds(spec))?;
        Some((*mode).to_owned())
    })
}

/// Refuses an option of `spec` that makes no sense with one of its planned `workloads`.
pub(super) fn check_workloads(
    spec: &PlanSpec,
    known: &Workloads,
    workloads: &[PlannedWorkload],
) -> Result<(), PlanError> {
    refuse(spec, "workload", ",", |with| {
        let (_, holds) = TRAITS.iter().find(|(key, _)| *key == with)?;
        let found = workloads.iter().find(|w| known.find(&w.code).is_ok_and(|of| holds(spec, w, &of)))?;
        Some(found.code.clone())
    })
}

/// Refuses an option that a row of `table` names, if `what` says to what it does not apply, with a `mark` before the reason.
fn refuse(spec: &PlanSpec, table: &str, mark: &str, what: impl Fn(&str) -> Option<String>) -> Result<(), PlanError> {
    for Refusal { options, with, why } in REFUSALS.get(table).into_iter().flatten() {
        let given = options.iter().find(|option| is_given(spec, option));
        if (given.is_some() || options.is_empty())
            && let Some(what) = what(with)
        {
            let Some(option) = given else { return value(format!("{what} {why}")) };
            // Some have no flag.
            let dashes = if ["populations", "variant", "facts"].contains(&option.as_str()) { "" } else { "--" };
            return value(format!("{dashes}{option} does not apply to {what}{mark} {why}"));
        }
    }
    Ok(())
}

/// The program of a workload with the keys of `spec`; empty if its parameters are refused.
fn program(spec: &PlanSpec, planned: &PlannedWorkload, workload: &Workload) -> Program {
    let params = workload.params(&planned.parameters);
    params.map(|params| workload.make(&params.with_keys(spec.keys))).unwrap_or_default()
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
        for (table, Refusal { options, with, .. }) in
            REFUSALS.iter().flat_map(|(t, rows)| rows.iter().map(move |r| (t, r)))
        {
            let is_known = match table.as_str() {
                "refusal" => MODES.iter().any(|(key, ..)| key == with),
                "workload" => TRAITS.iter().any(|(key, _)| key == with),
                _ => false,
            };
            assert!(is_known, "{table}: {with}");
            for option in options {
                let key = option.split(' ').next().unwrap_or_default();
                assert!(keys.iter().any(|known| known == key), "{option}");
            }
        }
    }
}
