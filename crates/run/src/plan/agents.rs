//! Plans whose jobs run on agents.

use loadline_database::{kind_of, redact};
use loadline_model::Driver;
use loadline_model::plan::{PlanSpec, PlannedAgents, PlannedWorkload, SkippedWorkload};
use loadline_workload::{Instrument, Workloads};

use super::{PlanError, value};

/// Most agents of a run.
const MOST_AGENTS: u32 = 10_000;

/// Whether a specification has keys of agents.
pub(super) fn are_in(spec: &PlanSpec) -> bool {
    spec.hub.is_some() || spec.agents.is_some() || spec.agent_credentials.is_some()
}

/// Refuses agents in a plan of `what`.
pub(super) fn refuse(spec: &PlanSpec, what: &str) -> Result<(), PlanError> {
    if are_in(spec) {
        return value(format!("{what} cannot be measured with agents: leave out --hub and --agents"));
    }
    Ok(())
}

/// The driver of a plan. Of the in-database driver the load is the database's own, wherever its sessions come from.
pub(super) fn driver(spec: &PlanSpec) -> Result<Option<Driver>, PlanError> {
    match spec.driver {
        driver if spec.agents.is_none() => Ok(driver),
        Some(Driver::Database) => value(
            "agents are for the client driver: the database driver runs the load inside the database, and needs no other hosts; \
             leave out --agents or --driver database"
                .to_owned(),
        ),
        _ => Ok(Some(Driver::Client)),
    }
}

/// Checks a number of agents.
///
/// # Errors
/// It is none that can be asked for.
pub fn check_number(agents: u32) -> Result<(), PlanError> {
    match agents {
        1..=MOST_AGENTS => Ok(()),
        _ => value(format!("{agents} agents must be between 1 and {MOST_AGENTS}")),
    }
}

/// The agents of a plan, for a target.
pub(super) fn planned(spec: &PlanSpec, url: &str) -> Result<Option<PlannedAgents>, PlanError> {
    let (hub, agents) = match (&spec.hub, spec.agents) {
        (Some(hub), Some(agents)) => (hub, agents),
        (Some(_), None) => return value("--hub needs the number of agents: add --agents N".to_owned()),
        (None, Some(_)) => {
            return value("--agents needs the hub at which they wait: add --hub nats://HOST:PORT".to_owned());
        }
        (None, None) if are_in(spec) => {
            return value("--agent-credentials is for agents: add --hub and --agents".to_owned());
        }
        (None, None) => return Ok(None),
    };
    if spec.reconnect_every.is_some() {
        return value(
            "reconnect-every is not for jobs of agents: sessions that a lost agent leaves on the server are ended by the ids that they had \
             at the start. Leave it out, or --hub and --agents"
                .to_owned(),
        );
    }
    check_number(agents)?;
    let kind = kind_of(url)?;
    // The null engine is temporary, but each process has one.
    if (kind.is_temporary)(url) && kind.no_limit.is_none() {
        return value(format!(
            "agents cannot reach {}, a server that loadline starts for itself: give them the URL of a server",
            redact(url)
        ));
    }
    Ok(Some(PlannedAgents { hub: redact(hub), agents, credentials: spec.agent_credentials.unwrap_or_default() }))
}

/// Moves workloads that agents cannot run to the skipped ones.
pub(super) fn skip(
    known: &Workloads,
    workloads: &mut Vec<PlannedWorkload>,
    skipped: &mut Vec<SkippedWorkload>,
) -> Result<(), PlanError> {
    for planned in std::mem::take(workloads) {
        let workload = known.find(&planned.code)?;
        let why = if workload.scan.is_some() {
            "it is a scan by one session of loadline itself, not a load of jobs"
        } else if workload.has(Instrument::Checkpoint) {
            "its jobs split their times by a phase that agents are not told of"
        } else {
            workloads.push(planned);
            continue;
        };
        skipped.push(SkippedWorkload { code: planned.code, reason: format!("not with agents: {why}") });
    }
    Ok(())
}
