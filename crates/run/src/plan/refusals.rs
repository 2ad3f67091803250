//! Options that make no sense together: one table, and one sentence for each of its rows.

use loadline_model::Driver;
use loadline_model::plan::JobsSpec;

use super::{PlanError, PlanSpec, is_auto, value};

/// What kind of run a specification asks for, as far as options depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Scripts,
    NoScripts,
    Agents,
    NoAgents,
    NoHub,
    OpenLoop,
    Populations,
    GivenWarmup,
    Arms,
    Levels,
}

impl Mode {
    /// Whether `spec` asks for it.
    pub(super) fn holds_for(self, spec: &PlanSpec) -> bool {
        let any = |keys: &[&str]| keys.iter().any(|key| is_given(spec, key));
        match self {
            Mode::Scripts => spec.pgbench_script.is_some(),
            Mode::NoScripts => spec.pgbench_script.is_none(),
            Mode::Agents => spec.agents.is_some(),
            Mode::NoAgents => spec.agents.is_none(),
            Mode::NoHub => spec.hub.is_none(),
            Mode::OpenLoop => spec.rate.is_some(),
            Mode::Populations => spec.populations.is_some(),
            Mode::GivenWarmup => !spec.warmup.as_ref().is_some_and(is_auto),
            Mode::Levels => any(&["levels", "standby", "delay", "jitter", "bandwidth"]),
            Mode::Arms => {
                !Mode::Levels.holds_for(spec) && any(&["arm-a", "arm-b", "pairs", "precision", "equivalence"])
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Mode::Scripts => "pgbench scripts",
            Mode::NoScripts => "a run without pgbench scripts",
            Mode::Agents => "a run with agents",
            Mode::NoAgents => "a run without agents",
            Mode::NoHub => "a run without a hub",
            Mode::OpenLoop => "an open loop",
            Mode::Populations => "a plan with populations",
            Mode::GivenWarmup => "a warm-up of a given length",
            Mode::Arms => "two arms",
            Mode::Levels => "levels of replication",
        }
    }
}

/// Options that a mode refuses, why, and what to do instead.
struct Refusal {
    /// Keys of a specification; with a value, only that is refused (see [`is_given`]).
    options: &'static [&'static str],
    mode: Mode,
    why: &'static str,
    instead: &'static str,
}

const fn refusal(
    options: &'static [&'static str],
    mode: Mode,
    why: &'static str,
    instead: &'static str,
) -> Refusal {
    Refusal { options, mode, why, instead }
}

const AGENTS: &[&str] = &["agents", "hub", "agent-credentials"];

/// The first that applies is said.
static REFUSALS: &[Refusal] = &[
    refusal(
        &["define", "allow-writes", "evidence"],
        Mode::NoScripts,
        "it says how scripts run",
        "add --pgbench-script FILE",
    ),
    refusal(
        &["workload", "group", "workload-file"],
        Mode::Scripts,
        "they run alone, on tables that are there",
        "leave out one of the two",
    ),
    refusal(AGENTS, Mode::Scripts, "jobs of agents run transactions of workloads only", "leave out --hub and --agents"),
    refusal(AGENTS, Mode::Arms, "their jobs run in loadline's own process", "leave out --hub and --agents"),
    refusal(AGENTS, Mode::Levels, "their jobs run in loadline's own process", "leave out --hub and --agents"),
    refusal(&["agents"], Mode::NoHub, "agents wait at one", "add --hub nats://HOST:PORT"),
    refusal(&["hub", "agent-credentials"], Mode::NoAgents, "it is for them", "add --agents N"),
    refusal(
        &["driver database"],
        Mode::Agents,
        "that driver runs the load inside the database, and needs no other hosts",
        "leave out one of the two",
    ),
    refusal(
        &["reconnect-every"],
        Mode::Agents,
        "sessions that a lost agent leaves on the server are ended by the ids that they had at the start",
        "leave out one of the two",
    ),
    refusal(
        &["think"],
        Mode::OpenLoop,
        "its transactions start at the rate that is asked for",
        "leave out --think or --rate",
    ),
    refusal(
        &["jobs", "think", "rate"],
        Mode::Populations,
        "each population has its own",
        "leave out the one or the other",
    ),
    refusal(&["max-warmup"], Mode::GivenWarmup, "it bounds an automatic one", "add --warmup auto"),
];

/// Refuses an option of `spec` that makes no sense in it.
///
/// # Errors
/// The option, what it does not go with, why, and what to do.
pub(super) fn check(spec: &PlanSpec) -> Result<(), PlanError> {
    for Refusal { options, mode, why, instead } in REFUSALS.iter().filter(|refusal| refusal.mode.holds_for(spec)) {
        if let Some(option) = options.iter().find(|option| is_given(spec, option)) {
            // It has no flag.
            let dashes = if *option == "populations" { "" } else { "--" };
            return value(format!("{dashes}{option} does not apply to {}: {why}; {instead}", mode.name()));
        }
    }
    Ok(())
}

/// Whether `spec` has an option that a row names: a key, or a key with a value.
fn is_given(spec: &PlanSpec, option: &str) -> bool {
    match option {
        "driver database" => spec.driver == Some(Driver::Database),
        "jobs auto" => matches!(spec.jobs, Some(JobsSpec::Word(_))),
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
    fn every_row_names_options_that_there_are() {
        let keys = PlanSpec::keys();
        for option in REFUSALS.iter().flat_map(|refusal| refusal.options) {
            let key = option.split(' ').next().unwrap_or_default();
            assert!(keys.iter().any(|known| known == key), "{option}");
        }
    }
}
