//! Agents that are lost in a run.

use loadline_database::Target;
use loadline_model::format::counted;
use loadline_model::plan::OnAgentLoss;
use loadline_model::record::AgentFigures;

use super::{Context, StudyError};
use crate::event::{Event, Listener};

/// Ends the sessions that lost agents left on the database: they may hold locks. Returns what was done, in words.
pub(super) fn end_lost(target: &dyn Target, agents: &[AgentFigures]) -> Vec<String> {
    let lost = agents.iter().filter(|agent| agent.lost && agent.jobs > 0);
    lost.map(|agent| {
        let who = format!("agent {} on {}", agent.name, agent.host);
        match target.end_jobs(agent.first_job..agent.first_job.saturating_add(agent.jobs), &agent.sessions) {
            Ok(Some(0)) => format!("{who} left no sessions on the database"),
            Ok(Some(n)) => format!("ended {} that {who} left on the database", counted(n as usize, "session")),
            Ok(None) => format!(
                "the sessions that {who} left are not known: they end with its process, or when it no longer hears of the run"
            ),
            Err(e) => format!("the sessions that {who} left on the database could not be ended: {e}"),
        }
    })
    .collect()
}

impl Context {
    /// Goes on without agents that were lost, or ends the run.
    ///
    /// # Errors
    /// [`StudyError::AgentsLost`] if the plan says that the run ends, or none is left.
    pub(super) fn leave_agents(
        &mut self,
        lost: &[AgentFigures],
        when: &str,
        listener: &mut dyn Listener,
    ) -> Result<(), StudyError> {
        if lost.is_empty() {
            return Ok(());
        }
        let lost = format!("lost {when}: {}", AgentFigures::failures(lost));
        let left = self.agents.as_ref().map_or(0, |agents| agents.left());
        let on_loss = self.manifest.plan.agents.as_ref().map(|agents| agents.on_loss);
        if left == 0 {
            return Err(StudyError::NoAgentLeft(lost));
        }
        if on_loss != Some(OnAgentLoss::Continue) {
            return Err(StudyError::AgentsLost(lost));
        }
        listener.on(Event::Warning(format!("{lost}; {} from here on", counted(left, "agent"))));
        self.without(lost, "")
    }
}
