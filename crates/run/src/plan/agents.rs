//! Plans whose jobs run on agents.

use loadline_database::{TargetKind, redact};
use loadline_model::plan::PlannedAgents;
use loadline_workload::{Instrument, Workload};

use super::{PlanError, PlanSpec, value};

pub(super) fn planned(
    spec: &PlanSpec,
    (hub, agents): (&str, u32),
    kind: &TargetKind,
    url: &str,
) -> Result<PlannedAgents, PlanError> {
    // The null engine is temporary, but each process has one.
    if (kind.is_temporary)(url) && kind.no_limit.is_none() {
        return value(format!(
            "agents cannot reach {}, a server that loadline starts for itself: give them the URL of a server",
            redact(url)
        ));
    }
    Ok(PlannedAgents { hub: redact(hub), agents, credentials: spec.agent_credentials.unwrap_or_default() })
}

/// Why agents cannot run a workload; `None` if they can.
pub(super) fn barred(workload: &Workload) -> Option<String> {
    let why = if workload.scan.is_some() {
        "it is a scan by one session of loadline itself, not a load of jobs"
    } else if workload.has(Instrument::Checkpoint) {
        "its jobs split their times by a phase that agents are not told of"
    } else {
        return None;
    };
    Some(format!("not with agents: {why}"))
}
