//! Options that make no sense together: one table, and one sentence for each of its rows.

use loadline_model::Driver;
use loadline_model::plan::{JobsSpec, RateSpec};

use super::{PlanError, PlanSpec, is_auto, value};

/// Requests of a specification, as far as other options depend on them: in words, and whether they are made.
type Mode = (&'static str, fn(&PlanSpec) -> bool);

const SCRIPTS: Mode = ("pgbench scripts", |s| s.pgbench_script.is_some());
const NO_SCRIPTS: Mode = ("a run without pgbench scripts", |s| s.pgbench_script.is_none());
const WITH_AGENTS: Mode = ("a run with agents", |s| s.agents.is_some());
const NO_AGENTS: Mode = ("a run without agents", |s| s.agents.is_none());
const NO_HUB: Mode = ("a run without a hub", |s| s.hub.is_none());
const OPEN_LOOP: Mode = ("an open loop", |s| s.rate.is_some());
const NO_SEARCH: Mode = ("a run without --rate auto", |s| !is_given(s, "rate auto"));
const POPULATIONS: Mode = ("a plan with populations", |s| s.populations.is_some());
const GIVEN_WARMUP: Mode = ("a warm-up of a given length", |s| !s.warmup.as_ref().is_some_and(is_auto));
const ARMS: Mode = ("two arms or more", |s| !(LEVELS.1)(s) && super::variants::are_in(s));
const LEVELS: Mode = ("levels of replication", super::levels::are_in);
const TARGETS: Mode = ("arms with targets of their own", |s| s.variant.iter().flatten().any(|of| of.target.is_some()));
const VIA: Mode = ("jobs through a proxy", |s| s.via.is_some());
const AGING: Mode = ("a window in parts (--aging)", |s| s.aging == Some(true));
const PAIRS: Mode = ("windows compared in pairs, of two arms or of levels", |s| (ARMS.1)(s) || (LEVELS.1)(s));

const AGENTS: &[&str] = &["agents", "hub", "agent-credentials"];
const OWN_PROCESS: &str = "their jobs run in loadline's own process; leave out --hub and --agents";

/// Options (a key, or a key with a value: see [`is_given`]), what they do not go with, why, and what to do instead. The first row that
/// applies is said.
const REFUSALS: &[(&[&str], Mode, &str)] = &[
    (&["define", "allow-writes", "evidence"], NO_SCRIPTS, "it says how they run; add --pgbench-script FILE"),
    (
        &["workload", "group", "workload-file"],
        SCRIPTS,
        "they run alone, on tables that are there; leave out one of the two",
    ),
    (&["keys"], SCRIPTS, "scripts draw their own, such as by random_zipfian(1, 1000, 1.1); leave it out"),
    (AGENTS, SCRIPTS, OWN_PROCESS),
    (AGENTS, PAIRS, OWN_PROCESS),
    (&["driver database"], VIA, "that driver sends nothing per transaction; leave it out, or write --driver client"),
    (&["node", "nodes"], VIA, "a proxy is before one server; leave it out"),
    (&["driver database"], AGING, "that driver returns times once a second; write --driver client"),
    (&["agents"], AGING, "their jobs tell what they did at the end; leave out one of the two"),
    (&["aging"], PAIRS, "windows are compared as a whole; leave it out"),
    (&["repeat"], PAIRS, "each pair is a repetition; give --pairs"),
    (&["jobs auto"], PAIRS, "they are measured at given job counts; write --jobs 1,4"),
    (
        &["warmup auto"],
        PAIRS,
        "each window needs the same time under load before it, and the arm that settles later would get more; write --warmup with a time, \
         such as one that `loadline run --warmup auto` took",
    ),
    (&["facts"], TARGETS, "they are of one platform; measure each with `loadline run`, and compare the runs"),
    (&["idle"], PAIRS, "scans are compared by their curves over sizes; leave it out"),
    (&["platform"], ARMS, "they are named by what they differ in; leave it out"),
    (&["nodes N,…"], ARMS, "they are measured over one number of nodes; give --nodes once, such as --nodes 1"),
    (
        &["variant", "via", "precision", "equivalence"],
        LEVELS,
        "levels of replication and arms are two runs; leave out the keys of one",
    ),
    (&["pgbench-script"], LEVELS, "what a commit waits is measured with loadline's own transactions; leave it out"),
    (
        &["rate", "think", "reconnect-every", "populations"],
        LEVELS,
        "what a commit waits is measured with jobs that commit one after the other; leave it out",
    ),
    (&["nodes", "node"], LEVELS, "commits are made on one server, and the others are its replicas; leave it out"),
    (&["agents"], NO_HUB, "agents wait at one; add --hub nats://HOST:PORT"),
    (&["hub", "agent-credentials"], NO_AGENTS, "it is for them; add --agents N"),
    (
        &["driver database"],
        WITH_AGENTS,
        "that driver runs the load inside the database, and needs no other hosts; leave out one of the two",
    ),
    (
        &["reconnect-every"],
        WITH_AGENTS,
        "sessions that a lost agent leaves on the server are ended by the ids that they had at the start; leave out one of the two",
    ),
    (&["think"], OPEN_LOOP, "its transactions start at the rate that is asked for; leave out --think or --rate"),
    (&["p99", "p95", "latency"], NO_SEARCH, "it is what a rate that is found must meet; add --rate auto"),
    (&["rate auto"], PAIRS, "they are compared at the same load; give --rate a number"),
    (&["rate auto"], WITH_AGENTS, "its first look is of one job; give --rate a number"),
    (&["jobs", "think", "rate"], POPULATIONS, "each population has its own; leave out one of the two"),
    (&["max-warmup"], GIVEN_WARMUP, "it bounds one of 'auto'; add --warmup auto"),
];

/// Refuses an option of `spec` that makes no sense in it.
///
/// # Errors
/// The option, what it does not go with, why, and what to do.
pub(super) fn check(spec: &PlanSpec) -> Result<(), PlanError> {
    for (options, (mode, _), why) in REFUSALS.iter().filter(|(_, (_, holds), _)| holds(spec)) {
        if let Some(option) = options.iter().find(|option| is_given(spec, option)) {
            // Some have no flag.
            let dashes = if ["populations", "variant", "facts"].contains(option) { "" } else { "--" };
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
    fn every_row_names_options_that_there_are() {
        let keys = PlanSpec::keys();
        for option in REFUSALS.iter().flat_map(|(options, ..)| *options) {
            let key = option.split(' ').next().unwrap_or_default();
            assert!(keys.iter().any(|known| known == key), "{option}");
        }
    }
}
